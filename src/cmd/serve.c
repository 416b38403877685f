/* The page of a store, until a signal ends it. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "live/study.h"
#include "serve/page.h"

#define PRESET_LISTEN "127.0.0.1:8720"

struct serve_options {
    char *store, *listen, *token_file;
};

#define ROW(key, field, preset, arg, help)                                                                             \
    {                                                                                                                  \
        NULL, key, OPT_TEXT, offsetof(struct serve_options, field), preset, 0, 0, NULL, arg, help                      \
    }
static const struct opt_row serve_rows[] = {
    ROW("store", store, NULL, "FILE", "the store (default PIPETUNE_STORE, ./pipetune.db)"),
    ROW("listen", listen, PRESET_LISTEN, "HOST:PORT", "where the page is; port 0: any that is free"),
    ROW("token_file", token_file, NULL, "FILE",
        "a token that who looks must show, of mode 0600; needed unless it is loopback"),
};
#undef ROW

void cmd_serve_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(serve_rows, NULL));
}

/* From before anything begins, so that none of them ends the program in the middle; threads and programs of the page see to theirs. */
static void hold_ends(sigset_t *out)
{
    static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
    (void)sigemptyset(out);
    for (size_t i = 0; i < ARRAY_LEN(ends); i++)
        (void)sigaddset(out, ends[i]);
    (void)sigprocmask(SIG_BLOCK, out, NULL); /* cannot fail with these */
}

static int serve(const struct serve_options *o)
{
    AUTO_FREE char *path = study_store_path(o->store);
    AUTO_BUF struct buf line = BUF_INIT;
    struct page *page = NULL;
    struct err e;
    sigset_t ends;
    int got;
    struct page_options options = { path, o->listen, o->token_file };
    hold_ends(&ends);
    int rc = path ? page_start(&page, &options, &e) : err_sys(&e, -ENOMEM, "cannot serve");
    if (rc < 0)
        return cmd_fail(&e);
    buf_printf(&line, "http://%s/\n", page_address(page));
    rc = cmd_print(&line);
    if (rc == CMD_OK)
        (void)sigwait(&ends, &got); /* cannot fail with these */
    page_stop(page);
    return rc;
}

int cmd_serve(int argc, char **argv)
{
    struct serve_options o = { .store = NULL };
    struct opt_set set = OPT_SET(serve_rows, &o);
    struct err e;
    int code;
    if (opt_presets(&set, &e) < 0)
        code = cmd_fail(&e);
    else if (!cmd_options("serve", argc, argv, &set, 1, NULL, 0, &code))
        code = serve(&o);
    opt_done(&set);
    return code;
}
