#include "monitoring/events.h"

#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "monitoring/events_parts.h"

/* --- sysfs --- */

struct tree {
    const char *sysfs;
    struct buf text; /* of the file that was read last */
};

static bool ran_short(int rc)
{
    return rc == -ENOMEM || rc == -EMFILE || rc == -ENFILE;
}

/* The file's text in t->text. 1 read, 0 nothing to be read there; -ENOMEM, -EMFILE, -ENFILE. */
static int slurp(struct tree *t, struct err *e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static int slurp(struct tree *t, struct err *e, const char *fmt, ...)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/", t->sysfs);
    if (n < 0 || (size_t)n >= sizeof path)
        return 0;
    va_list ap;
    va_start(ap, fmt);
    int more = vsnprintf(path + n, sizeof path - (size_t)n, fmt, ap);
    va_end(ap);
    if (more < 0 || (size_t)more >= sizeof path - (size_t)n)
        return 0;
    buf_clear(&t->text);
    int rc = io_read_file(&t->text, path, 65536, e);
    if (ran_short(rc))
        return rc;
    return rc == 0 && !memchr(buf_text(&t->text), '\0', t->text.len);
}

#define PMU_DIR "bus/event_source/devices/%s"

struct pmu {
    char name[SYSFS_NAME_SIZE];
    uint32_t type;
    char cpus[EVENT_CPUS_SIZE];
};

/* A list of CPUs without its newline; -EINVAL when it is none, or too long to be kept whole. */
static int copy_cpus(char out[EVENT_CPUS_SIZE], const char *text)
{
    struct sysfs_cpus cpus;
    size_t len = strcspn(text, "\n");
    if (sysfs_cpus_parse(&cpus, text) < 0 || len >= EVENT_CPUS_SIZE)
        return -EINVAL;
    memcpy(out, text, len);
    out[len] = '\0';
    return 0;
}

/* The CPUs that the PMU is to be opened on. 1, 0 (its list cannot be used: a part of it would be a part of the count), or < 0. */
static int read_pmu_cpus(struct tree *t, struct pmu *p, struct err *e)
{
    static const char *const files[] = { "cpumask", "cpus" };
    for (int i = 0; i < 2; i++) {
        int rc = slurp(t, e, PMU_DIR "/%s", p->name, files[i]);
        if (rc < 0)
            return rc;
        if (rc > 0)
            return copy_cpus(p->cpus, buf_text(&t->text)) == 0;
    }
    return 1;
}

/* 1 found, 0 not there or not to be understood, < 0. */
static int read_pmu(struct tree *t, struct pmu *out, const char *name, struct err *e)
{
    struct pmu p = { 0 };
    (void)snprintf(p.name, sizeof p.name, "%s", name); /* ours, and short */
    int rc = slurp(t, e, PMU_DIR "/type", name);
    if (rc <= 0 || sysfs_type_parse(&p.type, buf_text(&t->text)) < 0)
        return rc < 0 ? rc : 0;
    rc = read_pmu_cpus(t, &p, e);
    if (rc > 0)
        *out = p;
    return rc;
}

/* 1 set, 0 the term is unknown or its value too large. */
static int set_term(struct tree *t, const char *pmu, const struct sysfs_term *term, uint64_t config[SYSFS_WORDS],
                    struct err *e)
{
    struct sysfs_format f;
    int rc = slurp(t, e, PMU_DIR "/format/%s", pmu, term->name);
    if (rc < 0)
        return rc;
    if (rc > 0)
        return sysfs_format_parse(&f, buf_text(&t->text)) == 0 && sysfs_format_set(&f, term->value, config) == 0;
    int word = sysfs_term_word(term->name);
    if (word >= 0)
        config[word] = term->value;
    return word >= 0;
}

static int read_config(struct tree *t, const char *pmu, struct event_attr *out, struct err *e)
{
    struct sysfs_terms terms;
    uint64_t config[SYSFS_WORDS] = { 0 };
    if (sysfs_terms_parse(&terms, buf_text(&t->text)) < 0)
        return 0;
    for (int i = 0; i < terms.n; i++) {
        int rc = set_term(t, pmu, &terms.v[i], config, e);
        if (rc <= 0)
            return rc;
    }
    out->config = config[0];
    out->config1 = config[1];
    out->config2 = config[2];
    return 1;
}

/* A scale that cannot be read is no scale of 1: the count would be off by it. */
static int read_scale_and_unit(struct tree *t, const char *pmu, const char *leaf, struct event_spec *out, struct err *e)
{
    int rc = slurp(t, e, PMU_DIR "/events/%s.scale", pmu, leaf);
    if (rc < 0 || (rc > 0 && sysfs_scale_parse(&out->scale, buf_text(&t->text)) < 0))
        return rc < 0 ? rc : 0;
    rc = slurp(t, e, PMU_DIR "/events/%s.unit", pmu, leaf);
    if (rc < 0 || (rc > 0 && sysfs_unit_parse(out->unit, buf_text(&t->text)) < 0))
        return rc < 0 ? rc : 0;
    return 1;
}

/* The event as the PMU's files have it: 1, 0 they have it not, or not so that it could be used (out->why), < 0. */
static int by_sysfs(struct tree *t, const struct pmu *p, const char *leaf, struct event_spec *out, struct err *e)
{
    struct event_spec s = *out;
    s.scale = 1;
    s.attr = (struct event_attr){ .type = p->type };
    int rc = slurp(t, e, PMU_DIR "/events/%s", p->name, leaf);
    if (rc <= 0)
        return rc;
    rc = read_config(t, p->name, &s.attr, e);
    if (rc > 0)
        rc = read_scale_and_unit(t, p->name, leaf, &s, e);
    if (rc == 0)
        (void)snprintf(out->why, sizeof out->why, "%s/events/%s, or what it needs, cannot be understood", p->name,
                       leaf);
    if (rc <= 0)
        return rc;
    s.by = EVENT_BY_SYSFS;
    *out = s;
    return 1;
}

/* --- the machine --- */

struct machine {
    struct tree tree;
    struct pmu core, msr;
    bool pfm;
    struct event_machine known;
};

static int find_core(struct machine *m, struct err *e)
{
    static const char *const names[] = { "cpu", "cpu_core" }; /* the second: the large cores of two kinds */
    struct event_core *core = &m->known.core;
    for (int i = 0; i < 2; i++) {
        int rc = read_pmu(&m->tree, &m->core, names[i], e);
        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        core->found = true;
        core->type = m->core.type;
        (void)snprintf(core->name, sizeof core->name, "%s", names[i]);
        (void)snprintf(core->cpus, sizeof core->cpus, "%s", m->core.cpus);
        return 0;
    }
    return 0;
}

static int find_cpu(struct machine *m, struct err *e)
{
    int rc = slurp(&m->tree, e, "devices/system/cpu/smt/active");
    if (rc < 0)
        return rc;
    m->known.core.smt = rc > 0 && *buf_text(&m->tree.text) == '1';
    rc = slurp(&m->tree, e, "devices/system/cpu/modalias");
    if (rc < 0)
        return rc;
    m->known.cpu_known = rc > 0 && sysfs_modalias_parse(&m->known.cpu, buf_text(&m->tree.text)) == 0;
    return 0;
}

static int find_family(struct machine *m, struct err *e)
{
    char pmu_name[SYSFS_NAME_SIZE] = "";
    struct event_core *core = &m->known.core;
    int rc = core->found ? slurp(&m->tree, e, PMU_DIR "/caps/pmu_name", core->name) : 0;
    if (rc < 0)
        return rc;
    if (rc > 0)
        (void)snprintf(pmu_name, sizeof pmu_name, "%.*s", (int)strcspn(buf_text(&m->tree.text), "\n"),
                       buf_text(&m->tree.text)); /* one that is cut is no name of ours */
    const struct event_family *f = event_family_find(pmu_name, m->known.cpu_known ? &m->known.cpu : NULL);
    m->known.family = f;
    (void)snprintf(core->family, sizeof core->family, "%s", f ? f->name : "");
    if (!core->found)
        return 0;
    core->general = !f ? 4 : core->smt ? f->general : f->general_alone;
    core->fixed = f ? f->fixed : 3;
    return 0;
}

static int find_machine(struct machine *m, struct err *e)
{
    int rc = find_core(m, e);
    if (rc == 0)
        rc = find_cpu(m, e);
    if (rc == 0)
        rc = find_family(m, e);
    if (rc == 0)
        rc = read_pmu(&m->tree, &m->msr, "msr", e);
    if (rc < 0)
        return rc;
    m->known.msr_found = rc > 0;
    m->known.msr_type = m->msr.type;
    return 0;
}

/* --- one event --- */

/* "msr/tsc/", "cpu/tx-start/", "branches" */
static struct event_name take_apart(const char *name)
{
    struct event_name n = { .msr = strncmp(name, "msr/", 4) == 0 };
    const char *slash = strchr(name, '/');
    const char *leaf = slash ? slash + 1 : name;
    (void)snprintf(n.leaf, sizeof n.leaf, "%.*s", (int)strcspn(leaf, "/"), leaf);
    return n;
}

static int look_in_sysfs(struct machine *m, const struct event_name *n, struct event_spec *s, struct err *e)
{
    const struct pmu *p = n->msr ? &m->msr : &m->core;
    if (n->msr ? !m->known.msr_found : !m->known.core.found)
        return 0;
    int rc = by_sysfs(&m->tree, p, n->leaf, s, e);
    const char *alias = rc == 0 && !n->msr ? event_table_alias(n->leaf, &m->known) : NULL;
    return alias ? by_sysfs(&m->tree, p, alias, s, e) : rc;
}

static void look_further(struct machine *m, const struct event_name *n, struct event_spec *s)
{
    s->scale = 1;
    if (!n->msr && m->pfm && event_pfm_encode(n->leaf, &s->attr) == 0)
        s->by = EVENT_BY_LIBPFM;
    else if (event_table_find(s, n, &m->known) == 0)
        s->by = EVENT_BY_TABLE;
    else if (!*s->why)
        (void)snprintf(s->why, sizeof s->why, "%s", event_table_why(n, &m->known));
}

static bool on_core(const struct machine *m, const struct event_attr *a)
{
    return a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE || a->type == PERF_TYPE_RAW ||
           (m->known.core.found && a->type == m->known.core.type);
}

static int resolve_one(struct machine *m, struct event_spec *s, const char *name, struct err *e)
{
    struct event_name n = take_apart(name);
    *s = (struct event_spec){ .name = name, .same_as = -1 };
    int rc = look_in_sysfs(m, &n, s, e);
    if (rc < 0)
        return rc;
    if (rc == 0)
        look_further(m, &n, s);
    if (s->by == EVENT_BY_NONE)
        return 0;
    s->why[0] = '\0';
    s->core_counter = on_core(m, &s->attr);
    s->attr.exclude_kernel_ok = s->core_counter;
    (void)snprintf(s->cpus, sizeof s->cpus, "%s", s->core_counter ? m->core.cpus : m->msr.cpus);
    return 0;
}

/* --- all of them --- */

static bool equal_encodings(const struct event_spec *a, const struct event_spec *b)
{
    return a->by && b->by && a->attr.type == b->attr.type && a->attr.config == b->attr.config &&
           a->attr.config1 == b->attr.config1 && a->attr.config2 == b->attr.config2;
}

static void count(struct events *ev)
{
    for (int i = 0; i < EVENT_NAMES; i++) {
        struct event_spec *s = &ev->v[i];
        for (int k = 0; k < i && s->same_as < 0; k++)
            if (equal_encodings(&ev->v[k], s))
                s->same_as = k;
        bool distinct = s->by != EVENT_BY_NONE && s->same_as < 0;
        ev->n_resolved += s->by != EVENT_BY_NONE;
        ev->n_distinct += distinct;
        ev->n_core += distinct && s->core_counter;
    }
}

static int resolve_all(struct machine *m, struct events *ev, struct err *e)
{
    int rc = find_machine(m, e);
    m->pfm = rc == 0 && event_pfm_begin() == 0;
    for (int i = 0; rc == 0 && i < EVENT_NAMES; i++)
        rc = resolve_one(m, &ev->v[i], event_names[i], e);
    if (m->pfm)
        event_pfm_end();
    return rc;
}

int events_resolve(struct events *out, const char *sysfs, struct err *e)
{
    struct machine m = { .tree = { .sysfs = sysfs } };
    struct events ev = { 0 };
    int rc = resolve_all(&m, &ev, e);
    buf_done(&m.tree.text);
    if (rc < 0)
        return rc;
    ev.core = m.known.core;
    count(&ev);
    *out = ev;
    return 0;
}

const char *event_by_name(enum event_by by)
{
    static const char *const names[] = { "-", "sysfs", "libpfm", "table" };
    return names[by];
}

const char *event_encoding(const struct event_spec *s, char out[EVENT_ENCODING_SIZE])
{
    if (s->by == EVENT_BY_NONE) {
        (void)snprintf(out, EVENT_ENCODING_SIZE, "-");
        return out;
    }
    const uint64_t more[] = { s->attr.config1, s->attr.config2 };
    int n = snprintf(out, EVENT_ENCODING_SIZE, "%u:0x%llx", s->attr.type, (unsigned long long)s->attr.config);
    for (int i = 0; i < 2; i++)
        if (more[i])
            n += snprintf(out + n, EVENT_ENCODING_SIZE - (size_t)n, ",config%d=0x%llx", i + 1,
                          (unsigned long long)more[i]);
    return out;
}

/* --- how often each will run --- */

/* The fixed counter that can count it, -1: only general ones. */
static int fixed_counter(const struct event_core *core, const struct event_attr *a)
{
    bool generic = a->type == PERF_TYPE_HARDWARE;
    int which = -1;
    if (generic ? a->config == PERF_COUNT_HW_INSTRUCTIONS : a->type == core->type && a->config == 0xc0)
        which = 0;
    if (generic ? a->config == PERF_COUNT_HW_CPU_CYCLES : a->type == core->type && a->config == 0x3c)
        which = 1;
    return which < core->fixed ? which : -1;
}

struct ring { /* the distinct events that compete */
    int v[EVENT_NAMES];
    int n;
};

/* How many events, from the one at `first` on, run at once. */
static int run_length(const struct events *ev, const struct ring *r, int first, int general)
{
    unsigned fixed = 0;
    for (int len = 0; len < r->n; len++) {
        int which = fixed_counter(&ev->core, &ev->v[r->v[(first + len) % r->n]].attr);
        if (which >= 0 && !(fixed & 1U << which))
            fixed |= 1U << which;
        else if (general-- <= 0)
            return len;
    }
    return r->n;
}

static void share_ring(const struct events *ev, const struct ring *r, int general, double share[EVENT_NAMES])
{
    int turns[EVENT_NAMES] = { 0 };
    for (int first = 0; first < r->n; first++)
        for (int k = run_length(ev, r, first, general) - 1; k >= 0; k--)
            turns[(first + k) % r->n]++;
    for (int i = 0; i < r->n; i++)
        share[r->v[i]] = (double)turns[i] / r->n;
}

void events_forecast(const struct events *ev, bool nmi_watchdog, const bool *left_out, double share[EVENT_NAMES])
{
    struct ring ring = { .n = 0 };
    for (int i = 0; i < EVENT_NAMES; i++) {
        const struct event_spec *s = &ev->v[i];
        bool out = s->by == EVENT_BY_NONE || (left_out && left_out[i]) || (s->core_counter && !ev->core.found);
        share[i] = out ? (double)NAN : 1;
        if (!out && s->core_counter && s->same_as < 0)
            ring.v[ring.n++] = i;
    }
    share_ring(ev, &ring, ev->core.general - nmi_watchdog, share);
    for (int i = 0; i < EVENT_NAMES; i++)
        if (!isnan(share[i]) && ev->v[i].same_as >= 0)
            share[i] = share[ev->v[i].same_as];
}
