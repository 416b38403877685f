#include "live/node_words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "base/utf8.h"
#include "monitoring/sample_blob.h"
#include "monitoring/sample_text.h"

static const char *const verb_names[] = {
    [NODE_HELLO] = "hello",   [NODE_LEASE] = "lease",       [NODE_APPLY] = "apply", [NODE_RELEASE] = "release",
    [NODE_STOP] = "stop",     [NODE_SAMPLE] = "sample",     [NODE_METER] = "meter", [NODE_LAUNCH] = "launch",
    [NODE_GO] = "go",         [NODE_ADOPT] = "adopt",       [NODE_TAIL] = "tail",   [NODE_SIGNAL] = "signal",
    [NODE_FORGET] = "forget", [NODE_SAY_STOP] = "say-stop", [NODE_HAVE] = "have",   [NODE_PUT] = "put",
    [NODE_LIST] = "list",     [NODE_READ] = "read",         [NODE_LOOK] = "look",   [NODE_ECHO] = "echo",
    [NODE_CLEAN] = "clean",   [NODE_RUN] = "run",           [NODE_TALK] = "talk",   [NODE_SAY] = "say",
};

/* --- out ---------------------------------------------------------------------------------------------------------- */

static void begin(struct buf *b, uint64_t id, enum node_verb verb)
{
    buf_printf(b, "{\"id\":%" PRIu64 ",\"verb\":\"%s\"", id, verb_names[verb]);
}

static void put_real(struct buf *b, const char *key, double x)
{
    buf_printf(b, ",\"%s\":", key);
    num_put(b, x);
}

static void put_tag(struct buf *b, const char *tag)
{
    buf_puts(b, ",\"tag\":");
    json_put_string(b, tag);
}

static void put_cpus(struct buf *b, const int *cpus, int n)
{
    for (int i = 0; i < n; i++)
        buf_printf(b, "%s%d", i ? "," : ",\"cpus\":[", cpus[i]);
    if (n > 0)
        buf_putc(b, ']');
}

void node_words_hello(struct buf *b, uint64_t id, int64_t clock_ms, const struct app_workers *workers)
{
    begin(b, id, NODE_HELLO);
    buf_printf(b, ",\"protocol\":%d,\"clock_ms\":%" PRId64, NODE_PROTOCOL, clock_ms);
    if (workers->begins)
        buf_printf(b, ",\"worker\":\"%s*%s\",\"worker_cores\":\"%s\"", workers->begins, workers->ends,
                   workers->cores_option);
    buf_puts(b, "}\n");
}

void node_words_simple(struct buf *b, uint64_t id, enum node_verb verb)
{
    begin(b, id, verb);
    buf_puts(b, "}\n");
}

void node_words_tagged(struct buf *b, uint64_t id, enum node_verb verb, const char *tag)
{
    begin(b, id, verb);
    put_tag(b, tag);
    buf_puts(b, "}\n");
}

void node_words_apply(struct buf *b, uint64_t id, const struct desired_want *want, bool here)
{
    begin(b, id, NODE_APPLY);
    put_tag(b, want->tag);
    buf_printf(b, ",\"cores\":%d,\"slots\":%d,\"local\":%s", want->cores, want->slots,
               want->local && here ? "true" : "false");
    if (here)
        put_cpus(b, want->cpus, want->n_cpus);
    if (want->frequency_khz > 0)
        put_real(b, "frequency_khz", want->frequency_khz);
    if (want->power_cap_w > 0)
        put_real(b, "power_cap_w", want->power_cap_w);
    buf_puts(b, "}\n");
}

void node_words_sample(struct buf *b, uint64_t id, const char *tag, const struct desired_sampling *how)
{
    begin(b, id, NODE_SAMPLE);
    put_tag(b, tag);
    buf_printf(b, ",\"interval_ms\":%d,\"scope\":", how->interval_ms);
    json_put_string(b, how->scope);
    if (how->interval_ms > 0 && how->events) {
        buf_puts(b, ",\"events\":");
        json_put_string(b, how->events);
    }
    buf_puts(b, "}\n");
}

void node_words_meter(struct buf *b, uint64_t id, const struct nodes_metering *how)
{
    begin(b, id, NODE_METER);
    bool on = how->interval_ms > 0;
    if (on) {
        buf_puts(b, ",\"meters\":");
        json_put_string(b, how->meters);
    }
    buf_printf(b, ",\"interval_ms\":%d", how->interval_ms);
    if (on && how->idle_w > 0)
        put_real(b, "idle_w", how->idle_w);
    if (on && how->cpu_w > 0)
        put_real(b, "cpu_w", how->cpu_w);
    if (on && how->max_w > 0)
        put_real(b, "max_w", how->max_w);
    buf_puts(b, "}\n");
}

/* Texts, each with its NUL, in base 64. */
static void put_texts(struct buf *b, const char *key, const struct strv *texts)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    for (size_t i = 0; texts && i < texts->n; i++)
        buf_put(&bytes, texts->v[i], strlen(texts->v[i]) + 1);
    if (!bytes.len)
        return;
    buf_printf(b, ",\"%s\":\"", key);
    base64_put(b, bytes.data, bytes.len);
    buf_putc(b, '"');
    b->failed |= bytes.failed || texts->failed;
}

void node_words_launch(struct buf *b, uint64_t id, const struct node_launch *l)
{
    begin(b, id, NODE_LAUNCH);
    put_tag(b, l->tag);
    buf_printf(b, ",\"attempt\":%d", l->attempt);
    if (l->log_cap > 0)
        buf_printf(b, ",\"log_cap\":%" PRId64, l->log_cap);
    if (l->cpus)
        buf_printf(b, ",\"cpus\":[%s]", l->cpus);
    put_texts(b, "steps", l->steps);
    put_texts(b, "env", l->env);
    put_texts(b, "keep", l->keep_texts);
    put_texts(b, "step", l->step_texts);
    if (l->memory > 0)
        buf_printf(b, ",\"memory\":%" PRId64, l->memory);
    if (l->answer) {
        buf_puts(b, ",\"answer\":");
        json_put_string(b, l->answer);
    }
    if (l->gang > 0)
        buf_printf(b, ",\"gang\":%d", l->gang);
    if (l->mark) {
        buf_puts(b, ",\"mark\":");
        json_put_string(b, l->mark);
    }
    if (l->files)
        buf_printf(b, ",\"files\":\"%s\"", l->files);
    buf_puts(b, "}\n");
}

void node_words_run(struct buf *b, uint64_t id, const char *tag, const char *session, const char *files)
{
    begin(b, id, NODE_RUN);
    put_tag(b, tag);
    buf_puts(b, ",\"session\":");
    json_put_string(b, session);
    if (files)
        buf_printf(b, ",\"files\":\"%s\"", files);
    buf_puts(b, "}\n");
}

void node_words_talk(struct buf *b, uint64_t id, const char *tag, uint64_t credit)
{
    begin(b, id, NODE_TALK);
    put_tag(b, tag);
    buf_printf(b, ",\"credit\":%" PRIu64 "}\n", credit);
}

void node_words_say(struct buf *b, uint64_t id, const char *tag, const char *bytes, size_t n)
{
    begin(b, id, NODE_SAY);
    put_tag(b, tag);
    buf_puts(b, ",\"data\":\"");
    base64_put(b, bytes, n);
    buf_puts(b, "\"}\n");
}

void node_words_go(struct buf *b, uint64_t id, const char *tag, const char *ports)
{
    begin(b, id, NODE_GO);
    put_tag(b, tag);
    if (ports)
        buf_printf(b, ",\"ports\":\"%s\"", ports);
    buf_puts(b, "}\n");
}

void node_words_tail(struct buf *b, uint64_t id, const char *tag, uint64_t from, uint64_t credit, uint64_t accounted)
{
    begin(b, id, NODE_TAIL);
    put_tag(b, tag);
    buf_printf(b, ",\"from\":%" PRIu64 ",\"credit\":%" PRIu64 ",\"accounted\":%" PRIu64 "}\n", from, credit, accounted);
}

void node_words_signal(struct buf *b, uint64_t id, const char *tag, bool hard)
{
    begin(b, id, NODE_SIGNAL);
    put_tag(b, tag);
    buf_printf(b, ",\"hard\":%s}\n", hard ? "true" : "false");
}

static void put_hash(struct buf *b, const char *hash, int64_t size)
{
    buf_printf(b, ",\"hash\":\"%s\",\"size\":%" PRId64, hash, size);
}

void node_words_have(struct buf *b, uint64_t id, const char *hash, int64_t size)
{
    begin(b, id, NODE_HAVE);
    put_hash(b, hash, size);
    buf_puts(b, "}\n");
}

void node_words_put(struct buf *b, uint64_t id, const char *hash, int64_t size, int64_t from, const void *bytes,
                    size_t n)
{
    begin(b, id, NODE_PUT);
    put_hash(b, hash, size);
    buf_printf(b, ",\"from\":%" PRId64 ",\"data\":\"", from);
    base64_put(b, bytes, n);
    buf_puts(b, "\"}\n");
}

static void put_name(struct buf *b, const char *tag, const char *name)
{
    put_tag(b, tag);
    buf_puts(b, ",\"name\":");
    json_put_string(b, name);
}

void node_words_list(struct buf *b, uint64_t id, const char *tag, const char *name)
{
    begin(b, id, NODE_LIST);
    put_name(b, tag, name);
    buf_puts(b, "}\n");
}

void node_words_read_file(struct buf *b, uint64_t id, const char *tag, const char *name, int64_t from, int64_t size)
{
    begin(b, id, NODE_READ);
    put_name(b, tag, name);
    buf_printf(b, ",\"from\":%" PRId64 ",\"size\":%" PRId64 "}\n", from, size);
}

bool node_words_has_meter(const char *names, const char *meter, size_t len)
{
    const char *at = names;
    while (*at && (strcspn(at, ",") != len || strncmp(at, meter, len) != 0)) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return *at != '\0';
}

bool node_words_is_tag(const char *tag)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t len = strspn(tag, allowed);
    return len > 0 && len <= NODE_TAG_MAX && tag[len] == '\0';
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

/* Bytes of the printable character at `p`, 0 when there is none. */
static size_t printable(const unsigned char *p, const unsigned char *end)
{
    if (*p < 0x80)
        return *p >= 0x20 && *p != 0x7f;
    size_t n = utf8_len(p, end);
    return n == 2 && p[0] == 0xc2 && p[1] < 0xa0 ? 0 : n; /* U+0080…U+009F drive terminals too */
}

char *node_words_plain(char *out, size_t size, const char *text, size_t len)
{
    static const char cut[] = "…";
    const unsigned char *p = (const unsigned char *)text, *end = p + len;
    size_t at = 0, room = len < size ? size - 1 : size - sizeof cut; /* every byte stays or becomes one */
    while (p < end) {
        size_t n = printable(p, end);
        size_t put = n ? n : 1;
        if (at + put > room)
            break;
        memcpy(out + at, n ? (const char *)p : "?", put);
        at += put;
        p += put;
    }
    (void)snprintf(out + at, size - at, "%s", p < end ? cut : "");
    return out;
}

static int bad(struct err *e, const char *what)
{
    return err_set(e, -EPROTO, "%s", what);
}

/* A whole number of the object within bounds; false when it is anything else. */
static bool get_int(const json_t *body, const char *key, int64_t least, int64_t most, int64_t *out)
{
    const json_t *j = json_object_get(body, key);
    if (!json_is_integer(j) || json_integer_value(j) < least || json_integer_value(j) > most)
        return false;
    *out = json_integer_value(j);
    return true;
}

static bool get_text(const json_t *body, const char *key, char *out, size_t size)
{
    const json_t *j = json_object_get(body, key);
    if (!json_is_string(j))
        return false;
    (void)node_words_plain(out, size, json_string_value(j), json_string_length(j));
    return true;
}

static const struct event {
    const char *name;
    enum node_words_kind kind;
    bool has_tag;
} events[] = {
    { "bytes", NODE_BYTES, true },    { "changed", NODE_CHANGED, true }, { "launch", NODE_LAUNCHED, true },
    { "meter", NODE_METERED, false }, { "sample", NODE_SAMPLED, true },  { "words", NODE_SAID, true },
};

static const struct event *find_event(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(events); i++)
        if (strcmp(name, events[i].name) == 0)
            return &events[i];
    return NULL;
}

static bool read_event(struct node_words *w)
{
    const char *name = json_string_value(json_object_get(w->body, "event"));
    const char *tag = json_string_value(json_object_get(w->body, "tag"));
    const struct event *event = name ? find_event(name) : NULL;
    if (!name || (event && event->has_tag && (!tag || !node_words_is_tag(tag))))
        return false;
    w->kind = event ? event->kind : NODE_UNKNOWN;
    if (!event || !event->has_tag)
        return true;
    (void)get_text(w->body, "error", w->error, sizeof w->error);
    (void)snprintf(w->tag, sizeof w->tag, "%s", tag);
    return true;
}

static bool read_answer(struct node_words *w)
{
    int64_t id;
    const json_t *ok = json_object_get(w->body, "ok");
    if (!get_int(w->body, "id", 0, INT64_MAX, &id) || !json_is_boolean(ok))
        return false;
    w->kind = NODE_ANSWER;
    w->id = (uint64_t)id;
    w->ok = json_is_true(ok);
    if (!w->ok && (!get_text(w->body, "error", w->error, sizeof w->error) || !w->error[0]))
        (void)snprintf(w->error, sizeof w->error, "no reason was given");
    return true;
}

int node_words_read(struct node_words *out, const char *line, size_t len, struct err *e)
{
    struct node_words w = { .body = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL) };
    char text[160];
    if (json_is_object(w.body) && (json_object_get(w.body, "event") ? read_event(&w) : read_answer(&w))) {
        *out = w;
        return 0;
    }
    node_words_done(&w);
    return err_set(e, -EPROTO, "'%s' is no answer of pipetune-node", node_words_plain(text, sizeof text, line, len));
}

void node_words_done(struct node_words *w)
{
    if (!w)
        return;
    json_decref(w->body);
    w->body = NULL;
}

struct cpu_seen {
    bool at[DESIRED_MAX_CPUS];
};

/* How many CPUs the list has, -1 when it is no list of different ones. `out` (NULL: not wanted) takes them. */
static int read_cpus(const json_t *list, int *out)
{
    struct cpu_seen seen = { 0 };
    if (!json_is_array(list) || json_array_size(list) > DESIRED_MAX_CPUS)
        return -1;
    int n = (int)json_array_size(list);
    for (int i = 0; i < n; i++) {
        const json_t *j = json_array_get(list, (size_t)i);
        json_int_t cpu = json_is_integer(j) ? json_integer_value(j) : -1;
        if (cpu < 0 || cpu >= DESIRED_MAX_CPUS || seen.at[cpu])
            return -1;
        seen.at[cpu] = true;
        if (out)
            out[i] = (int)cpu;
    }
    return n;
}

/* The root becomes part of what is run there, and of names that are shown: a plain path, or none. */
static void read_place(struct node_hello *h, const json_t *body)
{
    const json_t *root = json_object_get(body, "root");
    const char *text = json_string_value(root);
    bool fits = text && text[0] == '/' && json_string_length(root) < sizeof h->root && strlen(text) > 1;
    for (const char *p = text; fits && *p; p++)
        fits = (unsigned char)*p > ' ' && *p != '{' && *p != '}';
    if (fits)
        (void)snprintf(h->root, sizeof h->root, "%s", text);
    double gb = json_number_value(json_object_get(body, "memory_gb"));
    h->sessions = json_is_true(json_object_get(body, "sessions"));
    h->memory_gb = gb > 0 && gb < 1e9 ? gb : 0;
}

static const int64_t CLOCK_MS_MAX = (int64_t)1 << 52; /* no clock is that far ahead, and a double holds it */

int node_hello_read(struct node_hello *out, const struct node_words *w, struct err *e)
{
    struct node_hello h = { 0 };
    struct err why = { 0 };
    int64_t protocol = 0;
    bool has_protocol = get_int(w->body, "protocol", 0, INT32_MAX, &protocol);
    h.protocol = (int)protocol;
    if (!get_text(w->body, "version", h.version, sizeof h.version))
        (void)snprintf(h.version, sizeof h.version, "an unknown version");
    if (has_protocol && h.protocol != NODE_PROTOCOL) { /* it may refuse ours, and mean other things by other keys */
        *out = h;
        return 0;
    }
    if (!w->ok)
        return err_set(e, -EPROTO, "it refuses: %s", w->error);
    if (!has_protocol || !get_int(w->body, "clock_ms", 0, CLOCK_MS_MAX, &h.clock_ms))
        return bad(e, "its hello has no 'protocol' or no 'clock_ms'");
    (void)get_text(w->body, "host", h.host, sizeof h.host);
    (void)get_text(w->body, "sees", h.sees, sizeof h.sees);
    read_place(&h, w->body);
    const char *features = json_string_value(json_object_get(w->body, "features"));
    if (features && feature_list_read(&h.features, features, &why) < 0)
        return err_set(e, -EPROTO, "its hello has %s", why.text);
    const json_t *cpus = json_object_get(w->body, "cpus");
    h.n_cpus = read_cpus(cpus, NULL);
    if (h.n_cpus < 1)
        return bad(e, "its hello has no list of 'cpus'");
    h.cpus = calloc((size_t)h.n_cpus, sizeof *h.cpus);
    if (!h.cpus)
        return err_sys(e, -ENOMEM, "its hello");
    (void)read_cpus(cpus, h.cpus);
    *out = h;
    return 0;
}

void node_hello_done(struct node_hello *h)
{
    if (!h)
        return;
    free(h->cpus);
    h->cpus = NULL;
    h->n_cpus = 0;
}

/* A limit that is there and means something. */
static double get_limit(const json_t *body, const char *key)
{
    double x = json_number_value(json_object_get(body, key)); /* 0 of what is no number */
    return x > 0 ? x : 0;
}

int node_seen_read(struct desired_seen *out, const struct node_words *w, struct err *e)
{
    enum { MOST = 4 << 20 }; /* Linux knows no more processes; those of many nodes are summed up */
    int64_t processes, threads, slots;
    if (!get_int(w->body, "processes", 0, MOST, &processes) || !get_int(w->body, "threads", 0, MOST, &threads) ||
        !get_int(w->body, "slots", 0, MOST, &slots))
        return bad(e, "its answer has no number of 'processes', 'threads' or 'slots'");
    int cpus = read_cpus(json_object_get(w->body, "cpus"), NULL);
    if (cpus < 0)
        return bad(e, "its answer has no list of 'cpus'");
    *out = (struct desired_seen){ .processes = (int)processes,
                                  .threads = (int)threads,
                                  .slots = (int)slots,
                                  .cpus = cpus,
                                  .frequency_khz = get_limit(w->body, "frequency_khz"),
                                  .power_cap_w = get_limit(w->body, "power_cap_w") };
    (void)get_text(w->body, "shared", out->shared, sizeof out->shared);
    return 0;
}

static int read_values(struct reading out[FEATURES], const struct feature_list *features, const char *values,
                       struct err *e)
{
    AUTO_BUF struct buf blob = BUF_INIT;
    int rc = base64_read(&blob, values);
    if (rc < 0)
        return err_set(e, rc, rc == -ENOMEM ? "out of memory" : "a sample that is not in base 64");
    return sample_blob_read(out, features, blob.data, blob.len, e);
}

int node_sample_read(struct nodes_sample *out, const struct feature_list *features, const struct node_words *w,
                     struct err *e)
{
    const char *scope = json_string_value(json_object_get(w->body, "scope"));
    const char *cells = json_string_value(json_object_get(w->body, "cells")); /* of an older version */
    const char *values = json_string_value(json_object_get(w->body, "values"));
    const json_t *t = json_object_get(w->body, "t_ms"), *dt = json_object_get(w->body, "dt_ms");
    int64_t missed = 0;
    (void)get_int(w->body, "missed", 0, INT32_MAX, &missed);
    if (!scope || (!cells && !values) || !json_is_number(t) || !json_is_number(dt) || !(json_number_value(dt) > 0))
        return bad(e, "its sample has no 'scope', 'values', 't_ms' or 'dt_ms'");
    struct nodes_sample s = {
        .t_ms = json_number_value(t), .dt_ms = json_number_value(dt), .missed = (int)missed, .scope = scope
    };
    int rc = values ? read_values(s.v, features, values, e) : sample_text_read(s.v, FEATURES, cells, NULL);
    if (rc < 0)
        return values ? rc : err_set(e, rc, "a sample without names of another version's features");
    *out = s;
    return 0;
}

/* A number that is there, or NAN. False: it is something else, or below 0. */
static bool get_quantity(const json_t *body, const char *key, double *out)
{
    const json_t *j = json_object_get(body, key);
    *out = j ? json_number_value(j) : NAN;
    return !j || (json_is_number(j) && *out >= 0);
}

int node_reading_read(struct nodes_reading *out, const struct node_words *w, struct err *e)
{
    struct nodes_reading got = { .meter = json_string_value(json_object_get(w->body, "meter")) };
    struct meter_reading *r = &got.r;
    const char *name = json_string_value(json_object_get(w->body, "state"));
    int state = name ? meter_state_find(name) : -1;
    if (!got.meter || !meter_are_names(got.meter) || strchr(got.meter, ',') || state < 0)
        return bad(e, "its reading has no 'meter' or no 'state'");
    if (!get_quantity(w->body, "from_ms", &r->from_ms) || !get_quantity(w->body, "to_ms", &r->to_ms) ||
        isnan(r->from_ms) || isnan(r->to_ms))
        return bad(e, "its reading has no 'from_ms' or no 'to_ms'");
    if (!get_quantity(w->body, "value", &r->value) || !get_quantity(w->body, "error", &r->error) ||
        isnan(r->value) == (state == METER_OK))
        return bad(e, "its reading has no 'value', or one that it cannot have");
    r->state = (enum meter_state)state;
    (void)get_text(w->body, "why", r->why, sizeof r->why);
    *out = got;
    return 0;
}

bool node_refused_next(struct node_refused *out, const struct node_words *w, size_t *at)
{
    const json_t *refused = json_object_get(w->body, "refused");
    const char *text = json_is_string(refused) ? json_string_value(refused) + *at : "";
    size_t len = strcspn(text, ";"), name = strspn(text, METER_NAME_BYTES);
    if (name == 0 || name >= sizeof out->meter || strncmp(text + name, ": ", 2) != 0)
        return false;
    (void)snprintf(out->meter, sizeof out->meter, "%.*s", (int)name, text);
    (void)node_words_plain(out->why, sizeof out->why, text + name + 2, len - name - 2);
    *at += len + (strncmp(text + len, "; ", 2) == 0 ? 2 : 0);
    return true;
}

/* --- launches ------------------------------------------------------------------------------------------------------ */

static const char *const launch_states[] = {
    [NODE_LAUNCH_READY] = "ready",     [NODE_LAUNCH_BUSY] = "busy",   [NODE_LAUNCH_REFUSED] = "refused",
    [NODE_LAUNCH_GONE] = "gone",       [NODE_LAUNCH_NONE] = "none",   [NODE_LAUNCH_WAITING] = "waiting",
    [NODE_LAUNCH_RUNNING] = "running", [NODE_LAUNCH_ENDED] = "ended", [NODE_LAUNCH_CUT] = "cut"
};

static bool get_process(struct node_launch_told *out, const json_t *body)
{
    int64_t start = 0;
    const json_t *boot = json_object_get(body, "boot_id");
    bool ok = json_string_length(boot) == PROC_BOOT_ID_SIZE - 1 &&
              get_text(body, "boot_id", out->boot_id, sizeof out->boot_id) &&
              get_int(body, "pid", 2, INT32_MAX, &out->pid) && get_int(body, "start_ticks", 0, INT64_MAX, &start);
    out->start_ticks = (uint64_t)start;
    return ok;
}

int node_launch_read(struct node_launch_told *out, const struct node_words *w, struct err *e)
{
    struct node_launch_told t = { .ago_ms = -1 };
    int64_t heard = 0;
    char state[16];
    size_t i = 0;
    if (!get_text(w->body, "state", state, sizeof state))
        return bad(e, "its launch has no 'state'");
    while (i < ARRAY_LEN(launch_states) && strcmp(state, launch_states[i]) != 0)
        i++;
    if (i == ARRAY_LEN(launch_states))
        return err_set(e, -EPROTO, "its launch is '%s', which is no state", state);
    t.state = (enum node_launch_state)i;
    bool runs = t.state == NODE_LAUNCH_READY || t.state == NODE_LAUNCH_RUNNING;
    if (runs && !get_process(&t, w->body))
        return bad(e, "its launch has no process");
    (void)get_int(w->body, "heard", 0, INT64_MAX, &heard);
    (void)get_int(w->body, "port", 1, UINT16_MAX, &t.port);
    (void)get_text(w->body, "why", t.why, sizeof t.why);
    (void)get_text(w->body, "exit", t.exit, sizeof t.exit);
    (void)get_int(w->body, "ago_ms", 0, INT64_MAX, &t.ago_ms);
    t.heard = (uint64_t)heard;
    *out = t;
    return 0;
}

int node_file_read(struct buf *out, const struct node_words *w, const char *key, struct err *e)
{
    const char *data = json_string_value(json_object_get(w->body, key));
    if (!data)
        return bad(e, "its bytes have no 'at' or no 'data'");
    int rc = base64_read(out, data);
    if (rc < 0)
        return rc == -ENOMEM ? err_sys(e, rc, "cannot read bytes") : bad(e, "its bytes are no base 64");
    return 0;
}

int node_bytes_read(uint64_t *at, struct buf *out, const struct node_words *w, struct err *e)
{
    int64_t from = 0;
    if (!get_int(w->body, "at", 0, INT64_MAX, &from))
        return bad(e, "its bytes have no 'at' or no 'data'");
    int rc = node_file_read(out, w, "data", e);
    if (rc == 0)
        *at = (uint64_t)from;
    return rc;
}

int node_said_read(struct buf *out, char why[128], const struct node_words *w, struct err *e)
{
    why[0] = '\0';
    (void)get_text(w->body, "why", why, 128);
    return node_file_read(out, w, "data", e);
}

int node_there_read(bool *out, const struct node_words *w, struct err *e)
{
    const json_t *there = json_object_get(w->body, "there");
    if (!json_is_boolean(there))
        return bad(e, "its answer has no 'there'");
    *out = json_is_true(there);
    return 0;
}
