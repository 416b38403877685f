/* The ready-made lists of patterns, by name. */
#include <string.h>

#include "app/pattern.h"
#include "base/own.h"

#define NUMBER "[-+]?(?:[0-9.]+(?:[eE][-+]?[0-9]+)?|nan|inf)"

enum { TEXTS_MAX = 4 };

static const struct {
    const char *name;
    const char *texts[TEXTS_MAX];
} set_rows[] = {
    /* "Epoch 3/10", then "60/60 ━━━ 1s 2ms/step - accuracy: 0.91 - loss: 0.3 - val_loss: 0.2" */
    { "keras",
      { "^Epoch (?<epoch>\\d+)/(?<epochs>\\d+)",
        "(?:(?:^|.*[\\r\\x08])\\s*(\\d+)/\\1 .*?(?: (?<seconds>\\d+)s\\b[^:]*?)?|(?!^)\\G) - (?<name>[A-Za-z]\\w*): "
        "(?<value>" NUMBER ")(?! *ms/)" } },
    /* "Epoch 2: 100%|███| 60/60 [00:01<00:00, 41.2it/s, v_num=0, train_loss=0.31, val_acc=0.9]" */
    { "lightning",
      { "(?:(?:^|.*\\r)Epoch (?<epoch0>\\d+): 100%\\|.*?(?:it/s|s/it)(?:, v_num=\\S+(?=[,\\]]))?|(?!^)\\G), "
        "(?<name>[A-Za-z][\\w/]*)=(?<value>" NUMBER ")" } },
    /* "[15:37:29] [2]\ttrain-merror:0.04250\ttest-merror:0.10880" */
    { "xgboost",
      { "(?:^(?:\\[[0-9:]+\\] )?\\[(?<epoch0>\\d+)\\]|(?!^)\\G)\\s+(?<name>[^\\s:]+):(?<value>" NUMBER ")" } },
    /* "[3]\tvalid_0's multi_error: 0.1241\tvalid_0's multi_logloss: 0.39" (with or without "[LightGBM] [Info] ") */
    { "lightgbm",
      { "(?:^(?:\\[LightGBM\\] \\[Info\\] )?(?:\\[|Iteration:)(?<epoch>\\d+)[\\],]|(?!^)\\G),?\\s+(?<of>\\w+?)(?:'s)? "
        "(?:: )?(?<name>[\\w@]+) ?: (?<value>" NUMBER ")" } },
    /* "epoch=3 loss=0.31 accuracy=0.9", in one line or in several */
    { "katib",
      { "(?<![\\w.-])epoch ?= ?(?<epoch>\\d+)(?![\\w.])",
        "(?<![\\w.-])(?!(?:epoch|step) ?=)(?<name>[A-Za-z][\\w/-]*) ?= ?(?<value>" NUMBER ")(?![\\w.])" } },
};

const char *const *patterns_named(const char *name, size_t *n)
{
    for (size_t i = 0; i < ARRAY_LEN(set_rows); i++) {
        if (strcmp(set_rows[i].name, name) != 0)
            continue;
        *n = 0;
        while (*n < TEXTS_MAX && set_rows[i].texts[*n])
            ++*n;
        return set_rows[i].texts;
    }
    return NULL;
}

const char *patterns_name(size_t i)
{
    return i < ARRAY_LEN(set_rows) ? set_rows[i].name : NULL;
}
