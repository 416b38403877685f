#include "cmd/cmd.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "base/utf8.h"
#include "cmd/look.h"

/* clang-format off */
const struct command cmd_table[] = {
    { "add", cmd_add, look_options, "STUDY NAME=VALUE… [OPTION…]", "a point that a study is to try" },
    { "attach", cmd_attach, cmd_attach_options, "STUDY [OPTION…]", "the progress of a study in the background; Ctrl-C leaves it alone" },
    { "best", cmd_best, cmd_best_options, "STUDY [--checkpoint] [OPTION…]", "the best trial of a study, and where its trained model is" },
    { "compare", cmd_compare, look_options, "STUDY STUDY… [OPTION…]", "studies side by side" },
    { "completion", cmd_completion, NULL, "bash | zsh | fish", "a script by which a shell completes commands, options and studies" },
    { "diff", cmd_diff, look_options, "STUDY/N STUDY/M [OPTION…]", "what differs between two trials" },
    { "doctor", cmd_doctor, cmd_doctor_options, "[OPTION…]", "what works here, and the fix for what does not" },
    { "energy", cmd_energy, cmd_energy_options, "STUDY[/N] [OPTION…]", "joules per node, trial and epoch, with where they come from" },
    { "events", cmd_events, cmd_events_options, "[OPTION…]", "the 58 hardware events, and what each is here" },
    { "experiment", cmd_experiment, cmd_experiment_options, "FILE [--simulate] [OPTION…]", "studies of several jobs as they arrive, under several policies" },
    { "export", cmd_export, cmd_export_options, "csv STUDY DIR | mlflow STUDY [--url URL] [OPTION…]", "a study for other programs: as CSV files, or to an MLflow server" },
    { "gc", cmd_gc, cmd_gc_options, "[--dry-run] [OPTION…]", "frees folders of no study, old checkpoints, samples of finished studies" },
    { "help", cmd_help, cmd_help_options, "[COMMAND | config] [--json | --man]", "this list, a command's options, or the keys of a config" },
    { "ls", cmd_ls, cmd_ls_options, "[--where CONDITION] [OPTION…]", "the studies in the store, or the trials for which a condition holds" },
    { "model", cmd_model, cmd_model_options, "ls | show | explain | train | import | export | predict | forget [OPTION…]", "what was learnt of jobs: clusters of profiles, best settings" },
    { "monitor", cmd_monitor, cmd_monitor_options, "[--config FILE] --url URL | --print [OPTION…]", "collectors of this machine -> InfluxDB: events, meters, line protocol over UDP" },
    { "nodes", cmd_nodes, cmd_nodes_options, "ls | echo | put | clean [HOST…] [--hosts LIST] [--config FILE] [OPTION…]", "the hosts of a study: what is there, and the helper to them" },
    { "replay", cmd_replay, cmd_replay_options, "offline TRACE | online DIR | decisions STUDY [OPTION…]", "what policies would have cost, over recorded traces" },
    { "report", cmd_report, cmd_report_options, "STUDY [--html FILE | --csv | --json] [OPTION…]", "all of a study as HTML, CSV or JSON" },
    { "retry", cmd_retry, look_options, "STUDY[/N] [OPTION…]", "try failed trials again" },
    { "rm", cmd_rm, cmd_rm_options, "STUDY[/N]… [OPTION…]", "removes studies, or what a trial did, with logs and checkpoints" },
    { "run", cmd_run, cmd_run_options, "--config FILE | --from STUDY/N [OPTION…]", "tune a training job; goes on with the study of that name" },
    { "serve", cmd_serve, cmd_serve_options, "[--listen HOST:PORT] [OPTION…]", "works the queue of a store, and shows what there is to see of it in a browser" },
    { "show", cmd_show, cmd_show_options, "STUDY[/N] [OPTION…]", "a study, its trials, or one of them" },
    { "stop", cmd_stop, look_options, "STUDY[/N] [OPTION…]", "ends a study in the background, or one of its trials" },
    { "submit", cmd_submit, cmd_submit_options, "CONFIG [--priority N] [--at TIME] [OPTION…]", "puts a study into the queue" },
    { "tag", cmd_tag, cmd_tag_options, "STUDY[/N] [TEXT…] [--remove] [OPTION…]", "a note of a study or a trial, that ls finds again" },
    { "tell", cmd_tell, cmd_tell_options, "NAME=VALUE… [--epoch N] [OPTION…]", "a metric of the trial that this runs in, from a shell script" },
    { "trace", cmd_trace, cmd_trace_options, "import | info | export FILE [OPTION…]", "recorded runs: into a trace, a look at it, out of it" },
    { "version", cmd_version, cmd_version_options, "[--json]", "the version of this program and of its libraries" },
    { NULL, NULL, NULL, NULL, NULL },
};
/* clang-format on */

void cmd_rows_add(struct cmd_rows *out, const struct opt_set *set)
{
    assert(out->n + set->n <= CMD_ROWS_MAX);
    memcpy(out->v + out->n, set->rows, set->n * sizeof *set->rows);
    out->n += set->n;
}

void cmd_say(const char *fmt, ...)
{
    AUTO_BUF struct buf line = BUF_INIT;
    char text[2048];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap); /* a cut message is still a message */
    va_end(ap);
    utf8_put_plain(&line, text, strlen(text), UTF8_ONE_LINE);
    (void)fflush(stdout); /* so that on a terminal it comes after what was printed */
    fprintf(stderr, "pipetune: %s\n", line.failed ? "out of memory" : buf_text(&line));
}

void cmd_say_lines(const struct buf *lines)
{
    for (const char *line = buf_text(lines); *line; line += line[strcspn(line, "\n")] == '\n') {
        size_t len = strcspn(line, "\n");
        cmd_say("%.*s", (int)len, line);
        line += len;
    }
}

int cmd_fail(const struct err *e)
{
    cmd_say("%s", e->text);
    bool usage = e->code == -EINVAL || e->code == -EEXIST || e->code == -ERANGE;
    return usage ? CMD_USAGE : CMD_ENVIRONMENT;
}

/* An option's value may begin with dashes, but a value "--help" is asked for by nobody. */
static bool asks_help(int argc, char **argv)
{
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

static int print_help(const char *command)
{
    char help[] = "help", name[32];
    (void)snprintf(name, sizeof name, "%s", command);
    char *argv[] = { help, name, NULL };
    return cmd_help(2, argv);
}

bool cmd_asks_help(const char *command, int argc, char **argv, int *out_exit)
{
    bool asks = asks_help(argc, argv);
    if (asks)
        *out_exit = print_help(command);
    return asks;
}

int cmd_options(const char *command, int argc, char **argv, const struct opt_set *sets, size_t n_sets,
                struct strv *words, size_t max_words, int *out_exit)
{
    struct err e;
    if (cmd_asks_help(command, argc, argv, out_exit))
        return 1;
    int rc = opt_parse(argc, argv, sets, n_sets, words, &e);
    if (rc == 0 && words && words->n > max_words)
        rc = err_set(&e, -EINVAL, "unexpected word '%s': see 'pipetune help %s'", words->v[max_words], command);
    if (rc == 0)
        return 0;
    *out_exit = cmd_fail(&e);
    return 1;
}

void cmd_lengthen_out(int argc, char **argv)
{
    static char out[] = "--out";
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "-o") == 0)
            argv[i] = out;
}

int cmd_write(const struct buf *b, enum cmd_form form, struct err *e)
{
    AUTO_BUF struct buf fit = BUF_INIT;
    if (form == CMD_JSON)
        utf8_put_json(&fit, buf_text(b), b->len);
    else
        utf8_put_plain(&fit, buf_text(b), b->len, UTF8_LINES);
    (void)fflush(stdout); /* whatever went through stdio comes first */
    int rc = b->failed || fit.failed ? -ENOMEM : io_write_all(STDOUT_FILENO, fit.data, fit.len);
    return rc < 0 && rc != -EPIPE ? err_sys(e, rc, "cannot print") : rc;
}

static int print_form(const struct buf *b, enum cmd_form form)
{
    struct err e;
    int rc = cmd_write(b, form, &e);
    return rc == 0 || rc == -EPIPE ? CMD_OK : cmd_fail(&e); /* a reader that has seen enough (`| head`) is no failure */
}

int cmd_print(const struct buf *b)
{
    return print_form(b, CMD_TEXT);
}

int cmd_print_as_json(const struct buf *b)
{
    return print_form(b, CMD_JSON);
}

int cmd_print_json(json_t *j)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (j) {
        json_put(&b, j, JSON_STYLE_INDENT);
        buf_putc(&b, '\n');
    } else {
        b.failed = true;
    }
    json_decref(j);
    return print_form(&b, CMD_JSON);
}
