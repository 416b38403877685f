/* Plays ssh for test_nodes: checks that it was called as the design says, and becomes the helper "on" the host: fake-node that
 * behaves as the host is called. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const fixed[] = { "-T",
                                     "-oBatchMode=yes",
                                     "-oStrictHostKeyChecking=yes",
                                     "-oConnectTimeout=10",
                                     "-oServerAliveInterval=5",
                                     "-oServerAliveCountMax=3",
                                     "-oClearAllForwardings=yes" };

int main(int argc, char **argv)
{
    int at = 1;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++, at++)
        if (at >= argc || strcmp(argv[at], fixed[i]) != 0) {
            fprintf(stderr, "fake-ssh: argument %d is not %s\n", at, fixed[i]);
            return 254;
        }
    while (at + 1 < argc && (!strcmp(argv[at], "-i") || !strcmp(argv[at], "-p") || !strcmp(argv[at], "-l")))
        at += 2;
    if (argc - at != 4 || strcmp(argv[at], "--") != 0 || strcmp(argv[at + 3], "serve") != 0) {
        fprintf(stderr, "fake-ssh: what follows the options is not -- HOST PATH serve\n");
        return 254;
    }
    (void)setenv("FAKE_NODE", argv[at + 1], 1);
    (void)setenv("FAKE_SSH", "1", 1);
    char *child[] = { argv[at + 2], argv[at + 3], NULL };
    (void)execv(child[0], child);
    perror("fake-ssh");
    return 127;
}
