/* What happens in a study, on its way to InfluxDB: lines of monitoring/points handed to live/deliver. Optional: every call takes NULL, which is
 * what there is where the config names no server. Nothing here fails a study; what cannot be delivered is counted. */
#ifndef LIVE_PUBLISH_H
#define LIVE_PUBLISH_H

#include <jansson.h>
#include <uv.h>

#include "app/report.h"
#include "live/deliver.h"
#include "live/nodes.h"
#include "live/study.h"
#include "monitoring/meter.h"

struct publish;

/* *out is NULL where the config names no server. `note` is called with one line for people, from the loop. What could not be delivered waits
 * in the store, for the next run. -EINVAL, -EACCES, -errno: as deliver_open(). */
int publish_open(struct publish **out, struct study *s, uv_loop_t *loop, void (*note)(void *ctx, const char *text),
                 void *ctx, struct err *e);
void publish_close(struct publish *p); /* handles are closed by the loop */

void publish_reading(struct publish *p, int node, const struct meter_ops *meter, const struct meter_reading *r);
void publish_sample(struct publish *p, int trial, const struct nodes_sample *s);
void publish_epoch(struct publish *p, int trial, const struct store_epoch *row, int64_t now_ms);
void publish_step(struct publish *p, int trial, const struct app_report *ev, int64_t now_ms);
void publish_metrics(struct publish *p, int trial, int epoch, const json_t *metrics, int64_t now_ms);

/* An attempt of the trial has begun, or the trial (`ended`) is over or waits. */
void publish_trial(struct publish *p, const struct store_trial *row, int attempt, bool ended);

/* What is in force of the trial from now on: a JSON object of knobs; `cores` is what was read back, 0: that was not asked for. */
void publish_setting(struct publish *p, int trial, const char *setting, int cores);
void publish_decision(struct publish *p, const struct store_decision *d);

/* Runs the loop until all is delivered, or so long; what is told meanwhile is passed over. publish_hurry(), from within, makes
 * it the latter at once. */
void publish_end(struct publish *p, uv_loop_t *loop, int64_t within_ms);
void publish_hurry(struct publish *p);

struct deliver_counts publish_counts(const struct publish *p); /* zeros for NULL */

#endif
