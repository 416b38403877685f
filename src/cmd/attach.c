/* Follows what the driver of a study in the background prints, to its end. Ctrl-C ends the following alone: the driver has a session of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/show.h"
#include "live/background.h"
#include "live/study.h"
#include "serve/server.h"
#include "store/queue.h"
#include "view/view.h"
#include "view/words.h"

static const struct opt_row attach_rows[] = { LOOK_STORE_ROW(struct look_options) };

void cmd_attach_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(attach_rows, NULL));
}

enum { LOOK_US = 100000, BACK_MAX = 1 << 20 };

struct attach {
    struct store *store;
    const char *study, *path; /* of the store */
    char *dir, *log;
    int fd;      /* the log; -1: there is none yet */
    off_t at;    /* up to where it is printed */
    bool waited; /* that it is queued has been told */
};

/* Where the newest driver began: at its first line. */
static off_t newest_begin(const struct attach *a)
{
    AUTO_BUF struct buf b = BUF_INIT;
    AUTO_FREE char *mark = NULL;
    off_t size = lseek(a->fd, 0, SEEK_END), from = size > BACK_MAX ? size - BACK_MAX : 0;
    char chunk[4096];
    ssize_t n;
    for (off_t at = from; (n = pread(a->fd, chunk, sizeof chunk, at)) > 0; at += n)
        buf_put(&b, chunk, (size_t)n);
    if (asprintf(&mark, "\nstudy %s", a->study) < 0)
        mark = NULL;
    off_t begin = from;
    const char *text = buf_text(&b);
    for (const char *hit = text; mark && (hit = strstr(hit, mark)); hit++)
        if (strchr(",\n", hit[strlen(mark)])) /* "study s", "study s, going on" */
            begin = from + (hit + 1 - text);
    return begin;
}

/* What has been printed since. */
static int print_new(struct attach *a, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    char chunk[4096];
    ssize_t n;
    if (a->fd < 0 && ours_is_file(a->log)) {
        a->fd = ours_open(a->log, O_RDONLY | O_CLOEXEC, e);
        if (a->fd < 0)
            return a->fd;
        a->at = newest_begin(a);
    }
    if (a->fd >= 0 && lseek(a->fd, 0, SEEK_END) < a->at) /* it was begun anew */
        a->at = 0;
    while (a->fd >= 0 && (n = pread(a->fd, chunk, sizeof chunk, a->at)) > 0) {
        buf_put(&b, chunk, (size_t)n);
        a->at += n;
    }
    return b.len ? cmd_write(&b, CMD_TEXT, e) : 0;
}

static void tell_queued(struct attach *a, const struct store_queued *q)
{
    char when[32] = "";
    if (!a->waited && q->at_ms > study_now_ms() && words_time(when, q->at_ms, "%Y-%m-%d %H:%M:%S"))
        printf("study %s is in the queue, not before %s\n", a->study, when);
    else if (!a->waited)
        printf("study %s is in the queue: %s\n", a->study,
               server_of(a->path) ? "others come first" : "no server works it, 'pipetune serve' does");
    (void)fflush(stdout);
    a->waited = true;
}

/* 1: there is more to come; 0: it is over. *out_code: of its driver; -1: not known. */
static int look(struct attach *a, int *out_code, struct err *e)
{
    struct store_queued q = { 0 };
    int rc = store_queue_find(a->store, a->study, &q, e);
    bool queued = rc == 1 && !store_queue_is_over(q.state);
    *out_code = rc == 1 && !queued ? q.exit_code : -1;
    if (rc == 1 && strcmp(q.state, QUEUED) == 0)
        tell_queued(a, &q);
    store_queued_done(&q);
    return rc < 0 ? rc : queued || study_driver(a->dir) > 0;
}

static int show_end(struct attach *a, int code, struct err *e)
{
    struct store_study study = { 0 };
    int rc = store_study_find(a->store, a->study, &study, e);
    bool none = rc == 1 && strcmp(study.state, "failed") == 0;
    bool running = rc == 1 && strcmp(study.state, "running") == 0;
    bool there = rc == 1;
    store_study_done(&study);
    if (rc < 0)
        return rc;
    if (there && a->fd < 0)
        rc = show_study_text(a->store, a->study, a->dir, e);
    return rc < 0 ? rc : code >= 0 ? code : none ? CMD_NONE : running ? CMD_INTERRUPTED : CMD_OK;
}

static int follow(struct attach *a, struct err *e)
{
    int code = -1, rc;
    pid_t driver = study_driver(a->dir);
    if (driver > 0 && !background_is(driver, a->dir))
        return err_set(e, -EINVAL,
                       "study '%s' is run in the foreground of process %ld, where its progress is; 'pipetune show %s' "
                       "tells what it is at",
                       a->study, (long)driver, a->study);
    while ((rc = look(a, &code, e)) == 1) {
        rc = print_new(a, e);
        if (rc < 0)
            return rc;
        (void)usleep(LOOK_US);
    }
    if (rc == 0 && (a->fd >= 0 || a->waited)) /* what came last; of one that was over before nothing is told again */
        rc = print_new(a, e);
    return rc < 0 ? rc : show_end(a, code, e);
}

static int attach(const char *configured, const char *word, struct err *e)
{
    AUTO_FREE char *path = study_store_path(configured);
    struct attach a = { .study = word, .path = path, .fd = -1 };
    struct store_queued q = { 0 };
    struct store_study study = { 0 };
    a.dir = path ? study_dir(path, word) : NULL;
    a.log = a.dir ? background_log(a.dir) : NULL;
    int rc = a.log ? look_whole(word, "show", e) : err_sys(e, -ENOMEM, "study '%s'", word);
    if (rc == 0)
        rc = store_open(&a.store, path, STORE_READ, e);
    if (rc == 0)
        rc = store_queue_find(a.store, word, &q, e);
    if (rc == 0)
        rc = view_find(a.store, word, &study, e);
    if (rc >= 0)
        rc = follow(&a, e);
    store_queued_done(&q);
    store_study_done(&study);
    store_close(a.store);
    if (a.fd >= 0)
        (void)close(a.fd);
    free(a.dir);
    free(a.log);
    return rc == -EPIPE ? CMD_OK : rc; /* a reader that has seen enough is no failure */
}

int cmd_attach(int argc, char **argv)
{
    struct look_options o = { 0 };
    struct opt_set set = OPT_SET(attach_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    int code;
    if (!cmd_options("attach", argc, argv, &set, 1, &words, 1, &code)) {
        struct err e = { 0 };
        int rc =
            words.n ? attach(o.store, words.v[0], &e) : err_set(&e, -EINVAL, "which study? 'pipetune ls' lists them");
        code = rc < 0 ? cmd_fail(&e) : rc;
    }
    opt_done(&set);
    return code;
}
