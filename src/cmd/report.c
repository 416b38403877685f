#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"
#include "view/put.h"

struct report_options {
    char *store, *html, *out;
    bool csv, json;
};

static const struct opt_row report_rows[] = {
    LOOK_STORE_ROW(struct report_options),
    { NULL, "html", OPT_TEXT, offsetof(struct report_options, html), NULL, 0, 0, NULL, "FILE",
      "write a page of HTML, which needs nothing else (the default form)" },
    { NULL, "csv", OPT_FLAG, offsetof(struct report_options, csv), NULL, 0, 0, NULL, NULL,
      "print a row of CSV per trial" },
    LOOK_JSON_ROW(struct report_options),
    { NULL, "out", OPT_TEXT, offsetof(struct report_options, out), NULL, 0, 0, NULL, "FILE",
      "where it goes instead of standard output, also -o FILE; an old file is replaced" },
};

void cmd_report_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(report_rows, NULL));
}

static int check(const struct report_options *o, const struct strv *words, struct err *e)
{
    if (words->n == 0)
        return err_set(e, -EINVAL, "which study? 'pipetune ls' lists them, 'pipetune report STUDY' reports on one");
    if ((o->html != NULL) + o->csv + o->json > 1)
        return err_set(e, -EINVAL, "one of '--html', '--csv' and '--json': a report has one form");
    if (o->html && o->out)
        return err_set(e, -EINVAL, "option '--html' names the file already: '--out' is for the other forms");
    return 0;
}

static int put(struct buf *b, struct view *v, const struct report_options *o, struct err *e)
{
    struct heats h = { .unread = "" };
    int rc = o->csv ? put_report_csv(b, v, e) : heats_load(&h, v, e);
    if (rc == 0 && *h.unread)
        cmd_say("the report lacks samples that cannot be read: %s", h.unread);
    if (rc == 0 && !o->csv)
        rc = o->json ? put_report_json(b, v, &h, e) : put_report_html(b, v, &h, e);
    heats_done(&h);
    return rc;
}

static int hand_out(const struct buf *b, const char *file, enum cmd_form form, struct err *e)
{
    if (b->failed)
        return err_sys(e, -ENOMEM, "cannot report");
    if (file && *file)
        return io_write_atomic(file, b->data, b->len, 0666, e);
    int rc = cmd_write(b, form, e);
    return rc == -EPIPE ? 0 : rc;
}

static int open_and_report(const struct report_options *o, const struct strv *words, struct err *e)
{
    int rc = check(o, words, e);
    if (rc < 0)
        return rc;
    AUTO_BUF struct buf instead = BUF_INIT;
    buf_printf(&instead, "'pipetune show %s'", words->v[0]);
    rc = look_whole(words->v[0], buf_text(&instead), e);
    if (rc < 0)
        return rc;
    AUTO_FREE char *path = study_store_path(o->store);
    AUTO_FREE char *dir = path ? study_dir(path, words->v[0]) : NULL;
    if (!dir)
        return err_sys(e, -ENOMEM, "study '%s'", words->v[0]);
    AUTO_BUF struct buf out = BUF_INIT;
    struct view v = { .store = NULL };
    struct store *store = NULL;
    rc = store_open(&store, path, STORE_READ, e);
    if (rc == 0)
        rc = view_open(&v, store, words->v[0], dir, study_driver(dir), e);
    if (rc == 0)
        rc = put(&out, &v, o, e);
    view_done(&v);
    store_close(store);
    return rc < 0 ? rc : hand_out(&out, o->html ? o->html : o->out, o->json ? CMD_JSON : CMD_TEXT, e);
}

int cmd_report(int argc, char **argv)
{
    struct report_options o = { 0 };
    struct opt_set set = OPT_SET(report_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    cmd_lengthen_out(argc, argv);
    if (!cmd_options("report", argc, argv, &set, 1, &words, 1, &code)) {
        struct err e = { 0 };
        code = open_and_report(&o, &words, &e) == 0 ? CMD_OK : cmd_fail(&e);
    }
    opt_done(&set);
    return code;
}
