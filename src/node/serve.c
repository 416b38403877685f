#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/num.h"
#include "base/own.h"
#include "base/proc.h"
#include "base/wire.h"
#include "monitoring/counters.h"
#include "monitoring/sample_blob.h"
#include "node/house.h"
#include "node/launches.h"
#include "node/meters.h"
#include "node/request.h"
#include "node/sampler.h"
#include "node/wish.h"

#ifndef PIPETUNE_VERSION
#define PIPETUNE_VERSION "unknown"
#endif

enum {
    PROTOCOL = 1,
    LEASE_MS = 30000,
    LOOK_MS = 500,
    WRITE_MS = 5000,
    BAD_LINES_MAX = 10,
    READ_CHUNK = 16 << 10,
    PACKAGES_MAX = 64,
    FDS_OTHERS = 256, /* descriptors that events leave to all else */
    FDS_MAX = 16384,  /* each event takes more than a KB of the kernel's memory */
    EXIT_USAGE = 2,
};

struct serve {
    struct wishes wishes;
    struct samplers *samplers; /* NULL: nothing was sampled yet */
    int event_fds;             /* as many may be open for events */
    struct meters *meters;     /* NULL: nothing was metered yet */
    struct launches launches;
    struct wire wire;
    struct request req;
    struct buf in;
    int signal_fd;
    int64_t lease_ms, lease_until, look_at;
    int bad_lines; /* in a row */
    bool greeted, over;
    int code;        /* to exit with */
    struct err told; /* the last on stderr: the same is not told twice in a row */
};

static void tell(struct serve *s, const struct err *e)
{
    if (strcmp(s->told.text, e->text) == 0)
        return;
    s->told = *e;
    fprintf(stderr, "pipetune-node serve: %s\n", e->text);
}

/* Everything is given back on the way out. */
static void end(struct serve *s, int code)
{
    s->over = true;
    s->code = code > s->code ? code : s->code;
}

static void __attribute__((format(printf, 2, 3))) end_with(struct serve *s, const char *fmt, ...)
{
    struct err e = { 0 };
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(e.text, sizeof e.text, fmt, ap); /* a cut message is still a message */
    va_end(ap);
    tell(s, &e);
    end(s, EXIT_FAILURE);
}

/* --- saying ------------------------------------------------------------------------------------------------------- */

static void take_signals(struct serve *s);

/* Until stdout takes bytes, or we are told to end. */
static void wait_for_reader(struct serve *s, int64_t until)
{
    struct pollfd fds[] = {
        { .fd = STDOUT_FILENO, .events = POLLOUT },
        { .fd = s->signal_fd, .events = POLLIN },
    };
    int64_t left = until - clock_ms();
    if (left <= 0 || poll(fds, ARRAY_LEN(fds), (int)left) == 0)
        end_with(s, "cannot answer: nobody reads it");
    else if (fds[1].revents)
        take_signals(s);
}

/* A line goes out whole, or it is the last: what was promised to be given back must not wait for a reader. */
static void say(struct serve *s, struct buf *line)
{
    buf_putc(line, '\n');
    if (line->failed) {
        end_with(s, "cannot answer: out of memory");
        return;
    }
    int64_t until = clock_ms() + WRITE_MS;
    for (size_t at = 0; at < line->len && !s->over;) {
        ssize_t n = write(STDOUT_FILENO, line->data + at, line->len - at);
        if (n >= 0)
            at += (size_t)n;
        else if (errno == EAGAIN)
            wait_for_reader(s, until);
        else if (errno != EINTR)
            end_with(s, "cannot answer: %s", strerror(errno));
    }
}

static void begin_answer(const struct serve *s, struct buf *to, bool ok)
{
    if (s->req.has & REQUEST_BIT(REQUEST_ID))
        buf_printf(to, "{\"id\":%" PRId64 ",\"ok\":%s", s->req.id, ok ? "true" : "false");
    else
        buf_printf(to, "{\"id\":null,\"ok\":%s", ok ? "true" : "false");
}

static void put_error(struct buf *to, const struct err *e)
{
    buf_puts(to, ",\"error\":");
    wire_put_text(to, e->text);
}

static void refuse(struct serve *s, const struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    begin_answer(s, &line, false);
    put_error(&line, e);
    buf_putc(&line, '}');
    say(s, &line);
}

static void put_report(struct buf *to, const struct wish_report *r)
{
    struct cpus cpus;
    mask_list(&r->cpus, &cpus);
    buf_printf(to, ",\"processes\":%d,\"threads\":%d,\"slots\":%d,\"cpus\":", r->processes, r->threads, r->slots);
    wire_put_ints(to, cpus.v, (size_t)cpus.n);
    for (int row = 0; row < LIMIT_ROWS; row++) {
        if (r->limits[row] <= 0)
            continue;
        buf_printf(to, ",\"%s\":", limits_name((enum limit_row)row));
        num_put(to, r->limits[row]);
    }
    if (r->shared[0]) {
        buf_puts(to, ",\"shared\":");
        wire_put_text(to, r->shared);
    }
}

/* --- the verbs ---------------------------------------------------------------------------------------------------- */

/* Each appends to an answer that has id and ok already; 0, or -errno and the answer is the error. */

static int64_t realtime_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail with this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void put_host(struct buf *to)
{
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1); /* without a name it is "" */
    buf_puts(to, ",\"host\":");
    wire_put_text(to, host);
}

/* What can be limited here; null where there is nothing. */
static void put_ranges(const struct serve *s, struct buf *to)
{
    int khz[2];
    double caps[PACKAGES_MAX];
    buf_puts(to, ",\"frequency_khz\":");
    if (limits_frequency_range(s->wishes.sysfs, &s->wishes.order, khz))
        wire_put_ints(to, khz, ARRAY_LEN(khz));
    else
        buf_puts(to, "null");
    int n = limits_power_caps(s->wishes.sysfs, caps, PACKAGES_MAX);
    buf_puts(to, n > 0 ? ",\"power_cap_w\":[" : ",\"power_cap_w\":null");
    for (int i = 0; i < n; i++) {
        buf_puts(to, i ? "," : "");
        num_put(to, caps[i]);
    }
    buf_puts(to, n > 0 ? "]" : "");
}

/* Whose processes are found here: equal in two helpers of one machine, whatever it is called. */
static void put_sees(struct buf *to)
{
    char boot[PROC_BOOT_ID_SIZE] = "", space[64] = "";
    ssize_t n = proc_boot_id(boot) == 0 ? readlink("/proc/self/ns/pid", space, sizeof space - 1) : -1;
    if (n <= 0)
        return; /* it is not told, then */
    space[n] = '\0';
    const char *more = "";
#ifdef PIPETUNE_FAILPOINTS
    const char *machine = getenv("PIPETUNE_MACHINE"); /* tests have several on one */
    more = machine ? machine : "";
#endif
    buf_printf(to, ",\"sees\":\"%s/%s/%ld%s\"", boot, space, (long)geteuid(), more);
}

/* Where launches lie, and what there is for them. */
static void put_place(struct buf *to)
{
    AUTO_FREE char *root = launches_root();
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (root) {
        buf_puts(to, ",\"root\":");
        wire_put_text(to, root);
        buf_puts(to, ",\"sessions\":true");
    }
    if (pages > 0 && page > 0) {
        buf_puts(to, ",\"memory_gb\":");
        num_put(to, (double)pages * (double)page / (1 << 30));
    }
}

static int greet(struct serve *s, struct buf *to, struct err *e)
{
    if (s->req.protocol != PROTOCOL) {
        end(s, EXIT_FAILURE);
        return err_set(e, -EPROTO, "protocol %" PRId64 " is spoken to protocol %d of pipetune-node %s", s->req.protocol,
                       PROTOCOL, PIPETUNE_VERSION);
    }
    s->greeted = true;
    s->wishes.members.worker = s->req.worker;
    buf_printf(to, ",\"protocol\":%d,\"version\":\"%s\",\"clock_ms\":%" PRId64 ",\"uid\":%ld", PROTOCOL,
               PIPETUNE_VERSION, realtime_ms(), (long)geteuid());
    put_host(to);
    put_sees(to);
    buf_puts(to, ",\"features\":\"");
    feature_list_put(to);
    buf_puts(to, "\",\"cpus\":");
    wire_put_ints(to, s->wishes.order.v, (size_t)s->wishes.order.n);
    put_ranges(s, to);
    put_place(to);
    return 0;
}

static int lease(struct serve *s, struct buf *to, struct err *e)
{
    (void)s, (void)to, (void)e; /* that it was asked is all */
    return 0;
}

/* The tag, whose number it was, is known no more. */
static void stop_sampling(struct serve *s, int tag)
{
    if (s->samplers && tag >= 0)
        samplers_drop(s->samplers, tag, &s->wishes.members);
}

static void begin_looking(struct serve *s)
{
    if (!wishes_any(&s->wishes))
        s->look_at = clock_ms() + LOOK_MS;
}

static int apply(struct serve *s, struct buf *to, struct err *e)
{
    struct wish_report report;
    int known = members_find_tag(&s->wishes.members, s->req.tag);
    begin_looking(s);
    int rc = wishes_set(&s->wishes, s->req.tag, &s->req.wish, clock_ms(), &report, e);
    if (rc == 0)
        put_report(to, &report);
    else
        stop_sampling(s, known); /* it is as if released */
    return rc;
}

static int release(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    int known = members_find_tag(&s->wishes.members, s->req.tag);
    int rc = wishes_release(&s->wishes, s->req.tag, e);
    stop_sampling(s, known);
    return rc;
}

/* A tag that was only sampled is not looked for any more. */
static void forget_sampling(struct serve *s, int tag)
{
    if (tag < 0)
        return;
    if (!wishes_wants(&s->wishes, tag))
        members_drop_tag(&s->wishes.members, tag);
    stop_sampling(s, tag);
}

/* Not before it is asked for: resolving the events takes longer than all the rest of a start. */
static int open_samplers(struct serve *s, struct err *e)
{
    const struct samplers_on on = {
        .ops = &perf_ops_kernel,
        .sysfs = s->wishes.sysfs,
        .proc = "/proc",
        .fds_max = s->event_fds,
        .now_ns = samplers_clock,
    };
    return s->samplers ? 0 : samplers_open(&s->samplers, &on, e);
}

static int begin_sampling(struct serve *s, struct err *e)
{
    int rc = open_samplers(s, e);
    if (rc < 0)
        return rc;
    begin_looking(s);
    int tag = wishes_watch(&s->wishes, s->req.tag, clock_ms(), e);
    if (tag < 0)
        return tag;
    const struct samplers_how how = {
        .interval_ms = s->req.interval_ms,
        .scope = s->req.scope,
        .events = s->req.events,
    };
    rc = samplers_set(s->samplers, tag, &how, &s->wishes.members, e);
    if (rc < 0)
        forget_sampling(s, tag);
    return rc;
}

static int sample(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    int rc = 0;
    if (s->req.interval_ms > 0)
        rc = begin_sampling(s, e);
    else
        forget_sampling(s, members_find_tag(&s->wishes.members, s->req.tag));
    return rc;
}

static int open_meters(struct serve *s, struct err *e)
{
    const struct meters_on on = {
        .sysfs = s->wishes.sysfs,
        .proc = "/proc",
        .ops = &perf_ops_kernel,
        .now_ns = samplers_clock,
        .find = meter_find_local,
    };
    s->meters = s->meters ? s->meters : meters_new(&on);
    return s->meters ? 0 : err_sys(e, -ENOMEM, "cannot read meters");
}

static void put_metering(struct buf *to, const struct buf *opened, const struct buf *refused)
{
    buf_puts(to, ",\"opened\":");
    wire_put_text(to, buf_text(opened));
    buf_puts(to, ",\"refused\":");
    wire_put_text(to, buf_text(refused));
    to->failed = to->failed || opened->failed || refused->failed;
}

static int begin_metering(struct serve *s, struct buf *opened, struct buf *refused, struct err *e)
{
    const struct meters_want want = {
        .names = s->req.meters,
        .interval_ms = s->req.interval_ms,
        .idle_w = s->req.idle_w,
        .cpu_w = s->req.cpu_w,
        .max_w = s->req.max_w,
    };
    int rc = request_needs(&s->req, REQUEST_BIT(REQUEST_METERS), e);
    if (rc == 0)
        rc = open_meters(s, e);
    if (rc == 0)
        meters_set(s->meters, &want, opened, refused);
    return rc;
}

static int meter(struct serve *s, struct buf *to, struct err *e)
{
    AUTO_BUF struct buf opened = BUF_INIT, refused = BUF_INIT;
    int rc = 0;
    if (s->req.interval_ms > 0)
        rc = begin_metering(s, &opened, &refused, e);
    else if (s->meters)
        meters_stop(s->meters);
    put_metering(to, &opened, &refused);
    return rc;
}

static int start_launch(struct serve *s, struct buf *to, struct err *e)
{
    const struct request *r = &s->req;
    const struct launch_ask ask = { .tag = r->tag,
                                    .attempt = r->attempt,
                                    .log_cap = r->log_cap,
                                    .steps = r->steps,
                                    .env = r->env,
                                    .keep = r->keep,
                                    .step = r->step,
                                    .cpus = &r->wish.given,
                                    .memory = r->memory,
                                    .answer = r->answer,
                                    .gang = r->gang,
                                    .mark = r->mark,
                                    .files = r->files };
    (void)to;
    return launches_start(&s->launches, &ask, e);
}

static void put_process(struct buf *to, const struct launch_facts *f)
{
    buf_printf(to, ",\"boot_id\":\"%s\",\"pid\":%ld,\"start_ticks\":%" PRIu64, f->boot_id, (long)f->pid,
               f->start_ticks);
}

static int start_run(struct serve *s, struct buf *to, struct err *e)
{
    struct launch_facts f;
    const struct launch_run ask = { .tag = s->req.tag, .session = s->req.session, .files = s->req.files };
    int rc = launches_run(&s->launches, &ask, &f, e);
    if (rc < 0)
        return rc;
    buf_puts(to, ",\"state\":\"ready\",\"heard\":0");
    put_process(to, &f);
    return 0;
}

static int talk(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    return launches_talk(&s->launches, s->req.tag, s->req.credit, e);
}

static int say_words(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    return launches_say(&s->launches, s->req.tag, s->req.data, e);
}

static int go(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    return launches_go(&s->launches, s->req.tag, s->req.ports, e);
}

static int adopt(struct serve *s, struct buf *to, struct err *e)
{
    struct launch_facts f;
    int rc = launches_adopt(&s->launches, s->req.tag, &f, e);
    if (rc < 0)
        return rc;
    buf_printf(to, ",\"state\":\"%s\",\"heard\":%" PRId64 ",\"log\":%" PRId64, launch_state_name(f.state), f.heard,
               f.log);
    if (f.state == LAUNCH_RUNNING)
        put_process(to, &f);
    if (f.state == LAUNCH_ENDED) {
        buf_puts(to, ",\"exit\":");
        wire_put_text(to, f.note);
        if (f.ago_ms >= 0)
            buf_printf(to, ",\"ago_ms\":%" PRId64, f.ago_ms);
    }
    return 0;
}

static int tail(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    return launches_tail(&s->launches, s->req.tag, s->req.from, s->req.credit, s->req.accounted, e);
}

static int signal_launch(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    return launches_signal(&s->launches, s->req.tag, s->req.hard, e);
}

static int say_stop(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    return launches_say_stop(&s->launches, s->req.tag, e);
}

static int have(struct serve *s, struct buf *to, struct err *e)
{
    bool there = false;
    int rc = launches_have(&s->launches, s->req.hash, s->req.size, &there, e);
    buf_printf(to, ",\"there\":%s", there ? "true" : "false");
    return rc;
}

static int put(struct serve *s, struct buf *to, struct err *e)
{
    const struct request *r = &s->req;
    int rc = launches_put(&s->launches, r->hash, r->size, r->from, r->data, e);
    buf_printf(to, ",\"there\":%s", rc == 1 ? "true" : "false");
    return rc < 0 ? rc : 0;
}

static int put_base64(struct buf *to, int rc, const char *key, const struct buf *bytes)
{
    buf_printf(to, ",\"%s\":\"", key);
    base64_put(to, bytes->data, bytes->len);
    buf_putc(to, '"');
    return rc;
}

static int list(struct serve *s, struct buf *to, struct err *e)
{
    AUTO_BUF struct buf texts = BUF_INIT;
    int rc = launches_list(&s->launches, s->req.tag, s->req.name, &texts, e);
    return put_base64(to, rc, "files", &texts);
}

static int read_file(struct serve *s, struct buf *to, struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    const struct request *r = &s->req;
    int rc = launches_read(&s->launches, r->tag, r->name, r->from, (size_t)r->size, &bytes, e);
    return put_base64(to, rc, "data", &bytes);
}

static int forget(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    return launches_forget(&s->launches, s->req.tag, e);
}

/* What the word came to the other side as. */
static int echo(struct serve *s, struct buf *to, struct err *e)
{
    (void)e;
    buf_puts(to, ",\"tag\":");
    wire_put_text(to, s->req.tag);
    return 0;
}

static int look_around(struct serve *s, struct buf *to, struct err *e)
{
    return house_look(&s->launches, to, e);
}

static int clean(struct serve *s, struct buf *to, struct err *e)
{
    return house_clean(&s->launches, to, e);
}

static int stop(struct serve *s, struct buf *to, struct err *e)
{
    (void)to;
    int rc = 0;
    for (int i = 0; i < MEMBERS_TAGS_MAX; i++)
        if (s->wishes.members.tags[i][0] && wishes_release(&s->wishes, s->wishes.members.tags[i], e) < 0)
            rc = e->code;
    end(s, rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS);
    return rc;
}

static const struct verb {
    const char *name;
    int (*run)(struct serve *s, struct buf *answer, struct err *e);
    bool needs_greeting;
    uint64_t needs; /* members */
} verbs[] = {
    { "adopt", adopt, true, REQUEST_BIT(REQUEST_TAG) },
    { "apply", apply, true,
      REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_CORES) | REQUEST_BIT(REQUEST_SLOTS) | REQUEST_BIT(REQUEST_LOCAL) },
    { "clean", clean, true, 0 },
    { "echo", echo, true, REQUEST_BIT(REQUEST_TAG) },
    { "forget", forget, true, REQUEST_BIT(REQUEST_TAG) },
    { "go", go, true, REQUEST_BIT(REQUEST_TAG) },
    { "have", have, true, REQUEST_BIT(REQUEST_HASH) | REQUEST_BIT(REQUEST_SIZE) },
    { "hello", greet, false, REQUEST_BIT(REQUEST_PROTOCOL) },
    { "launch", start_launch, true,
      REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_ATTEMPT) | REQUEST_BIT(REQUEST_STEPS) },
    { "lease", lease, true, 0 },
    { "list", list, true, REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_NAME) },
    { "look", look_around, true, 0 },
    { "meter", meter, true, REQUEST_BIT(REQUEST_INTERVAL) },
    { "put", put, true,
      REQUEST_BIT(REQUEST_HASH) | REQUEST_BIT(REQUEST_SIZE) | REQUEST_BIT(REQUEST_FROM) | REQUEST_BIT(REQUEST_DATA) },
    { "read", read_file, true,
      REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_NAME) | REQUEST_BIT(REQUEST_FROM) | REQUEST_BIT(REQUEST_SIZE) },
    { "release", release, true, REQUEST_BIT(REQUEST_TAG) },
    { "run", start_run, true, REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_SESSION) },
    { "sample", sample, true, REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_INTERVAL) },
    { "say", say_words, true, REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_DATA) },
    { "say-stop", say_stop, true, REQUEST_BIT(REQUEST_TAG) },
    { "signal", signal_launch, true, REQUEST_BIT(REQUEST_TAG) },
    { "stop", stop, false, 0 },
    { "tail", tail, true, REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_FROM) | REQUEST_BIT(REQUEST_CREDIT) },
    { "talk", talk, true, REQUEST_BIT(REQUEST_TAG) | REQUEST_BIT(REQUEST_CREDIT) },
};

/* --- hearing ------------------------------------------------------------------------------------------------------ */

static const struct verb *find_verb(const struct serve *s, struct err *e)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(s->req.verb, verbs[i].name) == 0)
            return &verbs[i];
    (void)err_set(e, -EINVAL, "unknown verb '%.40s'", s->req.verb);
    return NULL;
}

/* NULL: it is no request, and e says why. */
static const struct verb *understand(struct serve *s, char *line, size_t len, struct err *e)
{
    s->req.has = 0;
    if (wire_parse(&s->wire, line, len, e) < 0 || request_read(&s->req, &s->wire, e) < 0)
        return NULL;
    const struct verb *v = find_verb(s, e);
    if (v && request_needs(&s->req, v->needs, e) < 0)
        return NULL;
    return v;
}

static void take_request(struct serve *s, const struct verb *v)
{
    struct err e = { 0 };
    AUTO_BUF struct buf line = BUF_INIT;
    s->bad_lines = 0;
    s->lease_until = clock_ms() + s->lease_ms;
    begin_answer(s, &line, true);
    bool over = s->over;
    int rc = v->needs_greeting && !s->greeted ? err_set(&e, -EPROTO, "'hello' comes first") : v->run(s, &line, &e);
    bool ends = s->over && !over;
    s->over = over; /* the answer still goes out */
    if (rc < 0) {
        refuse(s, &e);
    } else {
        buf_putc(&line, '}');
        say(s, &line);
    }
    s->over = s->over || ends;
}

static void take_line(struct serve *s, char *line, size_t len)
{
    struct err e = { 0 };
    const struct verb *v = understand(s, line, len, &e);
    if (v) {
        take_request(s, v);
        return;
    }
    refuse(s, &e);
    if (++s->bad_lines == BAD_LINES_MAX)
        end_with(s, "%d lines in a row are no requests: the last: %s", BAD_LINES_MAX, e.text);
}

static void take_lines(struct serve *s)
{
    size_t at = 0;
    while (!s->over) {
        char *line = s->in.data + at, *newline = memchr(line, '\n', s->in.len - at);
        if (!newline)
            break;
        *newline = '\0';
        take_line(s, line, (size_t)(newline - line));
        at += (size_t)(newline - line) + 1;
    }
    buf_shift(&s->in, at);
    if (s->in.len > WIRE_LINE_MAX)
        end_with(s, "a line of more than %d bytes", WIRE_LINE_MAX);
}

/* Holds at most a line and a chunk. */
static void hear(struct serve *s)
{
    char chunk[READ_CHUNK];
    ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n < 0)
        end_with(s, "cannot read requests: %s", strerror(errno));
    if (n <= 0) {
        end(s, EXIT_SUCCESS);
        return;
    }
    buf_put(&s->in, chunk, (size_t)n);
    if (s->in.failed)
        end_with(s, "cannot read requests: out of memory");
    else
        take_lines(s);
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* Killed alone, the watchdog is replaced: without one nothing may stay changed. A child of a meter is the meter's to wait for. */
static void reap(struct serve *s)
{
    struct err e = { 0 };
    pid_t child = s->wishes.watch.child;
    if (child <= 0 || waitpid(child, NULL, WNOHANG) != child || watch_again(&s->wishes.watch, &e) == 0)
        return;
    tell(s, &e);
    end(s, EXIT_FAILURE);
}

static void take_signals(struct serve *s)
{
    struct signalfd_siginfo info;
    while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            reap(s);
        else
            end(s, EXIT_SUCCESS);
    }
}

/* `e`: why it could not be brought into force; NULL: it could. */
static void say_changed(struct serve *s, int tag, const struct wish_report *r, const struct err *e)
{
    AUTO_BUF struct buf line = BUF_INIT;
    buf_printf(&line, "{\"event\":\"changed\",\"tag\":\"%s\"", s->wishes.members.tags[tag]);
    put_report(&line, r);
    if (e)
        put_error(&line, e);
    buf_putc(&line, '}');
    say(s, &line);
}

static void look(struct serve *s)
{
    struct err e = { 0 };
    uint64_t changed = 0;
    s->look_at = clock_ms() + LOOK_MS;
    if (wishes_look(&s->wishes, clock_ms(), &changed, &e) < 0)
        tell(s, &e); /* the next look may see again */
    for (int tag = 0; tag < MEMBERS_TAGS_MAX && !s->over; tag++) {
        struct wish_report report = { 0 };
        struct err why = { 0 };
        if (!(changed >> tag & 1))
            continue;
        int rc = wishes_follow(&s->wishes, tag, clock_ms(), &report, &why);
        say_changed(s, tag, &report, rc < 0 ? &why : NULL);
    }
}

/* Would a line go out at once? A pipe that takes any bytes takes 4 KB, which is more than a sample. */
static bool is_heard(void)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
    return poll(&out, 1, 0) == 1 && (out.revents & POLLOUT);
}

static void say_sample(struct serve *s, const struct sample *sample)
{
    AUTO_BUF struct buf line = BUF_INIT, blob = BUF_INIT;
    sample_blob_put(&blob, sample->v, FEATURES);
    buf_printf(&line,
               "{\"event\":\"sample\",\"tag\":\"%s\",\"scope\":\"%s\",\"t_ms\":%.3f,\"dt_ms\":%.3f,\"missed\":%" PRIu64
               ",\"values\":\"",
               s->wishes.members.tags[sample->tag], sampler_scope_name(sample->scope), sample->t_ms, sample->dt_ms,
               sample->missed);
    base64_put(&line, blob.data, blob.len);
    buf_puts(&line, "\"}");
    line.failed |= blob.failed;
    say(s, &line);
}

static void say_samples(struct serve *s)
{
    struct sample sample;
    while (!s->over && samplers_take(s->samplers, &s->wishes.members, is_heard(), &sample))
        say_sample(s, &sample);
}

static void put_quantity(struct buf *to, const char *key, double x)
{
    if (!isfinite(x))
        return;
    buf_printf(to, ",\"%s\":", key);
    num_put(to, x);
}

static void say_reading(struct serve *s, const char *meter, const struct meter_reading *r)
{
    AUTO_BUF struct buf line = BUF_INIT;
    buf_printf(&line, "{\"event\":\"meter\",\"meter\":\"%s\",\"state\":\"%s\",\"from_ms\":%.3f,\"to_ms\":%.3f", meter,
               meter_state_name(r->state), r->from_ms, r->to_ms);
    put_quantity(&line, "value", r->value);
    put_quantity(&line, "error", r->error);
    if (r->why[0]) {
        buf_puts(&line, ",\"why\":");
        wire_put_text(&line, r->why);
    }
    buf_putc(&line, '}');
    say(s, &line);
}

static void say_readings(struct serve *s)
{
    struct meters_taken taken;
    while (!s->over && meters_take(s->meters, is_heard(), &taken))
        for (int i = 0; i < taken.n && !s->over; i++)
            say_reading(s, taken.meter->name, &taken.v[i]);
}

static void say_launches(struct serve *s)
{
    while (!s->over) {
        AUTO_BUF struct buf line = BUF_INIT;
        buf_putc(&line, '{');
        if (!launches_take(&s->launches, is_heard(), clock_ms(), &line))
            return;
        buf_putc(&line, '}');
        say(s, &line);
    }
}

/* When a sample or a reading is due, ns. */
static int64_t next_tick(const struct serve *s)
{
    int64_t sample = s->samplers ? samplers_due(s->samplers) : INT64_MAX;
    int64_t reading = s->meters ? meters_due(s->meters) : INT64_MAX;
    return sample < reading ? sample : reading;
}

static int timeout_ms(const struct serve *s)
{
    int64_t until = s->lease_until, now = clock_ms(), tick = next_tick(s);
    if (wishes_any(&s->wishes) && s->look_at < until)
        until = s->look_at;
    if (tick < INT64_MAX && tick / 1000000 < until)
        until = tick / 1000000 + 1; /* never before it is due */
    if (launches_due(&s->launches) < until)
        until = launches_due(&s->launches);
    return until > now ? (int)(until - now) : 0;
}

static void serve(struct serve *s)
{
    s->lease_until = clock_ms() + s->lease_ms;
    while (!s->over) {
        struct pollfd fds[2 + 2 * LAUNCHES_MAX] = {
            { .fd = STDIN_FILENO, .events = POLLIN },
            { .fd = s->signal_fd, .events = POLLIN },
        };
        size_t n = 2 + launches_fds(&s->launches, fds + 2);
        (void)poll(fds, n, timeout_ms(s)); /* EINTR cannot be: all we handle is blocked */
        if (fds[1].revents)
            take_signals(s);
        if (fds[0].revents && !s->over)
            hear(s);
        if (!s->over && clock_ms() >= s->lease_until)
            end_with(s, "no request for %" PRId64 " s: everything is given back", s->lease_ms / 1000);
        if (!s->over && wishes_any(&s->wishes) && clock_ms() >= s->look_at)
            look(s);
        if (!s->over && s->samplers)
            say_samples(s);
        if (!s->over && s->meters)
            say_readings(s);
        if (!s->over)
            say_launches(s);
    }
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

/* 0, 1, 2 are there, and nothing else of our parent's. */
static void own_descriptors(void)
{
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
}

static int open_signals(struct serve *s, struct err *e)
{
    static const int handled[] = { SIGTERM, SIGINT, SIGHUP, SIGCHLD };
    sigset_t set;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_LEN(handled); i++)
        (void)sigaddset(&set, handled[i]);
    (void)signal(SIGPIPE, SIG_IGN); /* write() says it */
    (void)signal(SIGCHLD, SIG_DFL); /* ignored by our parent, it would never come */
    if (sigprocmask(SIG_SETMASK, &set, NULL) < 0)
        return err_sys(e, -errno, "cannot block signals");
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return s->signal_fd < 0 ? err_sys(e, -errno, "cannot receive signals") : 0;
}

static int64_t lease_of(const char *text)
{
    long ms = text ? strtol(text, NULL, 10) : 0;
    return ms > 0 && ms <= INT32_MAX ? ms : LEASE_MS;
}

static int begin(struct serve *s, struct err *e)
{
    const char *sysfs = secure_getenv("PIPETUNE_SYSFS");
    s->lease_ms = lease_of(secure_getenv("PIPETUNE_LEASE_MS"));
    int flags = fcntl(STDOUT_FILENO, F_GETFL);
    if (flags < 0 || fcntl(STDOUT_FILENO, F_SETFL, flags | O_NONBLOCK) < 0)
        return err_sys(e, -errno, "cannot use stdout");
    int rc = open_signals(s, e);
    if (rc == 0)
        rc = wishes_open(&s->wishes, sysfs && *sysfs ? sysfs : "/sys", e);
    s->event_fds = counters_may_open(FDS_OTHERS + s->wishes.order.n, FDS_MAX); /* a lease is one, too */
    return rc;
}

static int run(struct serve *s)
{
    struct err e = { 0 };
    own_descriptors();
    int rc = begin(s, &e);
    if (rc == 0)
        serve(s);
    else
        tell(s, &e);
    samplers_close(s->samplers);
    s->samplers = NULL;
    failpoint("node-serve-ending");
    if (wishes_close(&s->wishes, &e) < 0) {
        tell(s, &e);
        rc = -EIO;
    }
    launches_done(&s->launches); /* they go on */
    meters_free(s->meters);      /* one that takes its time holds nothing of others */
    if (s->signal_fd >= 0)
        (void)close(s->signal_fd);
    return rc < 0 ? EXIT_FAILURE : s->code;
}

int serve_run(int argc, char **argv)
{
    if (argc != 1) {
        fprintf(stderr, "pipetune-node serve: takes no arguments, not '%s': see 'pipetune-node help'\n", argv[1]);
        return EXIT_USAGE;
    }
    struct serve *s = calloc(1, sizeof *s); /* pages that nothing needs are never there */
    if (!s) {
        fprintf(stderr, "pipetune-node serve: out of memory\n");
        return EXIT_FAILURE;
    }
    s->signal_fd = s->wishes.watch.pipe = -1;
    int code = run(s);
    buf_done(&s->in);
    free(s);
    return code;
}
