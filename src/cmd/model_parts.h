/* What the parts of `pipetune model` share: the command line, and where a model is. */
#ifndef CMD_MODEL_PARTS_H
#define CMD_MODEL_PARTS_H

#include "base/strv.h"
#include "clustering/model.h"

#define AUTO_MODEL __attribute__((cleanup(model_done)))
#define MODEL_FILE_MAX ((size_t)1 << 28) /* bytes */

struct model_args {
    char *store, *model, *out, *format;
    int64_t cluster;
    bool all, replace, json;
    const struct strv *words; /* what follows the verb */
};

/* The model's name for people: the file's, or "default". */
const char *model_name(const struct model_args *a);

/* --model's file, else the store's default one. 1 read, 0 there is none yet (and *out is an empty one); -EINVAL and what opening and
 * reading say. */
int model_load(struct model *out, const struct model_args *a, struct err *e);

/* Loads, lets `change` change it, and stores it again: into the file, or into the store, where another writer's change that came
 * between makes it begin anew with that. `change` may so be called more than once. It returns 0, or an error. A file is replaced as a
 * whole: of two who change it at once the last one wins. */
int model_change(const struct model_args *a, int (*change)(struct model *m, void *ctx, struct err *e), void *ctx,
                 struct err *e);

/* Writes a file atomically. */
int model_save_file(const struct model *m, const char *path, struct err *e);

/* The verbs: exit codes. */
int model_ls(const struct model_args *a, struct err *e);
int model_show(const struct model_args *a, struct err *e);
int model_explain(const struct model_args *a, struct err *e);
int model_train_traces(const struct model_args *a, struct err *e);

#endif
