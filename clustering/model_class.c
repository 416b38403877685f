#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "clustering/model.h"
#include "clustering/model_parts.h"

static int no_memory(struct err *e)
{
    return err_sys(e, -ENOMEM, "cannot learn of a class");
}

void model_class_done(struct model_class *c)
{
    for (size_t i = 0; i < c->n_entries; i++) {
        free(c->entries[i].setting);
        free(c->entries[i].over);
    }
    for (size_t i = 0; i < c->n_bounds; i++) {
        free(c->bounds[i].setting);
        free(c->bounds[i].evidence);
    }
    free(c->key);
    free(c->family);
    free(c->members);
    free(c->entries);
    free(c->bounds);
    free(c->best);
    free(c->study);
}

/* --- finding --- */

struct model_class *model_class_find(const struct model *m, const char *key)
{
    for (size_t i = 0; i < m->n_classes; i++)
        if (strcmp(m->classes[i].key, key) == 0)
            return &m->classes[i];
    return NULL;
}

uint64_t model_class_count(const struct model_class *c, int64_t cluster)
{
    for (size_t i = 0; i < c->n_members; i++)
        if (c->members[i].cluster == cluster)
            return c->members[i].count;
    return 0;
}

struct model_class *model_class_of_cluster(const struct model *m, int64_t cluster)
{
    struct model_class *best = NULL;
    for (size_t i = 0; i < m->n_classes; i++) {
        struct model_class *c = &m->classes[i];
        uint64_t count = model_class_count(c, cluster), most = best ? model_class_count(best, cluster) : 0;
        bool more_use = best && c->best && !best->best, less_use = best && !c->best && best->best;
        if (count > 0 && !less_use && (count > most || more_use))
            best = c;
    }
    return best;
}

/* --- adding --- */

int model_class_get(struct model *m, const char *key, const char *family, struct model_class **out, struct err *e)
{
    *out = model_class_find(m, key);
    if (*out)
        return 0;
    if (m->n_classes >= MODEL_CLASSES_MAX)
        return err_set(e, -ENOSPC, "the model has %d classes, and takes no more: 'pipetune model forget' makes room",
                       MODEL_CLASSES_MAX);
    struct model_class *list = realloc(m->classes, (m->n_classes + 1) * sizeof *list);
    if (!list)
        return no_memory(e);
    m->classes = list;
    struct model_class c = { .key = strdup(key), .family = family ? strdup(family) : NULL };
    if (!c.key || (family && !c.family)) {
        model_class_done(&c);
        return no_memory(e);
    }
    list[m->n_classes] = c;
    *out = &list[m->n_classes++];
    return 0;
}

int model_class_count_in(struct model_class *c, int64_t cluster, uint64_t count, struct err *e)
{
    for (size_t i = 0; i < c->n_members; i++) {
        if (c->members[i].cluster != cluster)
            continue;
        c->members[i].count += count;
        return 0;
    }
    struct model_member *list = realloc(c->members, (c->n_members + 1) * sizeof *list);
    if (!list)
        return no_memory(e);
    c->members = list;
    list[c->n_members++] = (struct model_member){ cluster, count };
    return 0;
}

/* --- settings --- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* 2.0 is 2. */
static json_t *plain(json_t *value)
{
    double x = json_is_real(value) ? json_real_value(value) : 0.5;
    return x == rint(x) && fabs(x) < 0x1p53 ? json_integer((json_int_t)x) : json_incref(value);
}

static json_t *sorted(json_t *from)
{
    size_t n = json_object_size(from), i = 0;
    const char *key;
    json_t *value, *to = json_object();
    AUTO_FREE const char **keys = calloc(n + 1, sizeof *keys);
    if (!keys || !to) {
        json_decref(to);
        return NULL;
    }
    json_object_foreach(from, key, value) keys[i++] = key;
    qsort(keys, n, sizeof *keys, by_name);
    for (i = 0; i < n; i++) {
        if (json_object_set_new(to, keys[i], plain(json_object_get(from, keys[i]))) == 0)
            continue;
        json_decref(to);
        return NULL;
    }
    return to;
}

int model_setting(char **out, const char *text, struct err *e)
{
    AUTO_JSON json_t *from = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *key;
    json_t *value;
    bool good = json_is_object(from) && strlen(text) <= MODEL_TEXT_MAX;
    if (good) {
        json_object_foreach(from, key, value) good &=
            json_is_number(value) || json_is_string(value) || json_is_boolean(value);
    }
    if (!good)
        return err_set(e, -EINVAL, "'%.80s' is no setting: an object of names and values is expected", text);
    AUTO_JSON json_t *to = sorted(from);
    char *made = json_text(to);
    if (!made)
        return no_memory(e);
    *out = made;
    return 0;
}

/* --- lessons --- */

/* Two means with their numbers and spreads become one. */
static void pool(struct model_entry *into, const struct model_entry *from)
{
    double a = (double)into->n, b = (double)from->n, gap = from->log_ratio - into->log_ratio;
    double m2 =
        into->spread * into->spread * (a - 1) + from->spread * from->spread * (b - 1) + gap * gap * a * b / (a + b);
    into->log_ratio += gap * b / (a + b);
    into->spread = sqrt(fmax(0, m2) / (a + b - 1));
    into->n += from->n;
}

static void merge_entry(struct model_entry *into, const struct model_entry *from)
{
    bool same_kind = into->at_least == from->at_least;
    if (same_kind && !from->at_least) {
        pool(into, from);
    } else if (same_kind) {
        into->log_ratio = fmax(into->log_ratio, from->log_ratio);
        into->n += from->n;
    } else if (into->at_least) { /* measured at last */
        into->at_least = false;
        into->log_ratio = from->log_ratio;
        into->n = from->n;
        into->spread = from->spread;
    }
}

static struct model_entry *find_entry(struct model_class *c, const char *setting, const char *over)
{
    for (size_t i = 0; i < c->n_entries; i++)
        if (strcmp(c->entries[i].setting, setting) == 0 && strcmp(c->entries[i].over, over) == 0)
            return &c->entries[i];
    return NULL;
}

static int add_entry(struct model_class *c, const struct model_entry *from, struct err *e)
{
    if (c->n_entries >= MODEL_ENTRIES_MAX)
        return err_set(e, -ENOSPC, "class '%s' has %d ratios, and takes no more", c->key, MODEL_ENTRIES_MAX);
    struct model_entry *list = realloc(c->entries, (c->n_entries + 1) * sizeof *list);
    if (!list)
        return no_memory(e);
    c->entries = list;
    struct model_entry *to = &list[c->n_entries];
    *to = *from;
    to->setting = strdup(from->setting);
    to->over = strdup(from->over);
    c->n_entries++;
    if (to->setting && to->over)
        return 0;
    free(to->setting);
    free(to->over);
    c->n_entries--;
    return no_memory(e);
}

static int learn_entry(struct model_class *c, const struct model_entry *from, struct err *e)
{
    if (!isfinite(from->log_ratio) || !isfinite(from->spread) || from->spread < 0 || from->n < 1)
        return err_set(e, -EINVAL, "class '%s': a ratio, its spread or its count is no number", c->key);
    AUTO_FREE char *setting = NULL, *over = NULL;
    int rc = model_setting(&setting, from->setting, e);
    if (rc == 0)
        rc = model_setting(&over, from->over, e);
    if (rc < 0)
        return rc;
    struct model_entry e1 = *from, *old = find_entry(c, setting, over);
    e1.setting = setting;
    e1.over = over;
    if (!old)
        return add_entry(c, &e1, e);
    merge_entry(old, &e1);
    return 0;
}

static int add_bound(struct model_class *c, char *setting, const struct model_bound *from, struct err *e)
{
    if (c->n_bounds >= MODEL_ENTRIES_MAX)
        return err_set(e, -ENOSPC, "class '%s' has %d bounds, and takes no more", c->key, MODEL_ENTRIES_MAX);
    struct model_bound *list = realloc(c->bounds, (c->n_bounds + 1) * sizeof *list);
    if (!list)
        return no_memory(e);
    c->bounds = list;
    struct model_bound b = { strdup(setting), strdup(from->evidence ? from->evidence : ""), from->n };
    if (!b.setting || !b.evidence) {
        free(b.setting);
        free(b.evidence);
        return no_memory(e);
    }
    list[c->n_bounds++] = b;
    return 0;
}

static int learn_bound(struct model_class *c, const struct model_bound *from, struct err *e)
{
    AUTO_FREE char *setting = NULL;
    int rc = from->n > 0 ? model_setting(&setting, from->setting, e)
                         : err_set(e, -EINVAL, "class '%s': a bound without a count", c->key);
    for (size_t i = 0; rc == 0 && i < c->n_bounds; i++) {
        if (strcmp(c->bounds[i].setting, setting) != 0)
            continue;
        c->bounds[i].n += from->n;
        return 0;
    }
    return rc < 0 ? rc : add_bound(c, setting, from, e);
}

static int learn_best(struct model_class *c, const char *text, struct err *e)
{
    AUTO_FREE char *best = NULL;
    int rc = model_setting(&best, text, e);
    if (rc < 0)
        return rc;
    if (!c->best || strcmp(c->best, best) != 0) {
        free(c->best);
        c->best = MOVE_PTR(best);
        c->strength = MODEL_STRENGTH_NEW;
    }
    return 0;
}

static int note_evidence(struct model_class *c, const struct model_lesson *l, struct err *e)
{
    if (!l->study)
        return 0;
    char *study = strdup(l->study);
    if (!study)
        return no_memory(e);
    free(c->study);
    c->study = study;
    c->trial = l->trial;
    c->trials++;
    return 0;
}

int model_learn_class(struct model *m, const struct model_lesson *l, struct err *e)
{
    struct model_class *c = NULL;
    if (m->vectors == MODEL_RAW)
        return err_set(e, -EINVAL, "a model that was made elsewhere does not learn: begin one of your own");
    int rc = model_class_get(m, l->key, l->family, &c, e);
    for (size_t i = 0; rc == 0 && i < l->n_entries; i++)
        rc = learn_entry(c, &l->entries[i], e);
    for (size_t i = 0; rc == 0 && i < l->n_bounds; i++)
        rc = learn_bound(c, &l->bounds[i], e);
    if (rc == 0 && l->best)
        rc = learn_best(c, l->best, e);
    return rc < 0 ? rc : note_evidence(c, l, e);
}

/* --- strength --- */

static int find_class(const struct model *m, const char *key, struct model_class **out, struct err *e)
{
    *out = model_class_find(m, key);
    return *out ? 0 : err_set(e, -ENOENT, "the model has no class '%s'", key);
}

int model_confirm(struct model *m, const char *key, struct err *e)
{
    struct model_class *c;
    int rc = find_class(m, key, &c, e);
    if (rc < 0)
        return rc;
    c->confirmations++;
    if (c->best && c->strength < MODEL_STRENGTH_MAX)
        c->strength++;
    return 0;
}

static void retire(struct model_class *c)
{
    while (c->n_entries > 0) {
        struct model_entry *last = &c->entries[--c->n_entries];
        free(last->setting);
        free(last->over);
    }
    free(c->best);
    c->best = NULL;
}

int model_weaken(struct model *m, const char *key, struct err *e)
{
    struct model_class *c;
    int rc = find_class(m, key, &c, e);
    if (rc < 0)
        return rc;
    c->weakenings++;
    if (!c->best || --c->strength > 0)
        return 0;
    retire(c);
    return 1;
}

/* --- forgetting --- */

static bool is_anyones(const struct model *m, int64_t cluster)
{
    for (size_t i = 0; i < m->n_classes; i++)
        if (model_class_count(&m->classes[i], cluster) > 0)
            return true;
    return false;
}

int model_forget_class(struct model *m, const char *key, struct err *e)
{
    struct model_class *c;
    int rc = find_class(m, key, &c, e);
    if (rc < 0)
        return rc;
    struct model_class gone = *c;
    m->n_classes--;
    memmove(c, c + 1, (m->n_classes - (size_t)(c - m->classes)) * sizeof *c);
    for (size_t i = 0; i < gone.n_members; i++) {
        struct model_cluster *cluster = model_cluster_find(m, gone.members[i].cluster);
        if (cluster && !is_anyones(m, cluster->id))
            model_cluster_drop(m, (size_t)(cluster - m->clusters));
    }
    model_class_done(&gone);
    model_derive(m);
    return 0;
}

static void leave(struct model_class *c, int64_t cluster)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n_members; i++)
        if (c->members[i].cluster != cluster)
            c->members[kept++] = c->members[i];
    c->n_members = kept;
}

int model_forget_cluster(struct model *m, int64_t id, struct err *e)
{
    struct model_cluster *c = model_cluster_find(m, id);
    if (!c)
        return err_set(e, -ENOENT, "the model has no cluster %lld", (long long)id);
    model_cluster_drop(m, (size_t)(c - m->clusters));
    for (size_t i = 0; i < m->n_classes; i++)
        leave(&m->classes[i], id);
    model_derive(m);
    return 0;
}

void model_forget_all(struct model *m)
{
    while (m->n_classes > 0)
        model_class_done(&m->classes[--m->n_classes]);
    while (m->n_clusters > 0)
        model_cluster_drop(m, m->n_clusters - 1);
    model_derive(m);
}
