#include "live/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "base/ticker.h"
#include "live/metering.h"
#include "live/relay.h"
#include "monitoring/counters.h"
#include "monitoring/points.h"

enum {
    SELF_MS = 10000,  /* figures of its own */
    CHECK_MS = 20,    /* has the one round ended? */
    FDS_OTHERS = 128, /* descriptors that are no event's */
    FDS_MAX = 200000,
};

enum { SIGNALS = 3 };
static const int signals[SIGNALS] = { SIGTERM, SIGINT, SIGHUP };

struct monitor {
    const struct monitor_cfg *cfg;
    const struct monitor_ops *ops;
    void *ctx;
    uv_loop_t loop;
    uv_timer_t tick, self, check;
    uv_signal_t signal[SIGNALS];
    bool ending;
    int rc; /* of `lines` */

    struct metering *metering;
    int lock_fd; /* of the folder; -1: none */
    struct store *store;
    struct writer *writer;
    struct deliver *deliver; /* NULL: lines go to ops->lines */
    struct events events;
    struct counters *counters; /* NULL: none are read */
    int fds_left;
    int64_t counted_ns; /* when they were read */
    struct ticker ticker;
    bool counts_told;

    struct relay *relay; /* NULL: nothing is listened to */
    char host[256];
    struct buf lines;
    uint32_t n_lines;
    struct monitor_result *out;
};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now); /* cannot fail with these clocks */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void note(struct monitor *m, const char *text)
{
    m->ops->note(m->ctx, text);
}

static void on_note(void *ctx, const char *text)
{
    note(ctx, text);
}

static void stop(struct monitor *m);

/* --- lines out -------------------------------------------------------------------------------------------------------- */

static void hand_over(struct monitor *m, const char *bytes, size_t len, uint32_t n)
{
    if (m->deliver) {
        deliver_push(m->deliver, bytes, len, n);
    } else if (m->rc == 0) {
        m->rc = m->ops->lines(m->ctx, bytes, len);
        m->out->counts.produced += n;
        *(m->rc < 0 ? &m->out->counts.dropped : &m->out->counts.stored) += n;
    }
    if (m->rc < 0)
        stop(m);
}

static void flush(struct monitor *m)
{
    if (m->n_lines > 0)
        hand_over(m, m->lines.data, m->lines.len, m->n_lines);
    buf_clear(&m->lines);
    m->n_lines = 0;
}

/* `n` lines were put into the buffer; negative: there was no memory for them. */
static void put(struct monitor *m, int n)
{
    if (n >= 0) {
        m->n_lines += (uint32_t)n;
        return;
    }
    m->lines.failed = false; /* what was there before is whole */
    if (m->out->unwritten++ == 0)
        note(m, "out of memory: points are left out");
}

static struct points_tags tags(const struct monitor *m)
{
    return (struct points_tags){ .host = m->host };
}

/* --- events ----------------------------------------------------------------------------------------------------------- */

static int open_events(struct monitor *m, struct err *e)
{
    if (!m->cfg->events)
        return 0;
    int rc = events_resolve(&m->events, "/sys", e);
    if (rc < 0)
        return rc;
    m->fds_left = counters_may_open(FDS_OTHERS, FDS_MAX);
    const struct counters_want want = {
        .ops = &perf_ops_kernel,
        .events = &m->events,
        .scope = COUNTERS_SYSTEM,
        .sysfs = "/sys",
        .proc = "/proc",
        .only = m->cfg->only,
        .fds_left = &m->fds_left,
    };
    m->counters = counters_new(&want);
    if (!m->counters)
        return err_sys(e, -ENOMEM, "cannot count events");
    struct reading before[COUNTERS_READINGS];
    counters_read(m->counters, before); /* those opened first have counted longer */
    m->counted_ns = clock_ns(CLOCK_MONOTONIC);
    return 0;
}

/* Once: what is counted, or why nothing is. */
static void tell_counts(struct monitor *m, const struct reading v[COUNTERS_READINGS])
{
    int wanted = 0, counted = 0, denied = 0;
    for (int i = 0; i < COUNTERS_READINGS; i++) {
        wanted += v[i].state != READING_ABSENT;
        counted += v[i].state <= READING_NOT_COUNTED;
        denied += v[i].state == READING_DENIED;
    }
    if (!m->counts_told && denied > 0) {
        char text[192];
        (void)snprintf(text, sizeof text,
                       "%d of %d events may not be counted by this user, %d are counted: `pipetune doctor` tells which "
                       "right lacks",
                       denied, wanted, counted);
        note(m, text);
    } else if (!m->counts_told && counted == 0) {
        note(m, "no event can be counted here: `pipetune events` tells why");
    }
    m->counts_told = true;
}

static void sample(struct monitor *m)
{
    struct reading v[COUNTERS_READINGS];
    counters_read(m->counters, v);
    int64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    double t_ms = (double)clock_ns(CLOCK_REALTIME) / 1e6, dt_ms = (double)(now_ns - m->counted_ns) / 1e6;
    m->counted_ns = now_ns;
    m->out->samples++;
    tell_counts(m, v);
    struct points_tags t = tags(m);
    put(m, points_profile(&m->lines, &t, m->host, 0, "system", t_ms, dt_ms, v, COUNTERS_READINGS));
    flush(m);
}

static void on_tick(uv_timer_t *timer);

static void sleep_until_tick(struct monitor *m)
{
    int64_t now = (int64_t)uv_now(&m->loop), wait = m->ticker.next > now ? m->ticker.next - now : 0;
    (void)uv_timer_start(&m->tick, on_tick, (uint64_t)wait, 0); /* fails only without a callback */
}

static void on_tick(uv_timer_t *timer)
{
    struct monitor *m = timer->data;
    uint64_t due = ticker_take(&m->ticker, (int64_t)uv_now(&m->loop));
    if (due > 0) {
        m->out->missed += due - 1;
        sample(m);
    }
    if (!m->ending)
        sleep_until_tick(m);
}

/* --- meters ----------------------------------------------------------------------------------------------------------- */

/* An outlet's node, by the name that it has among all machines. */
static const char *host_of(const struct monitor *m, const struct meter_reading *r)
{
    return *r->node && strcmp(r->node, "localhost") != 0 ? r->node : m->host;
}

static void on_reading(void *ctx, const struct meter_ops *meter, const struct meter_reading *r)
{
    struct monitor *m = ctx;
    if (m->ending) /* by one of the same round */
        return;
    m->out->samples++;
    struct points_tags t = tags(m);
    put(m, points_energy(&m->lines, &t, host_of(m, r), 0, meter, r));
    flush(m);
}

static const struct metering_ops metering_ops = { .read = on_reading, .note = on_note };

static int open_meters(struct monitor *m, struct err *e)
{
    static const struct meter_cfg plain = { 0 };
    m->metering = metering_new(&m->loop, m->cfg->interval_ms, &metering_ops, m);
    int rc = m->metering ? 0 : err_sys(e, -ENOMEM, "cannot read meters");
    for (size_t i = 0; meters_local[i] && rc == 0; i++)
        if (meters_local[i]->kind == METER_CPU)
            rc = metering_try(m->metering, meters_local[i], &plain, e);
    for (size_t i = 0; i < m->cfg->n_meters && rc == 0; i++)
        rc = metering_try(m->metering, m->cfg->meters[i].meter, &m->cfg->meters[i].cfg, e);
    return rc;
}

/* --- what applications send ------------------------------------------------------------------------------------------- */

static void on_relayed(void *ctx, const char *bytes, size_t len, uint32_t n)
{
    hand_over(ctx, bytes, len, n);
}

static const struct relay_ops relay_ops = { .lines = on_relayed, .note = on_note };

static int open_relay(struct monitor *m, struct err *e)
{
    if (!m->cfg->udp_address)
        return 0;
    int rc = relay_open(&m->relay, &m->loop, m->cfg->udp_address, m->cfg->udp_port, m->host, &relay_ops, m, e);
    if (rc == 0 && m->cfg->udp_port == 0) {
        char text[64];
        (void)snprintf(text, sizeof text, "udp input on port %u", relay_port(m->relay));
        note(m, text);
    }
    return rc;
}

/* --- itself ----------------------------------------------------------------------------------------------------------- */

static double cpu_seconds(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u); /* cannot fail */
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double rss_bytes(void)
{
    AUTO_BUF struct buf text = BUF_INIT;
    unsigned long pages = 0;
    if (io_read_file(&text, "/proc/self/statm", 4096, NULL) < 0 || sscanf(buf_text(&text), "%*u %lu", &pages) != 1)
        return NAN;
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static uint64_t missed(const struct monitor *m)
{
    return m->out->missed + (m->metering ? metering_missed(m->metering) : 0);
}

static void tell_self(struct monitor *m)
{
    struct deliver_counts c = m->deliver ? deliver_counts(m->deliver) : m->out->counts;
    const struct points_self s = {
        .samples = m->out->samples,
        .missed = missed(m),
        .produced = c.produced,
        .stored = c.stored,
        .spooled = c.waiting,
        .quarantined = c.quarantined,
        .dropped = c.dropped,
        .retries = c.retries,
        .spool_bytes = m->deliver ? deliver_waiting_bytes(m->deliver) : 0,
        .cpu_s = cpu_seconds(),
        .rss_bytes = rss_bytes(),
    };
    put(m, points_self(&m->lines, m->host, &s, clock_ns(CLOCK_REALTIME) / 1000000));
    flush(m);
}

static void on_self(uv_timer_t *timer)
{
    struct monitor *m = timer->data;
    if (m->relay)
        relay_look(m->relay);
    tell_self(m);
}

/* --- the end ---------------------------------------------------------------------------------------------------------- */

static void close_handle(uv_handle_t *h)
{
    if (!uv_is_closing(h))
        uv_close(h, NULL);
}

/* From now on the loop runs until what is under way has ended. */
static void close_all(struct monitor *m)
{
    uv_timer_t *const timers[] = { &m->tick, &m->self, &m->check };
    for (size_t i = 0; i < ARRAY_LEN(timers); i++)
        close_handle((uv_handle_t *)timers[i]);
    for (size_t i = 0; i < SIGNALS; i++)
        close_handle((uv_handle_t *)&m->signal[i]);
    metering_free(MOVE_PTR(m->metering));
    relay_free(MOVE_PTR(m->relay));
    deliver_free(MOVE_PTR(m->deliver));
    writer_close(MOVE_PTR(m->writer));
}

static void on_delivered(void *ctx)
{
    struct monitor *m = ctx;
    m->out->counts = deliver_counts(m->deliver);
    close_all(m);
}

static void end_relay(struct monitor *m)
{
    if (!m->relay)
        return;
    relay_look(m->relay);
    m->out->relay = relay_counts(m->relay);
    relay_free(MOVE_PTR(m->relay));
}

/* Nothing is collected any more; what was is delivered first. */
static void stop(struct monitor *m)
{
    if (m->ending)
        return;
    m->ending = true;
    end_relay(m);
    tell_self(m);
    m->out->missed = missed(m);
    metering_free(MOVE_PTR(m->metering));
    if (!m->deliver) {
        close_all(m);
        return;
    }
    close_handle((uv_handle_t *)&m->tick);
    close_handle((uv_handle_t *)&m->self);
    close_handle((uv_handle_t *)&m->check);
    deliver_end(m->deliver, m->cfg->drain_ms, on_delivered);
}

static void on_signal(uv_signal_t *s, int signum)
{
    (void)signum;
    stop(s->data);
}

/* Of --once. A meter of the network may take its time, which has an end. */
static void on_check(uv_timer_t *timer)
{
    struct monitor *m = timer->data;
    if (metering_rounds(m->metering) >= 2 && (!m->counters || m->counts_told))
        stop(m);
}

/* --- the beginning ---------------------------------------------------------------------------------------------------- */

static const struct deliver_ops deliver_ops = { .note = on_note };

static void begin_timers(struct monitor *m)
{
    uint64_t interval = (uint64_t)m->cfg->interval_ms;
    uv_update_time(&m->loop); /* opening may have taken long */
    m->ticker = ticker_from((int64_t)uv_now(&m->loop), m->cfg->interval_ms);
    if (m->counters)
        sleep_until_tick(m);
    (void)uv_timer_start(&m->self, on_self, SELF_MS, SELF_MS); /* these fail only without a callback */
    if (m->cfg->once)
        (void)uv_timer_start(&m->check, on_check, interval, CHECK_MS);
}

static void init_handles(struct monitor *m)
{
    uv_timer_t *const timers[] = { &m->tick, &m->self, &m->check };
    for (size_t i = 0; i < ARRAY_LEN(timers); i++) {
        (void)uv_timer_init(&m->loop, timers[i]); /* it cannot fail */
        timers[i]->data = m;
    }
    for (size_t i = 0; i < SIGNALS; i++) {
        (void)uv_signal_init(&m->loop, &m->signal[i]);
        m->signal[i].data = m;
    }
}

static int take_signals(struct monitor *m, struct err *e)
{
    for (size_t i = 0; i < SIGNALS; i++) {
        int rc = uv_signal_start(&m->signal[i], on_signal, signals[i]);
        if (rc < 0)
            return err_set(e, rc, "cannot take signals: %s", uv_strerror(rc));
    }
    return 0;
}

/* One daemon at a time. */
static int lock_folder(struct monitor *m, struct err *e)
{
    AUTO_FREE char *path = io_join(m->cfg->dir, "lock");
    int rc = path ? io_mkdirs(m->cfg->dir, e) : err_sys(e, -ENOMEM, "'%s'", m->cfg->dir);
    if (rc == 0)
        rc = m->lock_fd = ours_open(path, O_RDWR | O_CREAT, e);
    if (rc < 0)
        return rc;
    if (flock(m->lock_fd, LOCK_EX | LOCK_NB) < 0)
        return err_set(e, -EBUSY, "'%s' is in use by another process", m->cfg->dir);
    return 0;
}

static int open_delivery(struct monitor *m, struct err *e)
{
    AUTO_FREE char *path = io_join(m->cfg->dir, "monitor.db"), *old = io_join(m->cfg->dir, "spool");
    if (!path || !old)
        return err_sys(e, -ENOMEM, "'%s'", m->cfg->dir);
    int rc = lock_folder(m, e);
    if (rc == 0)
        rc = store_open(&m->store, path, STORE_WRITE, e);
    if (rc == 0)
        rc = writer_open(&m->writer, &m->loop, m->store, e);
    const struct deliver_place place = { .store = m->store, .writer = m->writer, .old_spool = old };
    return rc < 0 ? rc : deliver_open(&m->deliver, &m->loop, m->cfg->deliver, &place, &deliver_ops, m, e);
}

static int open_all(struct monitor *m, struct err *e)
{
    int rc = take_signals(m, e);
    if (rc == 0 && m->cfg->deliver)
        rc = open_delivery(m, e);
    if (rc == 0)
        rc = open_relay(m, e);
    if (rc == 0)
        rc = open_events(m, e);
    if (rc == 0)
        rc = open_meters(m, e);
    if (rc == 0)
        begin_timers(m);
    return rc;
}

static int run(struct monitor *m, struct err *e)
{
    int rc = uv_loop_init(&m->loop);
    if (rc < 0)
        return err_set(e, rc, "the event loop cannot start: %s", uv_strerror(rc));
    init_handles(m);
    rc = open_all(m, e);
    if (rc < 0)
        close_all(m);
    (void)uv_run(&m->loop, UV_RUN_DEFAULT); /* until there are no handles any more */
    (void)uv_loop_close(&m->loop);
    if (rc == 0 && m->rc < 0)
        rc = err_sys(e, m->rc, "cannot write lines");
    return rc;
}

int monitor_run(const struct monitor_cfg *cfg, const struct monitor_ops *ops, void *ctx, struct monitor_result *out,
                struct err *e)
{
    *out = (struct monitor_result){ 0 };
    struct monitor *m = calloc(1, sizeof *m);
    if (!m)
        return err_sys(e, -ENOMEM, "cannot monitor");
    *m = (struct monitor){ .cfg = cfg, .ops = ops, .ctx = ctx, .out = out, .lock_fd = -1 };
    (void)gethostname(m->host, sizeof m->host - 1); /* without a name the tag is left out */
    int rc = run(m, e);
    counters_free(m->counters);
    buf_done(&m->lines);
    store_close(m->store);
    if (m->lock_fd >= 0)
        (void)close(m->lock_fd); /* the lock goes with it */
    free(m);
    return rc;
}
