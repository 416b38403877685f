#include "core/goals.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

const char goal_seconds[] = "seconds", goal_joules[] = "energy_j";

static bool contains_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (; *text; text++)
        if (strncasecmp(text, word, len) == 0)
            return true;
    return false;
}

bool goal_maximises(const char *metric)
{
    return !contains_word(metric, "loss") && !contains_word(metric, "error") && strcasecmp(metric, "mae") != 0;
}

bool goal_is_plain(const char *metric)
{
    static const char *const large[] = { "acc",    "auc",  "f1",   "precision", "recall", "score",
                                         "reward", "top1", "top5", "bleu",      "iou",    "dice" };
    bool plain = !goal_maximises(metric);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++)
        plain = plain || contains_word(metric, large[i]);
    return plain;
}

static int set_name(struct goal *g, const struct json_doc *doc, const char *path, const char *name, struct err *e)
{
    if (!name || !*name || strlen(name) >= sizeof g->name)
        return json_doc_err(doc, path, e, -EINVAL, "must be a metric's name, or {\"metric\": NAME}");
    (void)snprintf(g->name, sizeof g->name, "%s", name);
    g->kind = strcmp(name, goal_seconds) == 0  ? GOAL_SECONDS
              : strcmp(name, goal_joules) == 0 ? GOAL_JOULES
                                               : GOAL_METRIC;
    g->maximise = g->kind == GOAL_METRIC && goal_maximises(name);
    return 0;
}

static int set_direction(struct goal *g, const struct json_doc *doc, const char *path, const json_t *j, struct err *e)
{
    const char *word = json_string_value(j);
    bool max = word && strcmp(word, "max") == 0, min = word && strcmp(word, "min") == 0;
    if (!max && !min && !(word && strcmp(word, "auto") == 0))
        return json_doc_err(doc, path, e, -EINVAL, "has a bad 'direction': it must be auto, max or min");
    g->directed = max || min;
    g->maximise = g->directed ? max : g->maximise;
    return 0;
}

static int read_object(struct goal *g, const struct json_doc *doc, const char *path, const json_t *j, struct err *e)
{
    const char *key;
    json_t *value;
    int rc = set_name(g, doc, path, json_string_value(json_object_get(j, "metric")), e);
    json_object_foreach((json_t *)j, key, value)
    {
        if (rc == 0 && strcmp(key, "direction") == 0)
            rc = set_direction(g, doc, path, value, e);
        else if (rc == 0 && strcmp(key, "metric") != 0)
            rc = json_doc_err(doc, path, e, -EINVAL, "has an unknown '%s': it has metric and direction", key);
    }
    return rc;
}

static int read_one(struct goals *g, const struct json_doc *doc, const char *path, const json_t *j, struct err *e)
{
    if (g->n == GOALS_MAX)
        return json_doc_err(doc, path, e, -EINVAL, "is one too many: there may be %d", GOALS_MAX);
    struct goal *one = &g->v[g->n];
    *one = (struct goal){ .kind = GOAL_METRIC };
    int rc = json_is_object(j) ? read_object(one, doc, path, j, e) : set_name(one, doc, path, json_string_value(j), e);
    for (size_t i = 0; rc == 0 && i < g->n; i++)
        if (strcasecmp(g->v[i].name, one->name) == 0)
            return json_doc_err(doc, path, e, -EINVAL, "is there twice: '%s'", one->name);
    g->n += rc == 0;
    return rc;
}

int goals_read(struct goals *out, const struct json_doc *doc, struct err *e)
{
    struct goals g = { .n = 0 };
    const json_t *list = json_object_get(json_object_get(doc->root, "study"), "metrics");
    char path[64] = "study/metrics";
    int rc = 0;
    if (list && !json_is_array(list))
        rc = read_one(&g, doc, path, list, e);
    for (size_t i = 0; rc == 0 && i < json_array_size(list); i++) {
        (void)snprintf(path, sizeof path, "study/metrics/%zu", i);
        rc = read_one(&g, doc, path, json_array_get(list, i), e);
    }
    (void)snprintf(path, sizeof path, "study/metrics");
    if (rc == 0 && list && g.n == 0)
        rc = json_doc_err(doc, path, e, -EINVAL, "is empty: name a metric");
    if (rc == 0 && g.n > 0 && !goals_have(&g, GOAL_METRIC))
        rc =
            json_doc_err(doc, path, e, -EINVAL,
                         "has nothing that the application tells: the cheapest trial alone is one that learns nothing; "
                         "add a metric, such as \"accuracy\"");
    if (rc == 0)
        *out = g;
    return rc;
}

bool goals_have(const struct goals *g, enum goal_kind kind)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].kind == kind)
            return true;
    return false;
}

const struct goal *goals_first_told(const struct goals *g)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->v[i].kind == GOAL_METRIC)
            return &g->v[i];
    return NULL;
}
