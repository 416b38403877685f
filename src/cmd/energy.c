#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/energy_influx.h"
#include "cmd/look.h"
#include "live/study.h"
#include "view/joules.h"

struct energy_options {
    char *store, *meter, *from, *url, *database, *credential_file, *against;
    bool allow_plain_http;
    double carbon, price;
    bool json, csv;
};

static const char *const sources[] = { "store", "influx", NULL };

#define FIELD(member) offsetof(struct energy_options, member)

/* clang-format off */
static const struct opt_row energy_rows[] = {
    LOOK_STORE_ROW(struct energy_options),
    { NULL, "meter", OPT_TEXT, FIELD(meter), NULL, 0, 0, NULL, "NAME", "figures of this meter alone (default: all of nodes; of a trial the first of the config that knows it)" },
    { NULL, "from", OPT_CHOICE, FIELD(from), "store", 0, 0, sources, "SOURCE", "where readings come from: store or influx" },
    { NULL, "url", OPT_TEXT, FIELD(url), NULL, 0, 0, NULL, "URL", "of the InfluxDB (default: the study's)" },
    { NULL, "database", OPT_TEXT, FIELD(database), NULL, 0, 0, NULL, "NAME", "in it (default: the study's, else energy)" },
    { NULL, "allow_plain_http", OPT_FLAG, FIELD(allow_plain_http), NULL, 0, 0, NULL, NULL, "a credential may go to another machine over http:// (default: as the study, for its own URL)" },
    { NULL, "credential_file", OPT_TEXT, FIELD(credential_file), NULL, 0, 0, NULL, "FILE", "USER:PASSWORD or a token, mode 0600 (default: the study's, for its own URL)" },
    { NULL, "carbon", OPT_REAL, FIELD(carbon), NULL, 0, 1e5, NULL, "G_PER_KWH", "tell carbon, by this intensity" },
    { NULL, "price", OPT_REAL, FIELD(price), NULL, 0, 1e5, NULL, "PER_KWH", "tell cost, by this price" },
    { NULL, "against", OPT_TEXT, FIELD(against), NULL, 0, 0, NULL, "K=V,…", "what was saved is counted against this setting, such as cores=4 (default: the first of each class of jobs)" },
    { NULL, "csv", OPT_FLAG, FIELD(csv), NULL, 0, 0, NULL, NULL, "print CSV" },
    LOOK_JSON_ROW(struct energy_options),
};
/* clang-format on */

void cmd_energy_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(energy_rows, NULL));
}

/* --- finding them --- */

static int check(const struct energy_options *o, const struct strv *words, struct err *e)
{
    bool influx = strcmp(o->from, "influx") == 0;
    if (words->n == 0)
        return err_set(e, -EINVAL, "which study? 'pipetune ls' lists them, 'pipetune energy STUDY' tells its joules");
    if (o->json && o->csv)
        return err_set(e, -EINVAL, "one of '--csv' and '--json': an answer has one form");
    if (!influx && (o->url || o->database || o->credential_file || o->allow_plain_http))
        return err_set(e, -EINVAL, "option '--%s' is for '--from influx'",
                       o->url               ? "url"
                       : o->database        ? "database"
                       : o->credential_file ? "credential-file"
                                            : "allow-plain-http");
    return 0;
}

static int load(struct joules *v, const struct energy_options *o, struct store *s, const struct store_study *study,
                struct err *e)
{
    struct energy_influx_cfg cfg = { o->url, o->database, o->credential_file, o->allow_plain_http };
    enum energy_influx_from from = ENERGY_INFLUX_OWN;
    v->from = o->from;
    if (strcmp(o->from, "influx") != 0)
        return energy_load(&v->load, s, study, e);
    int rc = energy_influx_load(&v->load, s, study, &cfg, &from, e);
    if (rc == 0 && from == ENERGY_INFLUX_OTHERS && v->load.n_meters)
        v->from = "influx (by node)";
    return rc;
}

static int look(struct joules *v, const struct energy_options *o, struct store *s, const struct store_study *study,
                struct err *e)
{
    struct energy_setting against = { NAN, NAN };
    v->study = study->name;
    v->carbon_g_per_kwh = o->carbon;
    v->price_per_kwh = o->price;
    int rc = o->against ? energy_setting_parse(&against, o->against, e) : 0;
    if (rc == 0)
        rc = load(v, o, s, study, e);
    return rc < 0 ? rc : joules_reckon(v, s, study, o->meter, o->against ? &against : NULL, e);
}

static int put(const struct joules *v, const struct energy_options *o)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (o->json)
        return cmd_print_json(joules_json(v));
    if (o->csv)
        joules_put_csv(&b, v);
    else
        joules_put_text(&b, v);
    return cmd_print(&b);
}

static int energy(const struct energy_options *o, const struct strv *words)
{
    struct err e = { 0 };
    struct joules v = { .nodes_j = NAN };
    AUTO_LOOK struct look_name name = { 0 };
    struct store_study study = { 0 };
    struct store *store = NULL;
    AUTO_FREE char *path = study_store_path(o->store);
    int rc = path ? check(o, words, &e) : err_sys(&e, -ENOMEM, "cannot account energy");
    if (rc == 0)
        rc = store_open(&store, path, STORE_READ, &e);
    if (rc == 0)
        rc = look_name_find(&name, store, words->v[0], &study, &e);
    v.trial = name.trial;
    if (rc == 0)
        rc = look(&v, o, store, &study, &e);
    int code = rc < 0 ? cmd_fail(&e) : put(&v, o);
    joules_done(&v);
    store_study_done(&study);
    store_close(store);
    return code;
}

int cmd_energy(int argc, char **argv)
{
    struct energy_options o = { 0 };
    struct opt_set set = OPT_SET(energy_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e;
    int code;
    if (opt_presets(&set, &e) < 0)
        return cmd_fail(&e);
    if (!cmd_options("energy", argc, argv, &set, 1, &words, 1, &code))
        code = energy(&o, &words);
    opt_done(&set);
    return code;
}
