/* pipetune-node: the small program beside `pipetune` that starts and watches processes. It only dispatches here. */
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "node/exec.h"
#include "node/serve.h"

#ifndef PIPETUNE_VERSION
#define PIPETUNE_VERSION "unknown"
#endif

static int print_help(int argc, char **argv);

static int print_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("pipetune-node " PIPETUNE_VERSION);
    return 0;
}

static const struct verb {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is the verb; the exit code */
    const char *help;
} verbs[] = {
    { "exec", exec_run, "runs the steps of one attempt of a trial (started by pipetune)" },
    { "help", print_help, "this list" },
    { "serve", serve_run,
      "starts, follows and narrows launches: JSON lines on stdin and stdout (started by pipetune)" },
    { "version", print_version, "the version" },
};

static int print_help(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("usage: pipetune-node VERB …");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        printf("  %-9s %s\n", verbs[i].name, verbs[i].help);
    puts(exec_usage);
    return 0;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (strncmp(name, "--", 2) == 0)
        name += 2; /* --help and --version are what hands type */
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(name, verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    fprintf(stderr, "pipetune-node: unknown verb '%s': see 'pipetune-node help'\n", argc > 1 ? argv[1] : "");
    return 2;
}
