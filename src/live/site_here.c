#include "live/site.h"

#include <errno.h>
#include <stdlib.h>

#include "base/own.h"
#include "base/proc.h"

void site_paths_done(struct site_paths *p)
{
    free(p->checkpoint);
    free(p->resume);
    free(p->library);
    free(p->session);
    *p = (struct site_paths){ 0 };
}

void site_order_done(struct site_order *o)
{
    free(o->tell);
    free(o->answer);
    free(o->resume);
    free(o->resume_state);
    free(o->session);
    app_steps_done(&o->steps);
    *o = (struct site_order){ 0 };
}

int site_own_paths(void *site, const char *tag, const char *resume, struct site_paths *out, struct err *e)
{
    (void)site, (void)tag, (void)resume, (void)out, (void)e; /* all of it is where it is */
    return 0;
}

static int start(void *site, uint64_t id, struct site_order *o, struct site_launch *out, struct err *e)
{
    enum { START_TRIES = 3 }; /* of a launcher that cannot be forked */
    const struct site_here *here = site;
    AUTO_COMMAND struct launcher_command command = { 0 };
    struct launcher *l = NULL;
    o->words.tell = o->tell;
    o->words.answer = o->answer;
    launcher_put(&command, &o->words, &o->steps);
    int rc =
        command.argv.failed || command.env.failed ? err_sys(e, -ENOMEM, "cannot start '%s'", o->words.node) : -EAGAIN;
    for (int i = 0; rc == -EAGAIN && i < START_TRIES; i++)
        rc = launcher_start(&l, here->loop, here->ops, here->ctx, id, &command, e);
    if (rc == 0)
        *out = (struct site_launch){ &site_here_row, l };
    return rc;
}

static int adopt(void *site, uint64_t id, const struct store_attempt *row, const char *dir, struct site_launch *out,
                 struct err *e)
{
    const struct site_here *here = site;
    struct launcher *l = NULL;
    (void)dir;
    int rc = launcher_adopt(&l, here->loop, here->ops, here->ctx, id, (pid_t)row->pid, (uint64_t)row->start_ticks,
                            row->boot_id, row->launch, e);
    if (rc == 0)
        *out = (struct site_launch){ &site_here_row, l };
    return rc;
}

static int go(void *own, const char *ports)
{
    return launcher_go(own, ports);
}

/* By what is stored of it: whoever started it. */
static void signal_launch(void *own, const struct store_attempt *row, bool hard)
{
    pid_t pid = (pid_t)row->pid;
    (void)own;
    if (pid <= 1 || !row->boot_id)
        return;
    launcher_signal(pid, (uint64_t)row->start_ticks, row->boot_id, row->launch, hard);
    if (hard)
        launcher_kill_tagged(row->launch);
}

static void say_stop(void *own, const struct store_attempt *row)
{
    (void)own;
    if (row->pid > 1 && row->boot_id)
        launcher_say_stop((pid_t)row->pid, (uint64_t)row->start_ticks, row->boot_id, row->launch);
}

void site_own_accounted(void *own, uint64_t offset)
{
    (void)own, (void)offset; /* the attempt reads the launcher's own file */
}

int site_own_checkpoint(void *own, int epoch, const char *path, struct err *e)
{
    (void)own, (void)epoch, (void)path, (void)e;
    return 0;
}

static bool away(void *own)
{
    (void)own;
    return false;
}

static bool boot_id(void *own, char out[PROC_BOOT_ID_SIZE])
{
    (void)own;
    return proc_boot_id(out) == 0;
}

static int talk(void *own, uv_loop_t *loop, const char *tag, const struct session_ops *ops, void *ctx, uint64_t id,
                struct session_link **out, struct err *e)
{
    AUTO_FREE char *path = NULL;
    (void)own;
    int rc = session_path(&path, tag, e);
    return rc < 0 ? rc : session_link_open(out, loop, path, ops, ctx, id, e);
}

bool site_own_ahead(void *own, int64_t *out_ms)
{
    (void)own;
    *out_ms = 0;
    return true;
}

const char *site_own_lost(void *own)
{
    (void)own;
    return NULL;
}

static void let_go(void *own, bool over)
{
    (void)over; /* its folder is the trial's */
    launcher_free(own);
}

const struct site_row site_here_row = { .paths = site_own_paths,
                                        .start = start,
                                        .adopt = adopt,
                                        .go = go,
                                        .signal = signal_launch,
                                        .say_stop = say_stop,
                                        .accounted = site_own_accounted,
                                        .checkpoint = site_own_checkpoint,
                                        .away = away,
                                        .boot_id = boot_id,
                                        .talk = talk,
                                        .ahead = site_own_ahead,
                                        .lost = site_own_lost,
                                        .let_go = let_go };
