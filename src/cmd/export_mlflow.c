#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cmd/cmd.h"
#include "cmd/export.h"
#include "live/handing.h"
#include "view/energy_figure.h"

enum { AGAIN_MS = 100, AGAIN_MOST_MS = 2000 };

/* As `energy` has them. */
static int joules_of(void *ctx, int trial, double *out)
{
    struct ledger_figure f = energy_figure_absent;
    if (energy_figure_number(ctx, trial, &f) < 0 || !isfinite(f.j))
        return 0;
    *out = f.j;
    return 1;
}

static int load_energy(struct energy_load *out, const char *store, const char *study, struct err *e)
{
    struct store *s = NULL;
    struct store_study row = { 0 };
    int rc = store_open(&s, store, STORE_READ, e);
    if (rc == 0)
        rc = store_study_find(s, study, &row, e);
    if (rc == 1)
        rc = energy_load(out, s, &row, e);
    store_study_done(&row);
    store_close(s);
    return rc < 0 ? rc : 0;
}

/* 0, or -EAGAIN when patience is over. */
static int hand_on(struct handing *h, double patience_s, bool quiet, struct err *e)
{
    int64_t until = clock_ms() + (int64_t)(patience_s * 1000);
    bool said = quiet;
    int64_t wait_ms = AGAIN_MS;
    uint64_t came = 0; /* so far */
    int rc;
    while ((rc = handing_round(h, e)) == -EAGAIN && clock_ms() < until) {
        if (!said)
            cmd_say("%s; asked again for up to %.0f s", e->text, patience_s);
        said = true;
        struct handing_counts c = handing_counts(h);
        wait_ms = c.runs + c.values > came ? AGAIN_MS : wait_ms;
        came = c.runs + c.values;
        (void)usleep((useconds_t)wait_ms * 1000);
        wait_ms = wait_ms < AGAIN_MOST_MS / 2 ? 2 * wait_ms : AGAIN_MOST_MS;
    }
    return rc;
}

static int tell(const struct handing_counts *c, bool quiet, int rc, const struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "MLflow: %" PRIu64 " runs made, %" PRIu64 " values sent in %" PRIu64 " requests", c->runs, c->values,
               c->requests);
    if (c->healed)
        buf_printf(&b, "; %" PRIu64 " were there already", c->healed);
    buf_putc(&b, '\n');
    int code = quiet ? CMD_OK : cmd_print(&b);
    if (rc < 0)
        cmd_say("%s; the same command goes on from here", e->text);
    if (c->refused)
        cmd_say("MLflow refused %" PRIu64 " values or settings: %s", c->refused, c->why);
    return code != CMD_OK ? code : rc < 0 || c->refused ? CMD_NONE : CMD_OK;
}

int export_mlflow(const char *store, const char *study, const char *dir, const struct export_mlflow *o, struct err *e)
{
    const struct handing_cfg cfg = { .url = o->url,
                                     .experiment = o->experiment,
                                     .credential_file = o->credential_file,
                                     .ca_file = o->ca_file,
                                     .allow_plain = o->allow_plain };
    struct energy_load energy = { 0 };
    struct handing *h = NULL;
    int rc = load_energy(&energy, store, study, e);
    if (rc == 0)
        rc = handing_open(&h, &cfg, store, study, dir, joules_of, &energy, e);
    if (rc == 0) {
        rc = hand_on(h, o->patience_s, o->quiet, e);
        struct handing_counts c = handing_counts(h);
        rc = rc == 0 || rc == -EAGAIN ? tell(&c, o->quiet, rc, e) : rc;
    }
    handing_free(h);
    energy_load_done(&energy);
    return rc;
}
