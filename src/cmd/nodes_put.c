/* The helper on its way to hosts, and away from them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "cmd/nodes_parts.h"
#include "live/node_words.h"
#include "live/ssh.h"

enum { HELPER_MAX = 256 << 20, VERB_ID = 2 };

int nodes_run_script(struct nodes_asking *a, bool (*want)(const struct nodes_host *h), bool is_put,
                     const struct buf *bytes, struct err *e)
{
    AUTO_FREE struct ssh_ask *asks = calloc(a->n ? a->n : 1, sizeof *asks);
    AUTO_FREE size_t *of = calloc(a->n ? a->n : 1, sizeof *of);
    size_t n = 0;
    int rc = asks && of ? 0 : err_sys(e, -ENOMEM, "nodes");
    for (size_t i = 0; rc == 0 && i < a->n; i++) {
        struct nodes_host *h = &a->v[i];
        if (want && !want(h))
            continue;
        strv_done(&h->argv);
        h->argv = STRV_INIT;
        ssh_ask_done(&h->ask);
        rc = ssh_script_argv(&h->argv, a->ssh, h->cfg, is_put ? SSH_PUT : SSH_CLEAN, a->hash, a->machine, e);
        asks[n] = (struct ssh_ask){ .argv = h->argv.v, .cue = is_put ? "pipetune: send" : NULL };
        asks[n].then = bytes ? bytes->data : NULL;
        asks[n].n_then = bytes ? bytes->len : 0;
        of[n++] = i;
    }
    if (rc == 0)
        rc = ssh_ask_all(asks, n, a->timeout_ms, e);
    for (size_t i = 0; rc == 0 && i < n; i++)
        a->v[of[i]].ask = asks[i];
    return rc;
}

/* What a script said: `each` gets the first word of a line, and the rest as one plain line. */
static void each_word(struct nodes_host *h, void (*each)(struct nodes_host *h, const char *word, const char *rest))
{
    static const char begin[] = "pipetune: ";
    const char *line = buf_text(&h->ask.out), *end = line + h->ask.out.len;
    for (const char *stop; line < end && (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1) {
        char text[600];
        size_t len = (size_t)(stop - line), skip = sizeof begin - 1;
        if (len < skip || memcmp(line, begin, skip) != 0)
            continue;
        (void)node_words_plain(text, sizeof text, line + skip, len - skip);
        size_t word = strcspn(text, " ");
        char *rest = text + word + (text[word] == ' ');
        text[word] = '\0';
        each(h, text, rest);
    }
}

/* --- put --- */

static void on_put_word(struct nodes_host *h, const char *word, const char *rest)
{
    if (strcmp(word, "put") == 0 || strcmp(word, "there") == 0)
        nodes_set(h, "state", json_string(word));
    else if (strcmp(word, "says") == 0)
        nodes_set(h, "version", json_bytes(strncmp(rest, "pipetune-node ", 14) == 0 ? rest + 14 : rest));
    else if (strcmp(word, "refused") == 0)
        nodes_why(h, "%s: it stays as it is", rest);
    else if (strcmp(word, "machine") == 0)
        nodes_why(h,
                  "it is a machine of another kind ('%s'): build pipetune-node there, and install it at the same path "
                  "as here",
                  rest);
    else if (strcmp(word, "broken") == 0)
        nodes_why(h, "what arrived is not what was sent: try again");
    else if (strcmp(word, "unfit") == 0)
        nodes_why(h, "the helper does not run there: %s", *rest ? rest : "it says nothing");
}

static void judge_put(struct nodes_asking *a, struct nodes_host *h, const char *path)
{
    nodes_set(h, "state", json_string("failed"));
    nodes_set(h, "version", NULL);
    each_word(h, on_put_word);
    bool says = json_is_string(json_object_get(h->row, "version"));
    bool ended = h->ask.end == SSH_ASK_ENDED && h->ask.code == 0;
    if (!ended || !says)
        nodes_why_not(a, h);
    bool good = ended && says && !json_object_get(h->row, "why");
    if (!good)
        nodes_set(h, "state", json_string("failed"));
    nodes_set(h, "path", good ? json_string(path) : NULL);
}

int nodes_ask_put(struct nodes_asking *a, struct err *e)
{
    AUTO_BUF struct buf bytes = BUF_INIT;
    char path[SSH_PUT_PATH_MAX];
    int rc = ssh_put_path(path, a->hash, e);
    if (rc == 0)
        rc = io_read_file(&bytes, a->helper, HELPER_MAX, e);
    if (rc == 0)
        rc = nodes_run_script(a, NULL, true, &bytes, e);
    for (size_t i = 0; rc == 0 && i < a->n; i++)
        judge_put(a, &a->v[i], path);
    return rc;
}

/* --- clean --- */

static void on_clean_word(struct nodes_host *h, const char *word, const char *rest)
{
    json_t *list = json_object_get(h->row, word);
    if ((strcmp(word, "removed") == 0 || strcmp(word, "kept") == 0) && json_array_size(list) < 1000)
        (void)json_array_append_new(list, json_bytes(rest));
}

/* Its helper need not be there; what runs by it must be over. */
static bool may_be_cleaned(const struct nodes_host *h)
{
    return !json_object_get(h->row, "why");
}

static void count(struct nodes_host *h, const char *word, const char *what, json_int_t n)
{
    char text[120];
    (void)snprintf(text, sizeof text, "%s: %lld", what, n);
    if (n > 0)
        on_clean_word(h, word, text);
}

static void take_launches(struct nodes_asking *a, struct nodes_host *h)
{
    AUTO_JSON json_t *hello = nodes_answer(h, 1), *clean = hello ? nodes_answer(h, VERB_ID) : NULL;
    json_int_t running = json_integer_value(json_object_get(clean, "n_running"));
    const char *tags = json_string_value(json_object_get(clean, "running"));
    bool there = hello || nodes_lacks_helper(h);
    nodes_set(h, "removed", there ? json_array() : NULL);
    nodes_set(h, "kept", there ? json_array() : NULL);
    if (!there)
        nodes_why_not(a, h);
    if (running > 0)
        nodes_why(h, "launches run there that studies began (%lld: %.200s): end them first", running,
                  tags ? tags : "?");
    count(h, "removed", "folders of launches that were over", json_integer_value(json_object_get(clean, "removed")));
    count(h, "kept", "folders of launches that could not be removed",
          json_integer_value(json_object_get(clean, "kept")));
    if (json_is_true(json_object_get(clean, "root")))
        on_clean_word(h, "removed", "the folder that launches lie in");
}

int nodes_ask_clean(struct nodes_asking *a, struct err *e)
{
    int rc = nodes_ask_helpers(a, NODE_CLEAN, NULL, e);
    for (size_t i = 0; rc == 0 && i < a->n; i++)
        take_launches(a, &a->v[i]);
    if (rc == 0)
        rc = nodes_run_script(a, may_be_cleaned, false, NULL, e);
    for (size_t i = 0; rc == 0 && i < a->n; i++) {
        struct nodes_host *h = &a->v[i];
        if (!may_be_cleaned(h))
            continue;
        each_word(h, on_clean_word);
        if (h->ask.end != SSH_ASK_ENDED || h->ask.code != 0)
            nodes_why_not(a, h);
    }
    return rc;
}
