/* What a launcher has left of how its launch ended (node/exec.h). */
#ifndef LIVE_EXIT_NOTE_H
#define LIVE_EXIT_NOTE_H

#include <stdbool.h>
#include <stdint.h>

struct attempt_exit {
    bool there;
    char kind[16];
    int code;
    bool starved;    /* the kernel killed something for want of memory meanwhile */
    bool limited;    /* … of the attempt's own, as it would have taken more than it was given */
    int64_t at_ms;   /* when it was written */
    int64_t boot_ms; /* the same, by the clock that nobody sets; 0: not told */
};

/* DIR/exit, when it speaks of this launch; else one that is not there. */
void exit_note_read(const char *dir, int attempt, const char *launch, struct attempt_exit *out);

/* By a signal that others send; those that a program brings upon itself (SEGV, ABRT, …) are its own failures. A runtime that is told to
 * end does so by itself, with the same code. */
bool exit_note_is_killed(const struct attempt_exit *x);

#endif
