/* Files below a folder, by names that a stranger may give or have made: a name is parts with '/' between, and no link is followed in any
 * of them, so that nothing outside of the folder is ever read or written. */
#ifndef BASE_BENEATH_H
#define BASE_BENEATH_H

#include <stdbool.h>

enum { BENEATH_NAME_MAX = 1024, BENEATH_PARTS_MAX = 32 };

/* "lib/a.py": parts of 1 to 255 bytes, none "." or "..", no control characters; at most BENEATH_PARTS_MAX of them. */
bool beneath_is_name(const char *name);

/* Opens it, below the folder `dir`. The descriptor; -EINVAL: it is no such name; -ELOOP: it has a link; -ENOTDIR; -errno. */
int beneath_open(int dir, const char *name, int flags);

/* Makes the folders before its last part, mode 0700, where they are not there. As above. */
int beneath_mkdirs(int dir, const char *name);

/* The descriptor's folder and all in it go: links themselves, not what they name. Takes `dir`. What stays makes its folder stay. */
void beneath_empty(int dir);

#endif
