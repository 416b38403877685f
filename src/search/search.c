#include "search/search.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "base/suggest.h"
#include "search/prior.h"
#include "search/several.h"

const struct search_ops *const searches[] = {
    &search_grid, &search_points, &search_random, &search_tpe, &search_gp, &search_auto, NULL,
};

const struct stop_ops stop_none = { .name = "none", .help = "every trial to the last epoch" };

#ifdef PIPETUNE_FAILPOINTS
extern const struct stop_ops stop_shuffle, stop_listen; /* tests/NAME.c */
#endif
const struct stop_ops *const stops[] = {
    &stop_none,    &stop_median, &stop_halving, &stop_hyperband, &stop_curves,
#ifdef PIPETUNE_FAILPOINTS
    &stop_shuffle, &stop_listen,
#endif
    NULL,
};

enum { NAMES_MAX = 32 };

static int unknown(const char *what, const char *name, const char *const *names, size_t n, struct err *e)
{
    AUTO_BUF struct buf list = BUF_INIT;
    for (size_t i = 0; i < n; i++)
        buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    const char *near = suggest_nearest(name, names, n);
    if (near)
        return err_set(e, -EINVAL, "unknown %s '%s'; did you mean '%s'?", what, name, near);
    return err_set(e, -EINVAL, "unknown %s '%s'; there are: %s", what, name, buf_text(&list));
}

static int find_search(const struct search_ops **out, const char *name, struct err *e)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (; searches[n]; n++) {
        if (strcmp(searches[n]->name, name) == 0) {
            *out = searches[n];
            return 0;
        }
        names[n] = searches[n]->name;
    }
    return unknown("search", name, names, n, e);
}

static int find_stop(const struct stop_ops **out, const char *name, struct err *e)
{
    const char *names[NAMES_MAX];
    size_t n = 0;
    for (; stops[n]; n++) {
        if (strcmp(stops[n]->name, name) == 0) {
            *out = stops[n];
            return 0;
        }
        names[n] = stops[n]->name;
    }
    return unknown("stop rule", name, names, n, e);
}

const char *search_default(const struct space *sp)
{
    return sp->points ? "points" : space_is_listed(sp) ? "grid" : "auto";
}

const char *search_default_stop(const char *algorithm)
{
    bool goes_through = strcmp(algorithm, "grid") == 0 || strcmp(algorithm, "points") == 0;
    return goes_through ? "none" : "curves";
}

/* What its rows know besides: several objectives are one number to them, of which less is better. */
static int take_goals(struct search *s, struct search_cfg *cfg, struct err *e)
{
    if (!cfg->goals || cfg->goals->n < 2)
        return 0;
    if (several_new(&s->several, cfg) < 0)
        return err_sys(e, -ENOMEM, "search '%s'", s->ops->name);
    cfg->several = s->several;
    cfg->maximise = false;
    s->ops = s->ops->several ? s->ops->several : s->ops;
    return 0;
}

static int init_both(struct search *s, const struct space *sp, const struct search_cfg *cfg, struct err *e)
{
    AUTO_FREE void *state = calloc(1, s->ops->state_size);
    AUTO_FREE void *stop_state = calloc(1, s->stop->state_size + 1); /* a rule may have none */
    if (!state || !stop_state)
        return err_sys(e, -ENOMEM, "search '%s'", s->ops->name);
    int rc = s->ops->init(state, sp, cfg, e);
    if (rc < 0)
        return rc;
    s->state = MOVE_PTR(state); /* search_done() frees both */
    s->stop_state = MOVE_PTR(stop_state);
    struct search_cfg for_stop = *cfg;
    for_stop.space = sp;
    for_stop.thaw = s->ops->thaw ? s->ops->thaw(s->state) : NULL;
    return s->stop->init ? s->stop->init(s->stop_state, &for_stop, e) : 0;
}

int search_new(struct search *out, const char *name, const char *stop, const struct space *sp,
               const struct search_cfg *cfg, struct err *e)
{
    struct search s = { .space = sp, .cfg = *cfg };
    struct search_cfg own = *cfg;
    int rc = find_search(&s.ops, name ? name : search_default(sp), e);
    if (rc == 0)
        rc = find_stop(&s.stop, stop ? stop : "none", e);
    if (rc == 0)
        rc = take_goals(&s, &own, e);
    if (rc == 0)
        rc = init_both(&s, sp, &own, e);
    if (rc < 0) {
        search_done(&s);
        return rc;
    }
    *out = s;
    return 0;
}

int search_learn(struct search *s, struct prior *prior, struct err *e)
{
    if (!s->ops->add)
        return err_set(e, -EINVAL,
                       "search '%s' takes points as they come and learns nothing from earlier studies: use 'auto', "
                       "'gp' or 'tpe' with learn_from",
                       s->ops->name);
    s->prior = prior;
    return 0;
}

bool search_learns(const struct search *s)
{
    return s->ops->tell || s->stop->ask;
}

static int ask_stop(struct search *s, bool fresh, uint64_t *out_id)
{
    if (s->stop->ask)
        return s->stop->ask(s->stop_state, fresh, out_id);
    return fresh ? STOP_FRESH : -ENODATA;
}

/* One of an earlier study, where it is their turn; else the algorithm's own. */
static int ask_new(struct search *s, struct proposal *out)
{
    size_t at = s->prior ? prior_due(s->prior) : PRIOR_NONE;
    int rc = s->prior ? prior_make_room(s->prior) : 0;
    while (rc == 0 && at != PRIOR_NONE && (rc = s->ops->add(s->state, prior_point(s->prior, at), out)) == 0)
        at = prior_after(s->prior, at);
    if (rc == 0)
        rc = s->ops->ask(s->state, out);
    if (rc != 1 || !s->prior)
        return rc;
    prior_asked(s->prior, at);
    out->learnt_from = at == PRIOR_NONE ? NULL : prior_name(s->prior, at);
    return rc;
}

int search_ask(struct search *s, bool may_add, struct proposal *out)
{
    uint64_t id = 0;
    int rc = ask_stop(s, may_add, &id);
    if (rc == STOP_FRESH) {
        assert(may_add);
        rc = ask_new(s, out);
        if (rc == 1 && s->stop->added)
            s->stop->added(s->stop_state, out);
        if (rc != -ENODATA)
            return rc;
        rc = ask_stop(s, false, &id); /* there is no other new one */
    }
    if (rc == 1)
        *out = (struct proposal){ .id = id, .again = true };
    return rc;
}

int search_tell(struct search *s, const struct told *t, struct search_answer *out)
{
    struct search_answer a = { .verdict = SEARCH_GO_ON };
    struct told one = *t;
    int rc = s->several ? several_tell(s->several, t, &one) : 0;
    one.held = rc == 0 && s->prior && prior_tell(s->prior, t);
    if (rc == 0 && s->stop->tell)
        rc = s->stop->tell(s->stop_state, &one, &a);
    if (rc == 0 && s->ops->tell)
        rc = s->ops->tell(s->state, &one);
    if (rc == 0 && s->several && a.verdict != SEARCH_GO_ON)
        several_explain(s->several, t, a.why);
    if (rc == 0)
        *out = a;
    return rc;
}

/* --- the state: twice a name, the version of what follows, and that, each behind its length; once more before them where there are several
 * objectives, and once more behind where it learns from earlier studies */

enum { PRIOR_VERSION = 1 };
static const char prior_part[] = "prior";

static void save_prior(const void *st, struct buf *b)
{
    prior_save(st, b);
}

static int restore_prior(void *st, struct unpack *from)
{
    return prior_restore(st, from);
}

static void save_part(struct buf *out, const char *name, uint64_t version, void (*save)(const void *st, struct buf *b),
                      const void *st)
{
    AUTO_BUF struct buf part = BUF_INIT;
    if (save)
        save(st, &part);
    pack_bytes(out, name, strlen(name));
    pack_u64(out, version);
    pack_bytes(out, part.data, part.len);
    out->failed |= part.failed;
}

static int restore_part(struct unpack *u, const char *name, uint64_t version,
                        int (*restore)(void *st, struct unpack *from), void *st)
{
    struct unpack stored = unpack_bytes(u);
    bool ours = (size_t)(stored.end - stored.at) == strlen(name) && memcmp(stored.at, name, strlen(name)) == 0;
    ours = unpack_u64(u) == version && ours;
    struct unpack part = unpack_bytes(u);
    if (u->bad || !ours)
        return -EPROTO;
    int rc = restore ? restore(st, &part) : 0;
    return rc == 0 && (part.bad || part.at != part.end) ? -EPROTO : rc;
}

static const char several_name[] = "several";
enum { SEVERAL_VERSION = 1 };

static void save_several(const void *st, struct buf *b)
{
    several_save(st, b);
}

static int restore_several(void *st, struct unpack *from)
{
    return several_restore(st, from);
}

void search_save(const struct search *s, struct buf *out)
{
    if (s->several)
        save_part(out, several_name, SEVERAL_VERSION, save_several, s->several);
    save_part(out, s->ops->name, s->ops->version, s->ops->save, s->state);
    save_part(out, s->stop->name, s->stop->version, s->stop->save, s->stop_state);
    if (s->prior)
        save_part(out, prior_part, PRIOR_VERSION, save_prior, s->prior);
}

static int restore_learnt(struct search *s, struct unpack *u)
{
    struct prior *prior;
    if (!s->ops->add)
        return -EPROTO;
    if (prior_new(&prior, s->space, &s->cfg) < 0)
        return -ENOMEM;
    prior_free(s->prior);
    s->prior = prior;
    return restore_part(u, prior_part, PRIOR_VERSION, restore_prior, prior);
}

int search_restore(struct search *s, const void *bytes, size_t len)
{
    struct unpack u = unpack_from(bytes, len);
    int rc = s->several ? restore_part(&u, several_name, SEVERAL_VERSION, restore_several, s->several) : 0;
    if (rc == 0)
        rc = restore_part(&u, s->ops->name, s->ops->version, s->ops->restore, s->state);
    if (rc == 0)
        rc = restore_part(&u, s->stop->name, s->stop->version, s->stop->restore, s->stop_state);
    if (rc == 0 && u.at != u.end)
        rc = restore_learnt(s, &u);
    return rc == 0 && u.at != u.end ? -EPROTO : rc;
}

void search_done(struct search *s)
{
    if (!s || !s->ops)
        return;
    if (s->state && s->ops->done)
        s->ops->done(s->state);
    if (s->stop_state && s->stop->done)
        s->stop->done(s->stop_state);
    prior_free(s->prior);
    free(s->state);
    free(s->stop_state);
    several_free(s->several);
    *s = (struct search){ 0 };
}
