/* What the parts of `pipetune nodes` share. */
#ifndef CMD_NODES_PARTS_H
#define CMD_NODES_PARTS_H

#include "base/json.h"
#include "live/nodes.h"
#include "live/ssh_ask.h"

/* One host while it is asked. */
struct nodes_host {
    const struct node_cfg *cfg;
    struct strv argv;
    struct ssh_ask ask;
    bool put; /* it was asked of the helper that was put there */
    json_t
        *row; /* what is told of it: its members, in the order of the verb's columns; "why" where something is wrong */
};

struct nodes_asking {
    struct nodes_host *v;
    size_t n;
    const char *ssh, *helper; /* the program; the path of pipetune-node here, and there unless it was put */
    char hash[65];            /* of that file's bytes */
    char machine[65];         /* the kind of this machine, which helpers must be of, too */
    const char *word;         /* to be echoed */
    int timeout_ms;
};

/* Each asks all hosts, at once, and writes their rows; -errno: nothing was asked. In nodes_helper.c and nodes_put.c. */
int nodes_ask_ls(struct nodes_asking *a, struct err *e);
int nodes_ask_echo(struct nodes_asking *a, struct err *e);
int nodes_ask_put(struct nodes_asking *a, struct err *e);
int nodes_ask_clean(struct nodes_asking *a, struct err *e);

/* --- of the parts --- */

/* Asks the hosts for which `want` holds (NULL: all) by scripts; `bytes` are sent when they ask for them. */
int nodes_run_script(struct nodes_asking *a, bool (*want)(const struct nodes_host *h), bool is_put,
                     const struct buf *bytes, struct err *e);

/* Asks all helpers hello, then `verb` (of `word`, unless that is NULL). */
int nodes_ask_helpers(struct nodes_asking *a, int verb, const char *word, struct err *e);

/* The answer to one of the two; owned. NULL: it did not come, or was a refusal, which is the row's "why" then. */
json_t *nodes_answer(struct nodes_host *h, int id);

/* Was there no helper to be asked? */
bool nodes_lacks_helper(const struct nodes_host *h);

void nodes_set(struct nodes_host *h, const char *key, json_t *value); /* takes the reference */
void nodes_why(struct nodes_host *h, const char *fmt, ...) __attribute__((format(printf, 2, 3))); /* the first stays */
void nodes_why_not(struct nodes_asking *a, struct nodes_host *h); /* it did not answer as it should have */

#endif
