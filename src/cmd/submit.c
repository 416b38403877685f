/* Puts a study into the queue: what `run` checks is checked first, with its words for what is wrong. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/run.h"
#include "live/hosts.h"
#include "live/study.h"
#include "serve/server.h"
#include "serve/variables.h"
#include "serve/when.h"
#include "store/queue.h"
#include "view/view.h"
#include "view/words.h"

struct submit_options {
    int64_t priority;
    char *at;
};

#define FIELD(member) offsetof(struct submit_options, member)
static const struct opt_row submit_rows[] = {
    { NULL, "priority", OPT_INT, FIELD(priority), "0", -1000, 1000, NULL, "N",
      "who has a higher one has all CPUs that it can use" },
    { NULL, "at", OPT_TEXT, FIELD(at), NULL, 0, 0, NULL, "TIME",
      "not before: 18:30, \"2026-11-20 18:30\", or +30m (s, m, h or d from now)" },
};

void cmd_submit_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(submit_rows, NULL));
    run_options(out);
}

/* A command line in two: our options with their values, and what is for `run`. */
struct split {
    struct strv own, run;
};

static bool is_own(const char *word, bool *out_takes_next)
{
    char name[64];
    for (size_t i = 0; i < ARRAY_LEN(submit_rows); i++) {
        const char *option = opt_name(&submit_rows[i], name);
        size_t n = strlen(option);
        if (strncmp(word, "--", 2) == 0 && strncmp(word + 2, option, n) == 0 && (!word[2 + n] || word[2 + n] == '=')) {
            *out_takes_next = !word[2 + n];
            return true;
        }
    }
    return false;
}

static int split(struct split *s, int argc, char **argv, struct err *e)
{
    bool next = false, all = false;
    strv_add(&s->own, "submit");
    strv_add(&s->run, "run");
    for (int i = 1; i < argc; i++) {
        bool own = next, takes_next = false;
        all |= strcmp(argv[i], "--") == 0;
        if (!own && !all)
            own = is_own(argv[i], &takes_next);
        next = takes_next;
        strv_add(own ? &s->own : &s->run, argv[i]);
    }
    return s->own.failed || s->run.failed ? err_sys(e, -ENOMEM, "submit") : 0;
}

struct submission {
    const struct submit_options *o;
    const struct strv *words; /* of `run` */
    char *store, *study;      /* out, owned */
    bool here;
    char *env;
    struct strv left_out; /* secrets that its files name */
};

static void submission_done(struct submission *s)
{
    free(s->store);
    free(s->study);
    free(s->env);
    strv_done(&s->left_out);
}

extern char **environ;

static int take_plan(void *ctx, struct plan *p, struct err *e)
{
    struct submission *s = ctx;
    const char *texts[] = { p->doc.text ? p->doc.text : "", p->app_doc.text ? p->app_doc.text : "" };
    AUTO_JSON json_t *env = variables_kept(environ, texts, ARRAY_LEN(texts), &s->left_out);
    s->store = study_store_path(p->cfg.store);
    s->study = strdup(p->name);
    s->env = json_text(env);
    s->here = plan_is_local(p) && !hosts_wanted(p) && !config_on_slurm(&p->cfg) && !p->app.gang;
    return s->store && s->study && s->env ? 0 : err_sys(e, -ENOMEM, "study '%s'", p->name);
}

static void say_secrets(const struct submission *s)
{
    for (size_t i = 0; i < s->left_out.n; i++)
        cmd_say("variable '%s' is a secret and not kept with the study: its driver has the one of the server, if any",
                s->left_out.v[i]);
}

static int put(struct store *store, const struct submission *s, int64_t at_ms, struct err *e)
{
    char queued[] = QUEUED;
    AUTO_JSON json_t *words = run_words((int)s->words->n, s->words->v);
    AUTO_FREE char *argv = json_text(words);
    AUTO_FREE char *folder = io_absolute(".");
    if (!argv || !folder)
        return err_sys(e, -ENOMEM, "study '%s'", s->study);
    struct store_queued row = { .study = s->study,
                                .state = queued,
                                .priority = (int)s->o->priority,
                                .here = s->here,
                                .submitted_ms = study_now_ms(),
                                .at_ms = at_ms,
                                .most = -1,
                                .grain = -1,
                                .to_go = -1,
                                .exit_code = -1,
                                .folder = folder,
                                .argv = argv,
                                .env = s->env };
    int rc = store_queue_add(store, &row, e);
    return rc == -EEXIST ? err_set(e, rc,
                                   "study '%s' is in the queue already: 'pipetune stop %s' takes it out, --name begins "
                                   "another",
                                   s->study, s->study)
                         : rc;
}

static void tell(const struct submission *s, int64_t at_ms)
{
    char when[32] = "";
    if (at_ms)
        (void)words_time(when, at_ms, "%Y-%m-%d %H:%M:%S");
    printf("study %s is in the queue%s%s: 'pipetune attach %s' shows it, 'pipetune stop %s' ends it\n", s->study,
           at_ms ? ", not before " : "", when, s->study, s->study);
}

static int submit(struct submission *s, struct split *split, struct err *e)
{
    int64_t at_ms = 0;
    struct store *store = NULL;
    int rc = s->o->at ? when_parse(s->o->at, study_now_ms(), &at_ms, e) : 0;
    if (rc == 0)
        rc = run_check("submit", (int)split->run.n, split->run.v, take_plan, s, e);
    if (rc == 0)
        say_secrets(s);
    if (rc == 0)
        rc = store_open(&store, s->store, STORE_WRITE, e);
    if (rc == 0)
        rc = put(store, s, at_ms, e);
    store_close(store);
    if (rc == 0)
        rc = server_wanted(s->store, e);
    if (rc == 0)
        tell(s, at_ms);
    return rc;
}

int cmd_submit(int argc, char **argv)
{
    struct submit_options o = { 0 };
    struct opt_set set = OPT_SET(submit_rows, &o);
    struct split words = { .own = STRV_INIT };
    struct submission s = { .o = &o, .words = &words.run };
    struct err e = { 0 };
    int code = 0;
    if (cmd_asks_help("submit", argc, argv, &code))
        return code;
    int rc = split(&words, argc, argv, &e);
    if (rc == 0)
        rc = opt_parse((int)words.own.n, words.own.v, &set, 1, NULL, &e);
    if (rc == 0)
        rc = submit(&s, &words, &e);
    code = rc < 0 ? cmd_fail(&e) : CMD_OK;
    submission_done(&s);
    strv_done(&words.own);
    strv_done(&words.run);
    opt_done(&set);
    return code;
}
