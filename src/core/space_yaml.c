/* What libyaml tells of a file, event by event, is written anew as JSON, line by line: so faults that are found later, in the
 * JSON, have the lines of the file. The first event that is none of ours ends it, so no document is ever composed or
 * resolved. */
#include "core/space_yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "base/own.h"
#include "core/space.h"

#define DIGITS "0123456789"
#define TUPLE "tag:yaml.org,2002:python/tuple"

struct reader {
    yaml_parser_t yaml;
    yaml_event_t ev; /* the newest */
    const char *name;
    const char *key; /* of the parameter that is read; NULL: none yet */
    struct buf out;
    size_t line; /* of the end of `out`, from 1 */
    json_t *seen;
    struct err *e;
};

static size_t line_of(const struct reader *r)
{
    return r->ev.start_mark.line + 1;
}

#define FAULT(r, fmt, ...)                                                                                             \
    err_set((r)->e, -EINVAL, "'%s' line %zu: " fmt, (r)->name, line_of(r) __VA_OPT__(, ) __VA_ARGS__)
#define KEY_FAULT(r, fmt, ...) FAULT(r, "'%.80s' " fmt, (r)->key __VA_OPT__(, ) __VA_ARGS__)

static int fail_yaml(const struct reader *r)
{
    if (r->yaml.error == YAML_MEMORY_ERROR)
        return err_sys(r->e, -ENOMEM, "'%s'", r->name);
    size_t line = r->yaml.error == YAML_READER_ERROR ? r->yaml.mark.line : r->yaml.problem_mark.line;
    const char *context = r->yaml.context ? r->yaml.context : "";
    return err_set(r->e, -EINVAL, "'%s' line %zu: this is no YAML: %s%s%s", r->name, line + 1, context,
                   *context ? ": " : "", r->yaml.problem ? r->yaml.problem : "it cannot be read");
}

static int next(struct reader *r)
{
    yaml_event_delete(&r->ev);
    return yaml_parser_parse(&r->yaml, &r->ev) ? 0 : fail_yaml(r);
}

/* To the line of what comes next. */
static void put_lines(struct reader *r)
{
    for (; r->line < line_of(r); r->line++)
        buf_putc(&r->out, '\n');
}

/* --- scalars --- */

/* Behind what of `text` is written as a decimal number: "-1.5e-3", ".5", "5.", "+1"; `text` itself: none of it. */
static const char *after_number(const char *text)
{
    const char *p = text + (*text == '-' || *text == '+');
    size_t whole = strspn(p, DIGITS), part = p[whole] == '.' ? strspn(p + whole + 1, DIGITS) : 0;
    if (whole + part == 0)
        return text;
    p += whole + (p[whole] == '.') + part;
    if (*p != 'e' && *p != 'E')
        return p;
    const char *power = p + 1 + (p[1] == '-' || p[1] == '+');
    size_t n = strspn(power, DIGITS);
    return n ? power + n : p;
}

static bool is_number(const char *text)
{
    return *text && !*after_number(text);
}

static bool is_of(const char *text, const char *prefix, const char *letters)
{
    return strncasecmp(text, prefix, 2) == 0 && text[2] && !text[2 + strspn(text + 2, letters)];
}

/* 1_000 */
static bool is_grouped(const char *text)
{
    char bare[VALUE_TEXT_MAX];
    size_t n = 0;
    for (const char *p = text; *p && n < sizeof bare - 1; p++)
        if (*p != '_')
            bare[n++] = *p;
    bare[n] = '\0';
    return strchr(text, '_') && is_number(bare);
}

/* 1:30 */
static bool is_sexagesimal(const char *text)
{
    size_t n = strspn(text, DIGITS);
    const char *p = text + n;
    if (n == 0 || *p != ':')
        return false;
    while (*p == ':' && (n = strspn(p + 1, DIGITS)) > 0)
        p += 1 + n;
    return !*p || (*p == '.' && !p[1 + strspn(p + 1, DIGITS)]);
}

/* A number to YAML 1.1 or 1.2, but not to both, or not the same one, or not to people. */
static bool is_odd_number(const char *text)
{
    const char *bare = text + (*text == '-' || *text == '+');
    bool octal = *bare == '0' && bare[1] && !bare[strspn(bare, DIGITS)];
    return octal || is_of(bare, "0x", DIGITS "abcdefABCDEF_") || is_of(bare, "0b", "01_") ||
           is_of(bare, "0o", "01234567_") || is_grouped(bare) || is_sexagesimal(bare);
}

/* Words that YAML takes for something else than a text. */
static const struct {
    const char *word, *what;
} words[] = {
    { "true", "a truth value" },     { "false", "a truth value" },
    { "yes", "a truth value" },      { "no", "a truth value" },
    { "on", "a truth value" },       { "off", "a truth value" },
    { "y", "a truth value" },        { "n", "a truth value" },
    { "null", "no value" },          { "~", "no value" },
    { ".inf", "no finite number" },  { "-.inf", "no finite number" },
    { "+.inf", "no finite number" }, { ".nan", "no number" },
};

static int check_plain(const struct reader *r, const char *text)
{
    if (!*text)
        return KEY_FAULT(r, "has no value: write one behind the colon, or \"\" for none");
    if (r->ev.end_mark.line != r->ev.start_mark.line)
        return KEY_FAULT(r, "goes on over several lines: put the text in quotes, or correct the indentation");
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasecmp(text, words[i].word) == 0)
            return KEY_FAULT(r, "has the value %s, which is %s in YAML: write \"%s\", in quotes, for the text", text,
                             words[i].what, text);
    if (is_odd_number(text))
        return KEY_FAULT(r,
                         "has the value %.80s, which readers of YAML take for different numbers: write it in decimal, "
                         "or in quotes for the text",
                         text);
    return 0;
}

static void put_number(struct buf *b, const char *text)
{
    char printed[NUM_TEXT_MAX];
    struct value v =
        value_of_text(text); /* JSON's own spelling is kept: space_parse() sees integers that no double holds */
    buf_puts(b, v.is_number ? text : num_print(strtod(text, NULL), printed));
}

static int put_scalar(struct reader *r)
{
    const char *text = (const char *)r->ev.data.scalar.value;
    bool plain = r->ev.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (strlen(text) != r->ev.data.scalar.length)
        return KEY_FAULT(r, "has a value with a byte 0 in it");
    int rc = plain ? check_plain(r, text) : 0;
    bool number = plain && is_number(text);
    if (rc == 0 && number && !isfinite(strtod(text, NULL)))
        rc = KEY_FAULT(r, "must be finite, not %.80s", text);
    if (rc < 0)
        return rc;
    put_lines(r);
    if (number && strlen(text) < VALUE_TEXT_MAX)
        put_number(&r->out, text);
    else
        json_put_string(&r->out, text);
    return 0;
}

/* --- one parameter --- */

static const char *tag_of(const yaml_event_t *ev)
{
    return (const char *)(ev->type == YAML_SCALAR_EVENT           ? ev->data.scalar.tag
                          : ev->type == YAML_SEQUENCE_START_EVENT ? ev->data.sequence_start.tag
                          : ev->type == YAML_MAPPING_START_EVENT  ? ev->data.mapping_start.tag
                                                                  : NULL);
}

static bool has_anchor(const yaml_event_t *ev)
{
    return ev->type == YAML_SCALAR_EVENT           ? ev->data.scalar.anchor != NULL
           : ev->type == YAML_SEQUENCE_START_EVENT ? ev->data.sequence_start.anchor != NULL
           : ev->type == YAML_MAPPING_START_EVENT  ? ev->data.mapping_start.anchor != NULL
                                                   : false;
}

/* What is asked of each event, whatever it is. */
static int check_event(const struct reader *r, const char *tag_allowed)
{
    const char *tag = tag_of(&r->ev);
    if (r->ev.type == YAML_ALIAS_EVENT)
        return FAULT(r, "aliases (*%.60s) are not taken: write the values again",
                     (const char *)r->ev.data.alias.anchor);
    if (has_anchor(&r->ev))
        return FAULT(r, "anchors (&) are not taken: write the values where they are used");
    if (tag && (!tag_allowed || strcmp(tag, tag_allowed) != 0))
        return FAULT(r, "the tag '%.80s' is not taken: only !!python/tuple is, before [start, end, step]", tag);
    return 0;
}

static int put_list(struct reader *r, const char *open, const char *close)
{
    int rc = 0;
    put_lines(r);
    buf_puts(&r->out, open);
    for (bool first = true; rc == 0; first = false) {
        rc = next(r);
        if (rc < 0 || r->ev.type == YAML_SEQUENCE_END_EVENT)
            break;
        buf_puts(&r->out, first ? "" : ",");
        rc = check_event(r, NULL);
        if (rc == 0 && r->ev.type != YAML_SCALAR_EVENT)
            rc = KEY_FAULT(r, "has a list or a mapping in its list: there are values alone");
        if (rc == 0)
            rc = put_scalar(r);
    }
    buf_puts(&r->out, close);
    return rc;
}

static int put_value(struct reader *r)
{
    int rc = check_event(r, r->ev.type == YAML_SEQUENCE_START_EVENT ? TUPLE : NULL);
    if (rc < 0)
        return rc;
    switch (r->ev.type) {
    case YAML_SCALAR_EVENT: return put_scalar(r);
    case YAML_SEQUENCE_START_EVENT: return tag_of(&r->ev) ? put_list(r, "{\"range\":[", "]}") : put_list(r, "[", "]");
    default:
        return KEY_FAULT(r, "is a mapping: parameters are not nested; write a value, [a, list], or "
                            "!!python/tuple [start, end, step]");
    }
}

/* Keeps the name, with its line. */
static int put_key(struct reader *r)
{
    int rc = check_event(r, NULL);
    if (rc < 0)
        return rc;
    if (r->ev.type != YAML_SCALAR_EVENT)
        return FAULT(r, "the name of a parameter must be a text, not a list or a mapping");
    const char *key = (const char *)r->ev.data.scalar.value;
    if (strlen(key) != r->ev.data.scalar.length)
        return FAULT(r, "has a name with a byte 0 in it");
    if (strcmp(key, "<<") == 0)
        return FAULT(r, "merge keys (<<) are not taken: write the parameters here");
    const json_t *before = json_object_get(r->seen, key);
    if (before)
        return FAULT(r, "'%.80s' is there twice: it is on line %lld, too", key, json_integer_value(before));
    if (json_object_set_new(r->seen, key, json_integer((json_int_t)line_of(r))) < 0)
        return err_sys(r->e, -ENOMEM, "'%s'", r->name);
    r->key = json_object_iter_key(json_object_iter_at(r->seen, key));
    put_lines(r);
    json_put_string(&r->out, key);
    buf_putc(&r->out, ':');
    return 0;
}

/* --- the file --- */

static int put_parameters(struct reader *r)
{
    int rc = check_event(r, NULL);
    if (rc == 0 && r->ev.type != YAML_MAPPING_START_EVENT)
        rc = FAULT(r, "a file of parameter sets has a line 'parameter: value' of each (points are given as "
                      "\"hyperParameters\": {\"points\": \"FILE\"})");
    for (const char *comma = ""; rc == 0; comma = ",") {
        rc = next(r);
        if (rc < 0 || r->ev.type == YAML_MAPPING_END_EVENT)
            break;
        buf_puts(&r->out, comma);
        rc = put_key(r);
        if (rc == 0)
            rc = next(r);
        if (rc == 0)
            rc = put_value(r);
    }
    return rc;
}

static int check_document(const struct reader *r)
{
    if (r->ev.type == YAML_STREAM_END_EVENT)
        return FAULT(r, "there are no parameters");
    if (r->ev.data.document_start.tag_directives.start != r->ev.data.document_start.tag_directives.end)
        return FAULT(r, "%%TAG directives are not taken: write !!python/tuple");
    return 0;
}

/* One document, and nothing behind it. */
static int put_stream(struct reader *r)
{
    buf_puts(&r->out, "{\"hyperParameters\":{");
    int rc = next(r); /* the stream's start */
    if (rc == 0)
        rc = next(r);
    if (rc == 0)
        rc = check_document(r);
    if (rc == 0)
        rc = next(r);
    if (rc == 0)
        rc = put_parameters(r);
    if (rc == 0)
        rc = next(r); /* the document's end */
    if (rc == 0)
        rc = next(r);
    if (rc == 0 && r->ev.type != YAML_STREAM_END_EVENT)
        rc = FAULT(r, "a second document begins: all parameters stand in one");
    buf_puts(&r->out, "}}");
    return rc;
}

int space_yaml_parse(struct json_doc *out, const char *name, const char *text, size_t len, struct err *e)
{
    if (len > SPACE_YAML_MAX)
        return err_set(e, -E2BIG, "'%s' is larger than %d bytes: a file of parameter sets is small", name,
                       SPACE_YAML_MAX);
    struct reader r = { .name = name, .out = BUF_INIT, .line = 1, .seen = json_object(), .e = e };
    if (!r.seen || !yaml_parser_initialize(&r.yaml)) {
        json_decref(r.seen);
        return err_sys(e, -ENOMEM, "'%s'", name);
    }
    yaml_parser_set_encoding(&r.yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.yaml, (const unsigned char *)text, len);
    int rc = put_stream(&r);
    if (rc == 0 && r.out.failed)
        rc = err_sys(e, -ENOMEM, "'%s'", name);
    if (rc == 0)
        rc = json_doc_parse(out, name, buf_text(&r.out), r.out.len, e);
    yaml_event_delete(&r.ev);
    yaml_parser_delete(&r.yaml);
    json_decref(r.seen);
    buf_done(&r.out);
    return rc;
}
