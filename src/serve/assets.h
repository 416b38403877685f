/* What the pages refer to, within the program: serve/assets/. */
#ifndef SERVE_ASSETS_H
#define SERVE_ASSETS_H

#include <stddef.h>

struct asset {
    const char *name, *type, *from, *to;
};

const struct asset *asset_find(const char *name); /* NULL: there is none */

#endif
