/* What differs between two trials, and by how much. As JSON:
 *
 *     {"a": {"study","trial"}, "b": {"study","trial"},
 *      "differences": [{"what","a","b","delta","percent"}],
 *      "code": [{"name","removed","added","lines"}]}
 *
 * "what" is the name of a figure as `show --json` has it, with its place: "state", "hyper.batch_size", "effective.cores", "accuracy",
 * "epoch 2 accuracy", …, and of two studies what diff_study.h names; code: their files that differ, line by line; delta is b - a and percent its share of a, both null where one of them is no number. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/diff_study.h"
#include "cmd/look.h"
#include "live/study.h"
#include "view/put.h"
#include "view/table.h"

/* One of the two: every figure of it by its name, flat. */
struct side {
    char *study;
    int trial;
    json_t *figures;
};

static void side_done(struct side *s)
{
    free(s->study);
    json_decref(s->figures);
}

/* --- a trial's figures --- */

static void put_members(json_t *to, const char *prefix, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        AUTO_BUF struct buf name = BUF_INIT;
        buf_printf(&name, "%s.%s", prefix, key);
        (void)json_object_set(to, buf_text(&name), value);
    }
}

static void put_epoch(json_t *to, const struct store_epoch *r)
{
    const struct {
        const char *name;
        double value;
    } figures[] = { { "accuracy", r->accuracy }, { "loss", r->loss }, { "seconds", r->seconds } };
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "epoch %d %s", r->epoch, figures[i].name);
        (void)json_object_set_new(to, name, json_num(figures[i].value));
    }
}

static int put_figures(json_t *to, struct view *v, struct view_trial *t, struct err *e)
{
    AUTO_JSON json_t *all = NULL;
    int rc = put_trial_json(&all, v, t, columns_diff, e);
    for (const struct column *const *c = columns_diff; rc == 0 && *c; c++) {
        json_t *value = json_object_get(all, (*c)->key);
        if ((*c)->spread)
            put_members(to, (*c)->key, value);
        else
            (void)json_object_set(to, (*c)->key, value);
    }
    if (rc == 0)
        rc = view_epochs(v, t, e);
    for (size_t i = 0; rc == 0 && i < t->n_epochs; i++)
        put_epoch(to, &t->epochs[i]);
    return rc;
}

/* --- which trial --- */

static int read_figures(struct side *s, struct store *store, const char *path, struct err *e)
{
    AUTO_FREE char *dir = study_dir(path, s->study);
    struct view v = { .store = NULL };
    int rc = dir ? view_open(&v, store, s->study, dir, study_driver(dir), e) : err_sys(e, -ENOMEM, "'%s'", s->study);
    struct view_trial *t = rc == 0 ? view_trial(&v, s->trial) : NULL;
    s->figures = json_object();
    if (t)
        rc = put_figures(s->figures, &v, t, e);
    else if (rc == 0)
        rc = err_set(e, -EINVAL, "there is no trial %s/%d", s->study, s->trial);
    view_done(&v);
    return rc;
}

static int side_load(struct side *s, struct store *store, const char *path, const char *word, struct err *e)
{
    struct look_name name = { 0 };
    struct store_study study = { 0 };
    int rc = look_name_find(&name, store, word, &study, e);
    *s = (struct side){ MOVE_PTR(name.study), name.trial, NULL };
    if (rc == 0 && !s->trial)
        rc = err_set(e, -EINVAL, "'%s' is a study: say STUDY/N, as in 'pipetune diff %s/1 %s/2'", word, word, word);
    if (rc == 0)
        rc = read_figures(s, store, path, e);
    if (rc == 0)
        rc = diff_study_put(s->figures, store, &study, e);
    store_study_done(&study);
    return rc;
}

/* --- differing --- */

static bool same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_number_value(a) == json_number_value(b);
    return json_equal((json_t *)(uintptr_t)a, (json_t *)(uintptr_t)b);
}

static json_t *difference(const char *what, json_t *a, json_t *b)
{
    double delta = json_is_number(a) && json_is_number(b) ? json_number_value(b) - json_number_value(a) : (double)NAN;
    double percent = json_number_value(a) != 0 ? 100 * delta / fabs(json_number_value(a)) : (double)NAN;
    return json_pack("{s:s, s:O, s:O, s:o, s:o}", "what", what, "a", a, "b", b, "delta", json_num(delta), "percent",
                     json_num(percent));
}

/* What `a` has, or with `only_b` what it has not. */
static int add_differences(json_t *list, const struct side *a, const struct side *b, bool only_b)
{
    AUTO_JSON json_t *none = json_null();
    const char *key;
    json_t *value;
    json_object_foreach(only_b ? b->figures : a->figures, key, value)
    {
        json_t *at_a = json_object_get(a->figures, key), *at_b = json_object_get(b->figures, key);
        if ((only_b && at_a) || same(at_a ? at_a : none, at_b ? at_b : none))
            continue;
        if (json_array_append_new(list, difference(key, at_a ? at_a : none, at_b ? at_b : none)) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* New reference; NULL: memory. */
static json_t *differences(const struct side *a, const struct side *b)
{
    json_t *list = json_array();
    if (list && (add_differences(list, a, b, false) < 0 || add_differences(list, a, b, true) < 0)) {
        json_decref(list);
        return NULL;
    }
    return list;
}

static json_t *side_json(const struct side *s)
{
    return json_pack("{s:s, s:i}", "study", s->study, "trial", s->trial);
}

static void value_cell(struct table *t, const json_t *value)
{
    AUTO_BUF struct buf text = BUF_INIT;
    if (!json_is_null(value))
        words_put_short(&text, value);
    table_cell(t, text.len ? buf_text(&text) : "-");
    t->failed |= text.failed;
}

static void delta_cells(struct table *t, const json_t *d)
{
    char digits[32];
    const json_t *delta = json_object_get(d, "delta"), *percent = json_object_get(d, "percent");
    if (json_is_number(delta))
        table_cellf(t, "%s%s", json_number_value(delta) > 0 ? "+" : "", table_digits(json_number_value(delta), digits));
    else
        table_cell(t, "");
    if (json_is_number(percent))
        table_cellf(t, "%+.1f %%", json_number_value(percent));
    else
        table_cell(t, "");
}

static void put_code(struct buf *out, const json_t *code)
{
    size_t i;
    json_t *one;
    json_array_foreach(code, i, one) buf_printf(
        out, "\n%s: %lld lines less, %lld more\n%s", json_string_value(json_object_get(one, "name")),
        (long long)json_integer_value(json_object_get(one, "removed")),
        (long long)json_integer_value(json_object_get(one, "added")), json_string_value(json_object_get(one, "lines")));
}

static int print_table(const struct side *a, const struct side *b, const json_t *list, const json_t *code)
{
    AUTO_BUF struct buf out = BUF_INIT;
    AUTO_STRV struct strv heads = STRV_INIT;
    struct table t;
    strv_add(&heads, "what");
    strv_addf(&heads, "!>%s/%d", a->study, a->trial);
    strv_addf(&heads, "!>%s/%d", b->study, b->trial);
    strv_add(&heads, "!>delta");
    strv_add(&heads, "!>percent");
    if (json_array_size(list) == 0 || heads.failed) {
        out.failed |= heads.failed;
        buf_puts(&out, "nothing differs\n");
        return cmd_print(&out);
    }
    table_init(&t, (const char *const *)heads.v);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *d = json_array_get(list, i);
        table_cell(&t, json_string_value(json_object_get(d, "what")));
        value_cell(&t, json_object_get(d, "a"));
        value_cell(&t, json_object_get(d, "b"));
        delta_cells(&t, d);
    }
    table_put(&t, &out, 0);
    put_code(&out, code);
    out.failed |= t.failed != 0;
    table_done(&t);
    return cmd_print(&out);
}

static int print(struct store *s, const struct side *a, const struct side *b, bool json)
{
    struct err e;
    AUTO_JSON json_t *list = differences(a, b);
    AUTO_JSON json_t *code = diff_study_code(s, a->study, b->study, &e);
    if (!code)
        return cmd_fail(&e);
    if (json || !list)
        return cmd_print_json(list ? json_pack("{s:o, s:o, s:O, s:O}", "a", side_json(a), "b", side_json(b),
                                               "differences", list, "code", code)
                                   : NULL);
    return print_table(a, b, list, code);
}

static int diff(const struct look_options *o, const struct strv *words)
{
    struct err e = { 0 };
    AUTO_FREE char *path = study_store_path(o->store);
    struct side a = { 0 }, b = { 0 };
    struct store *store = NULL;
    int rc = path ? store_open(&store, path, STORE_READ, &e) : err_sys(&e, -ENOMEM, "cannot compare");
    if (rc == 0)
        rc = side_load(&a, store, path, words->v[0], &e);
    if (rc == 0)
        rc = side_load(&b, store, path, words->v[1], &e);
    int code = rc < 0 ? cmd_fail(&e) : print(store, &a, &b, o->json);
    side_done(&a);
    side_done(&b);
    store_close(store);
    return code;
}

int cmd_diff(int argc, char **argv)
{
    struct look_options o = { 0 };
    struct opt_set set = OPT_SET(look_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e;
    int code;
    if (!cmd_options("diff", argc, argv, &set, 1, &words, 2, &code)) {
        if (words.n < 2)
            code = (err_set(&e, -EINVAL, "which trials? say 'pipetune diff STUDY/N STUDY/M'"), cmd_fail(&e));
        else
            code = diff(&o, &words);
    }
    opt_done(&set);
    return code;
}
