/* Constraints on what trials come to: those of `study.constraints` that name a metric, `seconds` or `energy_j` ("energy_j <= 5000"), and perhaps
 * hyperparameters. The others, between hyperparameters alone, are the space's (space_rules.c). Pure. */
#ifndef CORE_DEMANDS_H
#define CORE_DEMANDS_H

#include "base/strv.h"
#include "core/expr.h"
#include "core/goals.h"
#include "core/space.h"

enum { DEMANDS_MAX = 16, DEMANDS_NAMES_MAX = 32, DEMANDS_WHY_MAX = 256 };

struct demand {
    struct expr *condition;
    char *text;
    bool early; /* once broken it stays so, as a limit of seconds */
};

struct demands {
    struct demand v[DEMANDS_MAX];
    size_t n;
    size_t n_hyper;
    struct strv names; /* of results that they are about, each once */
};

/* -EINVAL: a condition that is none, one that is about system parameters as well (they change while a trial runs), or that nothing can satisfy;
 * -ENOMEM. *out is freed by demands_done(), also after a failure. */
int demands_read(struct demands *out, const struct space *sp, const struct json_doc *doc, struct err *e);
void demands_done(struct demands *d);

/* Is a name that no hyperparameter has one of a result? NULL; or the hyperparameter or system parameter that it looks like a slip of. */
const char *demands_slip(const struct space *sp, const struct json_doc *doc, const char *name);

bool demands_name(const struct demands *d, const char *name);

/* A figure of a trial; NAN: absent. */
struct demands_figure {
    const char *name;
    double value;
};

/* Does the trial break one, and which: "energy_j <= 5000 does not hold: energy_j 6120"? While it trains (`over` is false) only such that it would break
 * for good. One whose figure is absent at the end does not hold. */
bool demands_broken(const struct demands *d, const struct space *sp, const struct point *p,
                    const struct demands_figure *figures, size_t n, bool over, char why[DEMANDS_WHY_MAX]);

#endif
