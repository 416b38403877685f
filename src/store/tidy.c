#include "store/tidy.h"

#include "base/own.h"
#include "store/conn.h"
#include "store/schema.h"

static int run_for(struct store *s, enum stmt_id id, int64_t owner, struct err *e)
{
    AUTO_QUERY struct conn_query q;
    int rc = conn_query_init_for(&q, s, id, owner, e);
    if (rc == 0)
        rc = conn_query_step(&q, e);
    return rc < 0 ? rc : 0;
}

static int write_all(struct store *s, const enum stmt_id *list, size_t n, int64_t owner, struct err *e)
{
    bool own;
    int rc = conn_write_begin(s, &own, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = run_for(s, list[i], owner, e);
    return conn_write_end(s, own, rc, e);
}

int store_study_remove(struct store *s, int64_t study, struct err *e)
{
    static const enum stmt_id all[] = { STMT_OUTBOX_DELETE, STMT_QUEUE_DELETE, STMT_REQUESTS_DELETE,
                                        STMT_STUDY_DELETE };
    return write_all(s, all, ARRAY_LEN(all), study, e);
}

int store_trial_remove(struct store *s, int64_t trial, struct err *e)
{
    static const enum stmt_id all[] = { STMT_TRIAL_ATTEMPTS_DELETE, STMT_TRIAL_EPOCHS_DELETE,
                                        STMT_TRIAL_SERIES_DELETE,   STMT_TRIAL_CHECKPOINTS_DELETE,
                                        STMT_TRIAL_SAMPLES_DELETE,  STMT_TRIAL_PROFILES_DELETE,
                                        STMT_TRIAL_RESULTS_DELETE,  STMT_TRIAL_MEMBERS_DELETE,
                                        STMT_TRIAL_REMOVED };
    return write_all(s, all, ARRAY_LEN(all), trial, e);
}

int store_samples_thick(struct store *s, int64_t study, int64_t *out_bytes, struct err *e)
{
    return conn_next_number(s, STMT_SAMPLES_THICK, study, out_bytes, e);
}

int store_samples_thin(struct store *s, int64_t study, struct err *e)
{
    static const enum stmt_id all[] = { STMT_SAMPLES_THIN };
    return write_all(s, all, ARRAY_LEN(all), study, e);
}

int store_vacuum(struct store *s, struct err *e)
{
    static const enum stmt_id all[] = { STMT_VACUUM, STMT_CHECKPOINT };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(all); i++) {
        AUTO_QUERY struct conn_query q;
        rc = conn_query_init(&q, s, all[i], e);
        if (rc == 0)
            rc = conn_query_step(&q, e);
        rc = rc > 0 ? 0 : rc; /* the second tells what it did in a row */
    }
    return rc;
}
