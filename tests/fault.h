/* Makes the Nth call of a kind fail, in our own objects (linked with --wrap, see the Makefile). */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

enum {
    FAULT_ALLOC = 1,  /* malloc calloc realloc strdup strndup: NULL, ENOMEM */
    FAULT_WRITE = 2,  /* write: -1, ENOSPC */
    FAULT_FSYNC = 4,  /* fsync: -1, EIO */
    FAULT_RENAME = 8, /* rename: -1, EIO */
    FAULT_OPEN = 16,  /* open: -1, EMFILE */
    FAULT_FORK = 32,  /* fork: -1, EAGAIN */
};

/* The nth call (1 = the next) of any of `kinds` fails, once. */
void fault_arm(unsigned kinds, unsigned nth);

/* Has it struck by now? */
_Bool fault_struck(void);

/* Back to normal; true when the armed fault had struck. */
_Bool fault_disarm(void);

#endif
