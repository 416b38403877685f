/* The config's "monitoring.events": which of the 58 events are counted. Pure.
 *
 *     "events": "instructions"    "events": ["instructions", "LLC-load-misses"]    "events": []   (none of them)
 *
 * A name that is there twice is there once. */
#ifndef MONITORING_EVENT_CHOICE_CFG_H
#define MONITORING_EVENT_CHOICE_CFG_H

#include "base/err.h"
#include "base/json.h"
#include "monitoring/event_choice.h"

/* All of them where there is no such key. -EINVAL names the line and the key, and the event that is nearest to what was written. */
int event_choice_cfg_read(struct event_choice *out, const struct json_doc *doc, struct err *e);

#endif
