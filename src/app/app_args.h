/* An application's own arguments, from its file and what a trial gives it. Pure. */
#ifndef APP_APP_ARGS_H
#define APP_APP_ARGS_H

#include "app/app.h"

/* Appends `word` with {name} of each value replaced by its text ({} is the value without a name, ""). */
void app_fill(struct strv *out, const char *word, const struct app_value *values, size_t n);

/* Does everything that this launch is told in argv reach the application? -EINVAL. */
int app_check_launch(const struct application *a, const struct app_launch *l, struct err *e);

/* Appends extras and arguments: extras in their order, with the values that the trial gives in the place of theirs, then what "arguments" say of
 * hyperparameters, epochs, checkpoint, resume and seed. A session has its extras as they are. */
void app_put_arguments(const struct application *a, const struct app_launch *l, struct strv *out);

#endif
