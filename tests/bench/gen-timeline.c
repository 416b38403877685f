/* gen-timeline [SEED [any|grid|cluster]]: prints a synthetic timeline, for `pipetune trace import --format timeline`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "tests/bench/gen_timeline.h"

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*csv)(struct buf *b, uint64_t seed);
    } kinds[] = { { "any", gen_timeline_csv },
                  { "grid", gen_timeline_grid_csv },
                  { "cluster", gen_timeline_cluster_csv } };
    const char *kind = argc > 2 ? argv[2] : "any";
    AUTO_BUF struct buf b = BUF_INIT;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(kinds[i].name, kind) == 0)
            kinds[i].csv(&b, argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
    bool written = b.len > 0 && !b.failed && fwrite(b.data, 1, b.len, stdout) == b.len && fflush(stdout) == 0;
    return written ? 0 : 1;
}
