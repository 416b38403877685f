#include "base/opt.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "base/utf8.h"

static void *field(const struct opt_set *set, const struct opt_row *row)
{
    return (char *)set->target + row->offset;
}

static int replace_text(char **slot, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*slot);
    *slot = copy;
    return 0;
}

/* The word that stands for the lowest value of a number; NULL: none. */
static const char *word_of(const struct opt_row *row)
{
    return (row->type == OPT_INT || row->type == OPT_REAL) && row->choices ? row->choices[0] : NULL;
}

/* The smallest that may be written as a number. */
static double lowest(const struct opt_row *row)
{
    return row->type == OPT_INT && word_of(row) ? row->min + 1 : row->min;
}

/* What is wrong with the value; the caller puts the subject before it. */
static int bad_number(const struct opt_row *row, const char *text, struct err *e)
{
    char lo[NUM_TEXT_MAX], hi[NUM_TEXT_MAX];
    const char *kind = row->type == OPT_INT ? "a whole number" : "a number";
    const char *word = word_of(row);
    return err_set(e, -EINVAL, "must be %s from %s to %s%s%s%s, not '%s'", kind, num_print(lowest(row), lo),
                   num_print(row->max, hi), word ? " or '" : "", word ? word : "", word ? "'" : "", text);
}

static int set_number(void *to, const struct opt_row *row, const char *text, struct err *e)
{
    if (word_of(row) && strcmp(word_of(row), text) == 0) {
        if (row->type == OPT_INT)
            *(int64_t *)to = (int64_t)row->min;
        else
            *(double *)to = NAN;
        return 0;
    }
    char *end = NULL;
    double x = strtod(text, &end);
    bool whole = row->type == OPT_REAL || x == floor(x);
    if (end == text || *end != '\0' || !isfinite(x) || !whole || x < lowest(row) || x > row->max)
        return bad_number(row, text, e);
    if (row->type == OPT_INT)
        *(int64_t *)to = (int64_t)x;
    else
        *(double *)to = x;
    return 0;
}

static int set_choice(char **to, const struct opt_row *row, const char *text, struct err *e)
{
    AUTO_BUF struct buf list = BUF_INIT;
    for (size_t i = 0; row->choices[i]; i++) {
        if (strcmp(row->choices[i], text) == 0)
            return replace_text(to, text) < 0 ? err_sys(e, -ENOMEM, "cannot be kept") : 0;
        buf_printf(&list, "%s%s", i ? ", " : "", row->choices[i]);
    }
    return err_set(e, -EINVAL, "must be one of %s, not '%s'", buf_text(&list), text);
}

/* Paths are bytes. */
static bool is_path(const struct opt_row *row)
{
    return row->arg && (strcmp(row->arg, "FILE") == 0 || strcmp(row->arg, "DIR") == 0);
}

static int set_from_text(const struct opt_set *set, const struct opt_row *row, const char *text, struct err *e)
{
    void *to = field(set, row);
    switch (row->type) {
    case OPT_FLAG: *(bool *)to = strcmp(text, "true") == 0; return 0;
    case OPT_INT:
    case OPT_REAL: return set_number(to, row, text, e);
    case OPT_TEXT:
        if (!is_path(row) && !utf8_is_valid(text))
            return err_set(e, -EINVAL, "takes text, and '%s' is not UTF-8", text);
        return replace_text(to, text) < 0 ? err_sys(e, -ENOMEM, "cannot be kept") : 0;
    case OPT_CHOICE: return set_choice(to, row, text, e);
    }
    return err_set(e, -EINVAL, "has no known type");
}

int opt_presets(const struct opt_set *set, struct err *e)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct opt_row *row = &set->rows[i];
        int rc = row->preset ? set_from_text(set, row, row->preset, e) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

void opt_done(const struct opt_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        if (set->rows[i].type != OPT_TEXT && set->rows[i].type != OPT_CHOICE)
            continue;
        char **slot = field(set, &set->rows[i]);
        free(*slot);
        *slot = NULL;
    }
}

/* Of these the section is a part of the option's name: their keys are those of others, too. */
static bool is_named_by_section(const struct opt_row *row)
{
    return row->section &&
           (strcmp(row->section, "budget") == 0 || strcmp(row->section, "mlflow") == 0 || strchr(row->section, '.'));
}

const char *opt_name(const struct opt_row *row, char out[64])
{
    size_t n = 0;
    if (is_named_by_section(row)) {
        const char *inner = strrchr(row->section, '.');
        n = (size_t)snprintf(out, 32, "%s-", inner ? inner + 1 : row->section);
    }
    for (const char *c = row->key; *c && n + 2 < 64; c++) {
        if (isupper((unsigned char)*c))
            out[n++] = '-';
        out[n++] = *c == '_' ? '-' : (char)tolower((unsigned char)*c);
    }
    out[n] = '\0';
    return out;
}

struct found {
    const struct opt_set *set;
    const struct opt_row *row;
    bool negated; /* --no-NAME */
};

static bool find_option(const struct opt_set *sets, size_t n_sets, const char *name, size_t len, struct found *out)
{
    for (size_t s = 0; s < n_sets; s++) {
        for (size_t i = 0; i < sets[s].n; i++) {
            const struct opt_row *row = &sets[s].rows[i];
            char own[64];
            opt_name(row, own);
            bool same = strlen(own) == len && memcmp(own, name, len) == 0;
            bool no = row->type == OPT_FLAG && len == strlen(own) + 3 && memcmp(name, "no-", 3) == 0 &&
                      memcmp(name + 3, own, len - 3) == 0;
            if (same || no) {
                *out = (struct found){ .set = &sets[s], .row = row, .negated = no };
                return true;
            }
        }
    }
    return false;
}

static int unknown_option(const struct opt_set *sets, size_t n_sets, const char *name, struct err *e)
{
    const char *names[256];
    char texts[256][64];
    size_t n = 0;
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].n && n < 256; i++, n++)
            names[n] = opt_name(&sets[s].rows[i], texts[n]);
    const char *near = suggest_nearest(name, names, n);
    if (near)
        return err_set(e, -EINVAL, "unknown option '--%s': did you mean '--%s'?", name, near);
    return err_set(e, -EINVAL, "unknown option '--%s': see --help", name);
}

/* One "--name[=value]" at argv[*at]; moves *at onto the value when that is a word of its own. */
static int parse_one(int argc, char *const *argv, int *at, const struct opt_set *sets, size_t n_sets, struct err *e)
{
    const char *name = argv[*at] + 2;
    size_t len = strcspn(name, "=");
    const char *value = name[len] == '=' ? name + len + 1 : NULL;
    struct found f;
    if (!find_option(sets, n_sets, name, len, &f)) {
        char cut[64];
        (void)snprintf(cut, sizeof cut, "%.*s", (int)len, name);
        return unknown_option(sets, n_sets, cut, e);
    }
    bool flag = f.row->type == OPT_FLAG;
    if (flag && value)
        return err_set(e, -EINVAL, "option '--%.*s' takes no value", (int)len, name);
    if (flag)
        value = f.negated ? "false" : "true";
    else if (!value && *at + 1 < argc)
        value = argv[++*at];
    if (!value)
        return err_set(e, -EINVAL, "option '--%s' needs a value: %s", name, f.row->arg ? f.row->arg : "VALUE");
    int rc = set_from_text(f.set, f.row, value, e);
    if (rc < 0)
        err_prefix(e, "option '--%.*s'", (int)len, name);
    return rc;
}

int opt_parse(int argc, char *const *argv, const struct opt_set *sets, size_t n_sets, struct strv *words, struct err *e)
{
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        if (options && strcmp(word, "--") == 0) {
            options = false;
        } else if (options && word[0] == '-' && word[1] == '-') {
            int rc = parse_one(argc, argv, &i, sets, n_sets, e);
            if (rc < 0)
                return rc;
        } else if (options && word[0] == '-' && word[1] != '\0') {
            return err_set(e, -EINVAL, "unknown option '%s': see --help", word);
        } else if (!words) {
            return err_set(e, -EINVAL, "unexpected word '%s': see --help", word);
        } else {
            strv_add(words, word);
        }
    }
    return words && words->failed ? err_sys(e, -ENOMEM, "command line") : 0;
}

static bool listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

static int unknown_key(const struct opt_set *set, const struct json_doc *doc, const char *section, const char *path,
                       const char *key, const char *const *others, struct err *e)
{
    const char *names[256];
    size_t n = 0;
    for (size_t i = 0; i < set->n && n < 200; i++)
        if (set->rows[i].section && strcmp(set->rows[i].section, section) == 0)
            names[n++] = set->rows[i].key;
    for (; others && *others && n < 256; others++)
        names[n++] = *others;
    const char *near = suggest_nearest(key, names, n);
    if (near)
        return json_doc_err(doc, path, e, -EINVAL, "is not known: did you mean '%s'?", near);
    return json_doc_err(doc, path, e, -EINVAL, "is not known: see 'pipetune help config'");
}

/* A JSON scalar as the text that the command line would have. */
static int scalar_text(const json_t *j, const struct opt_row *row, char num[NUM_TEXT_MAX], const char **out)
{
    bool number = row->type == OPT_INT || row->type == OPT_REAL;
    bool word = json_is_string(j) && word_of(row) && strcmp(word_of(row), json_string_value(j)) == 0;
    if (word || (json_is_string(j) && !number && row->type != OPT_FLAG))
        *out = json_string_value(j);
    else if (json_is_number(j) && number)
        *out = num_print(json_number_value(j), num);
    else if (json_is_boolean(j) && row->type == OPT_FLAG)
        *out = json_is_true(j) ? "true" : "false";
    else
        return -EINVAL;
    return 0;
}

static int wrong_type(const struct json_doc *doc, const char *path, const struct opt_row *row, struct err *e)
{
    static const char *const words[] = { [OPT_FLAG] = "true or false",
                                         [OPT_INT] = "a whole number",
                                         [OPT_REAL] = "a number",
                                         [OPT_TEXT] = "a string",
                                         [OPT_CHOICE] = "a string" };
    if (word_of(row))
        return json_doc_err(doc, path, e, -EINVAL, "must be %s or \"%s\"", words[row->type], word_of(row));
    return json_doc_err(doc, path, e, -EINVAL, "must be %s", words[row->type]);
}

/* Where it stands in the document: of "places.slurm" "places/slurm". */
static void put_path(char *out, size_t size, const char *section, const char *key)
{
    int n = snprintf(out, size, "%s%s%s", section, *section && *key ? "/" : "", key);
    for (int i = 0; i < n && (size_t)i < size && section[i]; i++)
        if (out[i] == '.')
            out[i] = '/';
}

/* The section itself; where it is absent, `make` makes it in its parents. NULL: it is not there, or memory. */
static json_t *find_section(json_t *root, const char *section, bool make)
{
    json_t *at = root;
    while (at && *section) {
        size_t len = strcspn(section, ".");
        json_t *in = json_object_getn(at, section, len);
        if (!in && make && json_object_setn_new(at, section, len, in = json_object()) < 0)
            in = NULL;
        at = in;
        section += len + (section[len] == '.');
    }
    return at;
}

static int read_key(const struct opt_set *set, const struct json_doc *doc, const char *section, const char *key,
                    const json_t *value, const char *const *others, struct err *e)
{
    char path[192];
    put_path(path, sizeof path, section, key);
    for (size_t i = 0; i < set->n; i++) {
        const struct opt_row *row = &set->rows[i];
        if (!row->section || strcmp(row->section, section) != 0 || strcmp(row->key, key) != 0)
            continue;
        char num[NUM_TEXT_MAX];
        const char *text;
        if (scalar_text(value, row, num, &text) < 0)
            return wrong_type(doc, path, row, e);
        struct err why;
        int rc = set_from_text(set, row, text, &why);
        return rc < 0 ? json_doc_err(doc, path, e, rc, "%s", why.text) : 0;
    }
    return unknown_key(set, doc, section, path, key, others, e);
}

int opt_read_section(const struct opt_set *set, const struct json_doc *doc, const char *section,
                     const char *const *others, struct err *e)
{
    const json_t *at = find_section(doc->root, section, false);
    char path[64];
    if (!at)
        return 0;
    put_path(path, sizeof path, section, "");
    if (!json_is_object(at))
        return json_doc_err(doc, path, e, -EINVAL, "must be an object {…}");
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)at, key, value)
    {
        int rc = listed(others, key) ? 0 : read_key(set, doc, section, key, value, others, e);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static json_t *value_json(const struct opt_set *set, const struct opt_row *row)
{
    void *from = field(set, row);
    switch (row->type) {
    case OPT_FLAG: return json_boolean(*(bool *)from);
    case OPT_INT:
        if (word_of(row) && (double)*(int64_t *)from == row->min)
            return json_string(word_of(row));
        return json_integer(*(int64_t *)from);
    case OPT_REAL:
        return isnan(*(double *)from) && word_of(row) ? json_string(word_of(row)) : json_real(*(double *)from);
    case OPT_TEXT:
    case OPT_CHOICE: return *(char **)from ? json_bytes(*(char **)from) : json_null();
    }
    return NULL;
}

int opt_to_json(const struct opt_set *set, json_t *root)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct opt_row *row = &set->rows[i];
        if (!row->section)
            continue;
        json_t *to = find_section(root, row->section, true);
        if (!to || json_object_set_new(to, row->key, value_json(set, row)) < 0)
            return -ENOMEM;
    }
    return 0;
}

enum { HELP_COLUMN = 26 };

void opt_help(struct buf *b, const struct opt_set *set)
{
    for (size_t i = 0; i < set->n; i++) {
        const struct opt_row *row = &set->rows[i];
        char name[64], left[128];
        opt_name(row, name);
        (void)snprintf(left, sizeof left, "--%s%s%s", name, row->arg ? " " : "", row->arg ? row->arg : "");
        size_t columns = utf8_columns(left); /* %-26s would count bytes */
        buf_printf(b, "  %s%*s %s", left, columns < HELP_COLUMN ? (int)(HELP_COLUMN - columns) : 1, "", row->help);
        for (size_t c = 0; row->choices && row->choices[c]; c++)
            buf_printf(b, "%s%s", c ? ", " : ": ", row->choices[c]);
        if (row->preset && row->type != OPT_FLAG)
            buf_printf(b, " (default %s)", row->preset);
        buf_putc(b, '\n');
    }
}
