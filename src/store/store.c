#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/failpoint.h"
#include "base/io.h"
#include "base/own.h"
#include "store/fs.h"
#include "store/schema.h"

struct store {
    sqlite3 *db;
    char *path;
    bool in_txn; /* between store_begin and its end; SQLite may have rolled back meanwhile */
    sqlite3_stmt *kept[STMT_COUNT];
};

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

static int open_write(struct store *s, struct err *e)
{
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
    if (s)
        s->path = strdup(path);
    if (!s || !s->path)
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
    free(s->path);
    free(s);
}

/* --- statements --- */
/* One use of a statement. It is taken out of `kept` meanwhile, so that a callback which asks the same again gets another. */
struct query {
    struct store *s;
    enum stmt_id id;
    sqlite3_stmt *st;
};

static void query_done(struct query *q)
{
    if (!q->st)
        return;
    (void)sqlite3_reset(q->st); /* repeats the step's error */
    (void)sqlite3_clear_bindings(q->st);
    if (q->s->kept[q->id])
        (void)sqlite3_finalize(q->st);
    else
        q->s->kept[q->id] = q->st;
    q->st = NULL;
}

#define AUTO_QUERY __attribute__((cleanup(query_done)))

static int query_fail(const struct query *q, int sqlite, struct err *e)
{
    bool reads = q->st && sqlite3_stmt_readonly(q->st) && q->id != STMT_BEGIN && q->id != STMT_COMMIT;
    return explain(q->s, reads ? "cannot read" : "cannot write", sqlite, e);
}

static int query_init(struct query *q, struct store *s, enum stmt_id id, struct err *e)
{
    *q = (struct query){ .s = s, .id = id, .st = MOVE_PTR(s->kept[id]) };
    if (q->st)
        return 0;
    AUTO_BUF struct buf sql = BUF_INIT;
    schema_sql(&sql, id);
    int rc =
        sql.failed ? SQLITE_NOMEM : sqlite3_prepare_v3(s->db, sql.data, -1, SQLITE_PREPARE_PERSISTENT, &q->st, NULL);
    return rc == SQLITE_OK ? 0 : query_fail(q, rc, e);
}

static int query_bind_i64(struct query *q, int param, int64_t value, struct err *e)
{
    int rc = sqlite3_bind_int64(q->st, param, value);
    return rc == SQLITE_OK ? 0 : query_fail(q, rc, e);
}

static int query_bind_text(struct query *q, int param, const char *text, struct err *e)
{
    int rc = sqlite3_bind_text(q->st, param, text, -1, SQLITE_STATIC);
    return rc == SQLITE_OK ? 0 : query_fail(q, rc, e);
}

static int query_bind_row(struct query *q, const void *row, struct err *e)
{
    int rc = schema_bind(q->st, q->id, row);
    return rc == SQLITE_OK ? 0 : query_fail(q, rc, e);
}

/* The first parameter is nearly always the row that all belongs to. */
static int query_init_for(struct query *q, struct store *s, enum stmt_id id, int64_t owner, struct err *e)
{
    int rc = query_init(q, s, id, e);
    return rc < 0 ? rc : query_bind_i64(q, 1, owner, e);
}

/* 1 a row, 0 the end. */
static int query_step(struct query *q, struct err *e)
{
    int rc = sqlite3_step(q->st);
    if (rc == SQLITE_ROW)
        return 1;
    return rc == SQLITE_DONE ? 0 : query_fail(q, rc, e);
}

/* 1 with `row` filled, 0 the end. */
static int query_next(struct query *q, void *row, struct err *e)
{
    int rc = query_step(q, e);
    if (rc == 1 && schema_read(q->st, q->id, row) < 0)
        rc = query_fail(q, SQLITE_NOMEM, e);
    return rc;
}

/* --- transactions --- */
static int canceled(const struct store *s, struct err *e)
{
    return err_set(e, -ECANCELED, "cannot write store '%s': an earlier failure undid this transaction", s->path);
}

static int run_plain(struct store *s, enum stmt_id id, struct err *e)
{
    AUTO_QUERY struct query q;
    int rc = query_init(&q, s, id, e);
    return rc < 0 ? rc : query_step(&q, e);
}

int store_begin(struct store *s, struct err *e)
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
    assert(s->in_txn);
    failpoint("store-before-commit");
    int rc = sqlite3_get_autocommit(s->db) ? canceled(s, e) : run_plain(s, STMT_COMMIT, e);
    if (rc < 0) {
        store_rollback(s);
        return rc;
    }
    s->in_txn = false;
    failpoint("store-committed");
    return 0;
}

void store_rollback(struct store *s)
{
    s->in_txn = false;
    if (!sqlite3_get_autocommit(s->db))
        (void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL); /* it only ever fails when there is nothing to undo */
}

/* A write joins the open transaction, or makes its own: `own` tells write_end() which. */
static int write_begin(struct store *s, bool *own, struct err *e)
{
    *own = false;
    if (s->in_txn)
        return sqlite3_get_autocommit(s->db) ? canceled(s, e) : 0;
    int rc = store_begin(s, e);
    *own = rc == 0;
    return rc;
}

static int write_end(struct store *s, bool own, int rc, struct err *e)
{
    if (!own)
        return rc;
    if (rc == 0)
        return store_commit(s, e);
    store_rollback(s);
    return rc;
}

/* --- the few forms of statement --- */
/* The next free number of a row's kind within its owner. */
static int next_number(struct store *s, enum stmt_id id, int64_t owner, int64_t *out, struct err *e)
{
    AUTO_QUERY struct query q;
    int rc = query_init_for(&q, s, id, owner, e);
    if (rc == 0)
        rc = query_step(&q, e);
    if (rc == 1)
        *out = sqlite3_column_int64(q.st, 0);
    return rc < 0 ? rc : 0;
}

static int insert(struct store *s, enum stmt_id id, const void *row, int64_t *out_id, struct err *e)
{
    AUTO_QUERY struct query q;
    int rc = query_init(&q, s, id, e);
    if (rc == 0)
        rc = query_bind_row(&q, row, e);
    if (rc == 0)
        rc = query_step(&q, e);
    if (rc == 0 && out_id)
        *out_id = sqlite3_last_insert_rowid(s->db);
    return rc;
}

/* Runs an update that must find its row. */
static int query_change_one(struct query *q, const char *what, int64_t id, struct err *e)
{
    int rc = query_step(q, e);
    if (rc == 0 && sqlite3_changes(q->s->db) == 0)
        return err_set(e, -ENOENT, "cannot write store '%s': there is no %s %lld", q->s->path, what, (long long)id);
    return rc;
}

static int update_row(struct store *s, enum stmt_id id, const void *row, const char *what, int64_t row_id,
                      struct err *e)
{
    bool own;
    int rc = write_begin(s, &own, e);
    if (rc == 0) {
        AUTO_QUERY struct query q;
        rc = query_init(&q, s, id, e);
        if (rc == 0)
            rc = query_bind_row(&q, row, e);
        if (rc == 0)
            rc = query_change_one(&q, what, row_id, e);
    }
    return write_end(s, own, rc, e);
}

/* --- studies --- */
void store_study_done(struct store_study *row)
{
    schema_free_texts(&schema_studies, row);
}

int store_study_find(struct store *s, const char *name, struct store_study *out, struct err *e)
{
    AUTO_QUERY struct query q;
    struct store_study row;
    int rc = query_init(&q, s, STMT_STUDY_FIND, e);
    if (rc == 0)
        rc = query_bind_text(&q, 1, name, e);
    if (rc == 0)
        rc = query_next(&q, &row, e);
    if (rc <= 0)
        return rc;
    if (schema_own_texts(&schema_studies, &row) < 0)
        return query_fail(&q, SQLITE_NOMEM, e);
    *out = row;
    return 1;
}

int store_study_add(struct store *s, const struct store_study *row, int64_t *out_id, struct err *e)
{
    bool own;
    int64_t id = 0;
    int rc = write_begin(s, &own, e);
    if (rc == 0)
        rc = insert(s, STMT_STUDY_ADD, row, &id, e);
    if (rc == -EEXIST)
        (void)err_set(e, rc, "cannot write store '%s': study '%s' is there already", s->path, row->name);
    rc = write_end(s, own, rc, e);
    if (rc == 0)
        *out_id = id;
    return rc;
}

int store_study_set_state(struct store *s, int64_t study, const char *state, int64_t ended_ms, struct err *e)
{
    bool own;
    int rc = write_begin(s, &own, e);
    if (rc == 0) {
        AUTO_QUERY struct query q;
        rc = query_init_for(&q, s, STMT_STUDY_STATE, study, e);
        if (rc == 0)
            rc = query_bind_text(&q, 2, state, e);
        if (rc == 0)
            rc = query_bind_i64(&q, 3, ended_ms, e);
        if (rc == 0)
            rc = query_change_one(&q, "study", study, e);
    }
    return write_end(s, own, rc, e);
}

int store_list(struct store *s, int (*row)(void *ctx, const struct store_summary *r), void *ctx, struct err *e)
{
    AUTO_QUERY struct query q;
    struct store_summary r;
    int rc = query_init(&q, s, STMT_LIST, e);
    while (rc == 0 && (rc = query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

/* --- trials --- */
void store_trial_done(struct store_trial *row)
{
    schema_free_texts(&schema_trials, row);
}

int store_trial_copy(struct store_trial *out, const struct store_trial *row)
{
    struct store_trial copy = *row;
    int rc = schema_own_texts(&schema_trials, &copy);
    if (rc == 0)
        *out = copy;
    return rc;
}

int store_trial_add(struct store *s, struct store_trial *row, struct err *e)
{
    bool own;
    struct store_trial t = *row;
    int rc = write_begin(s, &own, e);
    if (rc == 0)
        rc = next_number(s, STMT_NEXT_SEQ, t.study, &t.ask_seq, e);
    if (rc == 0)
        rc = insert(s, STMT_TRIAL_ADD, &t, &t.id, e);
    if (rc == -EEXIST)
        (void)err_set(e, rc, "cannot write store '%s': trial %d is there already", s->path, t.number);
    rc = write_end(s, own, rc, e);
    if (rc == 0)
        *row = t;
    return rc;
}

int store_trial_update(struct store *s, const struct store_trial *row, struct err *e)
{
    return update_row(s, STMT_TRIAL_UPDATE, row, "trial", row->id, e);
}

int store_trials(struct store *s, int64_t study, int number, int (*row)(void *ctx, const struct store_trial *r),
                 void *ctx, struct err *e)
{
    AUTO_QUERY struct query q;
    struct store_trial r;
    int rc = query_init_for(&q, s, STMT_TRIALS, study, e);
    if (rc == 0)
        rc = query_bind_i64(&q, 2, number, e);
    if (rc == 0)
        rc = query_bind_i64(&q, 3, number == 0 ? INT_MAX : number, e);
    while (rc == 0 && (rc = query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

int store_trial_twin(struct store *s, int64_t study, const char *hyper, const char *effective, int epochs,
                     int *out_number, struct err *e)
{
    AUTO_QUERY struct query q;
    int rc = query_init_for(&q, s, STMT_TWIN, study, e);
    if (rc == 0)
        rc = query_bind_text(&q, 2, hyper, e);
    if (rc == 0)
        rc = query_bind_text(&q, 3, effective, e);
    if (rc == 0)
        rc = query_bind_i64(&q, 4, epochs, e);
    if (rc == 0)
        rc = query_step(&q, e);
    if (rc == 1)
        *out_number = sqlite3_column_int(q.st, 0); /* min() of nothing is NULL, which reads as 0 */
    return rc < 0 ? rc : 0;
}

/* --- attempts --- */
void store_attempt_done(struct store_attempt *row)
{
    schema_free_texts(&schema_attempts, row);
}

int store_attempt_copy(struct store_attempt *out, const struct store_attempt *row)
{
    struct store_attempt copy = *row;
    int rc = schema_own_texts(&schema_attempts, &copy);
    if (rc == 0)
        *out = copy;
    return rc;
}

int store_attempt_add(struct store *s, struct store_attempt *row, struct err *e)
{
    bool own;
    struct store_attempt a = *row;
    int64_t number = 0;
    int rc = write_begin(s, &own, e);
    if (rc == 0)
        rc = next_number(s, STMT_NEXT_ATTEMPT, a.trial, &number, e);
    a.number = (int)number;
    if (rc == 0)
        rc = insert(s, STMT_ATTEMPT_ADD, &a, &a.id, e);
    rc = write_end(s, own, rc, e);
    if (rc == 0)
        *row = a;
    return rc;
}

int store_attempt_update(struct store *s, const struct store_attempt *row, struct err *e)
{
    return update_row(s, STMT_ATTEMPT_UPDATE, row, "attempt", row->id, e);
}

int store_attempts(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_attempt *r), void *ctx,
                   struct err *e)
{
    AUTO_QUERY struct query q;
    struct store_attempt r;
    int rc = query_init_for(&q, s, STMT_ATTEMPTS, trial, e);
    while (rc == 0 && (rc = query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

/* --- epochs --- */
int store_epoch_put(struct store *s, const struct store_epoch *row, struct err *e)
{
    bool own;
    int rc = write_begin(s, &own, e);
    if (rc == 0)
        rc = insert(s, STMT_EPOCH_PUT, row, NULL, e);
    return write_end(s, own, rc, e);
}

int store_epochs(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_epoch *r), void *ctx,
                 struct err *e)
{
    AUTO_QUERY struct query q;
    struct store_epoch r;
    int rc = query_init_for(&q, s, STMT_EPOCHS, trial, e);
    while (rc == 0 && (rc = query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

/* --- tells --- */
int store_tell_add(struct store *s, int64_t study, struct store_tell *t, struct err *e)
{
    bool own;
    struct tell_row row = { study, *t };
    int rc = write_begin(s, &own, e);
    if (rc == 0)
        rc = next_number(s, STMT_NEXT_SEQ, study, &row.t.seq, e);
    if (rc == 0)
        rc = insert(s, STMT_TELL_ADD, &row, NULL, e);
    rc = write_end(s, own, rc, e);
    if (rc == 0)
        t->seq = row.t.seq;
    return rc;
}

int store_tells(struct store *s, int64_t study, int (*row)(void *ctx, const struct store_tell *t), void *ctx,
                struct err *e)
{
    AUTO_QUERY struct query q;
    struct tell_row r;
    int rc = query_init_for(&q, s, STMT_TELLS, study, e);
    while (rc == 0 && (rc = query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.t);
    return rc;
}

/* --- decisions --- */
int store_decision_add(struct store *s, int64_t study, const struct store_decision *d, struct err *e)
{
    bool own;
    struct decision_row row = { study, *d };
    int rc = write_begin(s, &own, e);
    if (rc == 0)
        rc = next_number(s, STMT_NEXT_DECISION, study, &row.d.seq, e);
    if (rc == 0)
        rc = insert(s, STMT_DECISION_ADD, &row, NULL, e);
    return write_end(s, own, rc, e);
}

int store_decisions(struct store *s, int64_t study, int trial, int (*row)(void *ctx, const struct store_decision *d),
                    void *ctx, struct err *e)
{
    AUTO_QUERY struct query q;
    struct decision_row r;
    int rc = query_init_for(&q, s, STMT_DECISIONS, study, e);
    if (rc == 0)
        rc = query_bind_i64(&q, 2, trial, e);
    while (rc == 0 && (rc = query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.d);
    return rc;
}
