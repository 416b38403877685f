#include "serve/api.h"

#include <errno.h>
#include <string.h>

#include "base/capture.h"
#include "base/json.h"
#include "base/own.h"

enum { ANSWER_MS = 60000, ANSWER_MAX = 256 * 1024 * 1024 };

enum words { NO_WORDS, STUDY, STUDY_OR_TRIAL, STUDIES, TRIALS };

static const struct row {
    const char *name; /* /api/NAME */
    enum words words;
    const char *command[3];
} rows[] = {
    { "best", STUDY, { "best" } },
    { "compare", STUDIES, { "compare" } },
    { "decisions", STUDY_OR_TRIAL, { "show", "--decisions" } },
    { "diff", TRIALS, { "diff" } },
    { "energy", STUDY_OR_TRIAL, { "energy" } },
    { "events", NO_WORDS, { "events" } },
    { "importance", STUDY, { "show", "--importance" } },
    { "ls", NO_WORDS, { "ls" } },
    { "model", NO_WORDS, { "model", "show" } },
    { "models", NO_WORDS, { "model", "ls" } },
    { "report", STUDY, { "report" } },
    { "show", STUDY_OR_TRIAL, { "show" } },
    { "version", NO_WORDS, { "version" } },
};

static const char *const actions[] = { "retry", "stop" };

static const struct row *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

static bool fits(enum words w, size_t n)
{
    switch (w) {
    case NO_WORDS: return n == 0;
    case STUDY: return n == 1;
    case STUDY_OR_TRIAL: return n == 1 || n == 2;
    case STUDIES: return n >= 2;
    case TRIALS: return n == 4;
    }
    return false;
}

/* After "--", so that no name is an option. */
static void add_words(struct strv *out, enum words w, char *const *words, size_t n)
{
    bool pairs = w == TRIALS || (w == STUDY_OR_TRIAL && n == 2);
    for (size_t i = 0; i < n; i += pairs ? 2 : 1) {
        if (pairs)
            strv_addf(out, "%s/%s", words[i], words[i + 1]);
        else
            strv_add(out, words[i]);
    }
}

static void add_store(struct strv *out, const struct api *a)
{
    strv_add(out, "--store");
    strv_add(out, a->store);
}

void api_command(struct strv *out, const struct api *a, const struct http_path *p)
{
    const struct row *r = p->n >= 2 ? find(p->words[1]) : NULL;
    if (!r || !fits(r->words, p->n - 2))
        return;
    strv_add(out, a->program);
    for (size_t i = 0; i < ARRAY_LEN(r->command) && r->command[i]; i++)
        strv_add(out, r->command[i]);
    strv_add(out, "--json");
    if (strcmp(r->name, "version") != 0 && strcmp(r->name, "events") != 0)
        add_store(out, a);
    if (p->n == 2)
        return;
    strv_add(out, "--");
    add_words(out, r->words, p->words + 2, p->n - 2);
}

void api_action(struct strv *out, const struct api *a, const char *action, const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (strcmp(actions[i], action) != 0)
            continue;
        strv_add(out, a->program);
        strv_add(out, actions[i]);
        add_store(out, a);
        strv_add(out, "--");
        strv_add(out, name);
    }
}

/* "pipetune: no study 'x'\n" without what is before and after. */
static const char *reason(struct buf *said)
{
    static const char from[] = "pipetune: ";
    while (said->len > 0 && said->data[said->len - 1] == '\n')
        buf_cut(said, said->len - 1);
    const char *text = buf_text(said);
    return strncmp(text, from, strlen(from)) == 0 ? text + strlen(from) : text;
}

static void fail(struct http_answer *out, unsigned status, const char *why)
{
    out->status = status;
    buf_clear(&out->body);
    buf_puts(&out->body, "{\"error\": ");
    json_put_string(&out->body, why);
    buf_puts(&out->body, "}\n");
}

static unsigned status_of(int rc)
{
    switch (rc) {
    case 0:
    case 1: return 200; /* no trial finished: that is an answer, too */
    case 2: return 404;
    case -ETIMEDOUT: return 504;
    case -EFBIG: return 413;
    default: return 500;
    }
}

void api_answer(const struct api *a, const struct http_request *q, struct http_answer *out)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    AUTO_BUF struct buf said = BUF_INIT;
    struct err e = { 0 };
    out->type = "application/json";
    api_command(&argv, a, &q->path);
    if (argv.n == 0 && !argv.failed) {
        fail(out, 404, "there is no such table");
        return;
    }
    int rc = argv.failed ? err_sys(&e, -ENOMEM, "cannot answer")
                         : capture_apart(&out->body, &said, argv.v, ANSWER_MAX, ANSWER_MS, &e);
    if (status_of(rc) != 200)
        fail(out, status_of(rc), rc < 0 ? e.text : reason(&said));
}

unsigned api_act(const struct api *a, const struct http_request *q, struct buf *why)
{
    AUTO_STRV struct strv argv = STRV_INIT;
    AUTO_BUF struct buf out = BUF_INIT, said = BUF_INIT;
    struct err e = { 0 };
    const char *name = http_pairs_get(&q->form, "name");
    if (!name || q->path.n != 2)
        return 404;
    api_action(&argv, a, q->path.words[1], name);
    if (argv.n == 0)
        return 404;
    int rc = argv.failed ? err_sys(&e, -ENOMEM, "cannot do it")
                         : capture_apart(&out, &said, argv.v, ANSWER_MAX, ANSWER_MS, &e);
    if (rc == 0)
        return 0;
    buf_puts(why, rc < 0 ? e.text : reason(&said));
    return rc == 2 ? 409 : status_of(rc) == 200 ? 500 : status_of(rc);
}
