/* What a shell script tells of the trial that it trains (app/tell.h). */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/tell.h"
#include "base/io.h"
#include "base/num.h"
#include "base/own.h"
#include "base/wire.h"
#include "cmd/cmd.h"

enum { PATIENCE_S = 60 }; /* a disk that is full holds the launcher up */

struct tell_options {
    int64_t epoch, step;
    double records, seconds;
    char *checkpoint;
};

#define ROW(key, type, field, min, max, arg, help)                                                                     \
    {                                                                                                                  \
        NULL, key, type, offsetof(struct tell_options, field), NULL, min, max, NULL, arg, help                         \
    }
static const struct opt_row tell_rows[] = {
    ROW("epoch", OPT_INT, epoch, 0, INT_MAX, "N", "the epoch that is over, from 1 (else: the one under way)"),
    ROW("step", OPT_INT, step, 0, (double)((int64_t)1 << 52), "N", "a training step instead, counted from 1"),
    ROW("records", OPT_REAL, records, 0, 1e15, "N", "records that the step trained"),
    ROW("seconds", OPT_REAL, seconds, 0, 1e9, "S", "seconds that it took"),
    ROW("checkpoint", OPT_TEXT, checkpoint, 0, 0, "PATH", "a checkpoint that is written whole"),
};
#undef ROW

static struct opt_set tell_opts(struct tell_options *o)
{
    return (struct opt_set){ .rows = tell_rows, .n = ARRAY_LEN(tell_rows), .target = o };
}

void cmd_tell_options(struct cmd_rows *out)
{
    struct opt_set set = tell_opts(NULL);
    cmd_rows_add(out, &set);
}

/* --- the line --------------------------------------------------------------------------------------------------------- */

static void put_key(struct buf *b, const char *key)
{
    buf_puts(b, b->len > 1 ? "," : "");
    wire_put_text(b, key);
    buf_putc(b, ':');
}

static void put_count(struct buf *b, const char *key, int64_t n)
{
    if (n == 0)
        return;
    put_key(b, key);
    buf_printf(b, "%lld", (long long)n);
}

static void put_amount(struct buf *b, const char *key, double x)
{
    if (!(x > 0))
        return;
    put_key(b, key);
    num_put(b, x);
}

static int put_metric(struct buf *b, const char *word, struct err *e)
{
    const char *equals = strchr(word, '=');
    double x;
    if (!equals || equals == word)
        return err_set(e, -EINVAL, "'%s' is no NAME=VALUE", word);
    if (!tell_number(equals + 1, strlen(equals + 1), &x))
        return err_set(e, -EINVAL, "'%s': '%s' is no number", word, equals + 1);
    AUTO_FREE char *name = strndup(word, (size_t)(equals - word));
    if (!name)
        return err_sys(e, -ENOMEM, "'%s'", word);
    put_key(b, name);
    if (isfinite(x))
        num_put(b, x);
    else
        wire_put_text(b, equals + 1);
    return 0;
}

static int put_line(struct buf *b, const struct tell_options *o, const struct strv *words, const char *folder,
                    struct err *e)
{
    int rc = 0;
    buf_putc(b, '{');
    put_count(b, "epoch", o->epoch);
    put_count(b, "step", o->step);
    put_amount(b, "records", o->records);
    put_amount(b, "seconds", o->seconds);
    if (o->checkpoint) {
        AUTO_FREE char *path = *o->checkpoint == '/' ? strdup(o->checkpoint) : io_join(folder, o->checkpoint);
        put_key(b, "checkpoint");
        wire_put_text(b, path ? path : o->checkpoint);
    }
    for (size_t i = 0; rc == 0 && i < words->n; i++)
        rc = put_metric(b, words->v[i], e);
    buf_puts(b, "}\n");
    return rc == 0 && b->failed ? err_sys(e, -ENOMEM, "cannot tell it") : rc;
}

/* As the launcher will read it: what is wrong with it is better said before it is sent. */
static int check_line(const struct buf *line, struct err *e)
{
    struct app_report r;
    AUTO_FREE char *copy = strndup(buf_text(line), line->len - 1);
    if (!copy)
        return err_sys(e, -ENOMEM, "cannot tell it");
    int rc = tell_read(copy, strlen(copy), &r, e);
    return rc < 0 ? rc : 0;
}

/* --- the socket ------------------------------------------------------------------------------------------------------- */

static int connect_to(const char *path, struct err *e)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    struct timeval patience = { .tv_sec = PATIENCE_S };
    if (strlen(path) >= sizeof at.sun_path)
        return err_sys(e, -ENAMETOOLONG, "PIPETUNE_TELL, '%s'", path);
    memcpy(at.sun_path, path, strlen(path) + 1);
    AUTO_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&at, sizeof at) < 0)
        return err_sys(e, -errno, "cannot reach the trial's launcher at '%s'", path);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return MOVE_FD(fd);
}

/* The launcher closes when it has taken all; what it says before is why it did not. */
static int send_line(int fd, const struct buf *line, struct err *e)
{
    char said[1024];
    int rc = io_write_all(fd, line->data, line->len);
    if (rc < 0 || shutdown(fd, SHUT_WR) < 0)
        return err_sys(e, rc < 0 ? rc : -errno, "cannot tell the trial's launcher");
    ssize_t n = read(fd, said, sizeof said - 1);
    if (n < 0)
        return err_sys(e, -errno, "the trial's launcher does not take it");
    said[n] = '\0';
    return strstr(said, "\"error\"") ? err_set(e, -EINVAL, "not taken: %.*s", (int)strcspn(said, "\n"), said) : 0;
}

static int tell(const struct tell_options *o, const struct strv *words, struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    char folder[PATH_MAX];
    const char *path = getenv("PIPETUNE_TELL");
    if (!path || !*path)
        return err_set(e, -ENOTCONN,
                       "this is no trial: PIPETUNE_TELL is not set, as it is in what 'pipetune run' starts");
    if (!getcwd(folder, sizeof folder))
        return err_sys(e, -errno, "cannot tell the working directory");
    int rc = put_line(&line, o, words, folder, e);
    if (rc == 0)
        rc = check_line(&line, e);
    AUTO_CLOSE int fd = rc == 0 ? connect_to(path, e) : -1;
    if (rc == 0)
        rc = fd < 0 ? fd : send_line(fd, &line, e);
    return rc;
}

int cmd_tell(int argc, char **argv)
{
    struct tell_options o = { 0 };
    struct opt_set set = tell_opts(&o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e = { 0 };
    int code = CMD_OK;
    if (!cmd_options("tell", argc, argv, &set, 1, &words, REPORT_VALUES_MAX, &code) && tell(&o, &words, &e) < 0)
        code = cmd_fail(&e);
    opt_done(&set);
    return code;
}
