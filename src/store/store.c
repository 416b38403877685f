#include "store/store.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

#include "store/conn.h"
#include "store/schema.h"

/* Runs an update that must find its row. */
static int change_one(struct conn_query *q, const char *what, int64_t id, struct err *e)
{
    int rc = conn_query_step(q, e);
    if (rc == 0 && sqlite3_changes(q->s->db) == 0)
        return err_set(e, -ENOENT, "cannot write store '%s': there is no %s %lld", q->s->path, what, (long long)id);
    return rc;
}

static int update_row(struct store *s, enum stmt_id id, const void *row, const char *what, int64_t row_id,
                      struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0) {
        AUTO_QUERY struct conn_query q;
        rc = conn_query_init(&q, s, id, e);
        if (rc == 0)
            rc = conn_query_bind_row(&q, row, e);
        if (rc == 0)
            rc = change_one(&q, what, row_id, e);
    }
    return conn_write_end(s, own, rc, e);
}

/* --- studies --- */
void store_study_done(struct store_study *row)
{
    schema_free_texts(&schema_studies, row);
}

int store_study_find(struct store *s, const char *name, struct store_study *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_study row;
    int rc = conn_query_init(&q, s, STMT_STUDY_FIND, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 1, name, e);
    if (rc == 0)
        rc = conn_query_next(&q, &row, e);
    if (rc <= 0)
        return rc;
    if (schema_own_texts(&schema_studies, &row) < 0)
        return conn_query_fail(&q, SQLITE_NOMEM, e);
    *out = row;
    return 1;
}

int store_study_add(struct store *s, const struct store_study *row, int64_t *out_id, struct err *e)
{
    bool own;
    int64_t id = 0;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_STUDY_ADD, row, &id, e);
    if (rc == -EEXIST)
        (void)err_set(e, rc, "cannot write store '%s': study '%s' is there already", s->path, row->name);
    rc = conn_write_end(s, own, rc, e);
    if (rc == 0)
        *out_id = id;
    return rc;
}

int store_study_set_config(struct store *s, int64_t study, const char *config, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0) {
        AUTO_QUERY struct conn_query q;
        rc = conn_query_init_for(&q, s, STMT_STUDY_CONFIG, study, e);
        if (rc == 0)
            rc = conn_query_bind_text(&q, 2, config, e);
        if (rc == 0)
            rc = change_one(&q, "study", study, e);
    }
    return conn_write_end(s, own, rc, e);
}

int store_study_set_state(struct store *s, int64_t study, const char *state, int64_t ended_ms, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0) {
        AUTO_QUERY struct conn_query q;
        rc = conn_query_init_for(&q, s, STMT_STUDY_STATE, study, e);
        if (rc == 0)
            rc = conn_query_bind_text(&q, 2, state, e);
        if (rc == 0)
            rc = conn_query_bind_i64(&q, 3, ended_ms, e);
        if (rc == 0)
            rc = change_one(&q, "study", study, e);
    }
    return conn_write_end(s, own, rc, e);
}

int store_list(struct store *s, int (*row)(void *ctx, const struct store_summary *r), void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_summary r;
    int rc = conn_query_init(&q, s, STMT_LIST, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
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
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_next_number(s, STMT_NEXT_SEQ, t.study, &t.ask_seq, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_TRIAL_ADD, &t, &t.id, e);
    if (rc == -EEXIST)
        (void)err_set(e, rc, "cannot write store '%s': trial %d is there already", s->path, t.number);
    rc = conn_write_end(s, own, rc, e);
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
    AUTO_QUERY struct conn_query q;
    struct store_trial r;
    int rc = conn_query_init_for(&q, s, STMT_TRIALS, study, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, number, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 3, number == 0 ? INT_MAX : number, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

int store_trial_twin(struct store *s, int64_t study, const char *hyper, const char *effective, int epochs,
                     int *out_number, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_TWIN, study, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 2, hyper, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 3, effective, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 4, epochs, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
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
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_next_number(s, STMT_NEXT_ATTEMPT, a.trial, &number, e);
    a.number = (int)number;
    if (rc == 0)
        rc = conn_insert(s, STMT_ATTEMPT_ADD, &a, &a.id, e);
    rc = conn_write_end(s, own, rc, e);
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
    AUTO_QUERY struct conn_query q;
    struct store_attempt r;
    int rc = conn_query_init_for(&q, s, STMT_ATTEMPTS, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

int store_study_base(struct store *s, int64_t study, const char *boot_id, int64_t *out_ms, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_STUDY_BASE, study, e);
    if (rc == 0)
        rc = conn_query_bind_text(&q, 2, boot_id, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1)
        *out_ms = sqlite3_column_int64(q.st, 0);
    return rc;
}

/* --- epochs --- */
int store_epoch_put(struct store *s, const struct store_epoch *row, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_EPOCH_PUT, row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_epochs(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_epoch *r), void *ctx,
                 struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_epoch r;
    int rc = conn_query_init_for(&q, s, STMT_EPOCHS, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

int store_best_at(struct store *s, int64_t study, int epoch, bool maximise, double *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_BEST_AT, study, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, epoch, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 3, maximise, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1)
        *out = sqlite3_column_type(q.st, 0) == SQLITE_NULL ? NAN : sqlite3_column_double(q.st, 0);
    return rc < 0 ? rc : 0;
}

int store_best_seen(struct store *s, int64_t study, bool maximise, struct store_seen *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, STMT_BEST_SEEN, study, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, maximise, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    if (rc == 1)
        *out = (struct store_seen){ sqlite3_column_int(q.st, 0), sqlite3_column_int(q.st, 1),
                                    sqlite3_column_double(q.st, 2) };
    return rc;
}

/* --- members --- */
int store_member_put(struct store *s, const struct store_member *row, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_MEMBER_PUT, row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_members(struct store *s, int64_t trial, int attempt, int (*row)(void *ctx, const struct store_member *r),
                  void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_member r;
    int rc = conn_query_init_for(&q, s, STMT_MEMBERS, trial, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, attempt, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

/* --- checkpoints --- */
int store_checkpoint_put(struct store *s, const struct store_checkpoint *row, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_CHECKPOINT_PUT, row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_checkpoint_forget(struct store *s, int64_t trial, int epoch, struct err *e)
{
    bool own;
    AUTO_QUERY struct conn_query q = { 0 };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_query_init_for(&q, s, STMT_CHECKPOINT_FORGET, trial, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, epoch, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    return conn_write_end(s, own, rc, e);
}

int store_checkpoints(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_checkpoint *r),
                      void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_checkpoint r;
    int rc = conn_query_init_for(&q, s, STMT_CHECKPOINTS, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

/* --- results --- */
int store_result_put(struct store *s, const struct store_result *row, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_RESULT_PUT, row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_results(struct store *s, int64_t trial, int (*row)(void *ctx, const struct store_result *r), void *ctx,
                  struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct store_result r;
    int rc = conn_query_init_for(&q, s, STMT_RESULTS, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r);
    return rc;
}

int store_results_copy(struct store *s, int64_t trial, struct err *e)
{
    bool own;
    AUTO_QUERY struct conn_query q = { 0 };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_query_init_for(&q, s, STMT_RESULTS_COPY, trial, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    return conn_write_end(s, own, rc, e);
}

/* --- tells --- */
int store_tell_add(struct store *s, int64_t study, struct store_tell *t, struct err *e)
{
    bool own;
    struct tell_row row = { study, *t };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_next_number(s, STMT_NEXT_SEQ, study, &row.t.seq, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_TELL_ADD, &row, NULL, e);
    rc = conn_write_end(s, own, rc, e);
    if (rc == 0)
        t->seq = row.t.seq;
    return rc;
}

int store_tells(struct store *s, int64_t study, int (*row)(void *ctx, const struct store_tell *t), void *ctx,
                struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct tell_row r;
    int rc = conn_query_init_for(&q, s, STMT_TELLS, study, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.t);
    return rc;
}

/* --- the search's state --- */
int store_search_put(struct store *s, int64_t study, const void *bytes, size_t len, struct err *e)
{
    bool own;
    struct search_row row = { study, { len ? bytes : "", len } };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_SEARCH_PUT, &row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_search_get(struct store *s, int64_t study, struct buf *out, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct search_row row;
    int rc = conn_query_init_for(&q, s, STMT_SEARCH_GET, study, e);
    if (rc == 0)
        rc = conn_query_next(&q, &row, e);
    if (rc == 1)
        buf_put(out, row.state.bytes, row.state.len);
    return rc == 1 && out->failed ? conn_query_fail(&q, SQLITE_NOMEM, e) : rc;
}

/* --- decisions --- */
int store_decision_add(struct store *s, int64_t study, const struct store_decision *d, struct err *e)
{
    bool own;
    struct decision_row row = { study, *d };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_next_number(s, STMT_NEXT_DECISION, study, &row.d.seq, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_DECISION_ADD, &row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_decisions(struct store *s, int64_t study, int trial, int (*row)(void *ctx, const struct store_decision *d),
                    void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct decision_row r;
    int rc = conn_query_init_for(&q, s, STMT_DECISIONS, study, e);
    if (rc == 0)
        rc = conn_query_bind_i64(&q, 2, trial, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, &r.d);
    return rc;
}

/* --- the tuner's log --- */
int store_tuner_log_add(struct store *s, int64_t study, const char *text, struct err *e)
{
    bool own;
    struct log_row row = { .study = study, .text = text };
    int rc = conn_write_begin(s, &own, e);
    if (rc == 0)
        rc = conn_next_number(s, STMT_NEXT_LOG, study, &row.seq, e);
    if (rc == 0)
        rc = conn_insert(s, STMT_LOG_ADD, &row, NULL, e);
    return conn_write_end(s, own, rc, e);
}

int store_tuner_log(struct store *s, int64_t study, int (*row)(void *ctx, const char *text), void *ctx, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    struct log_row r;
    int rc = conn_query_init_for(&q, s, STMT_LOG, study, e);
    while (rc == 0 && (rc = conn_query_next(&q, &r, e)) == 1)
        rc = row(ctx, r.text);
    return rc;
}
