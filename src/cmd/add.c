/* A point that a study is to try. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "core/space.h"
#include "live/study.h"
#include "serve/queue.h"
#include "serve/request.h"
#include "serve/server.h"
#include "view/view.h"
#include "view/words.h"

/* "lr=0.1": a number where it is one. */
static int read_value(json_t *point, const char *word, struct err *e)
{
    const char *equals = strchr(word, '=');
    AUTO_FREE char *name = equals ? strndup(word, (size_t)(equals - word)) : NULL;
    if (!equals || equals == word || !equals[1])
        return err_set(e, -EINVAL, "'%s' is no value: say NAME=VALUE", word);
    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
    if (!value || (!json_is_number(value) && !json_is_boolean(value))) {
        json_decref(value);
        value = json_bytes(equals + 1);
    }
    if (!name || !value || json_object_get(point, name)) {
        json_decref(value);
        return !name || !value ? err_sys(e, -ENOMEM, "'%s'", word) : err_set(e, -EINVAL, "'%s' is given twice", name);
    }
    return json_object_set_new(point, name, value) < 0 ? err_sys(e, -ENOMEM, "'%s'", word) : 0;
}

static int refuse(const struct space *sp, const struct store_study *study, struct err *e)
{
    AUTO_BUF struct buf names = BUF_INIT;
    for (size_t i = 0; i < space_n_hyper(sp); i++)
        buf_printf(&names, "%s%s", i ? ", " : "", sp->dims[i].name);
    return err_set(
        e, -EINVAL,
        "that is no point of study '%s': name each of its hyperparameters (%s) with a value that it can have",
        study->name, buf_text(&names));
}

static int check_point(const struct store_study *study, const json_t *point, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct space sp = { 0 };
    struct point p;
    const char *text = study->config ? study->config : "";
    int rc = json_doc_parse(&doc, study->name, text, strlen(text), e);
    if (rc == 0)
        rc = space_parse(&sp, &doc, e);
    if (rc == 0 && space_point_named(&sp, point, &p) < 0)
        rc = refuse(&sp, study, e);
    space_done(&sp);
    return rc;
}

/* Who tries what is not a trial yet. */
static const char by_driver[] = "its driver", by_queue[] = "it is in the queue again, and",
                  by_run[] = "the next 'pipetune run' with its config";

/* Who has ended gets to it when it runs again. */
static int ask(struct store *s, const char *path, struct store_study *study, const json_t *point, char **out_answer,
               const char **out_who, struct err *e)
{
    AUTO_FREE char *dir = study_dir(path, study->name);
    AUTO_FREE char *text = json_text(point);
    if (!dir || !text)
        return err_sys(e, -ENOMEM, "study '%s'", study->name);
    struct store_request r = { .study = study->name, .text = text };
    int rc = request_ask(s, dir, &r, "add", e);
    *out_answer = r.answer;
    if (rc != 0)
        return rc;
    bool driven = study_driver(dir) > 0;
    rc = driven ? 0 : queue_again(s, study->name, e);
    *out_who = driven ? by_driver : rc == 1 ? by_queue : by_run;
    return rc < 0 ? rc : 0;
}

static int tell(const char *study, const char *answer, const char *who, bool json)
{
    if (json)
        return cmd_print_json(json_pack("{s:s, s:o}", "study", study, "answer", words_text(answer)));
    AUTO_BUF struct buf b = BUF_INIT;
    if (answer)
        buf_printf(&b, "added to study %s: %s\n", study, answer);
    else
        buf_printf(&b, "added to study %s: %s tries it\n", study, who);
    return cmd_print(&b);
}

static int add(const struct look_options *o, const struct strv *words, struct err *e)
{
    AUTO_FREE char *path = study_store_path(o->store);
    AUTO_JSON json_t *point = json_object();
    AUTO_FREE char *answer = NULL;
    struct store *s = NULL;
    struct store_study study = { 0 };
    const char *who = NULL;
    int rc = path && point ? look_whole(words->v[0], "show", e) : err_sys(e, -ENOMEM, "add");
    for (size_t i = 1; rc == 0 && i < words->n; i++)
        rc = read_value(point, words->v[i], e);
    if (rc == 0)
        rc = look_open_to_write(&s, path, e);
    if (rc == 0)
        rc = view_find(s, words->v[0], &study, e);
    if (rc == 0)
        rc = check_point(&study, point, e);
    if (rc == 0)
        rc = ask(s, path, &study, point, &answer, &who, e);
    store_close(s);
    if (rc >= 0 && who == by_queue)
        rc = server_wanted(path, e);
    if (rc >= 0)
        rc = tell(study.name, answer, who, o->json);
    store_study_done(&study);
    return rc;
}

int cmd_add(int argc, char **argv)
{
    enum { WORDS_MAX = 1 + SPACE_MAX_DIMS };
    struct look_options o = { 0 };
    struct opt_set set = OPT_SET(look_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("add", argc, argv, &set, 1, &words, WORDS_MAX, &code)) {
        struct err e = { 0 };
        int rc = words.n > 1 ? add(&o, &words, &e)
                             : err_set(&e, -EINVAL, "which point of which study? pipetune add STUDY NAME=VALUE…");
        code = rc < 0 ? cmd_fail(&e) : rc;
    }
    opt_done(&set);
    return code;
}
