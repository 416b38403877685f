#include "monitoring/sender_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"

enum { QUARANTINE_MAX = 16 << 20 };

static void send_datagrams(struct udp_out *udp, struct sender_job *job)
{
    struct udp_sent sent;
    struct err e = { 0 };
    int rc = udp_out_send(udp, job->bytes, job->len, &sent, &e);
    job->answer = (struct influx_answer){ .kind = rc < 0          ? INFLUX_RETRY
                                                  : sent.too_long ? INFLUX_PARTIAL
                                                                  : INFLUX_DELIVERED,
                                          .dropped = sent.too_long,
                                          .wait_ms = -1 };
    if (rc < 0)
        (void)snprintf(job->answer.text, sizeof job->answer.text, "%.250s", e.text);
    else if (sent.too_long)
        (void)snprintf(job->answer.text, sizeof job->answer.text, "longer than a datagram");
}

/* Appends all of it or nothing. */
static int append_whole(int fd, const struct buf *b, uint64_t max)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size + b->len > max)
        return -EFBIG;
    int rc = io_write_all(fd, b->data, b->len);
    if (rc == 0 && fsync(fd) < 0)
        rc = -errno;
    if (rc < 0)
        (void)!ftruncate(fd, st.st_size); /* the lines are counted as dropped; a part of one does no harm there */
    return rc;
}

static int quarantine(const struct sender_io *io, const struct sender_job *job, struct err *e)
{
    if (!io->quarantine)
        return err_set(e, -ENOENT, "there is no quarantine file");
    AUTO_BUF struct buf b = BUF_INIT;
    buf_printf(&b, "# %s\n", job->answer.text);
    buf_put(&b, job->bytes, job->len);
    if (b.failed)
        return err_sys(e, -ENOMEM, "'%s'", io->quarantine);
    AUTO_CLOSE int fd = open(io->quarantine, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = fd < 0 ? -errno : append_whole(fd, &b, io->quarantine_max ? io->quarantine_max : QUARANTINE_MAX);
    return rc < 0 ? err_sys(e, rc, "cannot write to '%s'", io->quarantine) : 0;
}

static int do_act(struct spool *s, struct sender_job *job, struct err *e)
{
    switch (job->act) {
    case SENDER_SPOOL: return spool_append(s, job->bytes, job->len, job->lines, e);
    case SENDER_FETCH: return spool_peek(s, &job->fetched, &job->fetched_lines, e);
    case SENDER_FORGET: return spool_pop(s, job->id, e);
    default: return spool_sync(s, e);
    }
}

static int do_spool(struct spool *s, struct sender_job *job, struct err *e)
{
    int rc = do_act(s, job, e);
    job->front = spool_id(s);
    job->dropped = spool_counts(s).dropped;
    return rc;
}

void sender_io_run(const struct sender_io *io, struct sender_job *job)
{
    struct err e = { 0 };
    if (job->act == SENDER_SEND && io->udp)
        send_datagrams(io->udp, job);
    else if (job->act == SENDER_SEND)
        influx_send(io->influx[job->lane], job->bytes, job->len, job->lines, &job->answer);
    else if (job->act == SENDER_QUARANTINE)
        job->rc = quarantine(io, job, &e);
    else
        job->rc = do_spool(io->spool, job, &e);
    if (job->rc < 0)
        (void)snprintf(job->why, sizeof job->why, "%.250s", e.text);
}
