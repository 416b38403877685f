#include "store/conn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "base/own.h"
#include "store/fs.h"

/* --- SQLite's codes in our words --- */
static const char full[] = "the disk is full: free some space and run again";
static const char damaged[] = "it is damaged: restore a copy, or save what can be read with `sqlite3 FILE .recover`";
static const char foreign[] = "it is not a PipeTune store: name another file by --store or PIPETUNE_STORE";

static const struct cause {
    int sqlite; /* an extended code goes before its primary one */
    int code;
    const char *text;
} causes[] = {
    { SQLITE_IOERR_NOMEM, -ENOMEM, "out of memory" },
    { SQLITE_IOERR_SHORT_READ, -EUCLEAN, damaged },
    { SQLITE_IOERR_CORRUPTFS, -EUCLEAN, damaged },
    /* The shared-memory file could not grow; SQLite keeps no errno of it. */
    { SQLITE_IOERR_SHMSIZE, -ENOSPC, full },
    { SQLITE_READONLY_DIRECTORY, -EACCES,
      "its folder is read-only: make it writable, or name another file by --store" },
    { SQLITE_READONLY_DBMOVED, -ENOENT, "it was moved or deleted while in use: put it back and run again" },
    { SQLITE_CONSTRAINT_FOREIGNKEY, -ENOENT, "the study or trial it belongs to is not there" },
    { SQLITE_CONSTRAINT_UNIQUE, -EEXIST, "it is there already" },
    { SQLITE_CONSTRAINT_PRIMARYKEY, -EEXIST, "it is there already" },
    { SQLITE_NOMEM, -ENOMEM, "out of memory" },
    { SQLITE_FULL, -ENOSPC, full },
    { SQLITE_READONLY, -EROFS, "it is read-only: make it writable, or name another file by --store" },
    { SQLITE_BUSY, -EBUSY, "it is locked by another process: wait for that one's end and run again" },
    { SQLITE_LOCKED, -EBUSY, "it is locked by another process: wait for that one's end and run again" },
    { SQLITE_PROTOCOL, -EBUSY, "it is locked by another process: wait for that one's end and run again" },
    { SQLITE_CORRUPT, -EUCLEAN, damaged },
    { SQLITE_NOTADB, -EPROTO, foreign },
    { SQLITE_PERM, -EACCES, "permission denied" },
    { SQLITE_AUTH, -EACCES, "permission denied" },
    { SQLITE_TOOBIG, -EFBIG, "a text is too long" },
    { SQLITE_NOLFS, -EFBIG, "it is too large for this file system" },
};

static const struct cause *find_cause(int sqlite)
{
    for (size_t i = 0; i < ARRAY_LEN(causes); i++)
        if (causes[i].sqlite == sqlite || causes[i].sqlite == (sqlite & 0xff))
            return &causes[i];
    return NULL;
}

/* Errors of the system: SQLite keeps the errno of these two alone. */
static int explain_system(const struct store *s, const char *doing, int sqlite, struct err *e)
{
    bool opening = (sqlite & 0xff) == SQLITE_CANTOPEN;
    int sys = sqlite3_system_errno(s->db);
    if (sys == ENOSPC || sys == EDQUOT)
        return err_set(e, -ENOSPC, "%s store '%s': %s", doing, s->path, full);
    if (sys == 0)
        return err_set(e, -EIO, "%s store '%s': %s", doing, s->path, sqlite3_errstr(sqlite));
    return err_set(e, opening ? -sys : -EIO, "%s store '%s': %s", doing, s->path, strerror(sys));
}

/* `doing` reads "cannot open", "cannot write". Returns the negative errno. */
static int explain(const struct store *s, const char *doing, int sqlite, struct err *e)
{
    const struct cause *c = find_cause(sqlite);
    if (c)
        return err_set(e, c->code, "%s store '%s': %s", doing, s->path, c->text);
    int primary = sqlite & 0xff;
    if (primary == SQLITE_CANTOPEN || primary == SQLITE_IOERR)
        return explain_system(s, doing, sqlite, e);
    /* A row that the tables do not take, a file that lacks a table, or a misuse of ours: SQLite's own words say most. */
    return err_set(e, primary == SQLITE_CONSTRAINT ? -EINVAL : -EIO, "%s store '%s': %s", doing, s->path,
                   sqlite3_errmsg(s->db));
}

/* --- opening --- */
struct identity {
    int application, version, objects;
};

enum kind { KIND_OURS, KIND_EMPTY, KIND_REFUSED };

/* One statement, hence one look at the file even while another process creates it. */
static int identify(struct store *s, struct identity *out, struct err *e)
{
    static const char sql[] = "SELECT (SELECT application_id FROM pragma_application_id),"
                              " (SELECT user_version FROM pragma_user_version), count(*) FROM sqlite_schema";
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(st);
    if (rc == SQLITE_ROW)
        *out = (struct identity){ sqlite3_column_int(st, 0), sqlite3_column_int(st, 1), sqlite3_column_int(st, 2) };
    (void)sqlite3_finalize(st); /* repeats rc */
    return rc == SQLITE_ROW ? 0 : explain(s, "cannot open", rc, e);
}

/* KIND_EMPTY is also what a creation that was killed leaves behind. */
static enum kind judge(const struct store *s, struct identity id, struct err *e)
{
    if (id.application == 0 && id.version == 0 && id.objects == 0)
        return KIND_EMPTY;
    if (id.application != STORE_APPLICATION_ID || id.version <= 0)
        (void)err_set(e, -EPROTO, "cannot open store '%s': %s", s->path, foreign);
    else if (id.version > STORE_SCHEMA)
        (void)err_set(e, -EPROTO, "store '%s' has schema %d, this pipetune knows up to %d: use the newer pipetune",
                      s->path, id.version, STORE_SCHEMA);
    else
        return KIND_OURS;
    return KIND_REFUSED;
}

static int run_sql(struct store *s, const char *sql, struct err *e)
{
    int rc = sqlite3_exec(s->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : explain(s, "cannot open", rc, e);
}

/* SQLite reads "file:…" as a URI and ":memory:" as no file at all; a path that begins with / or ./ is only ever a path. */
static void put_path(struct buf *out, const char *path)
{
    buf_printf(out, "%s%s", path[0] == '/' ? "" : "./", path);
}

static void put_immutable_uri(struct buf *out, const char *path)
{
    buf_puts(out, path[0] == '/' ? "file:" : "file:./");
    for (const char *p = path; *p; p++) {
        if (strchr("%?#", *p))
            buf_printf(out, "%%%02X", (unsigned char)*p);
        else
            buf_putc(out, *p);
    }
    buf_puts(out, "?immutable=1");
}

static void disconnect(struct store *s)
{
    for (int i = 0; i < STMT_COUNT; i++) {
        (void)sqlite3_finalize(s->kept[i]); /* NULL is fine; its last error was told when it happened */
        s->kept[i] = NULL;
    }
    int rc = sqlite3_close(s->db);
    assert(rc == SQLITE_OK); /* busy only when we forgot a statement */
    (void)rc;
    s->db = NULL;
}

static int connect_to(struct store *s, const char *name, int flags, struct err *e)
{
    int rc = sqlite3_open_v2(name, &s->db, flags, NULL);
    if (!s->db)
        return err_set(e, -ENOMEM, "cannot open store '%s': out of memory", s->path);
    (void)sqlite3_extended_result_codes(s->db, 1); /* cannot fail on a handle */
    if (rc != SQLITE_OK)
        return explain(s, "cannot open", sqlite3_extended_errcode(s->db), e);
    (void)sqlite3_busy_timeout(s->db, STORE_BUSY_MS);
    /* A file that turns out not to be ours is not tidied up either; open_write() takes this back. */
    (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    return 0;
}

static int connect_file(struct store *s, int flags, struct err *e)
{
    AUTO_BUF struct buf name = BUF_INIT;
    put_path(&name, s->path);
    if (name.failed)
        return err_sys(e, -ENOMEM, "cannot open store '%s'", s->path);
    return connect_to(s, name.data, flags, e);
}

/* Pragmas of the connection, not of the file. */
static int set_up(struct store *s, struct err *e)
{
    return run_sql(s,
                   "PRAGMA foreign_keys=ON; PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF;"
                   "PRAGMA journal_size_limit=16777216", /* the WAL is cut back after a burst */
                   e);
}

/* Two creators can meet here, and SQLite does not wait in all of these places: we do. */
static int use_wal(struct store *s, struct err *e)
{
    enum { PAUSE_MS = 10 };
    int rc = SQLITE_BUSY;
    for (int waited = 0; (rc & 0xff) == SQLITE_BUSY && waited < STORE_BUSY_MS; waited += PAUSE_MS) {
        if (waited > 0)
            (void)sqlite3_sleep(PAUSE_MS);
        rc = sqlite3_exec(s->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
    }
    return rc == SQLITE_OK ? 0 : explain(s, "cannot open", rc, e);
}

static int migrate_locked(struct store *s, struct err *e)
{
    struct identity id; /* looked at again: another process may have been faster */
    int rc = identify(s, &id, e);
    if (rc < 0)
        return rc;
    if (judge(s, id, e) == KIND_REFUSED)
        return -EPROTO;
    if (id.version == STORE_SCHEMA)
        return 0;
    rc = schema_apply(s->db, schema_steps, id.version, STORE_SCHEMA);
    if (rc != SQLITE_OK)
        return explain(s, id.version == 0 ? "cannot create" : "cannot migrate", rc, e);
    failpoint("store-created");
    return 0;
}

/* All steps in one transaction: a kill leaves the old schema, or an empty file. */
static int migrate(struct store *s, struct err *e)
{
    int rc = run_sql(s, "BEGIN IMMEDIATE", e);
    if (rc < 0)
        return rc;
    rc = migrate_locked(s, e);
    if (rc == 0)
        rc = run_sql(s, "COMMIT", e);
    if (rc < 0 && !sqlite3_get_autocommit(s->db))
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* closing does the same */
    return rc;
}

/* SQLite silently makes do with reading when it may not write. */
static int refuse_read_only(struct store *s, struct err *e)
{
    if (!sqlite3_db_readonly(s->db, "main"))
        return 0;
    int sys = faccessat(AT_FDCWD, s->path, W_OK, AT_EACCESS) < 0 ? errno : EROFS;
    return err_sys(e, -sys, "cannot write store '%s'", s->path);
}

/* A new store is its user's alone: who may read it could hold its locks. Its companion files get its mode, and a chmod shares it. */
static void create_private(const char *path)
{
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    (void)fd; /* it is there, or SQLite tells why it cannot be */
}

static int open_write(struct store *s, struct err *e)
{
    create_private(s->path);
    int rc = connect_file(s, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e);
    if (rc == 0)
        rc = refuse_read_only(s, e);
    struct identity id = { 0 };
    if (rc == 0)
        rc = identify(s, &id, e);
    if (rc == 0 && judge(s, id, e) == KIND_REFUSED)
        rc = -EPROTO;
    if (rc == 0)
        rc = use_wal(s, e); /* before the tables: readers never see a store that has them but no WAL */
    if (rc == 0)
        rc = set_up(s, e);
    if (rc == 0 && id.version < STORE_SCHEMA)
        rc = migrate(s, e);
    if (rc == 0)
        (void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    return rc;
}

/* The -wal file exists, or nobody can tell. */
static bool may_have_wal(const char *path)
{
    AUTO_BUF struct buf name = BUF_INIT;
    buf_printf(&name, "%s-wal", path);
    struct stat st;
    return name.failed || lstat(name.data, &st) == 0 || errno != ENOENT;
}

/* In a folder where SQLite may not make its shared-memory file, a store in WAL mode cannot be read as usual. Without a -wal file
 * all of it is in the main file and nobody has it open. Someone with more rights could begin to write while we read: what he
 * commits goes to a new -wal file first, so a look as short as ours is safe enough, and better than none. */
static int reconnect_immutable(struct store *s, struct err *e)
{
    disconnect(s);
    AUTO_BUF struct buf uri = BUF_INIT;
    put_immutable_uri(&uri, s->path);
    if (uri.failed)
        return err_sys(e, -ENOMEM, "cannot open store '%s'", s->path);
    return connect_to(s, uri.data, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, e);
}

static int look_read(struct store *s, struct identity *id, struct err *e)
{
    int rc = connect_file(s, SQLITE_OPEN_READONLY, e);
    if (rc < 0)
        return rc;
    rc = identify(s, id, e);
    int sqlite = sqlite3_errcode(s->db) & 0xff;
    if (rc == 0 || (sqlite != SQLITE_CANTOPEN && sqlite != SQLITE_READONLY))
        return rc;
    if (may_have_wal(s->path))
        return err_set(
            e, rc,
            "cannot read store '%s': its folder is read-only and its '-wal' file is not merged yet: copy both"
            " to a folder of yours, or make the folder writable",
            s->path);
    rc = reconnect_immutable(s, e);
    return rc < 0 ? rc : identify(s, id, e);
}

static int open_read(struct store *s, struct err *e)
{
    struct identity id = { 0 };
    int rc = look_read(s, &id, e);
    if (rc < 0)
        return rc;
    enum kind kind = judge(s, id, e);
    if (kind == KIND_REFUSED)
        return -EPROTO;
    if (kind == KIND_EMPTY)
        return err_set(e, -ENOENT, "store '%s' is empty: `pipetune run` fills it", s->path);
    if (id.version < STORE_SCHEMA)
        return err_set(e, -EPROTO, "store '%s' has the older schema %d: the next `pipetune run` brings it to %d",
                       s->path, id.version, STORE_SCHEMA);
    return set_up(s, e);
}

/* Opening must not hang on a pipe, nor lock across a network: seen to before SQLite touches the file. */
static int check_place(const char *path, enum store_mode mode, struct err *e)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT)
        return err_sys(e, -errno, "cannot open store '%s'", path);
    if (!there && mode == STORE_READ)
        return err_set(e, -ENOENT, "no store '%s': `pipetune run` creates it; --store or PIPETUNE_STORE names another",
                       path);
    if (there && !S_ISREG(st.st_mode))
        return err_set(e, S_ISDIR(st.st_mode) ? -EISDIR : -EPROTO, "cannot open store '%s': not a regular file", path);
    AUTO_FREE char *dir = io_dirname(path);
    if (!dir)
        return err_sys(e, -ENOMEM, "cannot open store '%s'", path);
    /* SQLite would only say that the file is not there. */
    if (!there && faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS) < 0)
        return err_set(e, -errno, "cannot create store '%s': folder '%s': %s", path, dir, strerror(errno));
    const char *kind = NULL;
    int rc = fs_network(there ? path : dir, &kind, e);
    if (rc < 0)
        return err_prefix(e, "cannot open store '%s'", path);
    if (kind)
        return err_set(
            e, -EREMOTEIO,
            "store '%s' is on a network file system (%s), where a crash can damage it: keep it on a local disk,"
            " named by --store or PIPETUNE_STORE",
            path, kind);
    return 0;
}

static void init_lock(struct store *s)
{
    pthread_mutexattr_t recursive;            /* a callback of a walk may ask again */
    (void)pthread_mutexattr_init(&recursive); /* these fail only for kinds that there are none of */
    (void)pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    (void)pthread_mutex_init(&s->lock, &recursive);
    (void)pthread_mutexattr_destroy(&recursive);
}

static void auto_close(struct store **s)
{
    store_close(*s);
}

int store_open(struct store **out, const char *path, enum store_mode mode, struct err *e)
{
    int rc = check_place(path, mode, e);
    if (rc < 0)
        return rc;
    __attribute__((cleanup(auto_close))) struct store *s = calloc(1, sizeof *s);
    if (!s)
        return err_sys(e, -ENOMEM, "cannot open store '%s'", path);
    init_lock(s);
    s->path = strdup(path);
    if (!s->path)
        return err_sys(e, -ENOMEM, "cannot open store '%s'", path);
    rc = mode == STORE_WRITE ? open_write(s, e) : open_read(s, e);
    if (rc < 0)
        return rc;
    *out = MOVE_PTR(s);
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    disconnect(s);
    (void)pthread_mutex_destroy(&s->lock);
    free(s->path);
    free(s);
}

/* --- statements --- */
void conn_query_done(struct conn_query *q)
{
    if (!q->s)
        return;
    if (q->st) {
        (void)sqlite3_reset(q->st); /* repeats the step's error */
        (void)sqlite3_clear_bindings(q->st);
    }
    if (q->s->kept[q->id])
        (void)sqlite3_finalize(q->st);
    else
        q->s->kept[q->id] = q->st;
    (void)pthread_mutex_unlock(&q->s->lock);
    *q = (struct conn_query){ .s = NULL };
}

int conn_query_fail(const struct conn_query *q, int sqlite, struct err *e)
{
    bool reads = q->st && sqlite3_stmt_readonly(q->st) && q->id != STMT_BEGIN && q->id != STMT_COMMIT;
    return explain(q->s, reads ? "cannot read" : "cannot write", sqlite, e);
}

int conn_query_init(struct conn_query *q, struct store *s, enum stmt_id id, struct err *e)
{
    (void)pthread_mutex_lock(&s->lock); /* until it is done */
    *q = (struct conn_query){ .s = s, .id = id, .st = MOVE_PTR(s->kept[id]) };
    if (q->st)
        return 0;
    AUTO_BUF struct buf sql = BUF_INIT;
    schema_sql(&sql, id);
    int rc =
        sql.failed ? SQLITE_NOMEM : sqlite3_prepare_v3(s->db, sql.data, -1, SQLITE_PREPARE_PERSISTENT, &q->st, NULL);
    return rc == SQLITE_OK ? 0 : conn_query_fail(q, rc, e);
}

int conn_query_bind_i64(struct conn_query *q, int param, int64_t value, struct err *e)
{
    int rc = sqlite3_bind_int64(q->st, param, value);
    return rc == SQLITE_OK ? 0 : conn_query_fail(q, rc, e);
}

int conn_query_bind_text(struct conn_query *q, int param, const char *text, struct err *e)
{
    int rc = sqlite3_bind_text(q->st, param, text, -1, SQLITE_STATIC);
    return rc == SQLITE_OK ? 0 : conn_query_fail(q, rc, e);
}

int conn_query_bind_row(struct conn_query *q, const void *row, struct err *e)
{
    int rc = schema_bind(q->st, q->id, row);
    return rc == SQLITE_OK ? 0 : conn_query_fail(q, rc, e);
}

int conn_query_init_for(struct conn_query *q, struct store *s, enum stmt_id id, int64_t owner, struct err *e)
{
    int rc = conn_query_init(q, s, id, e);
    return rc < 0 ? rc : conn_query_bind_i64(q, 1, owner, e);
}

int conn_query_step(struct conn_query *q, struct err *e)
{
    int rc = sqlite3_step(q->st);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : conn_query_fail(q, rc, e);
}

int conn_query_next(struct conn_query *q, void *row, struct err *e)
{
    int rc = conn_query_step(q, e);
    if (rc == 1 && schema_read(q->st, q->id, row) < 0)
        rc = conn_query_fail(q, SQLITE_NOMEM, e);
    return rc;
}

int conn_insert(struct store *s, enum stmt_id id, const void *row, int64_t *out_id, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init(&q, s, id, e);
    if (rc == 0)
        rc = conn_query_bind_row(&q, row, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 0 && out_id)
        *out_id = sqlite3_last_insert_rowid(s->db);
    return rc;
}

int conn_next_number(struct store *s, enum stmt_id id, int64_t owner, int64_t *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, id, owner, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1)
        *out = sqlite3_column_int64(q.st, 0);
    return rc < 0 ? rc : 0;
}

/* --- transactions --- */
static int canceled(const struct store *s, struct err *e)
{
    return err_set(e, -ECANCELED, "cannot write store '%s': an earlier failure undid this transaction", s->path);
}

static int run_plain(struct store *s, enum stmt_id id, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init(&q, s, id, e);
    return rc < 0 ? rc : conn_query_step(&q, e);
}

void store_set_gate(struct store *s, int (*gate)(void *ctx, struct err *e), void *ctx)
{
    s->gate = gate;
    s->gate_ctx = ctx;
}

void store_set_rider(struct store *s, const struct store_rider *r, void *ctx)
{
    s->rider = r;
    s->rider_ctx = ctx;
}

bool store_mount(struct store *s)
{
    return s->rider && s->rider->mount(s->rider_ctx);
}

int store_ride(struct store *s, struct err *e)
{
    return s->rider->ride(s->rider_ctx, s, e);
}

void store_ride_off(struct store *s, int rc, const struct err *why)
{
    s->rider->off(s->rider_ctx, rc, why);
}

bool store_in_transaction(const struct store *s)
{
    return s->in_txn;
}

bool store_is_undone(const struct store *s)
{
    return s->undone;
}

static int pass_gate(struct store *s, struct err *e)
{
    return s->gate ? s->gate(s->gate_ctx, e) : 0;
}

int store_begin(struct store *s, struct err *e)
{
    int rc = pass_gate(s, e);
    return rc < 0 ? rc : store_begin_now(s, e);
}

int store_begin_now(struct store *s, struct err *e)
{
    assert(!s->in_txn);
    int rc = run_plain(s, STMT_BEGIN, e);
    if (rc < 0)
        return rc;
    s->in_txn = true;
    failpoint("store-begin");
    return 0;
}

int store_commit(struct store *s, struct err *e)
{
    struct err why = { 0 };
    bool rides = store_mount(s);
    int rc = rides ? store_ride(s, &why) : 0;
    if (rc == 0)
        rc = store_commit_now(s, &why);
    else
        store_rollback_now(s);
    s->undone |= rc < 0 && s->gate;
    if (rides)
        store_ride_off(s, rc, &why);
    return rc < 0 ? err_set(e, rc, "%s", why.text) : 0;
}

int store_commit_now(struct store *s, struct err *e)
{
    assert(s->in_txn);
    failpoint("store-before-commit");
    int rc = sqlite3_get_autocommit(s->db) ? canceled(s, e) : run_plain(s, STMT_COMMIT, e);
    if (rc < 0) {
        store_rollback_now(s);
        return rc;
    }
    s->in_txn = false;
    failpoint("store-committed");
    return 0;
}

void store_rollback(struct store *s)
{
    s->undone |= s->in_txn && s->gate;
    store_rollback_now(s);
}

void store_rollback_now(struct store *s)
{
    s->in_txn = false;
    if (!sqlite3_get_autocommit(s->db))
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* it only ever fails when there is nothing to undo */
}

int conn_write_begin(struct store *s, bool *own, struct err *e)
{
    *own = false;
    int rc = pass_gate(s, e);
    if (rc < 0)
        return rc;
    if (s->in_txn)
        return sqlite3_get_autocommit(s->db) ? canceled(s, e) : 0;
    rc = store_begin_now(s, e);
    *own = rc == 0;
    return rc;
}

int conn_write_end(struct store *s, bool own, int rc, struct err *e)
{
    if (!own)
        return rc;
    if (rc == 0)
        return store_commit(s, e);
    store_rollback_now(s); /* nobody counts on it yet */
    return rc;
}
