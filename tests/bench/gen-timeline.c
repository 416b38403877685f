/* gen-timeline [SEED]: prints a synthetic timeline, for `pipetune trace import --format timeline`. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/gen_timeline.h"

int main(int argc, char **argv)
{
    AUTO_BUF struct buf b = BUF_INIT;
    gen_timeline_csv(&b, argc > 1 ? strtoull(argv[1], NULL, 10) : 1);
    bool written = !b.failed && fwrite(b.data, 1, b.len, stdout) == b.len && fflush(stdout) == 0;
    return written ? 0 : 1;
}
