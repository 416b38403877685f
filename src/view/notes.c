#include "view/notes.h"

#include <errno.h>
#include <string.h>

#include "base/own.h"
#include "base/utf8.h"

static int add_text(void *ctx, const struct store_note *r)
{
    return json_array_append_new(ctx, json_bytes(r->text)) < 0 ? -ENOMEM : 0;
}

json_t *notes_json(struct store *s, int64_t study, int trial, struct err *e)
{
    AUTO_JSON json_t *all = json_array();
    int rc = all ? store_notes(s, study, trial, add_text, all, e) : -ENOMEM;
    if (rc == -ENOMEM)
        (void)err_sys(e, rc, "cannot read tags");
    return rc == 0 ? json_incref(all) : NULL;
}

struct putting {
    struct buf *out;
    const char *sep;
};

static int put_text(void *ctx, const struct store_note *r)
{
    struct putting *p = ctx;
    buf_puts(p->out, p->sep);
    utf8_put_plain(p->out, r->text, strlen(r->text), UTF8_ONE_LINE);
    p->sep = "; ";
    return 0;
}

int notes_put(struct buf *out, const char *before, struct store *s, int64_t study, int trial, struct err *e)
{
    AUTO_BUF struct buf texts = BUF_INIT;
    struct putting p = { &texts, "" };
    int rc = store_notes(s, study, trial, put_text, &p, e);
    if (rc == 0 && texts.len)
        buf_printf(out, "%stags: %s", out->len ? before : "", buf_text(&texts));
    out->failed |= texts.failed;
    return rc;
}

static int put_line(void *ctx, const struct store_note *r)
{
    struct buf *out = ctx;
    buf_printf(out, "%s%s", out->len ? "\n" : "", r->text);
    return 0;
}

int notes_put_lines(struct buf *out, struct store *s, int64_t study, int trial, struct err *e)
{
    return store_notes(s, study, trial, put_line, out, e);
}
