/* The command line of `pipetune-node exec` (exec.h draws it): its options, and the counted lists of the steps. */
#ifndef NODE_ARGS_H
#define NODE_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/needles.h"

enum { ARGS_FD_FIRST = 3 }; /* the lowest --control: below it are stdin, stdout and stderr */

struct args_step {
    char **argv; /* NULL-terminated copy of pointers; owned */
};

struct args {
    const char *dir, *launch;
    const char *cpus;          /* "0,2-3"; NULL: not given */
    const char *folder;        /* in which the steps run; NULL: where we are */
    const char *mark;          /* of runs; NULL: this launch has none */
    const char *runs, *ids;    /* where their folders are, by number or by name; one of them, or none */
    const char *tell, *answer; /* where its programs tell of themselves, and what they are answered; NULL: nowhere */
    uint64_t attempt, log_cap, grace_s;
    uint64_t control;          /* 0: nobody has to be asked before the steps */
    uint64_t gang;             /* of so many processes this is one, each launched by itself; 0: of none */
    uint64_t memory;           /* bytes that what runs may take together; 0: as many as there are */
    struct needles keep, step; /* the texts are argv's */
    struct args_step *steps;   /* owned */
    size_t n_steps;
};

/* argv[0] is "exec". All texts are argv's, which must outlive `out`; args_done() is due on failure too. -EINVAL: what is wrong
 * with the command line; -EBADF: --control is not open; -ENOMEM. */
int args_parse(struct args *out, int argc, char **argv, struct err *e);
void args_done(struct args *o);

#endif
