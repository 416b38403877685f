/* A segment of any bytes (the first two say how far it was delivered): it opens, gives up every line it claims to hold, is whole when it
 * is opened again, and takes more. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitoring/spool.h"
#include "monitoring/spool_segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct spool_cfg cfg = { .cap = 1 << 24, .segment = 1 << 20 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void put_file(int dir, const char *name, const void *bytes, size_t len)
{
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    check(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && close(fd) == 0);
}

static void empty(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *at; d && (at = readdir(d));)
        if (at->d_name[0] != '.')
            (void)unlinkat(dirfd(d), at->d_name, 0);
    if (d)
        (void)closedir(d);
}

static uint64_t drain(struct spool *s)
{
    uint64_t lines = 0;
    struct buf b = BUF_INIT;
    struct err e;
    uint32_t n = 0;
    int rc;
    while ((rc = spool_peek(s, &b, &n, &e)) == 1) {
        check(n > 0 && b.len > 0);
        lines += n;
        buf_clear(&b);
        check(spool_pop(s, spool_id(s), &e) == 0);
    }
    check(rc == 0 && spool_id(s) == 0);
    buf_done(&b);
    return lines;
}

static struct spool *reopen(const char *dir)
{
    struct spool *s = NULL;
    struct err e = { 0 };
    check(spool_open(&s, dir, &cfg, &e) == 0);
    return s;
}

/* Sums that no mutation would guess are made right, for the heads of half of the inputs, so that what lies behind them is read, too. */
static void mend(uint8_t *bytes, size_t len)
{
    if (len < SPOOL_HEAD)
        return;
    segment_put_head(bytes, 1);
    for (size_t at = SPOOL_HEAD; at + SPOOL_HEAD <= len;) {
        size_t want = bytes[at], room = len - at - SPOOL_HEAD, payload = want < room ? want : room;
        if (payload == 0 || bytes[at + 1] == 0xff)
            return;
        segment_put_record(bytes + at, bytes + at + SPOOL_HEAD, payload, bytes[at + 4]);
        at += SPOOL_HEAD + payload;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    if (size < 2)
        return 0;
    (void)snprintf(path, sizeof path, "/dev/shm/fuzz-spool-%ld", (long)getpid());
    empty(path); /* what an earlier process of this number left */
    check(mkdir(path, 0700) == 0 || errno == EEXIST);
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint8_t *bytes = malloc(size), position[SEGMENT_POSITION];
    check(dir >= 0 && bytes);
    memcpy(bytes, data + 2, size - 2);
    if (data[0] & 1)
        mend(bytes, size - 2);
    put_file(dir, "0000000000000001.spool", bytes, size - 2);
    segment_put_position(position, 1, data[1]);
    put_file(dir, "position", position, sizeof position);
    free(bytes);
    (void)close(dir);
    struct spool *s = reopen(path);
    struct spool_counts first = spool_counts(s);
    spool_close(s);
    s = reopen(path);
    struct spool_counts again = spool_counts(s);
    check(again.lines == first.lines && again.torn == 0 && again.bad == 0); /* mended once and for all */
    struct err e;
    check(spool_append(s, "m f=1\n", 6, 1, &e) == 0);
    check(drain(s) == first.lines + 1 && spool_counts(s).dropped == 0);
    spool_close(s);
    s = reopen(path);
    check(spool_counts(s).lines == 0);
    spool_close(s);
    empty(path);
    (void)rmdir(path);
    return 0;
}
