/* The two CSV forms of recorded tuning runs. Pure.
 *
 *   tune-offline  lr,epochs,batch,error,error_resp,training_s,energy_uj
 *   tune-online   load,job,cores,lr,batch,epochs,queue_s,tuning_s,response_s,error,training_s,objective
 *                 and up to two more: joules of the tuning, joules of the training
 *
 * Lines as in core/csv.h. A first line that names the columns is skipped. A measured column (from error, or queue_s, on) may
 * be empty: not recorded, NAN. */
#ifndef CORE_TUNE_CSV_H
#define CORE_TUNE_CSV_H

#include <stddef.h>

#include "core/csv.h"

enum { TUNE_LOAD_MAX = 32, TUNE_JOB_MAX = 64 };

struct tune_offline_row {
    double lr, batch;
    int epochs;
    double error, error_resp, training_s;
    double energy_j; /* the file has microjoules */
};

struct tune_online_row {
    char load[TUNE_LOAD_MAX], job[TUNE_JOB_MAX];
    int cores, epochs;
    double lr, batch;
    double queue_s, tuning_s, response_s, error, training_s, objective;
    double tuning_j, training_j;
};

/* In the order of the file. */
struct tune_offline {
    struct tune_offline_row *rows;
    size_t n, cap;
};

struct tune_online {
    struct tune_online_row *rows;
    size_t n, cap;
};

/* Read what can be read, and add a fault for each broken row: whether those are an error, and whether no row at all is one, is
 * for the caller to say. The rows are added to those that *out holds (zeroed: none). -ENOMEM: *out holds the same rows as before. */
int tune_offline_parse(struct tune_offline *out, const char *text, size_t len, struct csv_faults *faults);
int tune_online_parse(struct tune_online *out, const char *text, size_t len, struct csv_faults *faults);

/* Appends the row, with its line end; what is not recorded is empty. */
void tune_online_put(struct buf *b, const struct tune_online_row *row);

void tune_offline_done(struct tune_offline *t);
void tune_online_done(struct tune_online *t);

#endif
