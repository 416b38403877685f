/* Scripts by which shells complete our command line: all that can be said beforehand is in them, from the same rows that `help` prints.
 * The names of studies alone are asked for when they are wanted, by `pipetune ls --names`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "cmd/cmd.h"
#include "core/replay.h"
#include "monitoring/meter.h"
#include "search/search.h"

/* --- what may stand where --- */

enum kind { KIND_OTHER, KIND_WORDS, KIND_FILE, KIND_FOLDER, KIND_STUDY };

struct offer {
    enum kind kind;
    struct strv words; /* of KIND_WORDS, and beside studies or files */
};

static void offer_done(struct offer *o)
{
    strv_done(&o->words);
}

#define AUTO_OFFER __attribute__((cleanup(offer_done)))

static void add_searches(struct strv *out)
{
    for (size_t i = 0; searches[i]; i++)
        strv_add(out, searches[i]->name);
}

static void add_policies(struct strv *out)
{
    for (const struct replay_policy *p = replay_policies; p->name; p++)
        strv_add(out, p->name);
}

static void add_meters(struct strv *out)
{
    for (size_t i = 0; meters[i]; i++)
        strv_add(out, meters[i]->name);
}

/* Options whose words are rows of another table; NULL: of every command. */
static const struct {
    const char *command, *key;
    void (*add)(struct strv *out);
} known[] = {
    { NULL, "algorithm", add_searches },
    { "replay", "policy", add_policies },
    { NULL, "meters", add_meters },
    { NULL, "meter", add_meters },
};

static struct offer offer_of_option(const char *command, const struct opt_row *row)
{
    struct offer o = { .kind = KIND_OTHER, .words = STRV_INIT };
    for (size_t i = 0; row->choices && row->choices[i]; i++)
        strv_add(&o.words, row->choices[i]);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(known[i].key, row->key) == 0 && (!known[i].command || strcmp(known[i].command, command) == 0))
            known[i].add(&o.words);
    const char *arg = row->arg ? row->arg : "";
    o.kind = o.words.n > 0              ? KIND_WORDS
             : strcmp(arg, "FILE") == 0 ? KIND_FILE
             : strcmp(arg, "DIR") == 0  ? KIND_FOLDER
                                        : KIND_OTHER;
    return o;
}

/* The words of a usage, as cmd.h says: what is in small letters is typed so. */
static struct offer offer_of_usage(const struct command *c)
{
    struct offer o = { .kind = KIND_OTHER, .words = STRV_INIT };
    for (const char *at = c->usage; *at;) {
        at += strspn(at, " |[]");
        size_t len = strcspn(at, " |[]");
        char word[32];
        (void)snprintf(word, sizeof word, "%.*s", (int)len, at);
        if (len > 0 && strspn(word, "abcdefghijklmnopqrstuvwxyz") == len)
            strv_add(&o.words, word);
        else if (strncmp(word, "STUDY", 5) == 0)
            o.kind = KIND_STUDY;
        else if (strcmp(word, "COMMAND") == 0)
            for (const struct command *of = cmd_table; of->name; of++)
                strv_add(&o.words, of->name);
        else if (o.kind == KIND_OTHER &&
                 (strcmp(word, "FILE") == 0 || strcmp(word, "TRACE") == 0 || strcmp(word, "DIR") == 0))
            o.kind = KIND_FILE;
        at += len;
    }
    return o;
}

/* --- bash --- */

static void put_words(struct buf *b, const struct strv *words)
{
    for (size_t i = 0; i < words->n; i++)
        buf_printf(b, "%s%s", i ? " " : "", words->v[i]);
}

static const char *const kind_names[] = {
    [KIND_OTHER] = "none", [KIND_WORDS] = "none", [KIND_FILE] = "file", [KIND_FOLDER] = "folder", [KIND_STUDY] = "study"
};

static void bash_row(struct buf *b, const char *key, const struct offer *o, const struct cmd_rows *options)
{
    char name[64];
    buf_printf(b, "    %s) kind=%s words='", key, kind_names[o->kind]);
    put_words(b, &o->words);
    buf_puts(b, "'");
    if (options) {
        buf_puts(b, " options='--help");
        for (size_t i = 0; i < options->n; i++) {
            bool no = options->v[i].type == OPT_FLAG && options->v[i].preset; /* on, unless --no-NAME is said */
            buf_printf(b, " --%s%s", no ? "no-" : "", opt_name(&options->v[i], name));
        }
        buf_puts(b, "'");
    }
    buf_puts(b, " ;;\n");
}

static void bash_command(struct buf *b, const struct command *c, const struct cmd_rows *options)
{
    char key[128], name[64];
    for (size_t i = 0; i < options->n; i++) {
        const struct opt_row *row = &options->v[i];
        if (row->type == OPT_FLAG)
            continue;
        AUTO_OFFER struct offer o = offer_of_option(c->name, row);
        b->failed |= o.words.failed;
        (void)snprintf(key, sizeof key, "'%s --%s'", c->name, opt_name(row, name));
        bash_row(b, key, &o, NULL);
    }
    AUTO_OFFER struct offer o = offer_of_usage(c);
    b->failed |= o.words.failed;
    (void)snprintf(key, sizeof key, "'%s '*", c->name);
    bash_row(b, key, &o, options);
}

/* Bash breaks words at = and @, too: what is completed is put together again, and of each reply only the end is given back that
 * replaces the last piece. */
static const char bash_rest[] =
    "    *) options='--help --version --config' words='%s' kind=none ;;\n"
    "    esac\n"
    "}\n"
    "\n"
    "_pipetune_studies() # PROGRAM: of the store that the command line names\n"
    "{\n"
    "    local i store=()\n"
    "    for ((i = 1; i < COMP_CWORD - 1; i++)); do\n"
    "        [[ ${COMP_WORDS[i]} == --store ]] || continue\n"
    "        store=(\"${COMP_WORDS[i + 1]}\")\n"
    "        [[ ${store[0]} != = ]] || store=(\"${COMP_WORDS[i + 2]}\")\n"
    "        store=(--store \"${store[0]/#\\~/$HOME}\")\n"
    "    done\n"
    "    \"${1/#\\~/$HOME}\" ls --names \"${store[@]}\" 2>/dev/null\n"
    "}\n"
    "\n"
    "_pipetune()\n"
    "{\n"
    "    local kind words options reply at=$COMP_CWORD tail=${COMP_WORDS[COMP_CWORD]} whole value glue='' lead\n"
    "    whole=$tail\n"
    "    [[ $tail != [=@] ]] || tail=''\n"
    "    while ((at > 1)) && [[ ${COMP_WORDS[at]} == [=@] || ${COMP_WORDS[at - 1]} == [=@] ]]; do\n"
    "        at=$((at - 1))\n"
    "        whole=${COMP_WORDS[at]}$whole\n"
    "    done\n"
    "    local before=${COMP_WORDS[at - 1]} command=${COMP_WORDS[1]}\n"
    "    ((at > 1)) || command=''\n"
    "    [[ $command != --config* ]] || command=run\n"
    "    value=$whole\n"
    "    if [[ $whole == --*=* ]]; then\n"
    "        before=${whole%%%%=*} value=${whole#*=} glue=${whole%%%%=*}=\n"
    "    fi\n"
    "    options=''\n"
    "    _pipetune_offer \"$command $before\"\n"
    "    [[ $glue ]] && options=''\n"
    "    [[ $value == -* ]] && kind=none words=''\n"
    "    lead=${whole%%\"$tail\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r reply; do\n"
    "        [[ ! $reply ]] || COMPREPLY+=(\"${reply#\"$lead\"}\")\n"
    "    done < <(\n"
    "        [[ $value == -* || ! ($words || $kind != none) ]] && compgen -P \"$glue\" -W \"$options\" -- \"$value\"\n"
    "        compgen -P \"$glue\" -W \"$words\" -- \"$value\"\n"
    "        case $kind in\n"
    "        study) compgen -P \"$glue\" -W \"$(_pipetune_studies \"${COMP_WORDS[0]}\")\" -- \"$value\" ;;\n"
    "        file) compgen -P \"$glue\" -f -- \"$value\" ;;\n"
    "        folder) compgen -P \"$glue\" -d -- \"$value\" ;;\n"
    "        esac\n"
    "    )\n"
    "    if [[ $kind == file || $kind == folder ]]; then compopt -o filenames 2>/dev/null; fi\n"
    "}\n"
    "complete -F _pipetune pipetune\n";

static void put_bash(struct buf *b)
{
    AUTO_STRV struct strv commands = STRV_INIT;
    AUTO_BUF struct buf names = BUF_INIT;
    buf_puts(b, "# bash completion of pipetune; made by 'pipetune completion bash'\n"
                "_pipetune_offer() # \"COMMAND WORD\": what may follow the word\n{\n    case \"$1\" in\n");
    for (const struct command *c = cmd_table; c->name; c++) {
        struct cmd_rows options = { .n = 0 };
        if (c->options)
            c->options(&options);
        bash_command(b, c, &options);
        strv_add(&commands, c->name);
    }
    put_words(&names, &commands);
    buf_printf(b, bash_rest, buf_text(&names));
    b->failed |= names.failed || commands.failed;
}

/* --- zsh --- */

/* In single quotes, with what _arguments and _describe read as their own behind a backslash. */
static void put_quoted(struct buf *b, const char *text, const char *special)
{
    for (const char *c = text; *c; c++)
        if (*c == '\'')
            buf_puts(b, "'\\''");
        else
            buf_printf(b, "%s%c", strchr(special, *c) ? "\\" : "", *c);
}

static void zsh_action(struct buf *b, const struct offer *o)
{
    static const char *const actions[] = { [KIND_OTHER] = " ",
                                           [KIND_WORDS] = " ",
                                           [KIND_FILE] = "_files",
                                           [KIND_FOLDER] = "_files -/",
                                           [KIND_STUDY] = "_pipetune_studies" };
    if (o->kind == KIND_WORDS || (o->words.n > 0 && o->kind == KIND_OTHER)) {
        buf_puts(b, "(");
        put_words(b, &o->words);
        buf_puts(b, ")");
    } else {
        buf_puts(b, actions[o->kind]);
    }
}

static void zsh_command(struct buf *b, const struct command *c, const struct cmd_rows *options)
{
    char name[64];
    buf_printf(b, "    %s) _arguments", c->name);
    for (size_t i = 0; i < options->n; i++) {
        const struct opt_row *row = &options->v[i];
        bool no = row->type == OPT_FLAG && row->preset;
        buf_printf(b, " \\\n        '--%s%s%s[", no ? "no-" : "", opt_name(row, name),
                   row->type == OPT_FLAG ? "" : "=");
        put_quoted(b, row->help, "[]:\\");
        buf_puts(b, "]");
        if (row->type != OPT_FLAG) {
            AUTO_OFFER struct offer o = offer_of_option(c->name, row);
            buf_printf(b, ":%s:", opt_name(row, name));
            zsh_action(b, &o);
            b->failed |= o.words.failed;
        }
        buf_puts(b, "'");
    }
    AUTO_OFFER struct offer o = offer_of_usage(c);
    b->failed |= o.words.failed;
    if (o.words.n > 0 && o.kind != KIND_OTHER) { /* a verb, then what it is about */
        const struct offer verbs = { .kind = KIND_WORDS, .words = o.words }, rest = { .kind = o.kind };
        buf_puts(b, " \\\n        '1:word:");
        zsh_action(b, &verbs);
        buf_puts(b, "' \\\n        '*:word:");
        zsh_action(b, &rest);
    } else {
        buf_puts(b, " \\\n        '*:word:");
        zsh_action(b, &o);
    }
    buf_puts(b, "' ;;\n");
}

static void put_zsh(struct buf *b)
{
    buf_puts(b, "#compdef pipetune\n# zsh completion of pipetune; made by 'pipetune completion zsh'\n"
                "_pipetune_studies()\n{\n    local -a names\n"
                "    names=(${(f)\"$(${(Q)program} ls --names 2>/dev/null)\"})\n    compadd -a names\n}\n\n"
                "_pipetune()\n{\n    local program=$words[1]\n    local -a commands\n    commands=(");
    for (const struct command *c = cmd_table; c->name; c++) {
        buf_printf(b, "\n        '%s:", c->name);
        put_quoted(b, c->help, ":\\");
        buf_puts(b, "'");
    }
    buf_puts(b, ")\n    if ((CURRENT == 2)); then\n        _describe command commands\n        return\n    fi\n"
                "    shift words\n    ((CURRENT--))\n    case $words[1] in\n");
    for (const struct command *c = cmd_table; c->name; c++) {
        struct cmd_rows options = { .n = 0 };
        if (c->options)
            c->options(&options);
        zsh_command(b, c, &options);
    }
    buf_puts(b, "    esac\n}\n\nif [[ $funcstack[1] == _pipetune ]]; then\n    _pipetune \"$@\"\n"
                "else\n    compdef _pipetune pipetune\nfi\n");
}

/* --- fish --- */

static void fish_action(struct buf *b, const struct offer *o, bool option)
{
    if (o->kind == KIND_FILE)
        buf_puts(b, option ? " -r -F" : " -F");
    else if (option)
        buf_puts(b, " -x");
    if (o->words.n == 0 && o->kind != KIND_FOLDER && o->kind != KIND_STUDY)
        return;
    buf_puts(b, " -a '");
    put_words(b, &o->words);
    if (o->kind == KIND_FOLDER)
        buf_puts(b, "(__fish_complete_directories)");
    if (o->kind == KIND_STUDY)
        buf_puts(b, "(pipetune ls --names 2>/dev/null)");
    buf_puts(b, "'");
}

static void fish_command(struct buf *b, const struct command *c, const struct cmd_rows *options)
{
    char name[64];
    buf_puts(b, "complete -c pipetune -n __pipetune_first -a ");
    buf_printf(b, "%s -d '", c->name);
    put_quoted(b, c->help, "\\");
    buf_puts(b, "'\n");
    for (size_t i = 0; i < options->n; i++) {
        const struct opt_row *row = &options->v[i];
        bool no = row->type == OPT_FLAG && row->preset;
        buf_printf(b, "complete -c pipetune -n '__pipetune_is %s' -l %s%s", c->name, no ? "no-" : "",
                   opt_name(row, name));
        if (row->type != OPT_FLAG) {
            AUTO_OFFER struct offer o = offer_of_option(c->name, row);
            fish_action(b, &o, true);
            b->failed |= o.words.failed;
        }
        buf_puts(b, " -d '");
        put_quoted(b, row->help, "\\");
        buf_puts(b, "'\n");
    }
    AUTO_OFFER struct offer o = offer_of_usage(c);
    b->failed |= o.words.failed;
    if (o.kind == KIND_OTHER && o.words.n == 0)
        return;
    buf_printf(b, "complete -c pipetune -n '__pipetune_is %s'", c->name);
    fish_action(b, &o, false);
    buf_puts(b, "\n");
}

static void put_fish(struct buf *b)
{
    buf_puts(b, "# fish completion of pipetune; made by 'pipetune completion fish'\n"
                "function __pipetune_first\n    test (count (commandline -opc)) -eq 1\nend\n"
                "function __pipetune_is\n    set -l said (commandline -opc)\n"
                "    test (count $said) -gt 1; and test $said[2] = $argv[1]\nend\n"
                "complete -c pipetune -f\n");
    for (const struct command *c = cmd_table; c->name; c++) {
        struct cmd_rows options = { .n = 0 };
        if (c->options)
            c->options(&options);
        fish_command(b, c, &options);
    }
}

/* --- */

static const struct shell {
    const char *name;
    void (*put)(struct buf *b);
} shells[] = { { "bash", put_bash }, { "zsh", put_zsh }, { "fish", put_fish } };

static int print_script(const struct strv *words, struct err *e)
{
    AUTO_BUF struct buf b = BUF_INIT;
    if (words->n == 0)
        return err_set(e, -EINVAL, "for which shell? 'pipetune completion bash', zsh or fish");
    for (size_t i = 0; i < ARRAY_LEN(shells); i++) {
        if (strcmp(words->v[0], shells[i].name) != 0)
            continue;
        shells[i].put(&b);
        return cmd_print(&b);
    }
    return err_set(e, -EINVAL, "no completion for '%s': there is one for bash, zsh and fish", words->v[0]);
}

int cmd_completion(int argc, char **argv)
{
    AUTO_STRV struct strv words = STRV_INIT;
    struct err e = { 0 };
    int code;
    if (cmd_options("completion", argc, argv, NULL, 0, &words, 1, &code))
        return code;
    code = print_script(&words, &e);
    return code < 0 ? cmd_fail(&e) : code;
}
