/* Hosts of a study, asked by people: what is there, how long a word takes, the helper to them and away again. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/io.h"
#include "base/own.h"
#include "base/sha256.h"
#include "cmd/cmd.h"
#include "cmd/look.h"
#include "cmd/nodes_parts.h"
#include "live/env.h"
#include "live/host_list.h"
#include "live/node_words.h"
#include "live/nodes_cfg.h"
#include "view/table.h"

struct nodes_options {
    char *config, *hosts, *word;
    double timeout_s;
    bool json;
};

#define FIELD(member) offsetof(struct nodes_options, member)
/* clang-format off */
static const struct opt_row nodes_rows[] = {
    { NULL, "config", OPT_TEXT, FIELD(config), NULL, 0, 0, NULL, "FILE", "a config with nodes, or with lists of hosts" },
    { NULL, "hosts", OPT_TEXT, FIELD(hosts), NULL, 0, 0, NULL, "LIST", "a list of the config's hosts by its name, a file with a host to a line, or HOST,… (also words behind the verb)" },
    { NULL, "word", OPT_TEXT, FIELD(word), "hello", 0, 0, NULL, "WORD", "what is echoed: letters, digits, '_', '-'" },
    { NULL, "timeout", OPT_REAL, FIELD(timeout_s), "30", 0.1, 3600, NULL, "SECONDS", "that a host may take, for each time that it is asked" },
    LOOK_JSON_ROW(struct nodes_options),
};
/* clang-format on */

void cmd_nodes_options(struct cmd_rows *out)
{
    cmd_rows_add(out, &OPT_SET(nodes_rows, NULL));
}

enum { COLUMNS_MAX = 12 };

static const struct nodes_verb {
    const char *name;
    int (*ask)(struct nodes_asking *a, struct err *e);
    const char *heads[COLUMNS_MAX], *keys[COLUMNS_MAX]; /* of the table; members of a row */
} verbs[] = {
    { "clean", nodes_ask_clean, { "!host", "!>removed", "!>kept", NULL }, { "host", "removed", "kept" } },
    { "echo",
      nodes_ask_echo,
      { "!host", "!word", "!>round ms", "!>connect s", NULL },
      { "host", "word", "round_ms", "connect_s" } },
    { "ls",
      nodes_ask_ls,
      { "!host", "!version", "!>cpus", "!>memory GiB", "!>free GiB", "!>load", "!runs", "!>clock s", "!>connect s",
        NULL },
      { "host", "version", "cpus", "memory_gb", "free_gb", "load", "running", "clock_offset_s", "connect_s" } },
    { "put", nodes_ask_put, { "!host", "!state", "!version", NULL }, { "host", "state", "version" } },
};

static const struct nodes_verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].name, name) == 0)
            return &verbs[i];
    return NULL;
}

/* --- printing --- */

/* A list of texts is told in lines of its own where these are long: see put_lists(). */
static void put_cell(struct table *t, const json_t *value)
{
    AUTO_BUF struct buf text = BUF_INIT;
    for (size_t i = 0; i < json_array_size(value); i++)
        buf_printf(&text, "%s%s", i ? ", " : "", json_string_value(json_array_get(value, i)));
    if (json_is_number(value))
        table_number(t, json_number_value(value));
    else
        table_cell(t, json_is_string(value) ? json_string_value(value) : text.len ? buf_text(&text) : "-");
}

static void put_count(struct table *t, const json_t *list)
{
    if (json_is_array(list))
        table_cellf(t, "%zu", json_array_size(list));
    else
        table_cell(t, "-");
}

static void note_list(struct table *t, const char *what, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        AUTO_BUF struct buf line = BUF_INIT;
        buf_printf(&line, "%s %s", what, json_string_value(json_array_get(list, i)));
        table_note(t, buf_text(&line));
    }
}

static int print_table(const struct nodes_verb *v, const struct nodes_asking *a)
{
    AUTO_BUF struct buf b = BUF_INIT;
    struct table t;
    table_init(&t, v->heads);
    for (size_t i = 0; i < a->n; i++) {
        const json_t *row = a->v[i].row;
        const json_t *removed = json_object_get(row, "removed"), *kept = json_object_get(row, "kept");
        for (size_t c = 0; v->heads[c]; c++)
            if (v->ask == nodes_ask_clean && c > 0)
                put_count(&t, json_object_get(row, v->keys[c]));
            else
                put_cell(&t, json_object_get(row, v->keys[c]));
        table_note(&t, json_string_value(json_object_get(row, "why")));
        note_list(&t, "removed", removed);
        note_list(&t, "kept", kept);
    }
    table_put(&t, &b, 0);
    table_done(&t);
    return cmd_print(&b);
}

static int print_json(const struct nodes_asking *a)
{
    json_t *list = json_array();
    for (size_t i = 0; i < a->n; i++)
        (void)json_array_append(list, a->v[i].row);
    return cmd_print_json(list);
}

/* --- which hosts --- */

static int read_config(struct json_doc *out, const char *path, struct err *e)
{
    enum { FILE_MAX = 16 << 20 };
    static const char nothing[] = "{}";
    AUTO_BUF struct buf text = BUF_INIT;
    struct config scratch = { 0 };
    if (!path)
        return json_doc_parse(out, "the command line", nothing, sizeof nothing - 1, e);
    int rc = io_read_file(&text, path, FILE_MAX, e);
    if (rc == 0)
        rc = json_doc_parse(out, path, buf_text(&text), text.len, e);
    if (rc == 0)
        rc = config_read(&scratch, out, e);
    config_done(&scratch);
    return rc;
}

static int choose(struct json_doc *doc, const struct nodes_options *o, const struct strv *words, struct err *e)
{
    AUTO_BUF struct buf said = BUF_INIT;
    json_t *list;
    if (o->hosts && words->n > 1)
        return err_set(e, -EINVAL, "hosts are named twice: by --hosts and by '%s'", words->v[1]);
    buf_puts(&said, o->hosts ? o->hosts : "");
    for (size_t i = 1; i < words->n; i++)
        buf_printf(&said, "%s%s", i > 1 ? "," : "", words->v[i]);
    if (said.failed)
        return err_sys(e, -ENOMEM, "nodes");
    if (said.len == 0 && json_array_size(json_object_get(doc->root, "nodes")) == 0)
        return err_set(e, -EINVAL, "which hosts: give --hosts LIST, or a --config with 'nodes'");
    int rc = said.len ? host_list_choose(&list, buf_text(&said), doc, e) : 0;
    if (rc == 0 && said.len && json_object_set_new(doc->root, "nodes", list) < 0)
        rc = err_sys(e, -ENOMEM, "nodes");
    return rc;
}

/* --- asking --- */

static int make_hosts(struct nodes_asking *a, const struct node_cfg *cfg, size_t n, struct err *e)
{
    a->v = calloc(n ? n : 1, sizeof *a->v);
    if (!a->v)
        return err_sys(e, -ENOMEM, "nodes");
    for (a->n = 0; a->n < n; a->n++) {
        a->v[a->n].cfg = &cfg[a->n];
        a->v[a->n].row = json_pack("{s:o}", "host", json_bytes(cfg[a->n].host));
    }
    return 0;
}

static void asking_done(struct nodes_asking *a)
{
    for (size_t i = 0; i < a->n; i++) {
        strv_done(&a->v[i].argv);
        ssh_ask_done(&a->v[i].ask);
        json_decref(a->v[i].row);
    }
    free(a->v);
}

static int ask(const struct nodes_verb *v, struct nodes_asking *a, const struct nodes_options *o, struct err *e)
{
    struct utsname machine;
    int rc = sha256_file(a->helper, a->hash, e);
    if (rc < 0)
        return err_prefix(e, "pipetune-node, which belongs beside this program");
    (void)uname(&machine); /* cannot fail */
    (void)snprintf(a->machine, sizeof a->machine, "%s", machine.machine);
    a->word = o->word;
    a->timeout_ms = (int)lround(o->timeout_s * 1000);
    (void)signal(SIGPIPE, SIG_IGN); /* a host that goes away is told of in its row */
    rc = v->ask(a, e);
    for (size_t i = 0; rc == 0 && i < a->n; i++) { /* it comes last, and is there in any case */
        json_t *why = json_incref(json_object_get(a->v[i].row, "why"));
        (void)json_object_del(a->v[i].row, "why");
        nodes_set(&a->v[i], "why", why);
    }
    return rc;
}

/* The exit code, or -errno. */
static int ask_hosts(const struct nodes_verb *v, const struct nodes_options *o, const struct node_cfg *cfg, size_t n,
                     struct err *e)
{
    const struct config nothing = { 0 };
    const char *ssh = getenv("PIPETUNE_SSH");
    struct env env = { 0 };
    struct nodes_asking a = { .ssh = ssh && *ssh ? ssh : "ssh" };
    int rc = env_find(&env, &nothing, e);
    a.helper = env.node;
    if (rc == 0)
        rc = make_hosts(&a, cfg, n, e);
    if (rc == 0)
        rc = ask(v, &a, o, e);
    if (rc == 0)
        rc = o->json ? print_json(&a) : print_table(v, &a);
    for (size_t i = 0; rc == CMD_OK && i < a.n; i++)
        rc = json_is_string(json_object_get(a.v[i].row, "why")) ? CMD_NONE : CMD_OK;
    asking_done(&a);
    env_done(&env);
    return rc;
}

static int run(const struct nodes_options *o, const struct strv *words, struct err *e)
{
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    const struct nodes_verb *v = words->n ? find_verb(words->v[0]) : NULL;
    struct node_cfg *cfg = NULL;
    size_t n = 0;
    if (!v)
        return err_set(e, -EINVAL, "nodes %s: there are ls, echo, put and clean",
                       words->n ? words->v[0] : "needs a verb");
    if (!node_words_is_tag(o->word))
        return err_set(e, -EINVAL, "option '--word': 1 to %d of letters, digits, '_', '-'", NODE_TAG_MAX);
    int rc = read_config(&doc, o->config, e);
    if (rc == 0)
        rc = choose(&doc, o, words, e);
    if (rc == 0)
        rc = nodes_cfg_read(&cfg, &n, &doc, e);
    if (rc == 0)
        rc = ask_hosts(v, o, cfg, n, e);
    nodes_cfg_free(cfg, n);
    return rc;
}

int cmd_nodes(int argc, char **argv)
{
    struct nodes_options o = { 0 };
    struct opt_set set = OPT_SET(nodes_rows, &o);
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e;
    int code = 0, rc = opt_presets(&set, &e);
    if (rc < 0)
        code = cmd_fail(&e);
    else if (!cmd_options("nodes", argc, argv, &set, 1, &words, 1 + HOST_LIST_MAX, &code)) {
        rc = run(&o, &words, &e);
        code = rc < 0 ? cmd_fail(&e) : rc;
    }
    opt_done(&set);
    return code;
}
