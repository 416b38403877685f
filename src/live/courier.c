#include "live/courier.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beneath.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/ours.h"
#include "base/own.h"
#include "live/node_peer.h"

enum {
    CHUNK = 24 << 10,
    WINDOW = 4,     /* chunks that are asked for or sent before the first of them is answered */
    TRIES_MAX = 20, /* of a checkpoint that is written anew while it is fetched */
    BREAKS_MAX = 5, /* of its link, before a checkpoint is given up: a newer one will come */
    ENTRIES_MAX = 4096,
    VERB_BITS = 5,
};

struct entry {
    char *name; /* below what is fetched; "": itself */
    int64_t size;
};

struct job {
    struct job *next;
    uint64_t id;
    size_t node;
    courier_done *done; /* NULL: cancelled */
    void *ctx;
    int open; /* requests that wait for an answer */
    /* to be sent */
    const struct parcel *parcel; /* NULL: it is fetched */
    size_t item;
    bool known; /* that this item is to be sent */
    int64_t at; /* of it: sent, or asked for */
    /* to be fetched */
    char *tag, *name, *to, *part;
    struct buf list; /* as it was told first */
    struct entry *entries;
    size_t n, cap;
    int64_t got; /* of entry `item` */
    int fd;      /* … where it is written; -1 */
    bool torn;   /* it became another while it was read */
    bool again;  /* all of it is here, and listed once more */
    int tries, breaks;
};

struct courier {
    struct nodes *nodes;
    struct job *jobs; /* oldest first */
    uint64_t last;
};

/* --- jobs ------------------------------------------------------------------------------------------------------------- */

/* What was fetched of it in part goes. */
static void drop_part(struct job *j)
{
    own_close(&j->fd);
    j->fd = -1;
    if (!j->part)
        return;
    int dir = open(j->part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        beneath_empty(dir);
    (void)(unlink(j->part) == 0 || rmdir(j->part) == 0); /* it may not be there */
}

static void forget_list(struct job *j)
{
    for (size_t i = 0; i < j->n; i++)
        free(j->entries[i].name);
    j->n = 0;
    buf_done(&j->list);
    j->list = BUF_INIT;
}

static void free_job(struct job *j)
{
    drop_part(j);
    forget_list(j);
    free(j->entries);
    free(j->tag);
    free(j->name);
    free(j->to);
    free(j->part);
    free(j);
}

/* From its beginning. */
static void begin_anew(struct job *j)
{
    drop_part(j);
    forget_list(j);
    j->item = 0;
    j->at = j->got = 0;
    j->known = j->again = j->torn = false;
    j->open = 0;
}

static void end(struct courier *c, struct job *j, const char *why)
{
    struct job **at = &c->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    if (j->done)
        j->done(j->ctx, j->id, why);
    free_job(j);
}

static void fail(struct courier *c, struct job *j, int rc, const char *what)
{
    struct err e = { 0 };
    (void)err_sys(&e, rc, "%s", what);
    end(c, j, e.text);
}

/* The one that is done now. */
static struct job *first_of(const struct courier *c, size_t node)
{
    struct job *j = c->jobs;
    while (j && j->node != node)
        j = j->next;
    return j;
}

/* --- asking ----------------------------------------------------------------------------------------------------------- */

static int say(const struct courier *c, struct job *j, const struct buf *text, enum node_verb verb)
{
    int rc = node_peer_say(nodes_peer(c->nodes, j->node), text, verb, NODES_FILES_STAMP | j->id << VERB_BITS | verb);
    j->open += rc == 0;
    return rc;
}

static uint64_t next_id(const struct courier *c, const struct job *j)
{
    return node_peer_next_id(nodes_peer(c->nodes, j->node));
}

static int ask_list(const struct courier *c, struct job *j)
{
    AUTO_BUF struct buf b = BUF_INIT;
    node_words_list(&b, next_id(c, j), j->tag, j->name);
    return say(c, j, &b, NODE_LIST);
}

static int ask_have(const struct courier *c, struct job *j, const struct parcel_item *it)
{
    AUTO_BUF struct buf b = BUF_INIT;
    node_words_have(&b, next_id(c, j), it->hash, it->size);
    return say(c, j, &b, NODE_HAVE);
}

/* 1: asked; 0: not now; negative: the file here cannot be read. */
static int put_chunk(const struct courier *c, struct job *j, const struct parcel_item *it)
{
    char chunk[CHUNK];
    AUTO_BUF struct buf b = BUF_INIT;
    int64_t left = it->size - j->at, want = left < CHUNK ? left : CHUNK;
    int64_t n = parcel_read(j->parcel, it, j->at, chunk, (size_t)want);
    if (n < want)
        return n < 0 ? (int)n : -ESTALE;
    node_words_put(&b, next_id(c, j), it->hash, it->size, j->at, chunk, (size_t)n);
    if (say(c, j, &b, NODE_PUT) < 0)
        return 0;
    j->at += n;
    return 1;
}

static void send_on(struct courier *c, struct job *j)
{
    struct parcel_item manifest;
    const struct parcel_item *it = parcel_at(j->parcel, j->item, &manifest);
    if (!it) {
        end(c, j, NULL);
        return;
    }
    if (!j->known) {
        if (j->open == 0)
            (void)ask_have(c, j, it); /* else at the next tick */
        return;
    }
    bool empty = it->size == 0 && j->open == 0;
    for (int rc = 1; rc == 1 && j->open < WINDOW && (j->at < it->size || empty); empty = false) {
        rc = put_chunk(c, j, it);
        if (rc < 0) {
            fail(c, j, rc, it->path ? it->path : "files for other hosts");
            return;
        }
    }
}

/* The next entry's file, with its folders. -errno. */
static int open_entry(struct job *j, const struct entry *en)
{
    if (!*en->name) {
        j->fd = ours_open(j->part, O_WRONLY | O_CREAT | O_TRUNC, NULL);
        return j->fd < 0 ? j->fd : 0;
    }
    AUTO_CLOSE int dir = open(j->part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = dir < 0 ? -errno : beneath_mkdirs(dir, en->name);
    if (rc == 0)
        rc = beneath_open(dir, en->name, O_WRONLY | O_CREAT | O_EXCL);
    j->fd = rc < 0 ? -1 : rc;
    return rc < 0 ? rc : 0;
}

static void ask_for_bytes(const struct courier *c, struct job *j, const struct entry *en)
{
    AUTO_BUF struct buf name = BUF_INIT;
    buf_printf(&name, "%s%s%s", j->name, *en->name ? "/" : "", en->name);
    while (!name.failed && j->open < WINDOW && j->at < en->size) {
        AUTO_BUF struct buf b = BUF_INIT;
        int64_t left = en->size - j->at;
        node_words_read_file(&b, next_id(c, j), j->tag, buf_text(&name), j->at, left < CHUNK ? left : CHUNK);
        if (say(c, j, &b, NODE_READ) < 0)
            return;
        j->at += left < CHUNK ? left : CHUNK;
    }
}

static void fetch_on(struct courier *c, struct job *j)
{
    bool listed = j->list.len > 0;
    while (listed && j->item < j->n && j->open == 0 && j->got == j->entries[j->item].size && j->fd >= 0) {
        own_close(&j->fd);
        j->fd = -1;
        j->item++;
        j->at = j->got = 0;
    }
    if (!listed || j->item == j->n) { /* what was read is as it was at one moment when it is listed alike behind it */
        j->again = listed;
        if (j->open == 0)
            (void)ask_list(c, j);
        return;
    }
    const struct entry *en = &j->entries[j->item];
    int rc = j->fd < 0 ? open_entry(j, en) : 0;
    if (rc < 0) {
        fail(c, j, rc, j->part);
        return;
    }
    if (en->size == 0)
        fetch_on(c, j);
    else
        ask_for_bytes(c, j, en);
}

static void go_on(struct courier *c, struct job *j)
{
    if (!j || node_peer_state(nodes_peer(c->nodes, j->node)) != NODE_READY)
        return;
    if (j->parcel)
        send_on(c, j);
    else
        fetch_on(c, j);
}

/* --- what is fetched ---------------------------------------------------------------------------------------------------- */

const char *courier_entry(const char *text, int64_t *out_size)
{
    int64_t size = -1;
    int at = 0;
    if (sscanf(text, "%" SCNd64 " %*d %n", &size, &at) != 1 || at == 0 || size < 0 || size > COURIER_MAX)
        return NULL;
    const char *name = text + at;
    if (*name && !beneath_is_name(name))
        return NULL;
    *out_size = size;
    return name;
}

static int add_entry(struct job *j, const char *text, int64_t *total)
{
    struct entry en = { 0 };
    const char *name = courier_entry(text, &en.size);
    if (!name || j->n == ENTRIES_MAX || (*total += en.size) > COURIER_MAX)
        return -EPROTO;
    struct entry *grown = array_more(j->entries, j->n, &j->cap, sizeof *grown);
    if (!grown || !(en.name = strdup(name)))
        return -ENOMEM;
    j->entries = grown;
    j->entries[j->n++] = en;
    return 0;
}

/* What is fetched leaves some of the disk to whoever writes there, our own store before all. */
static bool has_room(const char *path, int64_t bytes)
{
    enum { SPARE = 256 << 20 };
    struct statvfs fs;
    const char *last = strrchr(path, '/');
    AUTO_FREE char *dir = strndup(path, (size_t)(last - path));
    if (!dir || statvfs(dir, &fs) < 0)
        return true; /* writing tells */
    return (int64_t)fs.f_bavail > 0 && (uint64_t)fs.f_bavail * fs.f_frsize >= (uint64_t)bytes + SPARE;
}

/* Texts that each end in a NUL. One without a name is all there is. */
static int read_list(struct job *j)
{
    int64_t total = 0;
    int rc = j->list.len > 0 && j->list.data[j->list.len - 1] == '\0' ? 0 : -EPROTO;
    for (size_t at = 0; rc == 0 && at < j->list.len; at += strlen(j->list.data + at) + 1)
        rc = add_entry(j, j->list.data + at, &total);
    for (size_t i = 0; rc == 0 && i < j->n; i++)
        rc = *j->entries[i].name || j->n == 1 ? 0 : -EPROTO;
    if (rc == 0 && !has_room(j->part, total))
        rc = -ENOSPC;
    if (rc == 0 && *j->entries[0].name)
        rc = mkdir(j->part, 0700) < 0 ? -errno : 0;
    return rc;
}

/* In the place of what is there. A folder cannot be replaced at once: for a moment there is none, and the older checkpoint is gone on from. */
static int move_in(const struct job *j)
{
    if (rename(j->part, j->to) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST && errno != EISDIR && errno != ENOTDIR)
        return -errno;
    int dir = open(j->to, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        beneath_empty(dir);
    (void)(unlink(j->to) == 0 || rmdir(j->to) == 0); /* else the rename says it */
    return rename(j->part, j->to) < 0 ? -errno : 0;
}

static void on_list(struct courier *c, struct job *j, const struct node_words *w)
{
    struct err e = { 0 };
    AUTO_BUF struct buf texts = BUF_INIT;
    int rc = node_file_read(&texts, w, "files", &e);
    if (rc < 0) {
        end(c, j, e.text);
        return;
    }
    if (texts.len == 0) {
        end(c, j, "there is no file in it");
        return;
    }
    bool same = j->again && texts.len == j->list.len && memcmp(texts.data, j->list.data, texts.len) == 0;
    if (same) {
        rc = move_in(j);
        rc < 0 ? fail(c, j, rc, j->to) : end(c, j, NULL);
        return;
    }
    if (j->again && ++j->tries == TRIES_MAX) {
        end(c, j, "it is written anew all the time");
        return;
    }
    begin_anew(j);
    buf_put(&j->list, texts.data, texts.len);
    rc = j->list.failed ? -ENOMEM : read_list(j);
    if (rc < 0)
        fail(c, j, rc, rc == -EPROTO ? "what its host says of it" : j->to);
    else
        go_on(c, j);
}

static void on_bytes(struct courier *c, struct job *j, const struct node_words *w)
{
    struct err e = { 0 };
    AUTO_BUF struct buf bytes = BUF_INIT;
    int rc = node_file_read(&bytes, w, "data", &e);
    if (rc < 0 || j->item >= j->n || j->fd < 0) {
        end(c, j, rc < 0 ? e.text : "its host answers what it was not asked");
        return;
    }
    int64_t left = j->entries[j->item].size - j->got, want = left < CHUNK ? left : CHUNK;
    j->torn |= (int64_t)bytes.len != want;
    if (j->torn) { /* the next list says how it is now */
        if (j->open > 0)
            return;
        if (++j->tries == TRIES_MAX)
            end(c, j, "it is written anew all the time");
        else
            begin_anew(j), go_on(c, j);
        return;
    }
    rc = io_write_all(j->fd, bytes.data, bytes.len);
    j->got += want;
    if (rc < 0)
        fail(c, j, rc, j->part);
    else
        go_on(c, j);
}

/* --- what is sent --------------------------------------------------------------------------------------------------------- */

static void on_there(struct courier *c, struct job *j, enum node_verb verb, const struct node_words *w)
{
    struct err e = { 0 };
    bool there = false;
    if (node_there_read(&there, w, &e) < 0) {
        end(c, j, e.text);
        return;
    }
    struct parcel_item manifest;
    const struct parcel_item *it = parcel_at(j->parcel, j->item, &manifest);
    if (verb == NODE_PUT && !there && j->open == 0 && it && j->at >= it->size) {
        end(c, j, "its host does not keep what it is sent");
        return;
    }
    if (there) {
        j->item++;
        j->at = 0;
    }
    j->known = !there;
    go_on(c, j);
}

/* --- what the helpers say --------------------------------------------------------------------------------------------------- */

static void on_answered(void *ctx, size_t node, uint64_t stamp, const struct node_words *w)
{
    struct courier *c = ctx;
    uint64_t id = (stamp & ~NODES_FILES_STAMP) >> VERB_BITS;
    enum node_verb verb = (enum node_verb)(stamp & ((1U << VERB_BITS) - 1));
    struct job *j = c->jobs;
    while (j && (j->id != id || j->node != node))
        j = j->next;
    if (!j)
        return;
    j->open--;
    if (!w->ok)
        end(c, j, w->error);
    else if (verb == NODE_LIST)
        on_list(c, j, w);
    else if (verb == NODE_READ)
        on_bytes(c, j, w);
    else
        on_there(c, j, verb, w);
    go_on(c, first_of(c, node));
}

static void on_there_again(void *ctx, size_t node)
{
    struct courier *c = ctx;
    go_on(c, first_of(c, node));
}

static void on_away(void *ctx, size_t node, bool lost)
{
    struct courier *c = ctx;
    struct job *j;
    if (!lost && (j = first_of(c, node))) {
        if (!j->parcel && ++j->breaks == BREAKS_MAX)
            end(c, j, "the link broke again and again");
        else
            begin_anew(j);
    }
    while (lost && (j = first_of(c, node)))
        end(c, j, "its host is left out");
}

/* --- beginning and end ------------------------------------------------------------------------------------------------------ */

int courier_open(struct courier **out, struct nodes *nodes, struct err *e)
{
    static const struct nodes_launching calls = { on_there_again, on_away, on_answered, NULL };
    struct courier *c = calloc(1, sizeof *c);
    if (!c)
        return err_sys(e, -ENOMEM, "files for other hosts");
    c->nodes = nodes;
    nodes_launching(nodes, NODES_FILES, &calls, c);
    *out = c;
    return 0;
}

void courier_close(struct courier *c)
{
    if (!c)
        return;
    nodes_launching(c->nodes, NODES_FILES, NULL, NULL);
    for (struct job *j; (j = c->jobs); free_job(j))
        c->jobs = j->next;
    free(c);
}

static struct job *add_job(struct courier *c, size_t node, courier_done *done, void *ctx)
{
    struct job *j = calloc(1, sizeof *j), **at = &c->jobs;
    if (!j)
        return NULL;
    *j = (struct job){ .id = ++c->last, .node = node, .done = done, .ctx = ctx, .list = BUF_INIT, .fd = -1 };
    while (*at)
        at = &(*at)->next;
    return *at = j;
}

uint64_t courier_send(struct courier *c, size_t node, const struct parcel *p, courier_done *done, void *ctx)
{
    struct job *j = add_job(c, node, done, ctx);
    if (j)
        j->parcel = p;
    return j ? j->id : 0; /* it begins at the next tick: nothing is told from within */
}

uint64_t courier_fetch(struct courier *c, size_t node, const char *tag, const char *name, const char *to,
                       courier_done *done, void *ctx)
{
    struct job *j = add_job(c, node, done, ctx);
    if (!j)
        return 0;
    j->tag = strdup(tag);
    j->name = strdup(name);
    j->to = strdup(to);
    const char *last = strrchr(to, '/');
    if (!last || asprintf(&j->part, "%.*s/.fetched-%" PRIu64, (int)(last - to), to, j->id) < 0)
        j->part = NULL;
    if (j->tag && j->name && j->to && j->part) {
        drop_part(j); /* of a driver that was killed */
        return j->id;
    }
    j->done = NULL;
    end(c, j, NULL);
    return 0;
}

/* Of one that was begun answers are still to come, which are nobody's then. */
void courier_cancel(struct courier *c, uint64_t id)
{
    for (struct job *j = c->jobs; j; j = j->next) {
        if (j->id != id)
            continue;
        j->done = NULL;
        end(c, j, NULL);
        return;
    }
}

void courier_tick(struct courier *c)
{
    /* What is told meanwhile may change the list, but not its order. */
    for (uint64_t seen = 0;;) {
        struct job *j = c->jobs;
        while (j && j->id <= seen)
            j = j->next;
        if (!j)
            return;
        seen = j->id;
        if (first_of(c, j->node) == j && j->open == 0)
            go_on(c, j);
    }
}
