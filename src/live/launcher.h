/* A trial's launcher (`pipetune-node exec`) as the loop sees it: started by us, or met again after a crash. */
#ifndef LIVE_LAUNCHER_H
#define LIVE_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "app/app.h"
#include "base/err.h"
#include "base/proc.h"
#include "base/strv.h"

struct launcher;

struct launcher_ready {
    char boot_id[PROC_BOOT_ID_SIZE];
    pid_t pid;
    uint64_t start_ticks;
    int port;            /* its own, of one of a gang; 0: none */
    uint64_t heard_size; /* of what is heard of it (node/log_files.h): where this attempt's lines begin */
    char unlimited[256]; /* why its memory has no limit although it was to have one; "" */
};

/* Called from the loop with the id given at the start; after `refused` or `gone` nothing more is called. */
struct launcher_ops {
    void (*ready)(void *ctx, uint64_t id,
                  const struct launcher_ready *r); /* it holds the folder and waits for launcher_go() */
    void (*refused)(void *ctx, uint64_t id, bool busy, const char *why); /* before the go: nothing was started */
    void (*gone)(void *ctx, uint64_t id);                                /* after the go: its process has ended */
};

enum { LAUNCHER_GRACE_S = 10 }; /* it gives what it runs between TERM and KILL */

/* What it is given, `node` (our pipetune-node) first; behind it stands each step, which runs when the one before has succeeded. */
struct launcher_words {
    const char *node, *dir, *tag;
    const char *cpus; /* of this machine, that it is held to from its beginning: "0,2"; NULL: all */
    const char *runs; /* of a session: the folder with those of its trials, by number; NULL */
    int attempt;
    int64_t memory;                /* bytes that what it runs may take together; 0: as many as there are */
    int64_t log_mb;                /* that its log may take on disk */
    int gang;                      /* of so many processes this is one; 0: of none */
    const struct application *app; /* whose output it keeps; NULL: only what people may read */
    const char *tell, *answer;     /* the socket of its programs, and what they are answered; NULL: none */
    bool unasked;                  /* it begins by itself: nobody is there to be asked */
};

/* How it is started. Zeroed: empty. */
struct launcher_command {
    struct strv argv;
    struct strv env; /* NAME=VALUE, for what it starts; in the place of ours of that name */
};
void launcher_command_done(struct launcher_command *c);
#define AUTO_COMMAND __attribute__((cleanup(launcher_command_done)))

void launcher_put(struct launcher_command *c, const struct launcher_words *w, const struct app_steps *steps);

/* Appends a step's words, with their count before them. */
void launcher_put_step(struct strv *argv, const struct strv *step);

/* A tag that no other launch on any machine has: [A-Za-z0-9_-]. Free it; NULL: memory. */
char *launcher_new_tag(int trial, int attempt);

/* Starts it in a session of its own; its control socket is fd 3. -errno of the start. */
int launcher_start(struct launcher **out, uv_loop_t *loop, const struct launcher_ops *ops, void *ctx, uint64_t id,
                   const struct launcher_command *c, struct err *e);

/* Watches one that runs already. -ESRCH: that process is gone, or is not the launcher of this tag. */
int launcher_adopt(struct launcher **out, uv_loop_t *loop, const struct launcher_ops *ops, void *ctx, uint64_t id,
                   pid_t pid, uint64_t start_ticks, const char *boot_id, const char *tag, struct err *e);

/* Is this very process one of ours, and the launcher of this tag? What a note says of a process is no more than a claim. */
bool launcher_is(pid_t pid, uint64_t start_ticks, const char *boot_id, const char *tag);

/* Tells a launcher's processes to end, or (`hard`) kills its whole session. Nothing when it is not that launcher. */
void launcher_signal(pid_t pid, uint64_t start_ticks, const char *boot_id, const char *tag, bool hard);

/* Has it say to the programs of its steps that the trial is to end at the next epoch's end (app/tell.h). */
void launcher_say_stop(pid_t pid, uint64_t start_ticks, const char *boot_id, const char *tag);

/* Kills whatever carries the tag: when a launcher was killed outright, what it ran may have left children. */
void launcher_kill_tagged(const char *tag);

/* `ports`: of all of its gang, "4001,4002"; NULL: it is of none. */
int launcher_go(struct launcher *l,
                const char *ports); /* 0 or -errno: it ends by itself; `gone` is called in either case */
void launcher_free(
    struct launcher *l); /* lets go of it, wherever it is: without a go it ends by itself, after one it goes on */

#endif
