#include "store/schema.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"

/* Small columns stand before the long texts, so that a look at them reads no overflow pages. The names of trial states and
 * outcomes in here are those of core/sched.h. */
static const char schema_1[] =
    "CREATE TABLE studies("
    " id INTEGER PRIMARY KEY,"
    " name TEXT NOT NULL UNIQUE,"
    " state TEXT NOT NULL,"
    " maximise INTEGER NOT NULL,"
    " seed INTEGER NOT NULL,"
    " created_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL,"
    " space_hash TEXT,"
    " config TEXT NOT NULL,"
    " provenance TEXT"
    ") STRICT;"

    "CREATE TABLE trials("
    " id INTEGER PRIMARY KEY,"
    " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
    " number INTEGER NOT NULL,"
    " proposal INTEGER NOT NULL," /* 64 bits without sign, kept in two's complement */
    " ask_seq INTEGER NOT NULL,"
    " state TEXT NOT NULL,"
    " epochs INTEGER NOT NULL,"
    " slots INTEGER NOT NULL,"
    " copy_of INTEGER NOT NULL,"
    " accuracy REAL,"
    " loss REAL,"
    " metric REAL,"
    " seconds REAL,"
    " hyper TEXT NOT NULL,"
    " requested TEXT,"
    " effective TEXT,"
    " reason TEXT,"
    " UNIQUE(study, number)"
    ") STRICT;"
    /* All that `ls` sums up, so that it never reads the trials themselves. */
    "CREATE INDEX trials_summary ON trials(study, state, metric, number, seconds);"
    /* The newest ask is one seek, and no two asks share a place. */
    "CREATE UNIQUE INDEX trials_ask ON trials(study, ask_seq);"
    "CREATE INDEX trials_twin ON trials(study, hyper, effective, epochs) WHERE state = 'finished';"

    "CREATE TABLE attempts("
    " id INTEGER PRIMARY KEY,"
    " trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
    " number INTEGER NOT NULL,"
    " state TEXT NOT NULL,"
    " outcome TEXT,"
    " pid INTEGER NOT NULL,"
    " start_ticks INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL,"
    " ended_ms INTEGER NOT NULL,"
    " log_offset INTEGER NOT NULL,"
    " exit_code INTEGER NOT NULL,"
    " first_epoch INTEGER NOT NULL,"
    " launch TEXT,"
    " boot_id TEXT,"
    " app_id TEXT,"
    " cause TEXT,"
    " resumed_from TEXT,"
    " argv TEXT,"
    " UNIQUE(trial, number)"
    ") STRICT;"

    "CREATE TABLE epochs("
    " trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
    " epoch INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL,"
    " accuracy REAL,"
    " loss REAL,"
    " metric REAL,"
    " seconds REAL,"
    " records REAL,"
    " iterations INTEGER NOT NULL,"
    " learning_rate REAL,"
    " end_ms INTEGER NOT NULL,"
    " PRIMARY KEY(trial, epoch)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE tells("
    " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
    " seq INTEGER NOT NULL,"
    " proposal INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL,"
    " value REAL,"
    " done INTEGER NOT NULL,"
    " PRIMARY KEY(study, seq)"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE decisions("
    " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
    " seq INTEGER NOT NULL,"
    " trial INTEGER NOT NULL,"
    " t_s REAL,"
    " kind TEXT NOT NULL,"
    " setting TEXT,"
    " reason TEXT,"
    " PRIMARY KEY(study, seq)"
    ") STRICT, WITHOUT ROWID;";

/* What a policy was told, and what became of each launch of its making. */
static const char schema_2[] = "ALTER TABLE attempts ADD COLUMN setting TEXT;"
                               "ALTER TABLE attempts ADD COLUMN startup_s REAL;"
                               "ALTER TABLE attempts ADD COLUMN session INTEGER NOT NULL DEFAULT 0;"
                               "ALTER TABLE attempts ADD COLUMN cores REAL;"

                               "CREATE TABLE tuner_log("
                               " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
                               " seq INTEGER NOT NULL,"
                               " text TEXT NOT NULL,"
                               " PRIMARY KEY(study, seq)"
                               ") STRICT, WITHOUT ROWID;";

/* What was sampled, and what was learnt of it. Samples keep a rowid: their cells are too long for the inner pages of an index. A
 * model without json was deleted, and keeps its version. */
static const char schema_3[] = "CREATE TABLE samples("
                               " trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
                               " t_ms REAL NOT NULL,"
                               " dt_ms REAL NOT NULL,"
                               " node INTEGER NOT NULL,"
                               " scope TEXT NOT NULL,"
                               " cells TEXT NOT NULL"
                               ") STRICT;"
                               "CREATE INDEX samples_time ON samples(trial, t_ms, node);"

                               "CREATE TABLE profiles("
                               " trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
                               " seq INTEGER NOT NULL,"
                               " epoch INTEGER NOT NULL,"
                               " t_from_ms REAL,"
                               " t_to_ms REAL,"
                               " setting TEXT,"
                               " vector TEXT NOT NULL,"
                               " verdict TEXT,"
                               " PRIMARY KEY(trial, seq)"
                               ") STRICT, WITHOUT ROWID;"

                               "CREATE TABLE models("
                               " name TEXT PRIMARY KEY NOT NULL,"
                               " version INTEGER NOT NULL,"
                               " json TEXT"
                               ") STRICT;";

/* What meters read. Two readings may end at the same time. */
static const char schema_4[] = "CREATE TABLE energy("
                               " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
                               " node INTEGER NOT NULL,"
                               " meter TEXT NOT NULL,"
                               " from_ms REAL NOT NULL,"
                               " to_ms REAL NOT NULL,"
                               " value REAL,"
                               " error REAL,"
                               " state TEXT NOT NULL"
                               ") STRICT;"
                               "CREATE INDEX energy_time ON energy(study, node, meter, to_ms);";

/* Samples with names of their features beside them. What was text stays as it is, and `cells` is "" from here on. Values are NULL
 * where there are none any more. */
static const char schema_5[] = "CREATE TABLE features("
                               " id INTEGER PRIMARY KEY,"
                               " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
                               " names TEXT NOT NULL,"
                               " UNIQUE(study, names)"
                               ") STRICT;"
                               "ALTER TABLE samples ADD COLUMN cpu_s REAL;"
                               "ALTER TABLE samples ADD COLUMN features INTEGER NOT NULL DEFAULT 0;"
                               "ALTER TABLE samples ADD COLUMN value BLOB;";

/* Of a trial that was to be tried again: what became of its attempts until then is forgiven. */
static const char schema_6[] = "ALTER TABLE trials ADD COLUMN forgiven INTEGER NOT NULL DEFAULT 0;";

/* When an attempt was started, by the clock that its duration is told by. */
static const char schema_7[] = "ALTER TABLE attempts ADD COLUMN started_boot_ms INTEGER NOT NULL DEFAULT 0;";

/* On which machine an attempt's launcher is: its pid means something there alone. */
static const char schema_8[] = "ALTER TABLE attempts ADD COLUMN node INTEGER NOT NULL DEFAULT 0;";

/* What the search is at; and of an attempt that the search wants ended, at which epoch, and what the trial is then. */
static const char schema_9[] = "CREATE TABLE searches("
                               " study INTEGER PRIMARY KEY REFERENCES studies ON DELETE CASCADE,"
                               " state BLOB NOT NULL"
                               ") STRICT;"
                               "ALTER TABLE attempts ADD COLUMN ends_at INTEGER NOT NULL DEFAULT 0;"
                               "ALTER TABLE attempts ADD COLUMN ends_as TEXT;";

/* Lines for an InfluxDB. The upper bits of an id are the study's (store/outbox.c), so that its rows are one range without an index. */
static const char schema_10[] = "CREATE TABLE outbox("
                                " id INTEGER PRIMARY KEY,"
                                " reason TEXT," /* why the server rejected it; NULL: it waits */
                                " line TEXT NOT NULL"
                                ") STRICT;";

/* Every number that a trial told of itself (step 0 are those of epochs), and the checkpoints that it told of. */
static const char schema_11[] = "CREATE TABLE series("
                                " trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
                                " name TEXT NOT NULL,"
                                " step INTEGER NOT NULL,"
                                " epoch INTEGER NOT NULL,"
                                " attempt INTEGER NOT NULL,"
                                " at_ms INTEGER NOT NULL,"
                                " value REAL," /* NULL: it was not finite */
                                " PRIMARY KEY(trial, name, step, epoch)"
                                ") STRICT, WITHOUT ROWID;"

                                "CREATE TABLE checkpoints("
                                " trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
                                " epoch INTEGER NOT NULL,"
                                " attempt INTEGER NOT NULL,"
                                " path TEXT NOT NULL,"
                                " PRIMARY KEY(trial, epoch)"
                                ") STRICT, WITHOUT ROWID;";

/* Points of the best trials, trained again with other seeds; and points that earlier studies taught. */
static const char schema_12[] =
    "ALTER TABLE trials ADD COLUMN repeat_of INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE trials ADD COLUMN repeat INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE trials ADD COLUMN learnt_from TEXT;"
    "CREATE INDEX trials_repeats ON trials(study, repeat_of, state, metric) WHERE repeat_of > 0;";

/* All that a search was told and what it chose to go on with, so that what it did can be derived again. */
static const char schema_13[] = "ALTER TABLE tells ADD COLUMN kind INTEGER NOT NULL DEFAULT 0;"
                                "ALTER TABLE tells ADD COLUMN seconds REAL;"
                                "ALTER TABLE tells ADD COLUMN joules REAL;"
                                "ALTER TABLE tells ADD COLUMN start_seconds REAL;";

/* What trials came to by the names that the study's metrics and constraints have, and which constraint one does not keep. */
static const char schema_14[] =
    "CREATE TABLE results("
    " trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
    " name TEXT NOT NULL,"
    " value REAL," /* NULL: absent */
    " PRIMARY KEY(trial, name)"
    ") STRICT, WITHOUT ROWID;"
    "ALTER TABLE trials ADD COLUMN violates TEXT;"
    "DROP INDEX trials_summary;"
    "CREATE INDEX trials_summary ON trials(study, state, metric, number, seconds, violates);";

/* The host on which an attempt ran: its place in the config's list may change. */
static const char schema_15[] = "ALTER TABLE attempts ADD COLUMN place TEXT;";

/* The processes of an attempt that are launched each by itself. */
static const char schema_16[] = "CREATE TABLE members("
                                " trial INTEGER NOT NULL REFERENCES trials ON DELETE CASCADE,"
                                " attempt INTEGER NOT NULL,"
                                " number INTEGER NOT NULL,"
                                " role TEXT NOT NULL,"
                                " idx INTEGER NOT NULL,"
                                " node INTEGER NOT NULL,"
                                " pid INTEGER NOT NULL,"
                                " start_ticks INTEGER NOT NULL,"
                                " port INTEGER NOT NULL,"
                                " launch TEXT,"
                                " boot_id TEXT,"
                                " place TEXT,"
                                " PRIMARY KEY(trial, attempt, number)"
                                ") STRICT, WITHOUT ROWID;";

/* What people say of a study (trial 0) or of a trial, by its number. */
static const char schema_17[] = "CREATE TABLE notes("
                                " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
                                " trial INTEGER NOT NULL,"
                                " at_ms INTEGER NOT NULL,"
                                " text TEXT NOT NULL,"
                                " PRIMARY KEY(study, trial, text)"
                                ") STRICT, WITHOUT ROWID;";

/* The queue of studies; what is asked of those that run; trials that were asked for. */
static const char schema_18[] = "CREATE TABLE queue("
                                " id INTEGER PRIMARY KEY,"
                                " study TEXT NOT NULL UNIQUE,"
                                " state TEXT NOT NULL,"
                                " priority INTEGER NOT NULL,"
                                " here INTEGER NOT NULL,"
                                " submitted_ms INTEGER NOT NULL,"
                                " at_ms INTEGER NOT NULL,"
                                " begun_ms INTEGER NOT NULL,"
                                " ended_ms INTEGER NOT NULL,"
                                " pid INTEGER NOT NULL,"
                                " start_ticks INTEGER NOT NULL,"
                                " boot_id TEXT,"
                                " starts INTEGER NOT NULL,"
                                " done INTEGER NOT NULL,"
                                " share INTEGER NOT NULL,"
                                " most INTEGER NOT NULL,"
                                " grain INTEGER NOT NULL,"
                                " to_go INTEGER NOT NULL,"
                                " exit_code INTEGER NOT NULL,"
                                " folder TEXT NOT NULL,"
                                " argv TEXT NOT NULL,"
                                " env TEXT NOT NULL,"
                                " reason TEXT"
                                ") STRICT;"
                                "CREATE TABLE requests("
                                " id INTEGER PRIMARY KEY,"
                                " study TEXT NOT NULL,"
                                " trial INTEGER NOT NULL,"
                                " kind TEXT NOT NULL,"
                                " text TEXT,"
                                " state TEXT NOT NULL,"
                                " answer TEXT,"
                                " asked_ms INTEGER NOT NULL"
                                ") STRICT;"
                                "CREATE INDEX requests_waiting ON requests(study) WHERE state = 'waiting';"
                                "ALTER TABLE trials ADD COLUMN added INTEGER NOT NULL DEFAULT 0;";

/* What was handed on to servers elsewhere, run by run (store/handed.h). */
static const char schema_19[] = "CREATE TABLE handed("
                                " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
                                " target TEXT NOT NULL,"
                                " trial INTEGER NOT NULL,"
                                " run_id TEXT NOT NULL,"
                                " status TEXT NOT NULL,"
                                " sending INTEGER NOT NULL,"
                                " described INTEGER NOT NULL,"
                                " done INTEGER NOT NULL,"
                                " joules REAL,"
                                " epoch INTEGER NOT NULL,"
                                " name TEXT NOT NULL,"
                                " step INTEGER NOT NULL,"
                                " seq INTEGER NOT NULL,"
                                " PRIMARY KEY(study, target, trial)"
                                ") STRICT, WITHOUT ROWID;"
                                /* Those of one trial are found without those of all others. */
                                "CREATE INDEX decisions_trial ON decisions(study, trial, seq);";

/* Files of applications as studies began with them. A content goes with the last study that has it. */
static const char schema_20[] = "CREATE TABLE contents("
                                " sha256 TEXT PRIMARY KEY NOT NULL,"
                                " bytes BLOB NOT NULL"
                                ") STRICT;"
                                "CREATE TABLE sources("
                                " study INTEGER NOT NULL REFERENCES studies ON DELETE CASCADE,"
                                " name TEXT NOT NULL,"
                                " path TEXT NOT NULL,"
                                " sha256 TEXT NOT NULL,"
                                " mode INTEGER NOT NULL,"
                                " PRIMARY KEY(study, name)"
                                ") STRICT, WITHOUT ROWID;"
                                "CREATE INDEX sources_content ON sources(sha256);"
                                "CREATE TRIGGER sources_gone AFTER DELETE ON sources BEGIN"
                                " DELETE FROM contents WHERE sha256 = old.sha256"
                                " AND NOT EXISTS(SELECT 1 FROM sources WHERE sha256 = old.sha256);"
                                " END;";

const char *const schema_steps[STORE_SCHEMA] = { schema_1,  schema_2,  schema_3,  schema_4,  schema_5,
                                                 schema_6,  schema_7,  schema_8,  schema_9,  schema_10,
                                                 schema_11, schema_12, schema_13, schema_14, schema_15,
                                                 schema_16, schema_17, schema_18, schema_19, schema_20 };

int schema_apply(sqlite3 *db, const char *const *steps, int from, int to)
{
    int rc = SQLITE_OK;
    for (int v = from; v < to && rc == SQLITE_OK; v++)
        rc = sqlite3_exec(db, steps[v], NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return rc;
    AUTO_BUF struct buf stamp = BUF_INIT;
    buf_printf(&stamp, "PRAGMA application_id=%d; PRAGMA user_version=%d;", STORE_APPLICATION_ID, to);
    return stamp.failed ? SQLITE_NOMEM : sqlite3_exec(db, stamp.data, NULL, NULL, NULL);
}

/* --- columns and fields --- */
/* The field's type picks the kind, so the two cannot disagree. */
#define KIND_OF(row, field)                                                                                            \
    _Generic(((struct row *)0)->field,                                                                                 \
        int: COL_INT,                                                                                                  \
        int64_t: COL_I64,                                                                                              \
        uint64_t: COL_U64,                                                                                             \
        bool: COL_BOOL,                                                                                                \
        double: COL_REAL,                                                                                              \
        char *: COL_TEXT,                                                                                              \
        const char *: COL_TEXT,                                                                                        \
        struct blob: COL_BLOB)
#define COL_AS(row, sql, field, use)                                                                                   \
    {                                                                                                                  \
        sql, KIND_OF(row, field), use, offsetof(struct row, field)                                                     \
    }
#define COL(row, field, use) COL_AS(row, #field, field, use)
#define TABLE(sql, columns)                                                                                            \
    {                                                                                                                  \
        .name = (sql), .cols = (columns), .n = (int)ARRAY_LEN(columns)                                                 \
    }

static const struct col study_cols[] = {
    COL(store_study, id, COL_ROWID),       COL(store_study, name, COL_FIXED),
    COL(store_study, state, COL_PLAIN),    COL(store_study, maximise, COL_FIXED),
    COL(store_study, seed, COL_FIXED),     COL(store_study, created_ms, COL_FIXED),
    COL(store_study, ended_ms, COL_PLAIN), COL(store_study, space_hash, COL_FIXED),
    COL(store_study, config, COL_FIXED),   COL(store_study, provenance, COL_FIXED),
};

static const struct col trial_cols[] = {
    COL(store_trial, id, COL_ROWID),
    COL(store_trial, study, COL_FIXED),
    COL(store_trial, number, COL_FIXED),
    COL(store_trial, proposal, COL_FIXED),
    COL(store_trial, ask_seq, COL_FIXED),
    COL(store_trial, state, COL_PLAIN),
    COL(store_trial, epochs, COL_PLAIN),
    COL(store_trial, slots, COL_PLAIN),
    COL(store_trial, copy_of, COL_PLAIN),
    COL(store_trial, accuracy, COL_PLAIN),
    COL(store_trial, loss, COL_PLAIN),
    COL(store_trial, metric, COL_PLAIN),
    COL(store_trial, seconds, COL_PLAIN),
    COL(store_trial, hyper, COL_PLAIN),
    COL(store_trial, requested, COL_PLAIN),
    COL(store_trial, effective, COL_PLAIN),
    COL(store_trial, reason, COL_PLAIN),
    COL(store_trial, repeat_of, COL_FIXED),
    COL(store_trial, repeat, COL_FIXED),
    COL(store_trial, learnt_from, COL_FIXED),
    COL(store_trial, violates, COL_PLAIN),
    COL_AS(store_trial, "(SELECT count(*) FROM attempts WHERE trial = trials.id)", attempts, COL_DERIVED),
    COL(store_trial, forgiven, COL_PLAIN),
    COL(store_trial, added, COL_FIXED),
    COL_AS(store_trial,
           "(SELECT count(*) FROM attempts WHERE trial = trials.id AND outcome = 'failed' AND number > forgiven)",
           failures, COL_DERIVED),
    COL_AS(store_trial,
           "(SELECT count(*) FROM attempts WHERE trial = trials.id AND outcome = 'killed' AND number > forgiven AND"
           " number >= (SELECT coalesce(max(attempt), 0) FROM epochs WHERE trial = trials.id))",
           kills, COL_DERIVED),
    COL_AS(store_trial, "(SELECT coalesce(max(epoch), 0) FROM epochs WHERE trial = trials.id)", reached, COL_DERIVED),
};

static const struct col attempt_cols[] = {
    COL(store_attempt, id, COL_ROWID),
    COL(store_attempt, trial, COL_FIXED),
    COL(store_attempt, number, COL_FIXED),
    COL(store_attempt, state, COL_PLAIN),
    COL(store_attempt, outcome, COL_PLAIN),
    COL(store_attempt, pid, COL_PLAIN),
    COL(store_attempt, start_ticks, COL_PLAIN),
    COL(store_attempt, started_ms, COL_PLAIN),
    COL(store_attempt, ended_ms, COL_PLAIN),
    COL(store_attempt, log_offset, COL_PLAIN),
    COL(store_attempt, exit_code, COL_PLAIN),
    COL(store_attempt, first_epoch, COL_PLAIN),
    COL(store_attempt, launch, COL_PLAIN),
    COL(store_attempt, boot_id, COL_PLAIN),
    COL(store_attempt, app_id, COL_PLAIN),
    COL(store_attempt, cause, COL_PLAIN),
    COL(store_attempt, resumed_from, COL_PLAIN),
    COL(store_attempt, argv, COL_PLAIN),
    COL(store_attempt, started_boot_ms, COL_PLAIN),
    COL(store_attempt, setting, COL_PLAIN),
    COL(store_attempt, startup_s, COL_PLAIN),
    COL(store_attempt, session, COL_PLAIN),
    COL(store_attempt, cores, COL_PLAIN),
    COL(store_attempt, node, COL_PLAIN),
    COL(store_attempt, ends_at, COL_PLAIN),
    COL(store_attempt, ends_as, COL_PLAIN),
    COL(store_attempt, place, COL_PLAIN),
};

static const struct col queue_cols[] = {
    COL(store_queued, id, COL_ROWID),           COL(store_queued, study, COL_FIXED),
    COL(store_queued, state, COL_FIXED), /* changed by STMT_QUEUE_TURN alone */
    COL(store_queued, priority, COL_FIXED),     COL(store_queued, here, COL_FIXED),
    COL(store_queued, submitted_ms, COL_FIXED), COL(store_queued, at_ms, COL_FIXED),
    COL(store_queued, begun_ms, COL_PLAIN),     COL(store_queued, ended_ms, COL_PLAIN),
    COL(store_queued, pid, COL_PLAIN),          COL(store_queued, start_ticks, COL_PLAIN),
    COL(store_queued, boot_id, COL_PLAIN),      COL(store_queued, starts, COL_PLAIN),
    COL(store_queued, done, COL_PLAIN),         COL(store_queued, share, COL_FIXED),
    COL(store_queued, most, COL_FIXED),         COL(store_queued, grain, COL_FIXED),
    COL(store_queued, to_go, COL_FIXED),        COL(store_queued, exit_code, COL_PLAIN),
    COL(store_queued, folder, COL_FIXED),       COL(store_queued, argv, COL_FIXED),
    COL(store_queued, env, COL_FIXED),          COL(store_queued, reason, COL_PLAIN),
};

static const struct col request_cols[] = {
    COL(store_request, id, COL_ROWID),     COL(store_request, study, COL_FIXED),
    COL(store_request, trial, COL_FIXED),  COL(store_request, kind, COL_FIXED),
    COL(store_request, text, COL_FIXED),   COL(store_request, state, COL_PLAIN),
    COL(store_request, answer, COL_PLAIN), COL(store_request, asked_ms, COL_FIXED),
};

static const struct col epoch_cols[] = {
    COL(store_epoch, trial, COL_PLAIN),      COL(store_epoch, epoch, COL_PLAIN),
    COL(store_epoch, attempt, COL_PLAIN),    COL(store_epoch, accuracy, COL_PLAIN),
    COL(store_epoch, loss, COL_PLAIN),       COL(store_epoch, metric, COL_PLAIN),
    COL(store_epoch, seconds, COL_PLAIN),    COL(store_epoch, records, COL_PLAIN),
    COL(store_epoch, iterations, COL_PLAIN), COL(store_epoch, learning_rate, COL_PLAIN),
    COL(store_epoch, end_ms, COL_PLAIN),
};

static const struct col series_cols[] = {
    COL(store_value, trial, COL_PLAIN), COL(store_value, name, COL_PLAIN),    COL(store_value, step, COL_PLAIN),
    COL(store_value, epoch, COL_PLAIN), COL(store_value, attempt, COL_PLAIN), COL(store_value, at_ms, COL_PLAIN),
    COL(store_value, value, COL_PLAIN),
};

static const struct col checkpoint_cols[] = {
    COL(store_checkpoint, trial, COL_PLAIN),
    COL(store_checkpoint, epoch, COL_PLAIN),
    COL(store_checkpoint, attempt, COL_PLAIN),
    COL(store_checkpoint, path, COL_PLAIN),
};

static const struct col member_cols[] = {
    COL(store_member, trial, COL_PLAIN),
    COL(store_member, attempt, COL_PLAIN),
    COL(store_member, number, COL_PLAIN),
    COL(store_member, role, COL_PLAIN),
    COL_AS(store_member, "idx", index, COL_PLAIN),
    COL(store_member, node, COL_PLAIN),
    COL(store_member, pid, COL_PLAIN),
    COL(store_member, start_ticks, COL_PLAIN),
    COL(store_member, port, COL_PLAIN),
    COL(store_member, launch, COL_PLAIN),
    COL(store_member, boot_id, COL_PLAIN),
    COL(store_member, place, COL_PLAIN),
};

static const struct col result_cols[] = {
    COL(store_result, trial, COL_PLAIN),
    COL(store_result, name, COL_PLAIN),
    COL(store_result, value, COL_PLAIN),
};

static const struct col note_cols[] = {
    COL(store_note, study, COL_PLAIN),
    COL(store_note, trial, COL_PLAIN),
    COL(store_note, at_ms, COL_PLAIN),
    COL(store_note, text, COL_PLAIN),
};

static const struct col handed_cols[] = {
    COL(handed, study, COL_PLAIN),  COL(handed, target, COL_PLAIN),    COL(handed, trial, COL_PLAIN),
    COL(handed, run_id, COL_PLAIN), COL(handed, status, COL_PLAIN),    COL(handed, sending, COL_PLAIN),
    COL(handed, done, COL_PLAIN),   COL(handed, described, COL_PLAIN), COL(handed, joules, COL_PLAIN),
    COL(handed, epoch, COL_PLAIN),  COL(handed, name, COL_PLAIN),      COL(handed, step, COL_PLAIN),
    COL(handed, seq, COL_PLAIN),
};

static const struct col content_cols[] = {
    COL(content_row, sha256, COL_PLAIN),
    COL(content_row, bytes, COL_PLAIN),
};

static const struct col source_cols[] = {
    COL(source_row, study, COL_PLAIN),
    COL(source_row, name, COL_PLAIN),
    COL(source_row, path, COL_PLAIN),
    COL(source_row, sha256, COL_PLAIN),
    COL(source_row, mode, COL_PLAIN),
    COL_AS(source_row, "(SELECT bytes FROM contents WHERE contents.sha256 = sources.sha256)", bytes, COL_DERIVED),
};

static const struct col tell_cols[] = {
    COL(tell_row, study, COL_PLAIN),
    COL_AS(tell_row, "seq", t.seq, COL_PLAIN),
    COL_AS(tell_row, "proposal", t.proposal, COL_PLAIN),
    COL_AS(tell_row, "epoch", t.epoch, COL_PLAIN),
    COL_AS(tell_row, "value", t.value, COL_PLAIN),
    COL_AS(tell_row, "done", t.done, COL_PLAIN),
    COL_AS(tell_row, "kind", t.kind, COL_PLAIN),
    COL_AS(tell_row, "seconds", t.seconds, COL_PLAIN),
    COL_AS(tell_row, "joules", t.joules, COL_PLAIN),
    COL_AS(tell_row, "start_seconds", t.start_seconds, COL_PLAIN),
};

static const struct col search_cols[] = {
    COL(search_row, study, COL_PLAIN),
    COL(search_row, state, COL_PLAIN),
};

static const struct col decision_cols[] = {
    COL(decision_row, study, COL_PLAIN),
    COL_AS(decision_row, "seq", d.seq, COL_PLAIN),
    COL_AS(decision_row, "trial", d.trial, COL_PLAIN),
    COL_AS(decision_row, "t_s", d.t_s, COL_PLAIN),
    COL_AS(decision_row, "kind", d.kind, COL_PLAIN),
    COL_AS(decision_row, "setting", d.setting, COL_PLAIN),
    COL_AS(decision_row, "reason", d.reason, COL_PLAIN),
};

static const struct col log_cols[] = {
    COL(log_row, study, COL_PLAIN),
    COL(log_row, seq, COL_PLAIN),
    COL(log_row, text, COL_PLAIN),
};

static const struct col sample_cols[] = {
    COL(sample_row, trial, COL_PLAIN),
    COL_AS(sample_row, "t_ms", s.t_ms, COL_PLAIN),
    COL_AS(sample_row, "dt_ms", s.dt_ms, COL_PLAIN),
    COL_AS(sample_row, "node", s.node, COL_PLAIN),
    COL_AS(sample_row, "scope", s.scope, COL_PLAIN),
    COL_AS(sample_row, "cpu_s", s.cpu_s, COL_PLAIN),
    COL(sample_row, features, COL_PLAIN),
    COL_AS(sample_row, "value", values, COL_PLAIN),
    COL(sample_row, cells, COL_PLAIN),
    COL_AS(sample_row, "(SELECT names FROM features WHERE id = samples.features)", names, COL_DERIVED),
};

static const struct col profile_cols[] = {
    COL(profile_row, trial, COL_PLAIN),
    COL_AS(profile_row, "seq", p.seq, COL_PLAIN),
    COL_AS(profile_row, "epoch", p.epoch, COL_PLAIN),
    COL_AS(profile_row, "t_from_ms", p.t_from_ms, COL_PLAIN),
    COL_AS(profile_row, "t_to_ms", p.t_to_ms, COL_PLAIN),
    COL_AS(profile_row, "setting", p.setting, COL_PLAIN),
    COL_AS(profile_row, "vector", p.vector, COL_PLAIN),
    COL_AS(profile_row, "verdict", p.verdict, COL_PLAIN),
};

static const struct col energy_cols[] = {
    COL(energy_row, study, COL_PLAIN),
    COL_AS(energy_row, "node", r.node, COL_PLAIN),
    COL_AS(energy_row, "meter", r.meter, COL_PLAIN),
    COL_AS(energy_row, "from_ms", r.from_ms, COL_PLAIN),
    COL_AS(energy_row, "to_ms", r.to_ms, COL_PLAIN),
    COL_AS(energy_row, "value", r.value, COL_PLAIN),
    COL_AS(energy_row, "error", r.error, COL_PLAIN),
    COL_AS(energy_row, "state", r.state, COL_PLAIN),
};

static const struct col model_cols[] = {
    COL(model_row, name, COL_PLAIN),
    COL(model_row, version, COL_PLAIN),
};

static const struct col summary_cols[] = {
    COL(store_summary, name, COL_DERIVED),        COL(store_summary, state, COL_DERIVED),
    COL(store_summary, trials, COL_DERIVED),      COL(store_summary, done, COL_DERIVED),
    COL(store_summary, failed, COL_DERIVED),      COL(store_summary, paused, COL_DERIVED),
    COL(store_summary, stopped, COL_DERIVED),     COL(store_summary, seconds, COL_DERIVED),
    COL(store_summary, created_ms, COL_DERIVED),  COL(store_summary, ended_ms, COL_DERIVED),
    COL(store_summary, best_trial, COL_DERIVED),  COL(store_summary, best_accuracy, COL_DERIVED),
    COL(store_summary, best_metric, COL_DERIVED), COL(store_summary, metric, COL_DERIVED),
};

static const struct col since_cols[] = {
    COL_AS(store_since, "a.id", id, COL_DERIVED),         COL_AS(store_since, "a.trial", trial, COL_DERIVED),
    COL_AS(store_since, "t.study", study, COL_DERIVED),   COL_AS(store_since, "s.name", name, COL_DERIVED),
    COL_AS(store_since, "t.number", number, COL_DERIVED), COL_AS(store_since, "a.number", attempt, COL_DERIVED),
    COL_AS(store_since, "a.state", state, COL_DERIVED),   COL_AS(store_since, "a.outcome", outcome, COL_DERIVED),
};

static const struct col mark_cols[] = {
    COL(news_mark, number, COL_DERIVED),  COL(news_mark, state, COL_DERIVED),    COL(news_mark, metric, COL_DERIVED),
    COL(news_mark, seconds, COL_DERIVED), COL(news_mark, violates, COL_DERIVED),
};

const struct table schema_studies = TABLE("studies", study_cols);
const struct table schema_trials = TABLE("trials", trial_cols);
const struct table schema_attempts = TABLE("attempts", attempt_cols);
const struct table schema_queue = TABLE("queue", queue_cols);
const struct table schema_requests = TABLE("requests", request_cols);
static const struct table epochs = TABLE("epochs", epoch_cols);
static const struct table series = TABLE("series", series_cols);
static const struct table members = TABLE("members", member_cols);
static const struct table checkpoints = TABLE("checkpoints", checkpoint_cols);
static const struct table results = TABLE("results", result_cols);
const struct table schema_handed = TABLE("handed", handed_cols);
static const struct table contents = TABLE("contents", content_cols);
static const struct table sources = TABLE("sources", source_cols);
static const struct table notes = TABLE("notes", note_cols);
static const struct table tells = TABLE("tells", tell_cols);
static const struct table searches = TABLE("searches", search_cols);
static const struct table decisions = TABLE("decisions", decision_cols);
static const struct table logs = TABLE("tuner_log", log_cols);
static const struct table samples = TABLE("samples", sample_cols);
static const struct table profiles = TABLE("profiles", profile_cols);
static const struct table models = TABLE("models", model_cols);
static const struct table energy = TABLE("energy", energy_cols);
static const struct table summaries = TABLE("", summary_cols);
static const struct table since =
    TABLE("attempts a CROSS JOIN trials t ON t.id = a.trial CROSS JOIN studies s ON s.id = t.study", since_cols);
static const struct table marks = TABLE("", mark_cols);

/* --- statements --- */
/* The columns of summary_cols in their order. Every part of the inner query is answered by the index trials_summary alone; among
 * equally good trials the lowest number is the best. One that does not keep a constraint is none. */
#define BEST_OF(in_state)                                                                                              \
    "(SELECT min(b.number) FROM trials b INDEXED BY trials_summary"                                                    \
    " WHERE b.study = s.id AND b.violates IS NULL AND b.state " in_state " AND b.metric ="                             \
    "  CASE WHEN s.maximise THEN (SELECT max(m.metric) FROM trials m WHERE m.study = s.id AND m.violates IS NULL"      \
    "   AND m.state " in_state ")"                                                                                     \
    "  ELSE (SELECT min(m.metric) FROM trials m WHERE m.study = s.id AND m.violates IS NULL AND m.state " in_state     \
    ") END)"

/* Of points that were trained again, the original counts, too, if it is finished. */
#define MEAN_OF_REPEATS                                                                                                \
    "(sum(r.metric) + coalesce(o.metric * (o.state = 'finished'), 0)) / (count(r.metric) +"                            \
    " (o.state = 'finished' AND o.metric IS NOT NULL))"
#define BEST_BY_MEAN                                                                                                   \
    "(SELECT r.repeat_of FROM trials r INDEXED BY trials_repeats JOIN trials o"                                        \
    " ON o.study = r.study AND o.number = r.repeat_of JOIN studies y ON y.id = r.study"                                \
    " WHERE r.study = s.id AND r.repeat_of > 0 AND r.state = 'finished' AND r.metric IS NOT NULL"                      \
    " AND r.violates IS NULL AND o.violates IS NULL GROUP BY r.repeat_of"                                              \
    " ORDER BY CASE WHEN y.maximise THEN -(" MEAN_OF_REPEATS ") ELSE " MEAN_OF_REPEATS " END, r.repeat_of LIMIT 1)"

static const char list_sql[] =
    "SELECT name, state, trials, done, failed, paused, stopped, seconds, created_ms, ended_ms, coalesce(best, 0),"
    " (SELECT accuracy FROM trials WHERE study = q.id AND number = q.best),"
    " (SELECT metric FROM trials WHERE study = q.id AND number = q.best),"
    " (SELECT CASE WHEN json_valid(config) THEN json_extract(config, '$.study.metric') END FROM studies WHERE id = "
    "q.id)"
    " FROM (SELECT s.id, s.name, s.state, s.created_ms, s.ended_ms, count(t.study) AS trials,"
    "  count(*) FILTER (WHERE t.state = 'finished') AS done,"
    "  count(*) FILTER (WHERE t.state IN ('failed', 'infeasible')) AS failed,"
    "  count(*) FILTER (WHERE t.state = 'paused') AS paused,"
    "  count(*) FILTER (WHERE t.state = 'stopped') AS stopped,"
    "  total(t.seconds) AS seconds,"
    "  coalesce(" BEST_BY_MEAN ", " BEST_OF("= 'finished'") ", " BEST_OF(
        "IN ('paused', 'stopped')") ") AS best"
                                    "  FROM studies s LEFT JOIN trials t INDEXED BY trials_summary ON t.study = s.id"
                                    "  WHERE ?1 IS NULL OR s.id = ?1"
                                    "  GROUP BY s.id ORDER BY s.id) q";

/* A figure of each epoch, where the trial did not tell it by that name itself. */
#define OR_OF_EPOCHS(name, value)                                                                                      \
    " UNION ALL SELECT e.trial, '" name "', 0, e.epoch, e.attempt, e.end_ms, e." value                                 \
    " FROM epochs e WHERE e.trial = ?1 AND NOT EXISTS(SELECT 1 FROM series s WHERE s.trial = e.trial"                  \
    "  AND s.name = '" name "' AND s.step = 0 AND s.epoch = e.epoch AND s.value IS NOT NULL)"

/* The columns of series_cols. */
/* clang-format off */
static const char handed_values_sql[] =
    "SELECT trial, name, step, epoch, attempt, at_ms, value FROM ("
    "SELECT trial, name, step, epoch, attempt, at_ms, value FROM series WHERE trial = ?1"
    OR_OF_EPOCHS("accuracy", "accuracy")
    OR_OF_EPOCHS("loss", "loss")
    OR_OF_EPOCHS("learning_rate", "learning_rate")
    OR_OF_EPOCHS("system/epoch_seconds", "seconds")
    ") WHERE value IS NOT NULL AND epoch BETWEEN ?2 AND ?5 AND (epoch, name, step) > (?2, ?3, ?4)"
    " ORDER BY epoch, name, step LIMIT ?6";
/* clang-format on */

enum verb { RAW, INSERT, KEEP, REPLACE, UPDATE, SELECT };

/* KEEP: adds a row; one that is there stays. */
static const struct recipe {
    enum verb verb;
    const struct table *table;
    const char *text; /* RAW: all of it; SELECT: what follows the table's name */
} recipes[STMT_COUNT] = {
    /* A writer takes its lock at the start: a deferred one could find the file changed when it comes to write. */
    [STMT_BEGIN] = { RAW, NULL, "BEGIN IMMEDIATE" },
    [STMT_COMMIT] = { RAW, NULL, "COMMIT" },
    [STMT_STUDY_FIND] = { SELECT, &schema_studies, "WHERE name = ?1" },
    [STMT_STUDY_ADD] = { INSERT, &schema_studies, NULL },
    [STMT_STUDY_CONFIG] = { RAW, NULL, "UPDATE studies SET config = ?2 WHERE id = ?1" },
    [STMT_STUDY_STATE] = { RAW, NULL, "UPDATE studies SET state = ?2, ended_ms = ?3 WHERE id = ?1" },
    [STMT_DATA_VERSION] = { RAW, NULL, "PRAGMA data_version" },
    [STMT_LIST] = { RAW, &summaries, list_sql }, /* ?1: the one study that is asked for; NULL: all */
    [STMT_MARKS] = { RAW, &marks,
                     "SELECT number, state, metric, seconds, violates IS NOT NULL FROM trials INDEXED BY trials_summary"
                     " WHERE study = ?1" },
    [STMT_TRIAL_ADD] = { INSERT, &schema_trials, NULL },
    [STMT_TRIAL_UPDATE] = { UPDATE, &schema_trials, NULL },
    [STMT_TRIALS] = { SELECT, &schema_trials, "WHERE study = ?1 AND number BETWEEN ?2 AND ?3 ORDER BY number" },
    [STMT_TWIN] = { RAW, NULL,
                    "SELECT min(number) FROM trials WHERE study = ?1 AND state = 'finished' AND repeat_of = 0 AND "
                    "hyper IS ?2"
                    " AND (?3 IS NULL OR effective IS ?3) AND epochs = ?4" },
    [STMT_NEXT_SEQ] = { RAW, NULL,
                        "SELECT 1 + max((SELECT coalesce(max(ask_seq), 0) FROM trials WHERE study = ?1),"
                        " (SELECT coalesce(max(seq), 0) FROM tells WHERE study = ?1))" },
    [STMT_ATTEMPT_ADD] = { INSERT, &schema_attempts, NULL },
    [STMT_ATTEMPT_UPDATE] = { UPDATE, &schema_attempts, NULL },
    [STMT_ATTEMPTS] = { SELECT, &schema_attempts, "WHERE trial = ?1 ORDER BY number" },
    [STMT_NEXT_ATTEMPT] = { RAW, NULL, "SELECT 1 + coalesce(max(number), 0) FROM attempts WHERE trial = ?1" },
    [STMT_STUDY_BASE] = { RAW, NULL,
                          "SELECT a.started_ms - a.started_boot_ms FROM attempts a JOIN trials t ON t.id = a.trial"
                          " WHERE t.study = ?1 AND a.boot_id = ?2 AND a.started_boot_ms > 0 ORDER BY a.id LIMIT 1" },
    [STMT_READ_BEGIN] = { RAW, NULL, "BEGIN" },
    [STMT_NEWEST] = { RAW, NULL,
                      "SELECT (SELECT coalesce(max(id), 0) FROM attempts),"
                      " (SELECT coalesce(max(seq), 0) FROM decisions WHERE study = ?1)" },
    [STMT_ATTEMPTS_AFTER] = { SELECT, &since, "WHERE (?1 = 0 OR t.study = ?1) AND a.id > ?2 ORDER BY a.id LIMIT ?3" },
    [STMT_ATTEMPTS_OPEN] = { SELECT, &since, "WHERE (?1 = 0 OR t.study = ?1) AND a.state <> 'ended' ORDER BY a.id" },
    [STMT_ATTEMPT_NEWS] = { SELECT, &since, "WHERE a.id = ?1" },
    [STMT_EPOCHS_AFTER] = { SELECT, &epochs, "WHERE trial = ?1 AND epoch > ?2 AND attempt = ?3 ORDER BY epoch" },
    [STMT_EPOCHS_COUNT] = { RAW, NULL,
                            "SELECT count(*) FROM trials t CROSS JOIN epochs e ON e.trial = t.id WHERE t.study = ?1" },
    [STMT_DECISIONS_AFTER] = { SELECT, &decisions, "WHERE study = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3" },
    [STMT_STUDIES_STATES] = { RAW, NULL, "SELECT id, state FROM studies ORDER BY id" },
    [STMT_EPOCH_PUT] = { REPLACE, &epochs, NULL },
    [STMT_EPOCHS] = { SELECT, &epochs, "WHERE trial = ?1 ORDER BY epoch" },
    [STMT_BEST_AT] = { RAW, NULL,
                       "SELECT CASE WHEN ?3 THEN max(e.metric) ELSE min(e.metric) END FROM epochs e"
                       " JOIN trials t ON t.id = e.trial WHERE t.study = ?1 AND e.epoch = ?2" },
    [STMT_BEST_SEEN] = { RAW, NULL,
                         "SELECT t.number, e.epoch, e.metric FROM epochs e JOIN trials t ON t.id = e.trial"
                         " WHERE t.study = ?1 AND e.metric IS NOT NULL AND t.state IN ('finished', 'paused', 'stopped')"
                         " ORDER BY CASE WHEN ?2 THEN -e.metric ELSE e.metric END, t.number, e.epoch LIMIT 1" },
    [STMT_SERIES_PUT] = { REPLACE, &series, NULL },
    [STMT_SERIES] = { SELECT, &series, "WHERE trial = ?1 ORDER BY name, step, epoch" },
    [STMT_SERIES_AT_END] = { RAW, NULL,
                             "SELECT value FROM series WHERE trial = ?1 AND name = ?2 AND step = 0"
                             " ORDER BY epoch DESC LIMIT 1" },
    [STMT_SERIES_HAS] = { RAW, NULL, "SELECT 1 FROM series WHERE trial > ?1 AND name = ?2 LIMIT 1" },
    [STMT_SERIES_LAST] = { RAW, NULL, "SELECT coalesce(max(step), 0) FROM series WHERE trial = ?1" },
    [STMT_SERIES_THIN] = { RAW, NULL, "DELETE FROM series WHERE trial = ?1 AND step % ?2 <> 0" },
    [STMT_MEMBER_PUT] = { REPLACE, &members, NULL },
    [STMT_MEMBERS] = { SELECT, &members, "WHERE trial = ?1 AND attempt = ?2 ORDER BY number" },
    [STMT_CHECKPOINT_PUT] = { REPLACE, &checkpoints, NULL },
    [STMT_CHECKPOINTS] = { SELECT, &checkpoints, "WHERE trial = ?1 ORDER BY epoch DESC" },
    [STMT_CHECKPOINT_FORGET] = { RAW, NULL, "DELETE FROM checkpoints WHERE trial = ?1 AND epoch = ?2" },
    [STMT_RESULT_PUT] = { REPLACE, &results, NULL },
    [STMT_RESULTS] = { SELECT, &results, "WHERE trial = ?1 ORDER BY name" },
    [STMT_RESULTS_COPY] = { RAW, NULL,
                            "INSERT INTO results(trial, name, value) SELECT ?1, r.name, r.value FROM results r"
                            " JOIN trials t ON t.id = r.trial JOIN trials own ON own.id = ?1"
                            " WHERE t.study = own.study AND t.number = own.copy_of" },
    [STMT_NOTE_PUT] = { KEEP, &notes, NULL },
    [STMT_NOTE_FORGET] = { RAW, NULL,
                           "DELETE FROM notes WHERE study = ?1 AND trial = ?2 AND (?3 IS NULL OR text = ?3)" },
    [STMT_NOTES] = { SELECT, &notes, "WHERE study = ?1 AND (?2 < 0 OR trial = ?2) ORDER BY trial, at_ms, text" },
    [STMT_HANDED_GET] = { SELECT, &schema_handed, "WHERE study = ?1 AND target = ?2 AND trial = ?3" },
    [STMT_HANDED_PUT] = { REPLACE, &schema_handed, NULL },
    [STMT_HANDED_FORGET] = { RAW, NULL, "DELETE FROM handed WHERE study = ?1 AND target = ?2" },
    [STMT_HANDED_OPEN] = { RAW, NULL,
                           "SELECT t.number FROM trials t WHERE t.study = ?1 AND t.state <> 'waiting'"
                           " AND (t.state IN ('running', 'paused', 'interrupted') OR NOT EXISTS(SELECT 1 FROM handed h"
                           "  WHERE h.study = ?1 AND h.target = ?2 AND h.trial = t.number AND h.done)) ORDER BY "
                           "t.number" },
    [STMT_HANDED_VALUES] = { RAW, &series, handed_values_sql },
    [STMT_HANDED_DECISIONS] = { SELECT, &decisions,
                                "WHERE study = ?1 AND trial = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4" },
    [STMT_LAST_EPOCH] = { RAW, NULL, "SELECT coalesce(max(epoch), 0) FROM epochs WHERE trial = ?1" },
    [STMT_CONTENT_PUT] = { KEEP, &contents, NULL },
    [STMT_SOURCE_ADD] = { INSERT, &sources, NULL },
    [STMT_SOURCES] = { SELECT, &sources, "WHERE study = ?1 ORDER BY name" },
    [STMT_TELL_ADD] = { INSERT, &tells, NULL },
    [STMT_TELLS] = { SELECT, &tells, "WHERE study = ?1 ORDER BY seq" },
    [STMT_SEARCH_PUT] = { REPLACE, &searches, NULL },
    [STMT_SEARCH_GET] = { SELECT, &searches, "WHERE study = ?1" },
    [STMT_DECISION_ADD] = { INSERT, &decisions, NULL },
    [STMT_DECISIONS] = { SELECT, &decisions,
                         "WHERE study = ?1 AND (?2 = 0 OR trial = ?2) AND seq > coalesce(?3, 0) ORDER BY seq" },
    [STMT_NEXT_DECISION] = { RAW, NULL, "SELECT 1 + coalesce(max(seq), 0) FROM decisions WHERE study = ?1" },
    [STMT_LOG_ADD] = { INSERT, &logs, NULL },
    [STMT_LOG] = { SELECT, &logs, "WHERE study = ?1 AND seq > coalesce(?2, 0) ORDER BY seq" },
    [STMT_NEXT_LOG] = { RAW, NULL, "SELECT 1 + coalesce(max(seq), 0) FROM tuner_log WHERE study = ?1" },
    [STMT_STUDY_DELETE] = { RAW, NULL, "DELETE FROM studies WHERE id = ?1" },
    [STMT_TRIAL_ATTEMPTS_DELETE] = { RAW, NULL, "DELETE FROM attempts WHERE trial = ?1" },
    [STMT_TRIAL_EPOCHS_DELETE] = { RAW, NULL, "DELETE FROM epochs WHERE trial = ?1" },
    [STMT_TRIAL_SERIES_DELETE] = { RAW, NULL, "DELETE FROM series WHERE trial = ?1" },
    [STMT_TRIAL_MEMBERS_DELETE] = { RAW, NULL, "DELETE FROM members WHERE trial = ?1" },
    [STMT_TRIAL_CHECKPOINTS_DELETE] = { RAW, NULL, "DELETE FROM checkpoints WHERE trial = ?1" },
    [STMT_TRIAL_RESULTS_DELETE] = { RAW, NULL, "DELETE FROM results WHERE trial = ?1" },
    [STMT_TRIAL_SAMPLES_DELETE] = { RAW, NULL, "DELETE FROM samples WHERE trial = ?1" },
    [STMT_TRIAL_PROFILES_DELETE] = { RAW, NULL, "DELETE FROM profiles WHERE trial = ?1" },
    [STMT_TRIAL_REMOVED] = { RAW, NULL,
                             "UPDATE trials SET state = 'failed', reason = 'removed', accuracy = NULL, loss = NULL,"
                             " metric = NULL, seconds = NULL, violates = NULL, copy_of = 0 WHERE id = ?1" },
    /* Those of versions without names have their CPU time in the text alone, and stay. */
    [STMT_SAMPLES_THICK] = { RAW, NULL,
                             "SELECT coalesce(sum(length(value)), 0) FROM samples"
                             " WHERE trial IN (SELECT id FROM trials WHERE study = ?1)" },
    [STMT_SAMPLES_THIN] = { RAW, NULL,
                            "UPDATE samples SET value = NULL WHERE value IS NOT NULL"
                            " AND trial IN (SELECT id FROM trials WHERE study = ?1)" },
    [STMT_VACUUM] = { RAW, NULL, "VACUUM" },
    [STMT_CHECKPOINT] = { RAW, NULL, "PRAGMA wal_checkpoint(TRUNCATE)" },
    [STMT_FEATURES_FIND] = { RAW, NULL,
                             "SELECT id FROM features WHERE study = (SELECT study FROM trials WHERE id = ?1)"
                             " AND names = ?2" },
    [STMT_FEATURES_ADD] = { RAW, NULL,
                            "INSERT INTO features(study, names) SELECT study, ?2 FROM trials WHERE id = ?1"
                            " RETURNING id" },
    [STMT_SAMPLE_ADD] = { INSERT, &samples, NULL },
    [STMT_SAMPLES] = { SELECT, &samples, "WHERE trial = ?1 ORDER BY t_ms, node, rowid" },
    [STMT_PROFILE_ADD] = { INSERT, &profiles, NULL },
    [STMT_PROFILES] = { SELECT, &profiles, "WHERE trial = ?1 ORDER BY seq" },
    [STMT_NEXT_PROFILE] = { RAW, NULL, "SELECT 1 + coalesce(max(seq), 0) FROM profiles WHERE trial = ?1" },
    [STMT_READING_ADD] = { INSERT, &energy, NULL },
    [STMT_READINGS] = { SELECT, &energy, "WHERE study = ?1 ORDER BY node, meter, to_ms, rowid" },
    [STMT_MODEL_GET] = { RAW, NULL, "SELECT json, version FROM models WHERE name = ?1" },
    /* ?2 is the version that the writer read: 0, none. */
    [STMT_MODEL_NEW] = { RAW, NULL,
                         "INSERT INTO models(name, version, json) VALUES(?1, 1 + ?2, ?3)"
                         " ON CONFLICT(name) DO NOTHING RETURNING version" },
    [STMT_MODEL_CHANGE] = { RAW, NULL,
                            "UPDATE models SET version = version + 1, json = ?3"
                            " WHERE name = ?1 AND version = ?2 RETURNING version" },
    [STMT_MODELS] = { SELECT, &models, "ORDER BY name" },
    [STMT_OUTBOX_ADD] = { RAW, NULL, "INSERT INTO outbox(id, line) VALUES(?1, ?2)" },
    /* ?1 < id <= ?2, as in all of these. */
    [STMT_OUTBOX_STATE] = { RAW, NULL,
                            "SELECT coalesce(max(id), ?1), count(*) FILTER (WHERE reason IS NULL),"
                            " coalesce(sum(length(CAST(line AS BLOB)) + 1) FILTER (WHERE reason IS NULL), 0),"
                            " coalesce(sum(length(CAST(line AS BLOB)) + 1) FILTER (WHERE reason IS NOT NULL), 0),"
                            " coalesce(min(id) FILTER (WHERE reason IS NULL) - 1, max(id), ?1)"
                            " FROM outbox WHERE id > ?1 AND id <= ?2" },
    [STMT_OUTBOX_READ] = { RAW, NULL,
                           "SELECT id, line FROM outbox WHERE id > ?1 AND id <= ?2 AND reason IS NULL ORDER BY id" },
    [STMT_OUTBOX_FORGET] = { RAW, NULL, "DELETE FROM outbox WHERE id > ?1 AND id <= ?2 AND reason IS NULL" },
    [STMT_OUTBOX_REJECT] = { RAW, NULL, "UPDATE outbox SET reason = ?3 WHERE id > ?1 AND id <= ?2 AND reason IS NULL" },
    [STMT_QUEUE_ADD] = { INSERT, &schema_queue, NULL },
    [STMT_QUEUE] = { SELECT, &schema_queue, "WHERE ?1 IS NULL OR study = ?1 ORDER BY id" },
    [STMT_QUEUE_FORGET] = { RAW, NULL, "DELETE FROM queue WHERE study = ?1 AND state IN ('stopped', 'done')" },
    [STMT_QUEUE_PUT] = { UPDATE, &schema_queue, NULL },
    [STMT_QUEUE_SHARE] = { RAW, NULL, "UPDATE queue SET share = ?2 WHERE id = ?1" },
    [STMT_QUEUE_USE] = { RAW, NULL, "UPDATE queue SET most = ?2, grain = ?3, to_go = ?4 WHERE id = ?1" },
    [STMT_QUEUE_TURN] = { RAW, NULL,
                          "UPDATE queue SET state = ?3 WHERE id = ?1 AND instr(' ' || ?2 || ' ', ' ' || state || ' "
                          "')" },
    [STMT_QUEUE_DELETE] = { RAW, NULL, "DELETE FROM queue WHERE study = (SELECT name FROM studies WHERE id = ?1)" },
    [STMT_REQUEST_ADD] = { INSERT, &schema_requests, NULL },
    [STMT_REQUEST_ANSWER] = { RAW, NULL, "UPDATE requests SET state = ?2, answer = ?3 WHERE id = ?1" },
    [STMT_REQUEST_FIND] = { SELECT, &schema_requests, "WHERE id = ?1" },
    [STMT_REQUESTS] = { SELECT, &schema_requests, "WHERE study = ?1 AND state = 'waiting' ORDER BY id" },
    [STMT_REQUESTS_DELETE] = { RAW, NULL,
                               "DELETE FROM requests WHERE study = (SELECT name FROM studies WHERE id = ?1)" },
    [STMT_CHANGES] = { RAW, NULL, "PRAGMA data_version" },
    [STMT_OUTBOX_DELETE] = { RAW, NULL, "DELETE FROM outbox WHERE id > ?1 << 40 AND id <= (?1 + 1) << 40" },
};

/* Whether the statement names this column; parameter i + 1 always belongs to column i. */
static bool names_col(enum verb verb, const struct col *c)
{
    switch (verb) {
    case INSERT:
    case KEEP:
    case REPLACE: return !(c->use & (COL_ROWID | COL_DERIVED));
    case UPDATE: return !(c->use & (COL_ROWID | COL_DERIVED | COL_FIXED));
    case RAW:
    case SELECT: break;
    }
    return true;
}

/* Each column that the statement names, by `put`, with commas between. */
static void put_cols(struct buf *out, const struct recipe *r, void (*put)(struct buf *, const struct col *, int))
{
    const char *sep = "";
    for (int i = 0; i < r->table->n; i++) {
        if (!names_col(r->verb, &r->table->cols[i]))
            continue;
        buf_puts(out, sep);
        put(out, &r->table->cols[i], i + 1);
        sep = ", ";
    }
}

static void put_name(struct buf *out, const struct col *c, int param)
{
    (void)param;
    buf_puts(out, c->name);
}

static void put_param(struct buf *out, const struct col *c, int param)
{
    (void)c;
    buf_printf(out, "?%d", param);
}

static void put_set(struct buf *out, const struct col *c, int param)
{
    buf_printf(out, "%s = ?%d", c->name, param);
}

static void put_insert(struct buf *out, const struct recipe *r)
{
    buf_printf(out, "%s INTO %s(", r->verb == REPLACE ? "REPLACE" : "INSERT", r->table->name);
    put_cols(out, r, put_name);
    buf_puts(out, ") VALUES(");
    put_cols(out, r, put_param);
    buf_puts(out, r->verb == KEEP ? ") ON CONFLICT DO NOTHING" : ")");
}

void schema_sql(struct buf *out, enum stmt_id id)
{
    const struct recipe *r = &recipes[id];
    switch (r->verb) {
    case RAW: buf_puts(out, r->text); break;
    case INSERT:
    case KEEP:
    case REPLACE: put_insert(out, r); break;
    case UPDATE:
        buf_printf(out, "UPDATE %s SET ", r->table->name);
        put_cols(out, r, put_set);
        buf_puts(out, " WHERE id = ?1");
        break;
    case SELECT:
        buf_puts(out, "SELECT ");
        put_cols(out, r, put_name);
        buf_printf(out, " FROM %s %s", r->table->name, r->text);
        break;
    }
}

/* --- between rows and statements --- */
static int bind_blob(sqlite3_stmt *st, int param, const struct blob *b)
{
    return b->bytes ? sqlite3_bind_blob64(st, param, b->bytes, b->len, SQLITE_STATIC) : sqlite3_bind_null(st, param);
}

static int bind_field(sqlite3_stmt *st, int param, const struct col *c, const char *p)
{
    switch (c->kind) {
    case COL_INT: return sqlite3_bind_int(st, param, *(const int *)(const void *)p);
    case COL_I64: return sqlite3_bind_int64(st, param, *(const int64_t *)(const void *)p);
    case COL_U64: return sqlite3_bind_int64(st, param, (int64_t)(*(const uint64_t *)(const void *)p));
    case COL_BOOL: return sqlite3_bind_int(st, param, *(const bool *)(const void *)p);
    case COL_REAL: return sqlite3_bind_double(st, param, *(const double *)(const void *)p); /* NAN becomes NULL */
    case COL_TEXT: return sqlite3_bind_text(st, param, *(const char *const *)(const void *)p, -1, SQLITE_STATIC);
    case COL_BLOB: return bind_blob(st, param, (const void *)p);
    }
    return SQLITE_MISUSE;
}

int schema_bind(sqlite3_stmt *st, enum stmt_id id, const void *row)
{
    const struct recipe *r = &recipes[id];
    int rc = SQLITE_OK;
    for (int i = 0; i < r->table->n && rc == SQLITE_OK; i++) {
        const struct col *c = &r->table->cols[i];
        if (names_col(r->verb, c) || (r->verb == UPDATE && c->use == COL_ROWID))
            rc = bind_field(st, i + 1, c, (const char *)row + c->offset);
    }
    return rc;
}

static double read_real(sqlite3_stmt *st, int i)
{
    return sqlite3_column_type(st, i) == SQLITE_NULL ? (double)NAN : sqlite3_column_double(st, i);
}

static int read_text(sqlite3_stmt *st, int i, char **out)
{
    bool null = sqlite3_column_type(st, i) == SQLITE_NULL;
    char *text = (char *)(uintptr_t)sqlite3_column_text(st, i); /* the contract's rows are const, their texts are not */
    if (!text && !null)
        return -ENOMEM;
    *out = text;
    return 0;
}

/* One of no bytes is there, too. */
static int read_blob(sqlite3_stmt *st, int i, struct blob *out)
{
    if (sqlite3_column_type(st, i) == SQLITE_NULL) {
        *out = (struct blob){ 0 };
        return 0;
    }
    const void *bytes = sqlite3_column_blob(st, i);
    size_t len = (size_t)sqlite3_column_bytes(st, i);
    if (!bytes && len > 0)
        return -ENOMEM;
    *out = (struct blob){ len > 0 ? bytes : "", len };
    return 0;
}

static int read_field(sqlite3_stmt *st, int i, const struct col *c, void *p)
{
    switch (c->kind) {
    case COL_INT: *(int *)p = sqlite3_column_int(st, i); break;
    case COL_I64: *(int64_t *)p = sqlite3_column_int64(st, i); break;
    case COL_U64: *(uint64_t *)p = (uint64_t)sqlite3_column_int64(st, i); break;
    case COL_BOOL: *(bool *)p = sqlite3_column_int(st, i) != 0; break;
    case COL_REAL: *(double *)p = read_real(st, i); break;
    case COL_TEXT: return read_text(st, i, p);
    case COL_BLOB: return read_blob(st, i, p);
    }
    return 0;
}

int schema_read(sqlite3_stmt *st, enum stmt_id id, void *row)
{
    const struct table *t = recipes[id].table;
    int rc = 0;
    for (int i = 0; i < t->n && rc == 0; i++)
        rc = read_field(st, i, &t->cols[i], (char *)row + t->cols[i].offset);
    return rc;
}

/* The i-th column's text field; NULL when it is of another kind. */
static char **text_field(const struct table *t, int i, void *row)
{
    return t->cols[i].kind == COL_TEXT ? (char **)(void *)((char *)row + t->cols[i].offset) : NULL;
}

int schema_own_texts(const struct table *t, void *row)
{
    bool failed = false;
    for (int i = 0; i < t->n; i++) {
        char **text = text_field(t, i, row);
        if (!text || !*text)
            continue;
        *text = failed ? NULL : strdup(*text);
        failed = failed || !*text;
    }
    if (failed)
        schema_free_texts(t, row);
    return failed ? -ENOMEM : 0;
}

void schema_free_texts(const struct table *t, void *row)
{
    for (int i = 0; row && i < t->n; i++) {
        char **text = text_field(t, i, row);
        if (!text)
            continue;
        free(*text);
        *text = NULL;
    }
}
