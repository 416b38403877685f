/* What helpers of hosts are asked: what is there, a word and back, and that launches which are over be removed. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "cmd/nodes_parts.h"
#include "live/node_words.h"
#include "live/ssh.h"

enum { HELLO_ID = 1, VERB_ID = 2, STOP_ID = 3, NOT_FOUND = 127, NOT_RUN = 126, SSH_FAILED = 255 };

/* --- rows --- */

void nodes_set(struct nodes_host *h, const char *key, json_t *value)
{
    (void)json_object_set_new(h->row, key,
                              value ? value : json_null()); /* memory: jansson ends the program by itself */
}

void nodes_why(struct nodes_host *h, const char *fmt, ...)
{
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap); /* a cut reason is still a reason */
    va_end(ap);
    if (!json_object_get(h->row, "why"))
        nodes_set(h, "why", json_bytes(text));
}

bool nodes_lacks_helper(const struct nodes_host *h)
{
    return h->ask.end == SSH_ASK_ENDED && h->ask.cued_real_ms == 0 &&
           (h->ask.code == NOT_FOUND || h->ask.code == NOT_RUN);
}

void nodes_why_not(struct nodes_asking *a, struct nodes_host *h)
{
    const struct ssh_ask *k = &h->ask;
    if (k->end == SSH_ASK_UNSTARTED)
        nodes_why(h, "%s", k->last);
    else if (k->end == SSH_ASK_OVERDUE)
        nodes_why(h, "it has not answered in %g s", a->timeout_ms * 1e-3);
    else if (k->end == SSH_ASK_FLOODED)
        nodes_why(h, "it said more than %d bytes", SSH_ASK_OUT_MAX);
    else if (nodes_lacks_helper(h))
        nodes_why(h, "there is no pipetune-node at '%s', and none was put there: pipetune nodes put %s", a->helper,
                  h->cfg->host);
    else if (k->code == SSH_FAILED && k->last[0])
        nodes_why(h, "%s", k->last);
    else
        nodes_why(h, "it did not answer as it should, and ended with exit code %d%s%s", k->code, k->last[0] ? ": " : "",
                  k->last);
}

/* --- asking --- */

static int point_at_helper(struct nodes_asking *a, struct nodes_host *h, const char *helper, struct err *e)
{
    strv_done(&h->argv);
    ssh_ask_done(&h->ask);
    h->argv = STRV_INIT;
    int rc = ssh_argv(&h->argv, a->ssh, h->cfg, helper, e);
    return rc;
}

static int ask_those(struct nodes_asking *a, bool put, const struct buf *hello, const struct buf *then, struct err *e)
{
    char path[SSH_PUT_PATH_MAX];
    AUTO_FREE struct ssh_ask *asks = calloc(a->n ? a->n : 1, sizeof *asks);
    AUTO_FREE size_t *of = calloc(a->n ? a->n : 1, sizeof *of);
    size_t n = 0;
    int rc = asks && of ? ssh_put_path(path, a->hash, e) : err_sys(e, -ENOMEM, "nodes");
    for (size_t i = 0; rc == 0 && i < a->n; i++) {
        struct nodes_host *h = &a->v[i];
        if (put && !nodes_lacks_helper(h))
            continue;
        h->put = put;
        rc = point_at_helper(a, h, put ? path : a->helper, e);
        asks[n] =
            (struct ssh_ask){ .argv = h->argv.v, .cue = "{\"id\":1,", .first = hello->data, .n_first = hello->len };
        asks[n].then = then->data;
        asks[n].n_then = then->len;
        of[n++] = i;
    }
    if (rc == 0)
        rc = ssh_ask_all(asks, n, a->timeout_ms, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        a->v[of[i]].ask = asks[i];
    return rc;
}

int nodes_ask_helpers(struct nodes_asking *a, int verb, const char *word, struct err *e)
{
    static const struct app_workers none = { 0 };
    AUTO_BUF struct buf hello = BUF_INIT, then = BUF_INIT;
    node_words_hello(&hello, HELLO_ID, 0, &none);
    if (word)
        node_words_tagged(&then, VERB_ID, (enum node_verb)verb, word);
    else
        node_words_simple(&then, VERB_ID, (enum node_verb)verb);
    node_words_simple(&then, STOP_ID, NODE_STOP);
    if (hello.failed || then.failed)
        return err_sys(e, -ENOMEM, "nodes");
    int rc = ask_those(a, false, &hello, &then, e);
    return rc < 0 ? rc : ask_those(a, true, &hello, &then, e);
}

static json_t *answer_of(struct nodes_host *h, const char *line, size_t len, uint64_t id)
{
    struct node_words w;
    if (node_words_read(&w, line, len, NULL) < 0)
        return NULL;
    bool mine = w.kind == NODE_ANSWER && w.id == id;
    json_t *body = mine && w.ok ? json_incref(w.body) : NULL;
    if (mine && !w.ok)
        nodes_why(h, "%s", w.error);
    node_words_done(&w);
    return body;
}

json_t *nodes_answer(struct nodes_host *h, int id)
{
    char begin[24];
    (void)snprintf(begin, sizeof begin, "{\"id\":%d,", id);
    const char *line = buf_text(&h->ask.out), *end = line + h->ask.out.len;
    for (const char *stop; line < end && (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1) {
        size_t len = (size_t)(stop - line);
        if (len > NODE_LINE_MAX || strncmp(line, begin, strlen(begin)) != 0) /* what a login shell prints */
            continue;
        return answer_of(h, line, len, (uint64_t)id);
    }
    return NULL;
}

/* --- ls --- */

static json_t *rounded(double x, double per_unit)
{
    return isnan(x) ? json_null() : json_num(round(x * per_unit) / per_unit);
}

static json_t *gigabytes(const json_t *answer, const char *key)
{
    const json_t *mb = json_object_get(answer, key);
    return json_is_number(mb) ? rounded(json_number_value(mb) / 1024, 10) : json_null();
}

static json_t *copy_text(const json_t *answer, const char *key)
{
    char plain[256];
    const char *text = json_string_value(json_object_get(answer, key));
    return text ? json_bytes(node_words_plain(plain, sizeof plain, text, strlen(text))) : json_null();
}

static json_t *copy_number(const json_t *answer, const char *key)
{
    const json_t *j = json_object_get(answer, key);
    return json_is_number(j) ? json_copy((json_t *)j) : json_null();
}

/* Names with commas between. */
static json_t *running_of(const json_t *answer)
{
    const char *text = json_string_value(json_object_get(answer, "running"));
    json_t *list = json_array();
    for (; text && *text; text += strcspn(text, ",") + (text[strcspn(text, ",")] == ',')) {
        char tag[NODE_TAG_MAX + 1];
        (void)snprintf(tag, sizeof tag, "%.*s", (int)strcspn(text, ","), text);
        if (node_words_is_tag(tag))
            (void)json_array_append_new(list, json_string(tag));
    }
    return list;
}

static json_t *clock_offset(const struct nodes_host *h, const json_t *hello)
{
    const json_t *clock = json_object_get(hello, "clock_ms");
    if (!json_is_number(clock) || h->ask.cued_real_ms == 0)
        return json_null();
    return rounded((json_number_value(clock) - (double)h->ask.cued_real_ms) / 1000, 1000);
}

int nodes_ask_ls(struct nodes_asking *a, struct err *e)
{
    int rc = nodes_ask_helpers(a, NODE_LOOK, NULL, e);
    for (size_t i = 0; rc == 0 && i < a->n; i++) {
        struct nodes_host *h = &a->v[i];
        AUTO_JSON json_t *hello = nodes_answer(h, HELLO_ID), *look = hello ? nodes_answer(h, VERB_ID) : NULL;
        const json_t *cpus = json_object_get(hello, "cpus");
        if (!hello)
            nodes_why_not(a, h);
        nodes_set(h, "state", json_string(hello ? "ok" : "lost"));
        nodes_set(h, "name", copy_text(hello, "host"));
        nodes_set(h, "version", copy_text(hello, "version"));
        nodes_set(h, "helper", hello ? json_string(h->put ? "put" : "path") : NULL);
        nodes_set(h, "cpus", json_is_array(cpus) ? json_integer((json_int_t)json_array_size(cpus)) : NULL);
        nodes_set(h, "memory_gb", gigabytes(look, "memory_mb"));
        nodes_set(h, "free_gb", gigabytes(look, "free_mb"));
        nodes_set(h, "load", copy_number(look, "load"));
        nodes_set(h, "running", look ? running_of(look) : NULL);
        nodes_set(h, "over", copy_number(look, "over"));
        nodes_set(h, "clock_offset_s", clock_offset(h, hello));
        nodes_set(h, "connect_s", hello ? rounded(h->ask.cued_s, 1000) : NULL);
    }
    return rc;
}

/* --- echo --- */

int nodes_ask_echo(struct nodes_asking *a, struct err *e)
{
    int rc = nodes_ask_helpers(a, NODE_ECHO, a->word, e);
    for (size_t i = 0; rc == 0 && i < a->n; i++) {
        struct nodes_host *h = &a->v[i];
        AUTO_JSON json_t *hello = nodes_answer(h, HELLO_ID), *echo = hello ? nodes_answer(h, VERB_ID) : NULL;
        const char *word = json_string_value(json_object_get(echo, "tag"));
        if (!echo)
            nodes_why_not(a, h);
        else if (!word || strcmp(word, a->word) != 0)
            nodes_why(h, "it answered another word");
        nodes_set(h, "word", copy_text(echo, "tag"));
        nodes_set(h, "round_ms", echo ? rounded(h->ask.round_s * 1000, 100) : NULL);
        nodes_set(h, "connect_s", hello ? rounded(h->ask.cued_s, 1000) : NULL);
    }
    return rc;
}
