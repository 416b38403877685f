#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/export.h"
#include "cmd/progress.h"
#include "cmd/run.h"
#include "cmd/run_from.h"
#include "cmd/show.h"
#include "live/background.h"
#include "live/deliver.h"
#include "live/driver.h"
#include "live/foretell.h"
#include "live/handing.h"
#include "live/wants.h"
#include "store/export.h"
#include "store/trace.h"
#include "view/table.h"

struct run_options {
    char *config, *from, *setting, *trace, *hosts;
    bool dry_run, again, detach, quiet, json;
};

#define FIELD(member) offsetof(struct run_options, member)
/* clang-format off */
static const struct opt_row run_rows[] = {
    { NULL, "config", OPT_TEXT, FIELD(config), NULL, 0, 0, NULL, "FILE", "the config (also the first word)" },
    { NULL, "from", OPT_TEXT, FIELD(from), NULL, 0, 0, NULL, "STUDY/N", "in the place of a config: that trial's point again, with the config, application file and files of its own that it had" },
    { NULL, "setting", OPT_TEXT, FIELD(setting), NULL, 0, 0, NULL, "K=V,…", "system parameters of every trial, such as cores=4,memory=8" },
    { NULL, "hosts", OPT_TEXT, FIELD(hosts), NULL, 0, 0, NULL, "LIST", "in the place of nodes: a list of the config's hosts by its name, a file with a host to a line, or HOST,…; remembered with the study" },
    { NULL, "dry_run", OPT_FLAG, FIELD(dry_run), NULL, 0, 0, NULL, NULL, "print each trial's spark-submit command and do nothing" },
    { NULL, "again", OPT_FLAG, FIELD(again), NULL, 0, 0, NULL, NULL, "begin the study anew as NAME@2, @3, …" },
    { NULL, "detach", OPT_FLAG, FIELD(detach), NULL, 0, 0, NULL, NULL, "run the study to its end in the background: attach shows it, stop ends it" },
    { NULL, "trace", OPT_TEXT, FIELD(trace), NULL, 0, 0, NULL, "FILE", "at the end, also when interrupted, write the study as a trace; an old file is replaced" },
    { NULL, "quiet", OPT_FLAG, FIELD(quiet), NULL, 0, 0, NULL, NULL, "no progress, only the result" },
    { NULL, "json", OPT_FLAG, FIELD(json), NULL, 0, 0, NULL, NULL, "the result as JSON, as show prints it; progress goes to stderr" },
};
/* clang-format on */

static struct opt_set run_opts(struct run_options *o)
{
    return (struct opt_set){ .rows = run_rows, .n = ARRAY_LEN(run_rows), .target = o };
}

void cmd_run_options(struct cmd_rows *out)
{
    run_options(out);
}

void run_options(struct cmd_rows *out)
{
    struct run_options o = { 0 };
    struct config c = { 0 };
    struct opt_set own = run_opts(&o), config = config_opts(&c);
    cmd_rows_add(out, &own);
    cmd_rows_add(out, &config);
}

/* The command line, read twice: once for the config's name, once over what the config says. */
struct command_line {
    int argc;
    char **argv;
    struct run_options o;
    char *remembered; /* --hosts of the study's last run; NULL: none is known */
};

static int apply_options(void *ctx, struct config *cfg, struct err *e)
{
    struct command_line *cl = ctx;
    struct opt_set sets[] = { run_opts(&cl->o), config_opts(cfg) };
    AUTO_STRV struct strv words = STRV_INIT;
    int rc = opt_parse(cl->argc, cl->argv, sets, ARRAY_LEN(sets), &words, e);
    const char *hosts = cl->o.hosts ? cl->o.hosts : cl->remembered;
    if (rc == 0 && hosts && !(cfg->hosts = strdup(hosts)))
        rc = err_sys(e, -ENOMEM, "option '--hosts'");
    return rc;
}

/* --- --dry-run --- */

/* What is trained with, by its environment and words. */
static int put_command(const struct plan *p, const struct point *pt, const struct plan_launch *l, struct buf *line,
                       struct err *e)
{
    AUTO_STEPS struct app_steps steps = { 0 };
    AUTO_STRV struct strv shown = STRV_INIT;
    int rc = plan_steps(p, pt, l, &steps, e);
    if (rc == 0)
        rc = plan_shown(p, &steps.env, &shown, e);
    if (rc == 0)
        rc = plan_shown(p, &steps.argv[steps.n - 1], &shown, e);
    for (size_t i = 0; rc == 0 && i < shown.n; i++) {
        buf_puts(line, i ? " " : "");
        buf_put_shell(line, shown.v[i]);
    }
    return rc;
}

/* A gang's processes run beside each other: "A & B & wait". */
static int put_commands(const struct plan *p, const struct point *pt, struct plan_launch *l, struct buf *line,
                        struct err *e)
{
    struct app_gang g;
    int rc = plan_gang(p, pt, &l->setting, &g, e);
    if (rc < 0 || g.n == 0)
        return rc < 0 ? rc : put_command(p, pt, l, line, e);
    l->gang = &g;
    for (l->rank = 0; rc == 0 && l->rank < g.n; l->rank++) {
        rc = put_command(p, pt, l, line, e);
        buf_puts(line, g.n > 1 ? " & " : "");
    }
    buf_puts(line, g.n > 1 ? "wait" : "");
    return rc;
}

static int print_trial(const struct plan *p, const struct proposal *pr, uint64_t trials, struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    struct setting requested = plan_requested(p, &pr->point), asked = plan_effective(p, &requested), setting = asked;
    int slots = plan_slots(p, &pr->point, &asked, e);
    if (slots >= 0)
        slots = foretell_setting(p, &pr->point, trials, &setting, e) < 0 ? -1 : plan_slots(p, &pr->point, &setting, e);
    char seed[24];
    (void)snprintf(seed, sizeof seed, "%lld", (long long)p->cfg.seed);
    struct plan_launch l = { .setting = setting, .slots = slots, .epochs = (int)p->cfg.epochs, .seed_text = seed };
    int rc = slots < 0 ? slots : put_commands(p, &pr->point, &l, &line, e);
    if (rc < 0 && rc != -ENODEV)
        return rc;
    if (rc < 0) { /* still a line for each trial, and one that no shell runs */
        buf_clear(&line);
        buf_printf(&line, "# cannot be launched: %s", e->text);
    }
    if (line.failed)
        return err_sys(e, -ENOMEM, "dry run");
    buf_putc(&line, '\n');
    return cmd_write(&line, CMD_TEXT, e);
}

/* What a cluster has, and what of the space it has not. */
static void ask_master(struct plan *p)
{
    AUTO_BUF struct buf left_out = BUF_INIT;
    struct err why;
    char *save = NULL, memory[256];
    if (plan_ask_cluster(p, &why) == 1)
        cmd_say("the cluster was not asked what it has, the setting is used as it is: %s", why.text);
    if (plan_left_out(p, memory))
        cmd_say("%s", memory);
    setting_put_left_out(&p->space, &p->offer, &left_out);
    for (char *line = left_out.len ? strtok_r(left_out.data, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        cmd_say("%s", line);
}

static int dry_run(struct plan *p, struct err *e)
{
    if (study_check(p, e) < 0)
        return -EINVAL;
    ask_master(p);
    struct search s;
    struct search_cfg cfg = { .seed = (uint64_t)p->cfg.seed,
                              .epochs = (int)p->cfg.epochs,
                              .maximise = config_maximise(&p->cfg),
                              .max_trials = (int)p->cfg.max_trials,
                              .goals = &p->cfg.goals };
    int rc = search_new(&s, p->cfg.algorithm, NULL, &p->space, &cfg, e);
    if (rc < 0)
        return rc;
    int most = study_max_trials(&p->cfg, &s);
    struct proposal pr;
    for (int n = 0; rc == 0 && (most == 0 || n < most) && search_ask(&s, true, &pr) == 1; n++) {
        rc = print_trial(p, &pr, most ? (uint64_t)most : space_size(&p->space), e);
        struct told t = { .id = pr.id, .kind = TOLD_FAILED, .value = NAN, .seconds = NAN, .joules = NAN };
        struct search_answer none;
        if (rc == 0 && search_tell(&s, &t, &none) < 0)
            rc = err_sys(e, -ENOMEM, "dry run");
    }
    search_done(&s);
    return rc == -EPIPE ? 0 : rc; /* a reader that has seen enough (`| head`) is no failure */
}

/* --- the real thing --- */

/* Trials of all runs of the study. */
struct tally {
    int done; /* finished; where none is, those that were stopped */
    int stopped;
    int lost;      /* failed */
    int violating; /* they do not keep a constraint */
};

static const char *end_line(const struct driver_result *r, const struct study *s, const struct tally *t, char *text,
                            size_t size)
{
    switch (r->end) {
    case DRIVER_DONE:
        if (t->lost == 0 && t->done > 0)
            return NULL;
        if (t->done == 0 && t->violating > 0)
            (void)snprintf(
                text, size,
                "no trial of study '%s' keeps 'study.constraints': its table says which each breaks; begin another "
                "study with wider ones, or with other hyperparameters",
                s->name);
        else if (t->done == 0)
            (void)snprintf(text, size, "no trial of study '%s' finished: its table says why", s->name);
        else
            (void)snprintf(
                text, size,
                "%d trial%s of study '%s' failed: its table says why; 'pipetune retry %s' has %s tried again", t->lost,
                t->lost == 1 ? "" : "s", s->name, s->name, t->lost == 1 ? "it" : "them");
        break;
    case DRIVER_INTERRUPTED:
        (void)snprintf(text, size, "interrupted; the same command goes on with study '%s'", s->name);
        break;
    case DRIVER_LEFT:
        (void)snprintf(text, size, "left running; the same command goes on with study '%s'", s->name);
        break;
    case DRIVER_CONFIG: (void)snprintf(text, size, "study '%s': %s", s->name, r->why); break;
    case DRIVER_ENVIRONMENT:
        (void)snprintf(text, size, "%s; then the same command goes on with study '%s'", r->why, s->name);
        break;
    }
    return text;
}

static int exit_code(const struct driver_result *r, int done)
{
    switch (r->end) {
    case DRIVER_INTERRUPTED:
    case DRIVER_LEFT: return CMD_INTERRUPTED;
    case DRIVER_ENVIRONMENT: return CMD_ENVIRONMENT;
    case DRIVER_CONFIG: return CMD_USAGE;
    case DRIVER_DONE: break;
    }
    return done > 0 ? CMD_OK : CMD_NONE;
}

static int count_trial(void *ctx, const struct store_trial *row)
{
    struct tally *t = ctx;
    t->done += strcmp(row->state, trial_state_name(TRIAL_FINISHED)) == 0 && !row->violates;
    t->stopped += strcmp(row->state, trial_state_name(TRIAL_STOPPED)) == 0 && !row->violates;
    t->violating += row->violates != NULL;
    t->lost += strcmp(row->state, trial_state_name(TRIAL_FAILED)) == 0;
    return 0;
}

/* `made`: trials there were before the driver ran. A study that had ended, and got nothing more to do, keeps its end. */
static int conclude(struct study *s, const struct driver_result *r, int made, struct tally *out, struct err *e)
{
    bool as_it_was = s->ended && s->sched.made == made;
    int rc = store_trials(s->store, s->id, 0, count_trial, out, e);
    if (out->done == 0)
        out->done = out->stopped;
    const char *state = out->done == 0 ? "failed" : out->lost ? "incomplete" : "finished";
    if (rc == 0 && r->end == DRIVER_DONE && !as_it_was)
        rc = store_study_set_state(s->store, s->id, state, study_clock_ms(s), e);
    return rc;
}

static int show_result(struct study *s, const struct run_options *o, const struct driver_result *r, struct err *e)
{
    int rc = o->json ? show_study_json(s->store, s->name, s->dir, e) : show_study_text(s->store, s->name, s->dir, e);
    char time[32];
    if (rc == 0 && !o->json && !isnan(r->launch_to_end_s))
        printf("first launch to this table: %s\n", table_duration(r->launch_to_end_s, time));
    return rc;
}

/* --- --trace --- */

static int export_to(const struct study *s, const char *path, size_t *out_runs, struct err *e)
{
    struct store_study row = { 0 };
    struct trace t = { 0 };
    int rc = store_study_find(s->store, s->name, &row, e);
    if (rc == 1)
        rc = export_study(&t, s->store, &row, e);
    if (rc == 0)
        rc = trace_write(&t, path, e);
    *out_runs = t.n;
    trace_done(&t);
    store_study_done(&row);
    return rc;
}

/* False: it was not written, which has been told. The study is in the store whatever becomes of this. */
static bool write_trace(const struct study *s, const struct run_options *o)
{
    struct err e = { 0 };
    size_t runs = 0;
    if (!o->trace)
        return true;
    if (export_to(s, o->trace, &runs, &e) < 0) {
        err_prefix(&e, "no trace of study '%s' was written; the same command tries again", s->name);
        (void)cmd_fail(&e);
        return false;
    }
    fprintf(o->json ? stderr : stdout, "trace with %zu run%s written to '%s'\n", runs, runs == 1 ? "" : "s", o->trace);
    return true;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A slip of the pen that would cost more than a trace. The store may not exist yet. */
static int check_trace(const struct plan *p, const char *path, struct err *e)
{
    if (!path)
        return 0;
    AUTO_FREE char *store = study_store_path(p->cfg.store);
    AUTO_FREE char *absolute = io_absolute(path);
    if (!store || !absolute)
        return err_sys(e, -ENOMEM, "--trace '%s'", path);
    bool is_store = strcmp(absolute, store) == 0 || is_same_file(path, store);
    if (!is_store && !is_same_file(path, p->doc.name) && !is_same_file(path, p->app_doc.name))
        return 0;
    return err_set(e, -EINVAL, "--trace '%s': this is the %s, which would be replaced; choose another file", path,
                   is_store ? "study's store" : "study's config");
}

/* Every line that was made for InfluxDB is accounted. False: some were left behind. */
static bool tell_delivery(const struct deliver_counts *c)
{
    char text[256];
    if (c->produced == 0)
        return true;
    deliver_account(c, text, sizeof text);
    cmd_say("InfluxDB: %s", text);
    if (c->waiting > 0)
        cmd_say("what waits is in the store, and is sent when the same command is given again");
    if (c->quarantined > 0)
        cmd_say("what the server rejected is in the store's table 'outbox', with the reasons");
    return deliver_complete(c);
}

/* The server of the queue says so; what the trials start is none of its. */
static bool is_queued(void)
{
    bool queued = getenv("PIPETUNE_QUEUED") != NULL;
    (void)unsetenv("PIPETUNE_QUEUED");
    return queued;
}

/* What the loop's rounds have left, the joules and the end among them. False: some was left behind. */
static bool hand_over(const struct study *s, const struct driver_result *r)
{
    enum { PATIENCE_S = 10 };
    const struct handing_cfg cfg = handing_cfg_of(&s->plan->cfg);
    const struct export_mlflow to = { .url = cfg.url,
                                      .experiment = cfg.experiment,
                                      .credential_file = cfg.credential_file,
                                      .ca_file = cfg.ca_file,
                                      .allow_plain = cfg.allow_plain,
                                      .quiet = true,
                                      .patience_s = r->end == DRIVER_DONE && !r->server_away ? PATIENCE_S : 0 };
    struct err e = { 0 };
    if (!cfg.url || r->end == DRIVER_LEFT)
        return true;
    AUTO_FREE char *path = study_store_path(s->plan->cfg.store);
    int rc = path ? export_mlflow(path, s->name, s->dir, &to, &e) : err_sys(&e, -ENOMEM, "MLflow");
    if (rc < 0)
        cmd_say("%s", e.text);
    return rc == CMD_OK;
}

static int run_study(struct study *s, const struct run_options *o, struct err *e)
{
    struct progress progress;
    progress_init(&progress, o->quiet ? NULL : o->json ? stderr : stdout, s);
    struct driver_options d = {
        .queued = is_queued(), .foretells = progress.live, .watch = progress_news, .ctx = &progress
    };
    struct driver_result r;
    if (!o->quiet && !o->json)
        printf("study %s%s\n", s->name, s->resumed ? ", going on" : "");
    (void)fflush(stdout); /* an error is told by the result's own print */
    int made = s->sched.made;
    int rc = driver_run(s, &d, &r, e);
    progress_end(&progress);
    if (rc < 0) {
        err_prefix(e, "study '%s' stopped, what runs goes on and can be found again by the same command", s->name);
        return rc;
    }
    struct tally tally = { 0 };
    rc = conclude(s, &r, made, &tally, e);
    bool recorded = rc == 0 && write_trace(s, o); /* first of all: whoever reads the result may stop reading */
    if (rc == 0)
        rc = show_result(s, o, &r, e);
    if (rc < 0)
        return rc;
    char text[1024];
    const char *end = end_line(&r, s, &tally, text, sizeof text);
    if (end)
        cmd_say("%s", end);
    bool delivered = tell_delivery(&r.delivery);
    delivered = hand_over(s, &r) && delivered;
    int code = exit_code(&r, tally.done);
    return code == CMD_OK && !(recorded && delivered) ? CMD_NONE : code;
}

static int check_repeats(const struct plan *p, struct err *e)
{
    int rc = repeats_check(p, e);
    if (rc == 1)
        cmd_say(
            "the application file has no 'seed' in 'arguments': what study.repeats trains again differs only if the "
            "application takes the seed that it is told");
    return rc < 0 ? rc : 0;
}

static void say_wants(const struct plan *p)
{
    AUTO_BUF struct buf notes = BUF_INIT;
    wants_put_notes(p, &notes);
    if (notes.len > 0)
        cmd_say_lines(&notes);
}

/* All that can be wrong before anything is begun. */
static int prepare(struct plan *p, const struct run_options *o, struct err *e)
{
    int rc = check_trace(p, o->trace, e);
    if (rc == 0)
        rc = study_check(p, e);
    if (rc == 0)
        rc = env_apply(&p->env, &p->app, e);
    if (rc == 0)
        rc = env_require(&p->env, p->app.kind->needs, e);
    if (rc == 0)
        rc = check_repeats(p, e);
    if (rc == 0)
        ask_master(p);
    if (rc == 0)
        rc = plan_require_files(p, e);
    if (rc == 0)
        say_wants(p);
    const struct deliver_cfg influx = deliver_cfg_of(&p->cfg);
    if (rc == 0 && influx.url)
        rc = deliver_check(&influx, e);
    const struct handing_cfg mlflow = handing_cfg_of(&p->cfg);
    if (rc == 0 && mlflow.url)
        rc = handing_check(&mlflow, e);
    return rc;
}

static int run_real(struct plan *p, const struct run_options *o, struct err *e)
{
    struct study s;
    int rc = prepare(p, o, e);
    if (rc == 0)
        rc = study_open(&s, p, o->again, e);
    if (rc < 0)
        return rc;
    rc = run_study(&s, o, e);
    study_close(&s);
    return rc;
}

/* What --hosts said when the study was run last. NULL: nothing; what is wrong with the store is told when it is opened to be used. */
static char *recall_hosts(const struct plan *p)
{
    AUTO_FREE char *path = study_store_path(p->cfg.store);
    struct store *store = NULL;
    struct store_study row = { 0 };
    struct err ignored;
    char *hosts = NULL;
    if (!path || !io_exists(path) || store_open(&store, path, STORE_READ, &ignored) < 0)
        return NULL;
    if (store_study_find(store, p->name, &row, &ignored) == 1) {
        AUTO_JSON json_t *config = json_loads(row.config, 0, NULL);
        const char *said = json_string_value(json_object_get(config, "hosts"));
        hosts = said ? strdup(said) : NULL;
    }
    store_study_done(&row);
    store_close(store);
    return hosts;
}

/* With what is remembered of the study. */
static int load(struct command_line *cl, const char *config, struct plan *p, struct err *e)
{
    char *setting = cl->o.setting;
    cl->o.setting = NULL; /* read again below */
    int rc = plan_load(p, config, setting, apply_options, cl, e);
    if (rc == 0 && !cl->o.hosts && !cl->o.dry_run && (cl->remembered = recall_hosts(p))) {
        plan_done(p);
        rc = plan_load(p, config, setting, apply_options, cl, e);
    }
    free(setting);
    free(cl->remembered);
    return rc;
}

/* --- --detach --- */

json_t *run_words(int argc, char **argv)
{
    AUTO_JSON json_t *words = json_array();
    for (int i = 0; words && i < argc; i++)
        if (json_array_append_new(words, json_bytes(argv[i])) < 0)
            return NULL;
    return json_incref(words);
}

static json_t *words_without(int argc, char **argv, const char *word)
{
    AUTO_JSON json_t *words = run_words(argc, argv);
    for (size_t i = json_array_size(words); i-- > 0;)
        if (strcmp(json_string_value(json_array_get(words, i)), word) == 0)
            (void)json_array_remove(words, i);
    return words ? json_incref(words) : NULL;
}

/* Until it has the study's lock, or has ended: then its last words are ours. */
static int await_driver(const struct background *b, const char *name, const char *dir, const char *log, struct err *e)
{
    enum { LOOK_US = 20000 };
    int status = 0;
    for (;;) {
        if (study_driver(dir) == b->pid) {
            printf("study %s is run in the background by process %ld: 'pipetune attach %s' shows it, 'pipetune stop "
                   "%s' ends it\n",
                   name, (long)b->pid, name, name);
            return CMD_OK;
        }
        if (waitpid(b->pid, &status, WNOHANG) == b->pid)
            break;
        (void)usleep(LOOK_US);
    }
    AUTO_FREE char *last = background_last(log);
    if (WIFEXITED(status) && WEXITSTATUS(status) <= CMD_NONE) { /* it had no more to do */
        printf("study %s is over: 'pipetune show %s' shows it\n", name, name);
        return WEXITSTATUS(status);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == CMD_USAGE)
        return err_set(e, -EINVAL, "%s", last ? last : "the driver did not begin");
    return err_set(e, -EIO, "%s", last ? last : "the driver did not begin");
}

static int detach(struct plan *p, const struct command_line *cl, struct err *e)
{
    AUTO_FREE char *store = study_store_path(p->cfg.store);
    AUTO_FREE char *dir = store ? study_dir(store, p->name) : NULL;
    AUTO_FREE char *all = dir ? io_dirname(dir) : NULL;
    AUTO_FREE char *log = dir ? background_log(dir) : NULL;
    AUTO_JSON json_t *words = words_without(cl->argc, cl->argv, "--detach");
    struct background b = { .go_fd = -1 };
    if (!all || !log || !words)
        return err_sys(e, -ENOMEM, "study '%s'", p->name);
    int rc = prepare(p, &cl->o, e);
    if (rc == 0 && !cl->o.again)
        rc = study_compare(p, e);
    if (rc == 0)
        rc = ours_dir(all, e);
    if (rc == 0)
        rc = ours_dir(dir, e);
    if (rc == 0)
        rc = background_start(&b, words, ".", NULL, log, e);
    if (rc == 0)
        rc = background_go(&b);
    return rc < 0 ? rc : await_driver(&b, p->name, dir, log, e);
}

static int run_with(struct command_line *cl, const char *config, struct err *e)
{
    struct plan p;
    int rc = load(cl, config, &p, e);
    if (rc < 0)
        return rc;
    rc = cl->o.dry_run ? dry_run(&p, e) : cl->o.detach ? detach(&p, cl, e) : run_real(&p, &cl->o, e);
    plan_done(&p);
    return rc;
}

/* --- for others --- */

static int check_loaded(struct command_line *cl, const char *config, int (*with)(void *, struct plan *, struct err *),
                        void *ctx, struct err *e)
{
    struct plan p;
    int rc = load(cl, config, &p, e);
    if (rc < 0)
        return rc;
    rc = prepare(&p, &cl->o, e);
    if (rc == 0)
        rc = study_compare(&p, e);
    if (rc == 0)
        rc = with(ctx, &p, e);
    plan_done(&p);
    return rc;
}

int run_check(const char *command, int argc, char **argv, int (*with)(void *ctx, struct plan *p, struct err *e),
              void *ctx, struct err *e)
{
    struct command_line cl = { .argc = argc, .argv = argv };
    struct config scratch = { 0 };
    struct opt_set sets[] = { run_opts(&cl.o), config_opts(&scratch) };
    AUTO_STRV struct strv words = STRV_INIT;
    int rc = opt_parse(argc, argv, sets, ARRAY_LEN(sets), &words, e);
    config_done(&scratch);
    const char *named = cl.o.config ? cl.o.config : words.n ? words.v[0] : NULL;
    AUTO_FREE char *file = named ? strdup(named) : NULL;
    if (rc == 0 && words.n > 1)
        rc = err_set(e, -EINVAL, "unexpected word '%s': see 'pipetune help %s'", words.v[1], command);
    else if (rc == 0 && (cl.o.dry_run || cl.o.detach || cl.o.again))
        rc = err_set(e, -EINVAL, "%s: --dry-run, --detach and --again are for 'run'; --name begins another study",
                     command);
    else if (rc == 0 && !file)
        rc = err_set(e, -EINVAL, "no config: pipetune %s CONFIG", command);
    if (rc == 0)
        rc = check_loaded(&cl, file, with, ctx, e);
    struct opt_set own = run_opts(&cl.o);
    opt_done(&own);
    return rc;
}

static int choose_config(char **out, const struct run_options *o, const struct strv *words, const char *store,
                         struct err *e)
{
    const char *config = o->config ? o->config : words->n ? words->v[0] : NULL;
    if (config && o->from)
        return err_set(e, -EINVAL, "'%s' and '--from %s' are two: a study is begun from a config, or from a trial",
                       config, o->from);
    if (o->from)
        return run_from(out, store, o->from, e);
    if (!config)
        return err_set(e, -EINVAL, "no config: pipetune run --config FILE");
    *out = strdup(config);
    return *out ? 0 : err_sys(e, -ENOMEM, "'%s'", config);
}

int cmd_run(int argc, char **argv)
{
    struct command_line cl = { .argc = argc, .argv = argv };
    struct config scratch = { 0 };
    struct opt_set sets[] = { run_opts(&cl.o), config_opts(&scratch) };
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e = { 0 };
    int code = 0;
    int rc = cmd_options("run", argc, argv, sets, ARRAY_LEN(sets), &words, 1, &code);
    AUTO_FREE char *file = NULL;
    if (rc == 0) {
        (void)signal(SIGPIPE, SIG_IGN); /* a closed terminal must not end the driver */
        rc = choose_config(&file, &cl.o, &words, scratch.store, &e);
        if (rc == 0)
            rc = run_with(&cl, file, &e);
        code = rc < 0 ? cmd_fail(&e) : rc;
    }
    config_done(&scratch);
    struct opt_set own = run_opts(&cl.o);
    opt_done(&own);
    return code;
}
