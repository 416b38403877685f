/* `pipetune COMMAND …`: finds the command's row and calls it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "base/suggest.h"
#include "cmd/cmd.h"

static int short_help(void)
{
    fputs("usage: pipetune COMMAND [OPTION…]\n", stderr);
    for (const struct command *c = cmd_table; c->name; c++)
        fprintf(stderr, "  %-8s %s\n", c->name, c->help);
    fputs("'pipetune --config FILE' is 'pipetune run --config FILE'; 'pipetune help COMMAND' lists the options\n",
          stderr);
    return CMD_USAGE;
}

static int unknown(const char *name)
{
    const char *names[64];
    size_t n = 0;
    for (const struct command *c = cmd_table; c->name && n < ARRAY_LEN(names); c++)
        names[n++] = c->name;
    const char *near = suggest_nearest(name, names, n);
    struct err e;
    if (*name == '-')
        (void)err_set(&e, -EINVAL, "unknown option '%s': options follow the command, see 'pipetune help'", name);
    else if (near)
        (void)err_set(&e, -EINVAL, "unknown command '%s': did you mean '%s'?", name, near);
    else
        (void)err_set(&e, -EINVAL, "unknown command '%s': see 'pipetune help'", name);
    return cmd_fail(&e);
}

static const char *command_of(const char *word)
{
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
        return "help";
    return strcmp(word, "--version") == 0 ? "version" : word;
}

/* Started with a closed stdout (`>&-`), the next file opened would take its number, and our words would go into that file.
 * For reading only, so that printing still fails. */
static void keep_standard_numbers(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDONLY); /* inherited by what we start, as the closed ones would be */
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        (void)close(fd);
}

/* Each meter of the network may hold a thread of libuv's for seconds; four of them, which is what there would be, must not keep lines from
 * the disk. It is read once, before the first is started. */
static void have_threads(void)
{
    (void)setenv("UV_THREADPOOL_SIZE", "16", 0); /* the user's own wins; without memory for it there are four */
}

int main(int argc, char **argv)
{
    have_threads();
    json_must_have_memory(CMD_ENVIRONMENT);
    /* A closed stdout is an error of that write and not the end of the program: a driver has trials to look after. */
    (void)signal(SIGPIPE, SIG_IGN);
    keep_standard_numbers();
    if (argc < 2)
        return short_help();
    char run[] = "run";
    if (strcmp(argv[1], "--config") == 0 || strncmp(argv[1], "--config=", 9) == 0) {
        argv[0] = run;
        return cmd_run(argc, argv);
    }
    const char *name = command_of(argv[1]);
    for (const struct command *c = cmd_table; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c->run(argc - 1, argv + 1);
    return unknown(argv[1]);
}
