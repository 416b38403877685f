/* What people say of a study or a trial: kept in the store, beside whoever drives the study. */
#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "base/utf8.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"
#include "view/notes.h"

enum { TAG_MAX = 1000 };

struct tag_options {
    char *store;
    bool json, remove;
};

static const struct opt_row tag_rows[] = {
    LOOK_STORE_ROW(struct tag_options),
    LOOK_JSON_ROW(struct tag_options),
    { NULL, "remove", OPT_FLAG, offsetof(struct tag_options, remove), NULL, 0, 0, NULL, NULL,
      "take that text off again; without one, all of them" },
};

void cmd_tag_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(tag_rows, NULL));
}

struct tagging {
    const struct tag_options *o;
    const char *word; /* STUDY[/N] */
    struct buf text;  /* the other words; none: what there is is shown */
    struct store *store;
    struct store_study study;
    struct look_name name;
};

static int join(struct buf *out, const struct strv *words, struct err *e)
{
    for (size_t i = 1; i < words->n; i++)
        buf_printf(out, "%s%s", i > 1 ? " " : "", words->v[i]);
    if (out->failed)
        return err_sys(e, -ENOMEM, "a tag");
    AUTO_BUF struct buf plain = BUF_INIT;
    utf8_put_plain(&plain, buf_text(out), out->len, UTF8_ONE_LINE);
    bool odd = plain.failed || strcmp(buf_text(&plain), buf_text(out)) != 0;
    if (words->n > 1 && (odd || out->len > TAG_MAX || strspn(buf_text(out), " ") == out->len))
        return err_set(e, -EINVAL, "a tag must be one line of UTF-8 with something in it, of at most %d bytes",
                       TAG_MAX);
    return 0;
}

static int forget(struct tagging *t, struct err *e)
{
    int n;
    const char *text = t->text.len ? buf_text(&t->text) : NULL;
    int rc = store_note_forget(t->store, t->study.id, t->name.trial, text, &n, e);
    if (rc < 0 || n > 0 || !text)
        return rc;
    return err_set(e, -EINVAL, "'%s' has no tag '%s': 'pipetune tag %s' lists those it has", t->word, text, t->word);
}

static int change(struct tagging *t, struct err *e)
{
    if (t->o->remove)
        return forget(t, e);
    const struct store_note row = { t->study.id, t->name.trial, study_now_ms(), buf_text(&t->text) };
    return t->text.len ? store_note_put(t->store, &row, e) : 0;
}

static int tell(const struct tagging *t, struct err *e)
{
    json_t *texts = notes_json(t->store, t->study.id, t->name.trial, e);
    if (!texts)
        return e->code;
    if (t->o->json)
        return cmd_print_json(json_pack("{s:s, s:o, s:o}", "study", t->study.name, "trial",
                                        t->name.trial ? json_integer(t->name.trial) : json_null(), "tags", texts));
    AUTO_BUF struct buf b = BUF_INIT;
    size_t i;
    json_t *text;
    json_array_foreach(texts, i, text) buf_printf(&b, "%s\n", json_string_value(text));
    if (i == 0)
        buf_printf(&b, "%s has no tags\n", t->word);
    json_decref(texts);
    return cmd_print(&b);
}

/* A store that is not there is not made, and one that is only looked at is not migrated. */
static int open_and_tag(struct tagging *t, struct err *e)
{
    AUTO_FREE char *path = study_store_path(t->o->store);
    if (!path)
        return err_sys(e, -ENOMEM, "study '%s'", t->word);
    bool writes = (t->text.len || t->o->remove) && io_exists(path);
    int rc = store_open(&t->store, path, writes ? STORE_WRITE : STORE_READ, e);
    if (rc == 0)
        rc = look_name_find(&t->name, t->store, t->word, &t->study, e);
    if (rc == 0)
        rc = change(t, e);
    return rc == 0 ? tell(t, e) : rc;
}

int cmd_tag(int argc, char **argv)
{
    struct tag_options o = { 0 };
    struct opt_set set = OPT_SET(tag_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("tag", argc, argv, &set, 1, &words, SIZE_MAX, &code)) {
        struct err e = { 0 };
        struct tagging t = { .o = &o, .word = words.n ? words.v[0] : NULL, .text = BUF_INIT };
        int rc =
            t.word ? join(&t.text, &words, &e)
                   : err_set(&e, -EINVAL, "tag what? say STUDY or STUDY/N, and the text; 'pipetune ls' lists studies");
        if (rc == 0)
            rc = open_and_tag(&t, &e);
        code = rc < 0 ? cmd_fail(&e) : rc;
        look_name_done(&t.name);
        store_study_done(&t.study);
        store_close(t.store);
        buf_done(&t.text);
    }
    opt_done(&set);
    return code;
}
