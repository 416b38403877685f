#include "monitoring/code_map.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"

enum { PAGE_BITS = 12, HEAD_SIZE = 256 /* of a line, what is before the path */ };

enum kind { LIBRARY, GENERATED, RUNTIME };

struct code_range {
    uint64_t from, to; /* the last address is to - 1 */
    uint64_t offset;   /* of `from` in the file */
    uint64_t name;     /* its hash */
    enum kind kind;
};

/* --- groups ------------------------------------------------------------------------------------------------------- */

#define HASH_BEGIN UINT64_C(14695981039346656037) /* FNV-1a */

static uint64_t hash(uint64_t so_far, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n; i++)
        so_far = (so_far ^ p[i]) * UINT64_C(1099511628211);
    return so_far;
}

static int group_of(uint64_t name, uint64_t page)
{
    unsigned char bytes[sizeof page]; /* the same on every machine */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(page >> (8 * i));
    return (int)((hash(name, bytes, sizeof bytes) >> 32) % CODE_GROUPS);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* A file that was removed since it was loaded has " (deleted)" behind its name. */
static size_t length_of(const char *name, size_t n)
{
    static const char deleted[] = " (deleted)";
    size_t tail = strlen(deleted);
    return n > tail && strncmp(name + n - tail, deleted, tail) == 0 ? n - tail : n;
}

static bool is_runtime(const char *name, size_t n)
{
    static const char *const names[] = { "libjvm.so", "libj9vm29.so", "libj9jit29.so", "libj9gc29.so" };
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == n && strncmp(names[i], name, n) == 0)
            return true;
    return false;
}

static bool is_kernels(const char *path)
{
    return strncmp(path, "[v", 2) == 0; /* [vdso], [vvar], [vsyscall] */
}

static void set_file(struct code_range *r, const char *path, size_t n)
{
    const char *name = path;
    for (size_t i = 0; i < n; i++)
        if (path[i] == '/')
            name = path + i + 1;
    n = length_of(name, n - (size_t)(name - path));
    r->kind = is_runtime(name, n) ? RUNTIME : LIBRARY;
    r->name = hash(HASH_BEGIN, name, n);
}

/* FROM-TO rwxp OFFSET DEVICE INODE PATH, where the path may be missing; false: it is no such line, or nothing that is executed. */
static bool parse_line(struct code_range *out, const char *line, size_t n)
{
    char head[HEAD_SIZE];
    const char *flags = memchr(line, ' ', n);
    if (!flags || flags + 3 >= line + n || flags[3] != 'x')
        return false;
    size_t kept = n < sizeof head ? n : sizeof head - 1;
    memcpy(head, line, kept);
    head[kept] = '\0';
    int path = 0;
    *out = (struct code_range){ 0 };
    if (sscanf(head, "%16" SCNx64 "-%16" SCNx64 " %*4s %16" SCNx64 " %*15s %*20u %n", &out->from, &out->to,
               &out->offset, &path) < 3 ||
        path == 0 || out->from >= out->to)
        return false;
    if (head[path] == '/')
        set_file(out, line + path, n - (size_t)path);
    else
        out->kind = is_kernels(head + path) ? RUNTIME : GENERATED;
    return true;
}

static int add(struct code_map *m, const struct code_range *r)
{
    if (m->n > 0 && r->from < m->v[m->n - 1].to)
        return 0; /* the kernel's are in order */
    struct code_range *v = array_more(m->v, m->n, &m->cap, sizeof *v);
    if (!v)
        return -ENOMEM;
    m->v = v;
    v[m->n++] = *r;
    return 0;
}

int code_map_parse(struct code_map *out, const char *text)
{
    struct code_map m = { 0 };
    int rc = 0;
    while (*text && rc == 0) {
        struct code_range r;
        size_t n = strcspn(text, "\n");
        if (parse_line(&r, text, n))
            rc = add(&m, &r);
        text += n + (text[n] == '\n');
    }
    if (rc < 0) {
        code_map_done(&m);
        return rc;
    }
    code_map_done(out);
    *out = m;
    return 0;
}

void code_map_done(struct code_map *m)
{
    free(m->v);
    *m = (struct code_map){ 0 };
}

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static int compare(const void *key, const void *range)
{
    uint64_t address = *(const uint64_t *)key;
    const struct code_range *r = range;
    return address < r->from ? -1 : address >= r->to;
}

int code_map_find(const struct code_map *m, uint64_t address)
{
    const struct code_range *r = m->n > 0 ? bsearch(&address, m->v, m->n, sizeof *m->v, compare) : NULL;
    if (!r)
        return CODE_NOWHERE;
    if (r->kind == LIBRARY)
        return CODE_PAGES + group_of(r->name, (r->offset + (address - r->from)) >> PAGE_BITS);
    return r->kind == GENERATED ? CODE_GENERATED : CODE_RUNTIME;
}
