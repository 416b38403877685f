/* What a study's search proposed, derived once more: search-again STORE STUDY makes a new search of the stored config, tells it what the
 * study's search was told, in that order, and looks whether it proposes the same and goes on with the same trials. So it is told apart what a
 * search does of itself from what kills have done to it: a study that was killed often must be one that nobody disturbed, with the same reports.
 *
 * Prints "ASKED proposals and resumes, TOLD told: alike", or at which one they part, and exits with 1. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/own.h"
#include "core/space.h"
#include "search/search.h"
#include "store/store.h"

struct asked {
    int64_t seq;
    uint64_t proposal;
    int number;
    char *hyper;
};

struct again {
    struct space space;
    size_t max_trials; /* 0: no limit */
    struct search search;
    struct asked *asked;
    size_t n_asked, cap_asked, next;
    struct store_tell *tells;
    size_t n_tells, cap_tells;
    size_t resumes, told;
};

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "search-again: %s\n", why);
    exit(1);
}

static int keep_asked(void *ctx, const struct store_trial *t)
{
    struct again *a = ctx;
    struct asked *grown = array_more(a->asked, a->n_asked, &a->cap_asked, sizeof *grown);
    if (!grown)
        give_up("memory");
    a->asked = grown;
    a->asked[a->n_asked++] = (struct asked){ t->ask_seq, t->proposal, t->number, strdup(t->hyper) };
    return 0;
}

static int keep_tell(void *ctx, const struct store_tell *t)
{
    struct again *a = ctx;
    struct store_tell *grown = array_more(a->tells, a->n_tells, &a->cap_tells, sizeof *grown);
    if (!grown)
        give_up("memory");
    a->tells = grown;
    a->tells[a->n_tells++] = *t;
    return 0;
}

static const json_t *key(const json_t *config, const char *section, const char *name)
{
    return json_object_get(json_object_get(config, section), name);
}

static void make_search(struct again *a, const struct store_study *study)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    struct err e;
    if (json_doc_parse(&doc, "config", study->config, strlen(study->config), &e) < 0 ||
        space_parse(&a->space, &doc, &e) < 0)
        give_up(e.text);
    const json_t *c = doc.root;
    a->max_trials = (size_t)json_integer_value(key(c, "study", "max_trials"));
    const struct search_cfg cfg = { .seed = (uint64_t)json_integer_value(key(c, "study", "seed")),
                                    .epochs = (int)json_integer_value(key(c, "study", "epochs")),
                                    .maximise = study->maximise,
                                    .max_trials = (int)a->max_trials,
                                    .min_epochs = (int)json_integer_value(key(c, "search", "min_epochs")),
                                    .eta = (int)json_integer_value(key(c, "search", "eta")),
                                    .can_pause = true };
    const char *algorithm = json_string_value(key(c, "search", "algorithm"));
    const char *stop = json_string_value(key(c, "search", "stop"));
    if (search_new(&a->search, algorithm, stop, &a->space, &cfg, &e) < 0)
        give_up(e.text);
}

static _Noreturn void part(const struct again *a, const char *stored, uint64_t id, const char *hyper, int rc,
                           const struct proposal *p)
{
    AUTO_JSON json_t *point = rc == 1 && !p->again ? space_point_json(&a->space, &p->point) : NULL;
    AUTO_FREE char *text = point ? json_text(point) : NULL;
    printf("%zu proposals and resumes, %zu told, then they part: stored %s %llu %s, derived %s %llu %s\n",
           a->next + a->resumes, a->told, stored, (unsigned long long)id, hyper,
           rc != 1    ? "nothing"
           : p->again ? "resume"
                      : "proposal",
           rc == 1 ? (unsigned long long)p->id : 0ULL, text ? text : "");
    exit(1);
}

static void ask_new(struct again *a)
{
    const struct asked *x = &a->asked[a->next];
    struct proposal p;
    int rc = search_ask(&a->search, true, &p);
    AUTO_JSON json_t *point = rc == 1 && !p.again ? space_point_json(&a->space, &p.point) : NULL;
    AUTO_FREE char *text = point ? json_text(point) : NULL;
    if (!text || p.id != x->proposal || strcmp(text, x->hyper) != 0)
        part(a, "proposal", x->proposal, x->hyper, rc, &p);
    a->next++;
}

static void ask_resume(struct again *a, const struct store_tell *t)
{
    struct proposal p;
    int rc = search_ask(&a->search, a->max_trials == 0 || a->next < a->max_trials, &p);
    if (rc != 1 || !p.again || p.id != t->proposal)
        part(a, "resume", t->proposal, "", rc, &p);
    a->resumes++;
}

static void tell(struct again *a, const struct store_tell *t)
{
    struct search_answer ignored;
    if (t->kind < 1)
        give_up("this store does not tell what its search was told");
    const struct told told = { .id = t->proposal,
                               .kind = (enum told_kind)(t->kind - 1),
                               .epoch = t->epoch,
                               .value = t->value,
                               .seconds = t->seconds,
                               .joules = t->joules,
                               .start_seconds = t->start_seconds };
    if (search_tell(&a->search, &told, &ignored) < 0)
        give_up("memory");
    a->told++;
}

static void derive(struct again *a)
{
    for (size_t i = 0; i <= a->n_tells; i++) {
        int64_t until = i < a->n_tells ? a->tells[i].seq : INT64_MAX;
        while (a->next < a->n_asked && a->asked[a->next].seq < until)
            ask_new(a);
        if (i < a->n_tells && a->tells[i].kind == STORE_TELL_RESUME)
            ask_resume(a, &a->tells[i]);
        else if (i < a->n_tells)
            tell(a, &a->tells[i]);
    }
}

int main(int argc, char **argv)
{
    struct again a = { 0 };
    struct store *store = NULL;
    struct store_study study = { 0 };
    struct err e = { 0 };
    if (argc != 3)
        give_up("search-again STORE STUDY");
    if (store_open(&store, argv[1], STORE_READ, &e) < 0 || store_study_find(store, argv[2], &study, &e) != 1)
        give_up(e.code ? e.text : "no such study");
    make_search(&a, &study);
    if (store_trials(store, study.id, 0, keep_asked, &a, &e) < 0 || store_tells(store, study.id, keep_tell, &a, &e) < 0)
        give_up(e.text);
    derive(&a);
    printf("%zu proposals and resumes, %zu told: alike\n", a.next + a.resumes, a.told);
    for (size_t i = 0; i < a.n_asked; i++)
        free(a.asked[i].hyper);
    free(a.asked);
    free(a.tells);
    search_done(&a.search);
    space_done(&a.space);
    store_study_done(&study);
    store_close(store);
    return 0;
}
