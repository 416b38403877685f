#include "live/slurm_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"

enum {
    LOOK_MS = 500,     /* between two looks at the folders of those that run */
    POLL_MS = 5000,    /* between two of squeue, where nothing is expected */
    TOLD_MS = 60000,   /* a job waits so long without a word of it */
    SETTLE_MS = 30000, /* the note of its end may be seen so much later here than its end */
    HOPE_MS = 30000,   /* that it can never run is believed when it is said for so long */
    NOTE_MAX = 4096,
};

static struct slurm_launch *find_number(const struct slurm *s, uint64_t number)
{
    struct slurm_launch *l = s->list;
    while (l && l->number != number)
        l = l->next;
    return l;
}

static bool knows_tag(const struct slurm *s, const char *tag)
{
    const struct slurm_launch *l = s->list;
    while (l && strcmp(l->tag, tag) != 0)
        l = l->next;
    return l != NULL;
}

void slurm_poll_within(struct slurm *s, int64_t ms)
{
    int64_t at = clock_ms() + ms;
    s->poll_ms = s->poll_ms < at ? s->poll_ms : at;
}

/* --- the end of a job --------------------------------------------------------------------------------------------------- */

static void over(struct slurm_launch *l)
{
    struct slurm *s = l->all;
    l->over = true;
    s->launcher->gone(s->ctx, l->id);
}

/* How it ended is known as well as it will be. */
static void conclude(struct slurm_launch *l, struct slurm_end end)
{
    l->seen.id = l->number;
    const struct slurm_ended x = {
        .job = &l->seen, .end = end, .noted = l->noted, .dir = l->dir, .program = l->all->plan->env.node
    };
    slurm_verdict(&x, &l->end);
    over(l);
}

/* --- what is looked at here ------------------------------------------------------------------------------------------------------ */

/* Does the note in its folder speak of this launch? */
static bool has_note(const struct slurm_launch *l, const char *name)
{
    AUTO_FREE char *path = io_join(l->dir, name);
    AUTO_BUF struct buf text = BUF_INIT;
    return path && ours_read(&text, path, NOTE_MAX, NULL) == 0 && strstr(buf_text(&text), l->tag);
}

static void has_begun(struct slurm_launch *l, int64_t ago_ms)
{
    struct slurm *s = l->all;
    if (l->begun)
        return;
    l->begun = true;
    s->begun++;
    s->ops->begun(s->ctx, l->id, ago_ms);
}

static void look_at(struct slurm_launch *l)
{
    if (!l->begun && has_note(l, "pid"))
        has_begun(l, 0);
    if (!l->noted && (l->noted = has_note(l, "exit")))
        slurm_poll_within(l->all, 0);
}

/* --- what nobody has ---------------------------------------------------------------------------------------------------- */

static void on_swept_line(void *ctx, const struct slurm_job *line)
{
    struct slurm *s = ctx;
    char text[160];
    if (slurm_state_is_over(line->state) || strncmp(line->comment, "pt-", 3) != 0 || knows_tag(s, line->comment))
        return;
    slurm_cancel(s, line->id, NULL, NULL);
    (void)snprintf(text, sizeof text, "Slurm's job %" PRIu64 " belongs to no attempt and is cancelled", line->id);
    if (!s->closed)
        s->ops->note(s->ctx, 0, text);
}

static void on_swept(struct slurm *s, const struct slurm_command *c)
{
    s->sweeps = false;
    if (c->code == 0)
        slurm_words_jobs(buf_text(&c->out), c->out.len, on_swept_line, s);
    else
        s->to_sweep = true;
}

void slurm_sweep(struct slurm *s)
{
    struct strv argv = STRV_INIT;
    strv_add(&argv, "squeue");
    strv_add(&argv, "--noheader");
    strv_add(&argv, "--me");
    strv_addf(&argv, "--name=%s", s->name);
    strv_add(&argv, "--format=" SLURM_JOB_FORMAT);
    s->to_sweep = false;
    s->sweeps = slurm_command(s, 0, &argv, on_swept) == 0;
}
/* --- what squeue says -------------------------------------------------------------------------------------------------------------- */

static void tell_wait(struct slurm_launch *l, int64_t now)
{
    struct slurm *s = l->all;
    char text[256];
    if (now - l->went_ms < slurm_patience_ms("PIPETUNE_TOLD_MS", TOLD_MS) || strcmp(l->told, l->seen.reason) == 0)
        return;
    (void)snprintf(l->told, sizeof l->told, "%s", l->seen.reason);
    (void)snprintf(text, sizeof text, "waits in Slurm's queue since %d s, as job %" PRIu64 ": %s",
                   (int)((now - l->went_ms) / 1000), l->number, l->seen.reason);
    s->ops->note(s->ctx, l->id, text);
}

static void on_pending(struct slurm_launch *l, int64_t now)
{
    enum slurm_fault fault = slurm_reason_of(l->seen.reason);
    if (l->adopted &&
        strcmp(l->seen.reason, "JobHeldUser") == 0) { /* its driver was killed before it could release it */
        l->adopted = false;
        l->to_release = true;
    }
    if (fault == SLURM_PASSES) {
        l->hopeless_ms = 0;
        tell_wait(l, now);
        return;
    }
    l->hopeless_ms = l->hopeless_ms ? l->hopeless_ms : now;
    if (now - l->hopeless_ms < slurm_patience_ms("PIPETUNE_HOPE_MS", HOPE_MS))
        return;
    slurm_verdict_never(&l->seen, fault, &l->end);
    slurm_cancel(l->all, l->number, NULL, NULL);
    over(l);
}

static void on_explained(struct slurm *s, const struct slurm_command *c)
{
    struct slurm_launch *l = slurm_find(s, c->id);
    struct slurm_end end = { .state = SLURM_UNKNOWN };
    const char *text = buf_text(&c->out);
    if (!l)
        return;
    l->busy = false;
    bool known = strcmp(c->argv.v[0], "sacct") == 0 ? slurm_words_accounted(text, &end) : slurm_words_shown(text, &end);
    if (!known && l->listed)
        end.state = l->seen.state;
    look_at(l);
    conclude(l, end);
}

/* With its exit code; of one that Slurm has forgotten by the accounts, where there are some. */
static void explain(struct slurm_launch *l)
{
    struct strv argv = STRV_INIT;
    static const char *const show[] = { "scontrol", "--oneliner", "show", "job" };
    static const char *const account[] = {
        "sacct", "--noheader", "--allocations", "--parsable2", "--format=State,ExitCode", "--jobs"
    };
    if (l->busy)
        return;
    for (size_t i = 0; i < (l->listed ? ARRAY_LEN(show) : ARRAY_LEN(account)); i++)
        strv_add(&argv, l->listed ? show[i] : account[i]);
    strv_addf(&argv, "%" PRIu64, l->number);
    l->busy = slurm_command(l->all, l->id, &argv, on_explained) == 0;
}

/* A file system takes its time until a note that was written elsewhere is seen. */
static bool awaits_note(struct slurm_launch *l, int64_t now)
{
    if (l->noted || l->seen.state != SLURM_COMPLETED)
        return false;
    l->settle_ms = l->settle_ms ? l->settle_ms : now;
    return now - l->settle_ms < SETTLE_MS;
}

/* One answer without it says little. */
static bool has_vanished(struct slurm_launch *l)
{
    enum { MISSED_MAX = 2 };
    l->missed = l->listed ? 0 : l->missed + 1;
    return l->missed >= MISSED_MAX;
}

static void on_seen(struct slurm_launch *l, int64_t now)
{
    const struct slurm_end end = { .state = l->seen.state };
    if (!has_vanished(l) && !l->listed) {
        slurm_poll_within(l->all, SLURM_SOON_MS);
        return;
    }
    if (l->listed && l->seen.state == SLURM_PENDING) {
        on_pending(l, now);
        return;
    }
    if (l->listed && (l->seen.state == SLURM_RUNNING || l->seen.run_s > 0))
        has_begun(l, l->seen.run_s * 1000);
    if (l->listed && !slurm_state_is_over(l->seen.state))
        return;
    look_at(l);
    if (!l->listed || (l->seen.state == SLURM_FAILED && !l->noted))
        explain(l);
    else if (!awaits_note(l, now))
        conclude(l, end);
}

static void on_line(void *ctx, const struct slurm_job *line)
{
    struct slurm_launch *l = find_number(ctx, line->id);
    if (l && strcmp(l->tag, line->comment) == 0) { /* a controller that has lost its state gives numbers anew */
        l->seen = *line;
        l->listed = true;
    }
}

/* Those of its own that are not said to be gone go on. */
static void on_silent(struct slurm *s, const struct slurm_command *c)
{
    char why[SLURM_SAID_MAX], text[SLURM_SAID_MAX + 64];
    s->poll_ms = clock_ms() + slurm_patience_ms("PIPETUNE_REST_MS", SLURM_SILENT_MS);
    if (s->told_silent)
        return;
    s->told_silent = true;
    slurm_command_fault(c, why);
    (void)snprintf(text, sizeof text, "Slurm does not answer, what runs there goes on: %s", why);
    s->ops->note(s->ctx, 0, text);
}

static void on_polled(struct slurm *s, const struct slurm_command *c)
{
    int64_t now = clock_ms();
    s->polls = false;
    if (s->closed)
        return;
    bool none = c->code > 0 && strstr(buf_text(&c->out), "Invalid job id");
    if (c->code != 0 && !none) {
        on_silent(s, c);
        return;
    }
    s->told_silent = false;
    for (struct slurm_launch *l = s->list; l; l = l->next)
        l->listed = false;
    slurm_words_jobs(buf_text(&c->out), c->out.len, on_line, s);
    for (struct slurm_launch *l = s->list; l;) { /* what is told may change the list */
        bool due = l->asked && !l->over;
        l->asked = false;
        if (due)
            on_seen(l, now);
        l = due ? s->list : l->next;
    }
}

static bool is_known(const struct slurm_launch *l)
{
    return l->number > 0 && l->went && !l->over;
}

static void poll_queue(struct slurm *s, int64_t now)
{
    struct strv argv = STRV_INIT;
    AUTO_BUF struct buf ids = BUF_INIT;
    bool soon = false;
    for (struct slurm_launch *l = s->list; l; l = l->next) {
        l->asked = is_known(l);
        if (l->asked)
            buf_printf(&ids, "%s%" PRIu64, ids.len ? "," : "", l->number);
        soon |= l->asked && (!l->begun || l->noted);
    }
    s->poll_ms = now + (soon ? SLURM_SOON_MS : POLL_MS);
    if (ids.len == 0)
        return;
    strv_add(&argv, "squeue");
    strv_add(&argv, "--noheader");
    strv_add(&argv, "--states=all");
    strv_addf(&argv, "--jobs=%s", buf_text(&ids));
    strv_add(&argv, "--format=" SLURM_JOB_FORMAT);
    s->polls = !ids.failed && slurm_command(s, 0, &argv, on_polled) == 0;
    strv_done(&argv);
}

/* --- what is free ------------------------------------------------------------------------------------------------------------------- */

static void on_room(struct slurm *s, const struct slurm_command *c)
{
    s->asks_room = false;
    if (s->closed)
        return;
    buf_clear(&s->room);
    if (c->code == 0)
        buf_put(&s->room, buf_text(&c->out), c->out.len);
}

static void ask_room(struct slurm *s, int64_t now)
{
    struct strv argv = STRV_INIT;
    strv_add(&argv, "sinfo");
    strv_add(&argv, "--noheader");
    strv_add(&argv, "--Node");
    strv_add(&argv, "--Format=" SLURM_FREE_FORMAT);
    s->to_ask_room = false;
    s->room_ms = now + POLL_MS;
    s->begun = 0;
    s->asks_room = slurm_command(s, 0, &argv, on_room) == 0;
}

/* --- time ---------------------------------------------------------------------------------------------------------------------------- */

/* True: something was told, and the list may be another. */
static bool tend(struct slurm_launch *l)
{
    slurm_release(l);
    if (l->went && l->number == 0 && !l->over) { /* it was refused */
        over(l);
        return true;
    }
    bool begun = l->begun;
    if (is_known(l))
        look_at(l);
    return l->begun != begun;
}

void slurm_tick(struct slurm *s)
{
    int64_t now = clock_ms();
    if (now < s->look_ms)
        return;
    s->look_ms = now + LOOK_MS;
    for (struct slurm_launch *l = s->list; l;)
        l = tend(l) ? s->list : l->next;
    if (s->to_sweep && !s->sweeps)
        slurm_sweep(s);
    if (!s->polls && now >= s->poll_ms)
        poll_queue(s, now);
    if (s->to_ask_room && !s->asks_room && now >= s->room_ms)
        ask_room(s, now);
}

bool slurm_takes(struct slurm *s, struct rooms_want want)
{
    const struct config *cfg = &s->plan->cfg;
    int64_t waiting = 0;
    int fits = 0;
    for (const struct slurm_launch *l = s->list; l; l = l->next)
        waiting += !l->begun && !l->over;
    if (clock_ms() < s->rests_until_ms)
        return false;
    if (waiting < cfg->slurm_pending)
        return true;
    s->to_ask_room = true;
    const char *partition = cfg->slurm_partition ? cfg->slurm_partition : "";
    bool known = want.cpus > 0 && slurm_words_fits(buf_text(&s->room), partition, want.cpus, want.memory_gb, &fits);
    return known && waiting < cfg->slurm_pending + fits - s->begun;
}
