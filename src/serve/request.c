#include "serve/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"
#include "live/study.h"

enum { ANSWER_MS = 10000, LOOK_US = 20000 };

static int heard(const struct store_request *r, const struct store_request *now, char **out_answer, struct err *e)
{
    const char *answer = now->answer ? now->answer : "refused";
    if (strcmp(now->state, "done") != 0 && r->trial)
        return err_set(e, -EINVAL, "%s/%d: %s", r->study, r->trial, answer);
    if (strcmp(now->state, "done") != 0)
        return err_set(e, -EINVAL, "%s: %s", r->study, answer);
    *out_answer = now->answer ? strdup(now->answer) : NULL;
    return 1;
}

int request_ask(struct store *s, const char *dir, struct store_request *r, const char *kind, struct err *e)
{
    char own_kind[16], waiting[] = "waiting";
    (void)snprintf(own_kind, sizeof own_kind, "%s", kind);
    r->kind = own_kind;
    r->state = waiting;
    r->asked_ms = study_now_ms();
    int rc = store_request_add(s, r, e);
    int64_t since = clock_ms();
    r->kind = r->state = NULL;
    while (rc == 0 && clock_ms() - since < ANSWER_MS && study_driver(dir) > 0) {
        struct store_request now = { 0 };
        rc = store_request_find(s, r->id, &now, e);
        bool waits = rc == 1 && strcmp(now.state, "waiting") == 0;
        rc = rc == 1 && !waits ? heard(r, &now, &r->answer, e) : rc < 0 ? rc : 0;
        store_request_done(&now);
        if (rc == 0)
            (void)usleep(LOOK_US);
    }
    return rc;
}
