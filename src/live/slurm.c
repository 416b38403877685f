#include "live/slurm_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"

struct slurm_launch *slurm_find(const struct slurm *s, uint64_t id)
{
    struct slurm_launch *l = s->list;
    while (l && l->id != id)
        l = l->next;
    return l;
}

/* --- the end of a launch ------------------------------------------------------------------------------------------------------ */

static void free_job(struct slurm_launch *l)
{
    struct slurm_launch **at = &l->all->list;
    while (*at && *at != l)
        at = &(*at)->next;
    if (*at)
        *at = l->next;
    free(l->tag);
    free(l->dir);
    free(l);
}

/* --- starting ------------------------------------------------------------------------------------------------------------------ */

static void ready(struct slurm_launch *l)
{
    struct slurm *s = l->all;
    const struct launcher_ready r = { .boot_id = SLURM_PLACE, .start_ticks = l->number };
    s->launcher->ready(s->ctx, l->id, &r);
}

/* It made no job, as far as is known. */
static void on_refused(struct slurm *s, struct slurm_launch *l, const struct slurm_command *c)
{
    char why[SLURM_SAID_MAX], text[SLURM_SAID_MAX + 64];
    slurm_command_fault(c, why);
    bool passes = c->code == -ETIMEDOUT || c->code > 128;
    enum slurm_fault fault = passes ? SLURM_PASSES : slurm_fault_of(buf_text(&c->out));
    (void)snprintf(text, sizeof text, "Slurm does not take its job: %s", why);
    s->to_sweep = true;
    if (fault == SLURM_NEVER) { /* the attempt says so by its end */
        l->end = (struct slurm_verdict){ .outcome = OUTCOME_INFEASIBLE };
        (void)snprintf(l->end.why, sizeof l->end.why, "%s", text);
        ready(l);
    } else if (fault == SLURM_PASSES) {
        s->rests_until_ms = clock_ms() + slurm_patience_ms("PIPETUNE_REST_MS", SLURM_SILENT_MS);
        s->ops->unplaced(s->ctx, l->id, text);
    } else {
        s->launcher->refused(s->ctx, l->id, false, text);
    }
}

static void on_submitted(struct slurm *s, const struct slurm_command *c)
{
    struct slurm_launch *l = slurm_find(s, c->id);
    uint64_t number;
    bool made = c->code == 0 && slurm_words_id(buf_text(&c->out), &number);
    if (!l && made) { /* nobody waits for it any more */
        slurm_cancel(s, number, NULL, NULL);
    } else if (!l) {
        slurm_sweep(s);
    } else if (!made) {
        l->busy = false;
        on_refused(s, l, c);
    } else {
        l->busy = false;
        l->number = number;
        ready(l);
    }
}

static struct slurm_launch *make(struct slurm *s, uint64_t id, const char *tag, const char *dir, struct err *e)
{
    struct slurm_launch *l = calloc(1, sizeof *l);
    if (l) {
        *l = (struct slurm_launch){ .all = s, .id = id, .tag = strdup(tag), .dir = io_absolute(dir) };
        l->next = s->list;
        s->list = l;
    }
    if (l && l->tag && l->dir)
        return l;
    if (l)
        free_job(l);
    (void)err_sys(e, -ENOMEM, "launch '%s'", tag);
    return NULL;
}

static int write_script(const struct slurm_launch *l, struct site_order *o, const char *path, struct err *e)
{
    AUTO_COMMAND struct launcher_command command = { 0 };
    AUTO_BUF struct buf text = BUF_INIT;
    AUTO_FREE char *cwd = getcwd(NULL, 0);
    AUTO_FREE char *said = io_join(l->dir, "job.out");
    struct launcher_words words = o->words;
    words.dir = l->dir;
    words.unasked = true;
    words.memory = 0; /* Slurm's to limit */
    words.tell = o->tell ? "-" : NULL;
    words.answer = o->answer;
    launcher_put(&command, &words, &o->steps);
    if (!cwd || !said)
        return err_sys(e, -ENOMEM, "launch '%s'", l->tag);
    slurm_words_script(path, l->tag, cwd, said, &command.env, &command.argv, &text);
    if (command.argv.failed || command.env.failed || text.failed)
        return err_sys(e, -ENOMEM, "launch '%s'", l->tag);
    return io_write_atomic(path, text.data, text.len, 0700, e);
}

static int start(void *site, uint64_t id, struct site_order *o, struct site_launch *out, struct err *e)
{
    struct slurm *s = site;
    const struct config *cfg = &s->plan->cfg;
    struct slurm_launch *l = make(s, id, o->words.tag, o->words.dir, e);
    AUTO_FREE char *path = l ? io_join(l->dir, "job") : NULL;
    struct strv argv = STRV_INIT;
    int rc = !l ? e->code : path ? write_script(l, o, path, e) : err_sys(e, -ENOMEM, "launch '%s'", l->tag);
    const struct slurm_ask what = { .name = s->name,
                                    .tag = o->words.tag,
                                    .script = path,
                                    .partition = cfg->slurm_partition,
                                    .account = cfg->slurm_account,
                                    .time = cfg->slurm_time,
                                    .options = &cfg->slurm_options,
                                    .cpus = o->room.cpus,
                                    .memory_gb = o->room.memory_gb };
    if (rc == 0) {
        slurm_words_sbatch(&what, &argv);
        rc = slurm_command(s, id, &argv, on_submitted);
        rc = rc < 0 ? err_sys(e, rc, "launch '%s'", l->tag) : 0;
    }
    if (rc < 0) {
        if (l)
            free_job(l);
        return rc;
    }
    l->busy = true;
    *out = (struct site_launch){ slurm_site(s).row, l };
    return 0;
}

/* Whether it still runs shows the first squeue. */
static int adopt(void *site, uint64_t id, const struct store_attempt *row, const char *dir, struct site_launch *out,
                 struct err *e)
{
    struct slurm *s = site;
    if (row->start_ticks <= 0) /* it was never to be had */
        return -ESRCH;
    struct slurm_launch *l = make(s, id, row->launch, dir, e);
    if (!l)
        return e->code;
    l->number = (uint64_t)row->start_ticks;
    l->went = l->adopted = true;
    l->went_ms = clock_ms();
    s->poll_ms = 0;
    *out = (struct site_launch){ slurm_site(s).row, l };
    return 0;
}

static void on_released(struct slurm *s, const struct slurm_command *c)
{
    struct slurm_launch *l = slurm_find(s, c->id);
    slurm_poll_within(s, SLURM_SOON_MS);
    if (!l)
        return;
    l->busy = false;
    if (c->code == 0)
        return;
    l->to_release = true; /* where it has ended, squeue says so */
    l->retry_ms = clock_ms() + SLURM_SOON_MS;
}

void slurm_release(struct slurm_launch *l)
{
    struct strv argv = STRV_INIT;
    if (!l->to_release || l->busy || clock_ms() < l->retry_ms)
        return;
    strv_add(&argv, "scontrol");
    strv_add(&argv, "release");
    strv_addf(&argv, "%" PRIu64, l->number);
    l->to_release = slurm_command(l->all, l->id, &argv, on_released) < 0; /* without memory at the next look */
    l->busy = !l->to_release;
}

static int go(void *own, const char *ports)
{
    struct slurm_launch *l = own;
    (void)ports; /* no gang is a job */
    l->went = true;
    l->went_ms = clock_ms();
    l->to_release = l->number > 0 && !l->to_end;
    if (l->number > 0 && l->to_end)
        slurm_cancel(l->all, l->number, NULL, NULL);
    slurm_release(l);
    return 0;
}
/* --- the row -------------------------------------------------------------------------------------------------------------------------- */

/* Its launcher alone is asked to end; one that does not is killed with all of its processes, and at last as a job. */
static void signal_launch(void *own, const struct store_attempt *row, bool hard)
{
    struct slurm_launch *l = own;
    (void)row;
    if (!l || l->over)
        return;
    if (!l->went)
        l->to_end = true;
    else if (l->number > 0 && hard && !l->killed && l->begun)
        slurm_cancel(l->all, l->number, "--full", "KILL");
    else if (l->number > 0)
        slurm_cancel(l->all, l->number, l->begun && !hard ? "--batch" : NULL, l->begun && !hard ? "TERM" : NULL);
    l->killed |= hard;
    l->to_release = false;
}

static void say_stop(void *own, const struct store_attempt *row)
{
    struct slurm_launch *l = own;
    (void)row;
    if (l && l->begun && !l->over)
        slurm_cancel(l->all, l->number, "--batch", "USR1");
}

/* In the queue nothing is to be heard of it. */
static bool away(void *own)
{
    const struct slurm_launch *l = own;
    return l && !l->begun && !l->over;
}

static bool boot_id(void *own, char out[PROC_BOOT_ID_SIZE])
{
    (void)own, (void)out;
    return false;
}

static bool end_of(void *own, struct site_end *out)
{
    const struct slurm_launch *l = own;
    if (!l || !l->end.why[0])
        return false;
    *out = (struct site_end){ l->end.outcome, l->end.memory, l->end.why };
    return true;
}

static void let_go(void *own, bool is_over)
{
    struct slurm_launch *l = own;
    if (!l)
        return;
    AUTO_FREE char *said = is_over ? io_join(l->dir, "job.out") : NULL;
    AUTO_FREE char *script = is_over ? io_join(l->dir, "job") : NULL;
    struct stat st;
    if (said && stat(said, &st) == 0 && st.st_size == 0)
        (void)unlink(said); /* the next attempt's is the same */
    if (script)
        (void)unlink(script);
    if (!l->went && l->number > 0)
        slurm_cancel(l->all, l->number, NULL, NULL);
    free_job(l);
}

static const struct site_row slurm_row = { .elsewhere = true,
                                           .paths = site_own_paths,
                                           .start = start,
                                           .adopt = adopt,
                                           .go = go,
                                           .signal = signal_launch,
                                           .say_stop = say_stop,
                                           .accounted = site_own_accounted,
                                           .checkpoint = site_own_checkpoint,
                                           .away = away,
                                           .boot_id = boot_id,
                                           .ahead = site_own_ahead, /* nodes of a cluster have one time */
                                           .lost = site_own_lost,
                                           .end = end_of,
                                           .let_go = let_go };

struct site slurm_site(struct slurm *s)
{
    return (struct site){ &slurm_row, s, SLURM_PLACE, 0 };
}

/* --- beginning and end ------------------------------------------------------------------------------------------------------------------ */

int slurm_open(struct slurm **out, uv_loop_t *loop, const struct plan *p, const char *dir,
               const struct launcher_ops *launcher, const struct slurm_ops *ops, void *ctx, struct err *e)
{
    struct slurm *s = calloc(1, sizeof *s);
    AUTO_FREE char *path = realpath(dir, NULL);
    char hex[SHA256_HEX_MAX];
    struct sha256 sum;
    if (!s || !path) {
        free(s);
        return err_sys(e, s ? -errno : -ENOMEM, "'%s'", dir);
    }
    *s = (struct slurm){ .loop = loop, .plan = p, .launcher = launcher, .ops = ops, .ctx = ctx, .to_sweep = true };
    sha256_init(&sum);
    sha256_add(&sum, path, strlen(path));
    sha256_hex(&sum, hex);
    (void)snprintf(s->name, sizeof s->name, "%.100s.%.12s", p->name,
                   hex); /* another store may have a study of that name */
    *out = s;
    return 0;
}

void slurm_close(struct slurm *s)
{
    if (!s)
        return;
    while (s->list)
        free_job(s->list);
    s->closed = true;
    slurm_free_when_idle(s);
}
