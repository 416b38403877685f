#include "live/slurm_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/capture.h"
#include "base/clock.h"

enum { ANSWER_MS = 30000 }; /* that one may take */

int64_t slurm_patience_ms(const char *variable, int64_t usual)
{
#ifdef PIPETUNE_FAILPOINTS
    const char *ms = getenv(variable); /* tests don't wait as long as people do */
    if (ms)
        return strtol(ms, NULL, 10);
#endif
    (void)variable;
    return usual;
}

static void run(uv_work_t *work)
{
    struct slurm_command *c = work->data;
    struct err e;
    c->code = capture(&c->out, c->argv.v, ANSWER_MS, &e);
    if (c->code < 0)
        buf_puts(&c->out, e.text);
}

static void free_command(struct slurm_command *c)
{
    strv_done(&c->argv);
    buf_done(&c->out);
    free(c);
}

void slurm_free_when_idle(struct slurm *s)
{
    if (!s->closed || s->commands > 0)
        return;
    buf_done(&s->room);
    free(s);
}

static void on_run(uv_work_t *work, int status)
{
    struct slurm_command *c = work->data;
    struct slurm *s = c->s;
    (void)status; /* none is cancelled */
    s->commands--;
    if (c->done)
        c->done(s, c);
    free_command(c);
    slurm_free_when_idle(s);
}

int slurm_command(struct slurm *s, uint64_t id, struct strv *argv,
                  void (*done)(struct slurm *s, const struct slurm_command *c))
{
    struct slurm_command *c = calloc(1, sizeof *c);
    bool failed = argv->failed;
    if (!c || failed) {
        strv_done(argv);
        free(c);
        return -ENOMEM;
    }
    *c = (struct slurm_command){ .s = s, .id = id, .done = done, .argv = *argv };
    *argv = STRV_INIT;
    c->work.data = c;
    int rc = uv_queue_work(s->loop, &c->work, run, on_run);
    if (rc < 0)
        free_command(c);
    else
        s->commands++;
    return rc;
}

/* What it says is wrong, in one line. */
void slurm_command_fault(const struct slurm_command *c, char out[SLURM_SAID_MAX])
{
    const char *text = buf_text(&c->out), *at = strstr(text, "error: Batch job submission failed: ");
    const char *error = at ? at + strlen("error: Batch job submission failed: ") : strstr(text, "error: ");
    const char *from = at ? error : error ? error + strlen("error: ") : text;
    (void)snprintf(out, SLURM_SAID_MAX, "%.*s", (int)strcspn(from, "\n"), from);
    if (!*out)
        (void)snprintf(out, SLURM_SAID_MAX, "'%s' ended with exit code %d", c->argv.v[0], c->code);
}

void slurm_cancel(struct slurm *s, uint64_t number, const char *how, const char *signal)
{
    struct strv argv = STRV_INIT;
    strv_add(&argv, "scancel");
    strv_add(&argv, "--quiet");
    strv_addf(&argv, "--name=%s", s->name); /* whatever else has that number by now */
    if (how)
        strv_add(&argv, how);
    if (signal)
        strv_addf(&argv, "--signal=%s", signal);
    strv_addf(&argv, "%" PRIu64, number);
    (void)slurm_command(s, 0, &argv, NULL); /* without memory the driver asks again */
    slurm_poll_within(s, SLURM_SOON_MS);
}
