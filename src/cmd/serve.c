/* The server of a store: its queue, and its page. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"
#include "serve/page.h"
#include "serve/server.h"
#include "view/words.h"

#define PRESET_LISTEN "127.0.0.1:8720"
#define NO_PAGE "none"

struct serve_options {
    char *store, *listen, *token_file;
    int64_t cpus;
    bool once;
};

#define FIELD(member) offsetof(struct serve_options, member)
static const struct opt_row serve_rows[] = {
    LOOK_STORE_ROW(struct serve_options),
    { NULL, "listen", OPT_TEXT, FIELD(listen), PRESET_LISTEN, 0, 0, NULL, "HOST:PORT",
      "where the page is; port 0: any that is free; none: there is no page" },
    { NULL, "token_file", OPT_TEXT, FIELD(token_file), NULL, 0, 0, NULL, "FILE",
      "a token that who looks must show, of mode 0600; needed unless it is loopback" },
    { NULL, "cpus", OPT_INT, FIELD(cpus), "0", 0, 4096, NULL, "N",
      "CPUs that studies share; 0: all that this process may use" },
    { NULL, "once", OPT_FLAG, FIELD(once), NULL, 0, 0, NULL, NULL, "end when nothing is left to do" },
};

void cmd_serve_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(serve_rows, NULL));
}

static void say_line(const char *line)
{
    char when[32] = "";
    (void)words_time(when, study_now_ms(), "%Y-%m-%d %H:%M:%S");
    printf("%s  %s\n", when, line);
    (void)fflush(stdout);
}

/* --- signals: the page's threads never see one; the queue takes them by its loop --- */

/* From before anything begins, so that none of them ends the program in the middle. */
static void hold_ends(void)
{
    sigset_t set = server_signals();
    (void)sigprocmask(SIG_BLOCK, &set, NULL); /* cannot fail with these */
}

/* True: one of them came within a second. */
static bool wait_for_end(void)
{
    sigset_t set = server_signals();
    const struct timespec second = { .tv_sec = 1 };
    return sigtimedwait(&set, NULL, &second) > 0;
}

/* --- the queue; who has a page shows it also while another server of the store works that --- */

static int work(const struct server_options *s, const struct page *page, struct err *e)
{
    bool told = false;
    for (;;) {
        int rc = server_run(s, e);
        if (rc != -EBUSY || !page || s->once)
            return rc;
        if (!told)
            say_line("another server works the queue: this one shows the page, and takes the queue when that one ends");
        told = true;
        if (wait_for_end())
            return 0;
    }
}

static int serve(const struct serve_options *o, struct err *e)
{
    AUTO_FREE char *path = study_store_path(o->store);
    struct server_options s = { .store = path, .cpus = (int)o->cpus, .once = o->once, .say = say_line };
    struct page_options options = { path, o->listen, o->token_file };
    struct page *page = NULL;
    AUTO_BUF struct buf line = BUF_INIT;
    if (!path)
        return err_sys(e, -ENOMEM, "cannot serve");
    hold_ends();
    if (strcmp(o->listen, NO_PAGE) == 0)
        return work(&s, NULL, e);
    int rc = page_start(&page, &options, e);
    if (rc < 0)
        return rc;
    buf_printf(&line, "http://%s/\n", page_address(page));
    rc = cmd_print(&line) == CMD_OK ? work(&s, page, e) : 0;
    page_stop(page);
    return rc;
}

int cmd_serve(int argc, char **argv)
{
    struct serve_options o = { .store = NULL };
    struct opt_set set = OPT_SET(serve_rows, &o);
    struct err e = { 0 };
    int code;
    if (opt_presets(&set, &e) < 0)
        code = cmd_fail(&e);
    else if (!cmd_options("serve", argc, argv, &set, 1, NULL, 0, &code))
        code = serve(&o, &e) < 0 ? cmd_fail(&e) : CMD_OK;
    opt_done(&set);
    return code;
}
