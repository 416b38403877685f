#include "cmd/look.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/strv.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "live/study.h"
#include "store/running.h"

const struct opt_row look_rows[2] = { LOOK_STORE_ROW(struct look_options), LOOK_JSON_ROW(struct look_options) };

void look_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(look_rows, NULL));
}

void look_best_cells(struct table *t, const char *study, const struct store_summary *totals, const char *metric)
{
    char digits[32];
    if (totals->best_trial && isfinite(totals->best_metric))
        table_cellf(t, "%s %s", metric ? metric : "accuracy", table_digits(totals->best_metric, digits));
    else
        table_cell(t, "-");
    if (totals->best_trial)
        table_cellf(t, "%s/%d", study, totals->best_trial);
    else
        table_cell(t, "-");
}

int look_no_trial(const char *study, long n, int trials, struct err *e)
{
    if (trials == 0)
        return err_set(e, -EINVAL, "there is no trial %s/%ld: the study has none yet", study, n);
    return err_set(e, -EINVAL, "there is no trial %s/%ld: the study's last is %s/%d", study, n, study, trials);
}

int look_trial(const char *word, const char *study, int trials, int *out, struct err *e)
{
    char *end;
    long n = strtol(word, &end, 10);
    if (end == word || *end || n < 1)
        return err_set(e, -EINVAL, "trial '%s': must be a number from 1", word);
    if (n > INT_MAX || n > trials)
        return look_no_trial(study, n, trials, e);
    *out = (int)n;
    return 0;
}

int look_name(struct look_name *out, const char *word, struct err *e)
{
    const char *slash = strrchr(word, '/');
    int trial = 0;
    if (slash == word)
        return err_set(e, -EINVAL, "trial '%s': there is no study before the slash; say STUDY/N, as in demo/2", word);
    int rc = slash ? look_trial(slash + 1, NULL, INT_MAX, &trial, e) : 0;
    if (rc < 0)
        return err_set(e, rc, "trial '%s': what follows the slash must be a number from 1, as in demo/2", word);
    char *study = slash ? strndup(word, (size_t)(slash - word)) : strdup(word);
    if (!study)
        return err_sys(e, -ENOMEM, "study '%s'", word);
    *out = (struct look_name){ study, trial };
    return 0;
}

int look_whole(const char *word, const char *instead, struct err *e)
{
    if (!strchr(word, '/'))
        return 0;
    return err_set(e, -EINVAL, "'%s' is a trial, and this is about whole studies: see %s", word, instead);
}

void look_name_done(struct look_name *n)
{
    free(n->study);
    *n = (struct look_name){ 0 };
}

int look_name_find(struct look_name *out_name, struct store *s, const char *word, struct store_study *out,
                   struct err *e)
{
    int rc = look_name(out_name, word, e);
    if (rc == 0)
        rc = view_find(s, out_name->study, out, e);
    if (rc < 0 || !out_name->trial)
        return rc;
    struct store_summary totals;
    rc = view_totals(s, out->id, 0, &totals, e);
    return rc < 0 || out_name->trial <= totals.trials
               ? rc
               : look_no_trial(out_name->study, out_name->trial, totals.trials, e);
}
