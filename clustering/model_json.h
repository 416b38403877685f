/* Models as JSON texts, for the store and for files; profiles and verdicts, too. Pure.
 *
 *     {"format":"pipetune-model","version":1,
 *      "vectors":"profiles",            or "raw": made elsewhere
 *      "next_id":4,
 *      "features":[{"name":"branches","per":"instructions","median":3.1,"iqr":0.4}, …],
 *                                       per: instructions, cpu-time, seconds, none; median and iqr null: never trained;
 *                                       raw: {"name":…} alone, null where it has none
 *      "clusters":[{"id":1,"count":12,"spread":1.02,
 *                   "centroid":[x,…],   one per feature; null: none of its members had it
 *                   "seen":[n,…],       members that had it
 *                   "squares":[x,…]},   sum of their squared deviations
 *                  …],                  raw: id, count and centroid alone
 *      "classes":[{"key":…,"family":…,"clusters":[{"id":1,"count":12},…],
 *                  "best":{"cores":2},"strength":2,"confirmations":0,"weakenings":0,
 *                  "entries":[{"setting":{…},"over":{…},"log_ratio":-0.3,"at_least":false,"n":2,"spread":0.01},…],
 *                  "infeasible":[{"setting":{…},"evidence":"…","n":1},…],
 *                  "evidence":{"study":…,"trial":3,"trials":2}}, …],
 *      "inertia":x}                     raw alone
 *
 * Every key must be there, and no other may be. `spread` is for readers: it follows from the rest, and is not taken over. */
#ifndef CLUSTERING_MODEL_JSON_H
#define CLUSTERING_MODEL_JSON_H

#include "base/buf.h"
#include "base/json.h"
#include "clustering/model.h"

#define MODEL_JSON_FORMAT "pipetune-model"

enum { MODEL_JSON_VERSION = 1 };

/* Appends the text, with a line per feature, cluster and class. */
void model_json_put(struct buf *b, const struct model *m);

/* -EINVAL: no model, damaged, of a newer version (says what to do), or beyond the limits of model.h; with name, line and key.
 * -ENOMEM. *out is untouched then. */
int model_json_read(struct model *out, const char *name, const char *text, size_t len, struct err *e);

/* Appends {"branches":3.1,…}: what was measured. */
void model_json_put_profile(struct buf *b, const struct profile_space *s, const struct profile *p);

/* Such a text as a profile in the model's order. -EINVAL: it is none; -ENOMEM. */
int model_json_view(struct profile *out, const struct model *m, const char *text, struct err *e);

/* {"decision":"known","cluster":3,"spreads":0.7,"distance":0.8,"common":55,"measured":56,
 *  "near":[{"cluster","spreads","distance","common"},…],"reason":"…"}; cluster, spreads and distance are null when nothing could be
 * compared. New reference; NULL: memory. */
json_t *model_json_verdict(const struct model_verdict *v);

#endif
