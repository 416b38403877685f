/* Ownership in the code's own words: AUTO_* locals release at the end of their scope, MOVE_* marks the hand-over. */
#ifndef BASE_OWN_H
#define BASE_OWN_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline void own_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing was written through it that a later check does not see */
}

static inline void own_free(void *p)
{
    free(*(void **)p);
}

static inline void own_fclose(FILE **f)
{
    if (*f)
        (void)fclose(*f); /* readers only; writers close by hand and check */
}

static inline int own_take_fd(int *fd)
{
    int got = *fd;
    *fd = -1;
    return got;
}

#define AUTO_CLOSE __attribute__((cleanup(own_close)))
#define AUTO_FREE __attribute__((cleanup(own_free)))
#define AUTO_FCLOSE __attribute__((cleanup(own_fclose)))
#define MOVE_FD(fd) own_take_fd(&(fd))
#define MOVE_PTR(p)                                                                                                    \
    __extension__({                                                                                                    \
        __typeof__(p) moved_ = (p);                                                                                    \
        (p) = NULL;                                                                                                    \
        moved_;                                                                                                        \
    })

#endif
