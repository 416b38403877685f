#include "live/reuse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "live/learnt.h"

static const char MODEL[] = "default", OUT_OF_MEMORY[] = "out of memory";

enum { TRIALS_MAX = 1 << 20 }; /* more of them tell nothing more */

/* A profile that waits for the end of its trial. */
struct note {
    int trial;
    struct profile profile;
};

enum { LESSON_MAX = TUNER_MAX_HOT * TUNER_MAX_COLD };

/* What of a class was put into the model: a trial that compared nothing new adds nothing. Settings are those of `settings`. */
struct taught {
    char *key;
    struct taught_ratio {
        const char *setting, *over;
        double ratio;
    } ratios[LESSON_MAX];
    size_t n;
    bool bound[TUNER_MAX_HOT][TUNER_MAX_COLD];
};

struct reuse {
    struct study *study;
    const struct profile_space *space;
    struct learnt *learnt;
    bool off; /* the model cannot be read any more: somebody has put another one in its place */
    char *settings[TUNER_MAX_HOT][TUNER_MAX_COLD]; /* as the model writes them */
    struct note *notes;
    size_t n_notes, cap_notes;
    struct taught *taught;
    size_t n_taught, cap_taught;
};

/* --- opening --- */

static int write_settings(struct reuse *r, struct err *e)
{
    const struct plan *p = r->study->plan;
    const struct choices *c = &p->choices;
    int rc = 0;
    for (int i = 0; rc == 0 && i < c->n_hot * c->n_cold; i++) {
        struct tuner_setting at = { i % c->n_hot, i / c->n_hot };
        struct setting set = choices_setting(c, &p->space, at);
        AUTO_JSON json_t *j = plan_effective_json(p, &set, 0);
        AUTO_FREE char *text = json_text(j);
        rc = text ? model_setting(&r->settings[at.hot][at.cold], text, e) : err_sys(e, -ENOMEM, "model '%s'", MODEL);
    }
    return rc;
}

int reuse_open(struct reuse **out, struct study *s, const struct profile_space *space, char why[512], struct err *e)
{
    *out = NULL;
    struct reuse *r = calloc(1, sizeof *r);
    struct err fault = { 0 };
    if (!r)
        return err_sys(e, -ENOMEM, "model '%s'", MODEL);
    *r = (struct reuse){ .study = s, .space = space };
    int rc = learnt_open(&r->learnt, s->store, MODEL, &fault);
    if (rc == 0 && learnt_model(r->learnt)->vectors == MODEL_RAW)
        rc = err_set(&fault, -EINVAL, "the store's model '%s' was made elsewhere and knows no profiles", MODEL);
    if (rc == 0)
        rc = write_settings(r, &fault);
    if (rc == 0) {
        *out = r;
        return 0;
    }
    reuse_close(r);
    if (rc == -ENOMEM)
        return err_set(e, rc, "%s", fault.text);
    (void)snprintf(why, 512, "%s", fault.text);
    return 0;
}

void reuse_close(struct reuse *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_notes; i++)
        profile_done(&r->notes[i].profile);
    for (int i = 0; i < TUNER_MAX_HOT * TUNER_MAX_COLD; i++)
        free(r->settings[i / TUNER_MAX_COLD][i % TUNER_MAX_COLD]);
    for (size_t i = 0; i < r->n_taught; i++)
        free(r->taught[i].key);
    free(r->taught);
    free(r->notes);
    learnt_close(r->learnt);
    free(r);
}

/* --- recalling --- */

static bool find_setting(const struct reuse *r, const char *text, struct tuner_setting *out)
{
    const struct choices *c = &r->study->plan->choices;
    for (int i = 0; text && i < c->n_hot * c->n_cold; i++) {
        struct tuner_setting at = { i % c->n_hot, i / c->n_hot };
        if (strcmp(r->settings[at.hot][at.cold], text) != 0)
            continue;
        *out = at;
        return true;
    }
    return false;
}

/* The first setting of this study that was compared with `over` as well, and measured: what others are compared with in its place. */
static const struct model_entry *stand_in(const struct reuse *r, const struct model_class *c, const char *over)
{
    struct tuner_setting at;
    for (size_t i = 0; i < c->n_entries; i++) {
        const struct model_entry *x = &c->entries[i];
        if (strcmp(x->over, over) == 0 && !x->at_least && find_setting(r, x->setting, &at))
            return x;
    }
    return NULL;
}

/* False: this study has no use for it. */
static bool as_event(const struct reuse *r, const struct model_class *c, const struct model_entry *x,
                     struct tuner_event *out)
{
    double ratio = x->log_ratio;
    if (!find_setting(r, x->setting, &out->setting))
        return false;
    if (!find_setting(r, x->over, &out->over)) {
        const struct model_entry *other = stand_in(r, c, x->over);
        if (!other || other == x)
            return false;
        (void)find_setting(r, other->setting, &out->over);
        ratio -= other->log_ratio;
    }
    out->ratio = ratio;
    out->at_least = x->at_least;
    out->best = c->best && strcmp(c->best, x->setting) == 0;
    return true;
}

struct recalling {
    const struct reuse *r;
    const struct model_class *c;
    struct tuner_event head; /* what all its events share */
    int (*each)(void *ctx, const struct tuner_event *ev, struct err *e);
    void *ctx;
    struct err *e;
};

/* What was best may be what others were compared with. */
static int recall_best(const struct recalling *g)
{
    struct tuner_event ev = g->head;
    if (!find_setting(g->r, g->c->best, &ev.setting))
        return 0;
    ev.over = ev.setting;
    ev.best = true;
    return g->each(g->ctx, &ev, g->e);
}

/* Ratios within a cold setting, or between two. */
static int recall_ratios(const struct recalling *g, bool within)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < g->c->n_entries; i++) {
        struct tuner_event ev = g->head;
        if (as_event(g->r, g->c, &g->c->entries[i], &ev) && (ev.setting.cold == ev.over.cold) == within)
            rc = g->each(g->ctx, &ev, g->e);
    }
    return rc;
}

/* Running out of memory bounds at once, any other loss after two. */
static bool is_proven(const struct model_bound *b)
{
    return b->n >= 2 || (b->evidence && strcmp(b->evidence, OUT_OF_MEMORY) == 0);
}

static int recall_bounds(const struct recalling *g)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < g->c->n_bounds; i++) {
        struct tuner_event ev = g->head;
        if (!is_proven(&g->c->bounds[i]))
            continue;
        ev.infeasible = true;
        if (find_setting(g->r, g->c->bounds[i].setting, &ev.setting))
            rc = g->each(g->ctx, &ev, g->e);
    }
    return rc;
}

int reuse_recall(const struct reuse *r, const char *class_key,
                 int (*each)(void *ctx, const struct tuner_event *ev, struct err *e), void *ctx, struct err *e)
{
    const struct model_class *c = r ? model_class_find(learnt_model(r->learnt), class_key) : NULL;
    if (!c)
        return 0;
    struct recalling g = { .r = r,
                           .c = c,
                           .head = { .kind = EV_RECALL,
                                     .class_key = c->key,
                                     .family_key = c->family,
                                     .trials = c->trials < TRIALS_MAX ? (int)c->trials : TRIALS_MAX },
                           .each = each,
                           .ctx = ctx,
                           .e = e };
    int rc = recall_ratios(&g, true);
    if (rc == 0)
        rc = recall_best(&g);
    if (rc == 0)
        rc = recall_ratios(&g, false);
    return rc == 0 ? recall_bounds(&g) : rc;
}

bool reuse_knows(const struct reuse *r, const char *class_key)
{
    const struct model_class *c = r ? model_class_find(learnt_model(r->learnt), class_key) : NULL;
    return c && c->best;
}

/* --- profiles --- */

/* Was what tells two jobs apart that the kernel counts alike compared with this cluster? */
static bool is_telling(const struct model *m, const struct profile *view, const struct model_cluster *c)
{
    static const char *const names[] = { "instructions", "cpu/instructions/", "code/generated-time" };
    for (size_t f = 0; c && f < m->n; f++)
        for (size_t i = 0; i < ARRAY_LEN(names) && view->mask[f] && c->weight[f] > 0; i++)
            if (strcmp(m->features[f].name, names[i]) == 0)
                return true;
    return false;
}

/* Is one of the clusters that the verdict would have been the same for the class's? */
static bool may_be(const struct model_verdict *v, const struct model_class *c)
{
    double most = v->decision == MODEL_KNOWN ? MODEL_KNOWN_SPREADS : MODEL_UNKNOWN_SPREADS;
    for (size_t i = 0; c && i < v->n_near; i++)
        if (v->near[i].spreads <= most && model_class_count(c, v->near[i].cluster) > 0)
            return true;
    return false;
}

int reuse_verdict(const struct reuse *r, const struct profile *p, const char *own, struct model_verdict *out,
                  const char **out_class, struct err *e)
{
    const struct model *m = learnt_model(r->learnt);
    struct profile view = { 0 };
    *out = (struct model_verdict){ .decision = MODEL_REFUSED };
    *out_class = NULL;
    if (m->vectors == MODEL_RAW) /* put in the place of ours meanwhile */
        return 0;
    int rc = model_view(&view, m, r->space, p, e);
    if (rc < 0)
        return rc;
    model_verdict(out, m, &view);
    const struct model_class *c = model_class_find(m, own);
    if (!may_be(out, c)) {
        int64_t nearest = out->n_near > 0 ? out->near[0].cluster : -1;
        c = model_class_of_cluster(m, nearest);
        if (out->decision == MODEL_KNOWN && !is_telling(m, &view, model_cluster_find(m, nearest)))
            out->decision = MODEL_AMBIGUOUS;
    }
    profile_done(&view);
    bool like_one = out->decision == MODEL_KNOWN || out->decision == MODEL_AMBIGUOUS;
    *out_class = c && like_one ? c->key : NULL;
    return 0;
}

int reuse_note(struct reuse *r, int trial, const struct profile *p, struct err *e)
{
    struct note *grown = r ? array_more(r->notes, r->n_notes, &r->cap_notes, sizeof *grown) : NULL;
    if (!r)
        return 0;
    if (!grown)
        return err_sys(e, -ENOMEM, "trial %d", trial);
    r->notes = grown;
    struct note *n = &r->notes[r->n_notes];
    n->trial = trial;
    int rc = profile_init(&n->profile, p->n, e);
    if (rc < 0)
        return rc;
    memcpy(n->profile.x, p->x, p->n * sizeof *p->x);
    memcpy(n->profile.mask, p->mask, p->n * sizeof *p->mask);
    r->n_notes++;
    return 0;
}

static void reuse_forget(struct reuse *r, int trial)
{
    size_t kept = 0;
    for (size_t i = 0; r && i < r->n_notes; i++) {
        if (r->notes[i].trial == trial)
            profile_done(&r->notes[i].profile);
        else
            r->notes[kept++] = r->notes[i];
    }
    if (r)
        r->n_notes = kept;
}

/* --- learning --- */

struct confirming {
    const char *key;
    bool holds;
};

static int change_strength(void *ctx, struct model *m, struct err *e)
{
    const struct confirming *c = ctx;
    if (!model_class_find(m, c->key)) /* forgotten by the user meanwhile */
        return 0;
    int rc = c->holds ? model_confirm(m, c->key, e) : model_weaken(m, c->key, e);
    return rc < 0 ? rc : 0;
}

/* A model that somebody has made unreadable meanwhile is told once, and ends no study. */
static int change(struct reuse *r, int trial, int (*how)(void *ctx, struct model *m, struct err *e), void *ctx,
                  struct err *e)
{
    struct err why = { 0 };
    int rc = r->off ? 0 : learnt_change(r->learnt, how, ctx, &why);
    if (rc == -EPROTO) {
        r->off = true;
        return study_decide(r->study, trial, "model", NULL, e, "nothing is learnt any more: %s", why.text);
    }
    if (rc < 0 && e)
        *e = why;
    return rc;
}

int reuse_confirm(struct reuse *r, int trial, const char *class_key, bool holds, struct err *e)
{
    struct confirming c = { class_key, holds };
    return r ? change(r, trial, change_strength, &c, e) : 0;
}

struct learning {
    struct reuse *r;
    int trial;
    const char *key, *family;
    struct model_lesson lesson;
    struct model_entry entries[LESSON_MAX];
    struct model_bound bounds[LESSON_MAX];
};

static struct taught *find_taught(const struct reuse *r, const char *key)
{
    for (size_t i = 0; i < r->n_taught; i++)
        if (strcmp(r->taught[i].key, key) == 0)
            return &r->taught[i];
    return NULL;
}

static struct taught *add_taught(struct reuse *r, const char *key)
{
    struct taught *grown = array_more(r->taught, r->n_taught, &r->cap_taught, sizeof *grown);
    char *copy = grown ? strdup(key) : NULL;
    if (grown)
        r->taught = grown;
    if (!copy)
        return NULL;
    r->taught[r->n_taught] = (struct taught){ .key = copy };
    return &r->taught[r->n_taught++];
}

/* Notes the ratio; false when it is as it was told before. */
static bool is_new(struct taught *t, const struct model_entry *x)
{
    size_t i = 0;
    while (i < t->n && (t->ratios[i].setting != x->setting || t->ratios[i].over != x->over))
        i++;
    bool told = i < t->n && t->ratios[i].ratio == x->log_ratio;
    if (i == LESSON_MAX || told)
        return !told;
    t->ratios[i] = (struct taught_ratio){ x->setting, x->over, x->log_ratio };
    t->n += i == t->n;
    return true;
}

/* Ratios that are as they were told before say nothing of this trial. */
static void leave_out_old(struct learning *l, struct taught *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->lesson.n_entries; i++)
        if (is_new(t, &l->entries[i]))
            l->entries[kept++] = l->entries[i];
    l->lesson.n_entries = kept;
}

static void add_ratio(struct learning *l, struct tuner_setting s, struct tuner_setting over, double ratio,
                      bool at_least)
{
    if (!isfinite(ratio) || l->lesson.n_entries == LESSON_MAX)
        return;
    l->entries[l->lesson.n_entries++] = (struct model_entry){ .setting = l->r->settings[s.hot][s.cold],
                                                              .over = l->r->settings[over.hot][over.cold],
                                                              .log_ratio = ratio,
                                                              .at_least = at_least,
                                                              .n = 1 };
}

/* How the settings under one cold setting compare, and that one with where the best is. */
static void add_cold(struct learning *l, const struct class_entry *c, int cold)
{
    const struct cold_entry *x = &c->cold[cold];
    struct tuner_setting over = { x->hot, cold };
    for (int hot = 0; x->hot >= 0 && hot < l->r->study->plan->choices.n_hot; hot++)
        if (hot != x->hot)
            add_ratio(l, (struct tuner_setting){ hot, cold }, over, x->ratio[hot], x->at_least[hot]);
    const struct cold_entry *best = c->best.cold >= 0 ? &c->cold[c->best.cold] : NULL;
    if (x->hot < 0 || !best || best->hot < 0 || cold == c->best.cold)
        return;
    struct tuner_setting from = { best->hot, c->best.cold };
    add_ratio(l, over, from, knowledge_gap(c, over, from), false);
}

static void add_bounds(struct learning *l, const struct class_entry *c, struct taught *t)
{
    const struct choices *all = &l->r->study->plan->choices;
    for (int i = 0; i < all->n_hot * all->n_cold; i++) {
        int hot = i % all->n_hot, cold = i / all->n_hot;
        if (!c->infeasible[hot][cold] || c->bound_recalled[hot][cold] || t->bound[hot][cold])
            continue;
        t->bound[hot][cold] = true;
        l->bounds[l->lesson.n_bounds++] =
            (struct model_bound){ .setting = l->r->settings[hot][cold], .evidence = (char *)OUT_OF_MEMORY, .n = 1 };
    }
}

static void prepare_lesson(struct learning *l, const struct class_entry *c, struct taught *t)
{
    bool found = c->best.hot >= 0 && c->best.cold >= 0 && knowledge_compared(c);
    l->lesson = (struct model_lesson){ .key = l->key,
                                       .family = l->family,
                                       .best = found ? l->r->settings[c->best.hot][c->best.cold] : NULL,
                                       .entries = l->entries,
                                       .bounds = l->bounds,
                                       .study = l->r->study->name,
                                       .trial = l->trial };
    for (int cold = 0; cold < l->r->study->plan->choices.n_cold; cold++)
        add_cold(l, c, cold);
    add_bounds(l, c, t);
    leave_out_old(l, t);
}

static int change_all(void *ctx, struct model *m, struct err *e)
{
    const struct learning *l = ctx;
    int64_t cluster;
    if (m->vectors == MODEL_RAW) /* put in the place of ours meanwhile: it learns nothing */
        return 0;
    int rc = model_extend(m, l->r->space, e);
    for (size_t i = 0; rc == 0 && i < l->r->n_notes; i++) {
        if (l->r->notes[i].trial != l->trial)
            continue;
        rc = model_learn_profile(m, l->r->space, &l->r->notes[i].profile, l->key, l->family, &cluster, e);
        if (rc == -ENODATA || rc == -ENOSPC)
            rc = 0; /* it is of no use to the model, or there is no room for more: trials go on all the same */
    }
    if (rc == 0 && l->lesson.key)
        rc = model_learn_class(m, &l->lesson, e);
    return rc == -ENOSPC ? 0 : rc;
}

int reuse_learn(struct reuse *r, const struct study_trial *t, const char *class_key, const char *family_key,
                const struct class_entry *known, struct err *e)
{
    if (!r)
        return 0;
    AUTO_FREE struct learning *l = calloc(1, sizeof *l);
    if (!l)
        return err_sys(e, -ENOMEM, "model '%s'", MODEL);
    *l = (struct learning){ .r = r, .trial = t->row.number, .key = class_key, .family = family_key };
    struct taught *before = find_taught(r, class_key);
    if (known && !before && !(before = add_taught(r, class_key)))
        return err_sys(e, -ENOMEM, "model '%s'", MODEL);
    if (known)
        prepare_lesson(l, known, before);
    int rc = change(r, l->trial, change_all, l, e);
    reuse_forget(r, t->row.number);
    return rc;
}
