/* The trials of a study of several objectives that no other one beats in all: as `show`, `ls`, `best`, `report` and `compare` tell them. */
#ifndef VIEW_PARETO_H
#define VIEW_PARETO_H

#include "base/json.h"
#include "core/goals.h"
#include "store/store.h"
#include "view/table.h"

struct pareto_trial {
    int number;
    bool counts; /* its figures are all there, and it keeps the constraints */
    bool front;
    double figures[GOALS_MAX]; /* as the goals have them; NAN: absent */
};

struct pareto {
    struct goals goals; /* none where the study has one objective: then all below is empty */
    struct pareto_trial *v;
    size_t n, cap;
    size_t n_front;
};

/* Finished trials; while none is, those that are paused or stopped, by their last figures. -ENOMEM; what the store says. */
int pareto_load(struct pareto *out, struct store *s, const struct store_study *study, struct err *e);
void pareto_done(struct pareto *p);

const struct pareto_trial *pareto_trial(const struct pareto *p, int number); /* NULL: one objective, or no such trial */

json_t *pareto_json(const struct pareto *p); /* numbers; null of one objective. New references */
json_t *pareto_figures_json(const struct pareto *p,
                            int number);           /* {"accuracy": 0.9, "seconds": 12}; null of one objective */
json_t *pareto_goals_json(const struct pareto *p); /* [{"metric","direction"}]; null of one objective */

/* A table of the set, and the word for what it is in; nothing of one objective. */
void pareto_put(const struct pareto *p, const char *study, struct buf *out);
void pareto_put_numbers(const struct pareto *p, struct buf *out); /* "1, 4, 7"; "-" where there is none */

#endif
