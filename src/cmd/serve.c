/* The server of the queue, in the foreground. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "live/study.h"
#include "serve/server.h"

struct serve_options {
    char *store;
    int64_t cpus;
    bool once;
};

#define FIELD(member) offsetof(struct serve_options, member)
static const struct opt_row serve_rows[] = {
    LOOK_STORE_ROW(struct serve_options),
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
    (void)look_time(when, study_now_ms(), "%Y-%m-%d %H:%M:%S");
    printf("%s  %s\n", when, line);
    (void)fflush(stdout);
}

int cmd_serve(int argc, char **argv)
{
    struct serve_options o = { 0 };
    struct opt_set set = OPT_SET(serve_rows, &o);
    int code;
    if (!cmd_options("serve", argc, argv, &set, 1, NULL, 0, &code)) {
        struct err e = { 0 };
        AUTO_FREE char *path = study_store_path(o.store);
        struct server_options s = { .store = path, .cpus = (int)o.cpus, .once = o.once, .say = say_line };
        int rc = path ? server_run(&s, &e) : err_sys(&e, -ENOMEM, "store");
        code = rc < 0 ? cmd_fail(&e) : CMD_OK;
    }
    opt_done(&set);
    return code;
}
