/* What the store's file looks like: the SQL that makes and migrates it, which column holds which field of which struct, and the
 * text of every statement. Internal to src/store/. Nothing here decides anything; store.c does. */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "store/energy.h"
#include "store/handed.h"
#include "store/news.h"
#include "store/notes.h"
#include "store/queue.h"
#include "store/samples.h"
#include "store/series.h"
#include "store/since.h"
#include "store/store.h"

/* schema_steps[v] brings a file from schema v to v + 1. A step that was ever released is never edited. */
extern const char *const schema_steps[STORE_SCHEMA];

/* Runs steps[from] to steps[to - 1] and stamps the file with the application id and schema `to`, inside the caller's transaction.
 * Returns an SQLite code. */
int schema_apply(sqlite3 *db, const char *const *steps, int from, int to);

/* --- columns and fields --- */
enum col_kind { COL_INT, COL_I64, COL_U64, COL_BOOL, COL_REAL, COL_TEXT, COL_BLOB };

struct blob {          /* borrowed */
    const void *bytes; /* NULL: none */
    size_t len;
};

enum col_use {
    COL_PLAIN = 0,   /* written and read */
    COL_ROWID = 1,   /* chosen by SQLite on insert; finds the row of an update */
    COL_FIXED = 2,   /* inserted, never updated */
    COL_DERIVED = 4, /* only read; its name is an SQL expression */
};

struct col {
    const char *name;
    enum col_kind kind;
    enum col_use use;
    size_t offset;
};

struct table {
    const char *name;
    const struct col *cols;
    int n;
};

extern const struct table schema_studies, schema_trials, schema_attempts, schema_handed;
extern const struct table schema_studies, schema_trials, schema_attempts, schema_queue, schema_requests;

/* The two structs of the contract that carry no study of their own, with it. */
struct tell_row {
    int64_t study;
    struct store_tell t;
};
struct decision_row {
    int64_t study;
    struct store_decision d;
};

/* What the study's search is at. */
struct search_row {
    int64_t study;
    struct blob state;
};

/* One chunk of the tuner's log. */
struct log_row {
    int64_t study, seq;
    const char *text;
};

/* What was sampled, and what was made of it, with the trial. */
struct sample_row {
    int64_t trial;
    struct store_sample s;
    int64_t features;   /* the list that `values` are of; 0: none */
    struct blob values; /* monitoring/sample_blob.h */
    const char *cells;  /* what older versions wrote: monitoring/sample_text.h; "" since */
    const char *names;  /* of that list */
};
struct profile_row {
    int64_t trial;
    struct store_profile p;
};

/* What a meter read, with the study. */
struct energy_row {
    int64_t study;
    struct store_reading r;
};

/* A line of the list of models. */
struct model_row {
    const char *name;
    int64_t version;
};

/* A file of an application, and a content. */
struct content_row {
    const char *sha256;
    struct blob bytes;
};
struct source_row {
    int64_t study;
    const char *name, *path, *sha256;
    int mode;
    struct blob bytes; /* derived; none: it is not kept */
};

/* --- statements --- */
enum stmt_id {
    STMT_BEGIN,
    STMT_COMMIT,
    STMT_STUDY_FIND,
    STMT_STUDY_ADD,
    STMT_STUDY_STATE,
    STMT_STUDY_CONFIG,
    STMT_DATA_VERSION,
    STMT_LIST,
    STMT_MARKS,
    STMT_TRIAL_ADD,
    STMT_TRIAL_UPDATE,
    STMT_TRIALS,
    STMT_TWIN,
    STMT_NEXT_SEQ,
    STMT_ATTEMPT_ADD,
    STMT_ATTEMPT_UPDATE,
    STMT_ATTEMPTS,
    STMT_NEXT_ATTEMPT,
    STMT_STUDY_BASE,
    STMT_READ_BEGIN,
    STMT_NEWEST,
    STMT_ATTEMPTS_AFTER,
    STMT_ATTEMPTS_OPEN,
    STMT_ATTEMPT_NEWS,
    STMT_EPOCHS_AFTER,
    STMT_EPOCHS_COUNT,
    STMT_DECISIONS_AFTER,
    STMT_STUDIES_STATES,
    STMT_EPOCH_PUT,
    STMT_EPOCHS,
    STMT_BEST_AT,
    STMT_BEST_SEEN,
    STMT_SERIES_PUT,
    STMT_SERIES,
    STMT_SERIES_AT_END,
    STMT_SERIES_HAS,
    STMT_SERIES_LAST,
    STMT_SERIES_THIN,
    STMT_MEMBER_PUT,
    STMT_MEMBERS,
    STMT_CHECKPOINT_PUT,
    STMT_CHECKPOINTS,
    STMT_CHECKPOINT_FORGET,
    STMT_RESULT_PUT,
    STMT_RESULTS,
    STMT_RESULTS_COPY,
    STMT_NOTE_PUT,
    STMT_NOTE_FORGET,
    STMT_NOTES,
    STMT_HANDED_GET,
    STMT_HANDED_PUT,
    STMT_HANDED_FORGET,
    STMT_HANDED_OPEN,
    STMT_HANDED_VALUES,
    STMT_HANDED_DECISIONS,
    STMT_LAST_EPOCH,
    STMT_CONTENT_PUT,
    STMT_SOURCE_ADD,
    STMT_SOURCES,
    STMT_TELL_ADD,
    STMT_TELLS,
    STMT_SEARCH_PUT,
    STMT_SEARCH_GET,
    STMT_DECISION_ADD,
    STMT_DECISIONS,
    STMT_NEXT_DECISION,
    STMT_LOG_ADD,
    STMT_LOG,
    STMT_NEXT_LOG,
    STMT_STUDY_DELETE,
    STMT_TRIAL_ATTEMPTS_DELETE,
    STMT_TRIAL_EPOCHS_DELETE,
    STMT_TRIAL_SERIES_DELETE,
    STMT_TRIAL_MEMBERS_DELETE,
    STMT_TRIAL_CHECKPOINTS_DELETE,
    STMT_TRIAL_RESULTS_DELETE,
    STMT_TRIAL_SAMPLES_DELETE,
    STMT_TRIAL_PROFILES_DELETE,
    STMT_TRIAL_REMOVED,
    STMT_SAMPLES_THICK,
    STMT_SAMPLES_THIN,
    STMT_VACUUM,
    STMT_CHECKPOINT,
    STMT_FEATURES_FIND,
    STMT_FEATURES_ADD,
    STMT_SAMPLE_ADD,
    STMT_SAMPLES,
    STMT_PROFILE_ADD,
    STMT_PROFILES,
    STMT_NEXT_PROFILE,
    STMT_READING_ADD,
    STMT_READINGS,
    STMT_MODEL_GET,
    STMT_MODEL_NEW,
    STMT_MODEL_CHANGE,
    STMT_MODELS,
    STMT_OUTBOX_ADD,
    STMT_OUTBOX_STATE,
    STMT_OUTBOX_READ,
    STMT_OUTBOX_FORGET,
    STMT_OUTBOX_REJECT,
    STMT_OUTBOX_DELETE,
    STMT_QUEUE_ADD,
    STMT_QUEUE,
    STMT_QUEUE_FORGET,
    STMT_QUEUE_PUT,
    STMT_QUEUE_SHARE,
    STMT_QUEUE_USE,
    STMT_QUEUE_TURN,
    STMT_QUEUE_DELETE,
    STMT_REQUEST_ADD,
    STMT_REQUEST_ANSWER,
    STMT_REQUEST_FIND,
    STMT_REQUESTS,
    STMT_REQUESTS_DELETE,
    STMT_CHANGES,
    STMT_COUNT
};

/* Appends the statement's text. */
void schema_sql(struct buf *out, enum stmt_id id);

/* Binds the fields of `row` to an INSERT or UPDATE; texts must live until it has run. Returns an SQLite code. */
int schema_bind(sqlite3_stmt *st, enum stmt_id id, const void *row);

/* Fills `row` from the current row; its texts belong to the statement and live until its next step. 0 or -ENOMEM. */
int schema_read(sqlite3_stmt *st, enum stmt_id id, void *row);

/* Makes the texts of a row that was copied from elsewhere its own. 0, or -ENOMEM with no text in it left. */
int schema_own_texts(const struct table *t, void *row);
void schema_free_texts(const struct table *t, void *row);

#endif
