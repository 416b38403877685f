#include "core/expr.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/own.h"
#include "base/suggest.h"
#include "base/utf8.h"

enum { DEPTH_MAX = 64, NODES_MAX = 1024 };

enum op {
    OP_NUMBER,
    OP_TEXT,
    OP_NAME,
    OP_OR,
    OP_AND,
    OP_NOT,
    OP_MINUS,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_HAS,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_MORE,
    OP_MORE_EQUAL,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_REMAINDER,
    OP_MIN,
    OP_MAX,
    OP_ABS,
    OP_LOG,
    OP_SQRT,
    OP_FLOOR,
};

/* The operands of a node stand before it: all of them, in the order in which they are computed. */
struct node {
    enum op op;
    int a, b; /* operands; -1: none */
    double number;
    size_t name;
    char *text;
};

struct expr {
    struct node *v;
    size_t n, cap;
};

struct parser {
    struct expr *x;
    const char *at;
    const char *const *names;
    size_t n_names;
    struct strv *others; /* NULL: there are none */
    int depth;
    struct err *e;
};

void expr_free(struct expr *x)
{
    for (size_t i = 0; x && i < x->n; i++)
        free(x->v[i].text);
    if (x)
        free(x->v);
    free(x);
}

/* --- parsing: each function returns the index of a node, or -errno --- */

static int fault(const struct parser *p, const char *at, const char *what)
{
    enum { SHOWN = 40 };
    AUTO_BUF struct buf shown = BUF_INIT;
    utf8_put_plain(&shown, at, utf8_bytes(at, SHOWN), UTF8_ONE_LINE);
    if (!*at)
        return err_set(p->e, -EINVAL, "%s at its end", what);
    return err_set(p->e, -EINVAL, "%s at '%s'", what, buf_text(&shown));
}

static int put(struct parser *p, struct node node)
{
    struct expr *x = p->x;
    struct node *grown = x->n < NODES_MAX ? array_more(x->v, x->n, &x->cap, sizeof *grown) : NULL;
    if (grown)
        x->v = grown;
    if (grown && (node.op != OP_TEXT || node.text)) {
        x->v[x->n] = node;
        return (int)x->n++;
    }
    free(node.text);
    return x->n == NODES_MAX ? fault(p, p->at, "is too long") : err_sys(p->e, -ENOMEM, "an expression");
}

static int put_op(struct parser *p, enum op op, int a, int b)
{
    return put(p, (struct node){ .op = op, .a = a, .b = b });
}

static void skip_space(struct parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Takes `token`, if it stands here: a word only as a whole. */
static bool take(struct parser *p, const char *token)
{
    size_t n = strlen(token);
    skip_space(p);
    if (strncmp(p->at, token, n) != 0 || (is_word(token[0]) && is_word(p->at[n])))
        return false;
    p->at += n;
    return true;
}

static int parse_or(struct parser *p);

static int parse_text(struct parser *p)
{
    const char *begin = p->at + 1, *end = strchr(begin, *p->at);
    if (!end)
        return fault(p, p->at, "a text has no end");
    p->at = end + 1;
    return put(p, (struct node){ .op = OP_TEXT, .text = strndup(begin, (size_t)(end - begin)) });
}

static int parse_number(struct parser *p)
{
    char *end;
    double number = strtod(p->at, &end);
    if (is_word(*end) || !isfinite(number))
        return fault(p, p->at, "there is no number");
    p->at = end;
    return put(p, (struct node){ .op = OP_NUMBER, .number = number });
}

static int unknown_name(const struct parser *p, const char *name)
{
    const char *near = suggest_nearest(name, p->names, p->n_names);
    AUTO_BUF struct buf shown = BUF_INIT;
    utf8_put_plain(&shown, name, strlen(name), UTF8_ONE_LINE);
    if (near)
        return err_set(p->e, -EINVAL, "names '%s', which is nothing here; did you mean '%s'?", buf_text(&shown), near);
    return err_set(p->e, -EINVAL, "names '%s', which is nothing here", buf_text(&shown));
}

static int put_other(struct parser *p, const char *name)
{
    size_t i = 0;
    while (i < p->others->n && strcmp(p->others->v[i], name) != 0)
        i++;
    if (i == p->others->n)
        strv_add(p->others, name);
    if (p->others->failed)
        return err_sys(p->e, -ENOMEM, "an expression");
    return put(p, (struct node){ .op = OP_NAME, .name = p->n_names + i });
}

static int put_name(struct parser *p, const char *begin, size_t len)
{
    AUTO_FREE char *name = strndup(begin, len);
    if (!name)
        return err_sys(p->e, -ENOMEM, "an expression");
    for (size_t i = 0; i < p->n_names; i++)
        if (strcmp(p->names[i], name) == 0)
            return put(p, (struct node){ .op = OP_NAME, .name = i });
    return p->others ? put_other(p, name) : unknown_name(p, name);
}

static int parse_quoted_name(struct parser *p)
{
    const char *begin = p->at + 1, *end = strchr(begin, '`');
    if (!end)
        return fault(p, p->at, "a name has no end");
    p->at = end + 1;
    return put_name(p, begin, (size_t)(end - begin));
}

static int parse_call(struct parser *p, enum op op, int operands)
{
    int a = parse_or(p), b = -1;
    if (a >= 0 && operands == 2)
        b = take(p, ",") ? parse_or(p) : fault(p, p->at, "a ',' is missing");
    if (a < 0 || (operands == 2 && b < 0))
        return a < 0 ? a : b;
    return take(p, ")") ? put_op(p, op, a, b) : fault(p, p->at, "a ')' is missing");
}

static int parse_word(struct parser *p)
{
    static const struct {
        const char *name;
        enum op op;
        int operands;
    } functions[] = { { "min", OP_MIN, 2 }, { "max", OP_MAX, 2 },   { "abs", OP_ABS, 1 },
                      { "log", OP_LOG, 1 }, { "sqrt", OP_SQRT, 1 }, { "floor", OP_FLOOR, 1 } };
    const char *begin = p->at;
    size_t len = 0;
    while (is_word(begin[len]))
        len++;
    p->at += len;
    const char *behind = p->at;
    for (size_t i = 0; i < ARRAY_LEN(functions); i++)
        if (strlen(functions[i].name) == len && strncmp(functions[i].name, begin, len) == 0 && take(p, "("))
            return parse_call(p, functions[i].op, functions[i].operands);
    p->at = behind;
    return put_name(p, begin, len);
}

static int parse_brackets(struct parser *p)
{
    int inner = parse_or(p);
    if (inner < 0)
        return inner;
    return take(p, ")") ? inner : fault(p, p->at, "a ')' is missing");
}

static int parse_one(struct parser *p)
{
    skip_space(p);
    if (take(p, "("))
        return parse_brackets(p);
    if (*p->at == '\'' || *p->at == '"')
        return parse_text(p);
    if (*p->at == '`')
        return parse_quoted_name(p);
    if (isdigit((unsigned char)*p->at) || *p->at == '.')
        return parse_number(p);
    return is_word(*p->at) ? parse_word(p) : fault(p, p->at, "a value is missing");
}

static int parse_unary(struct parser *p)
{
    skip_space(p);
    bool is_not = p->at[0] == '!' && p->at[1] != '=';
    if (++p->depth > DEPTH_MAX)
        return fault(p, p->at, "is nested too deeply");
    enum op op = is_not || take(p, "not") ? OP_NOT : take(p, "-") ? OP_MINUS : OP_NUMBER;
    p->at += is_not;
    int inner = op == OP_NUMBER ? parse_one(p) : parse_unary(p);
    p->depth--;
    return inner < 0 || op == OP_NUMBER ? inner : put_op(p, op, inner, -1);
}

/* From the loosest on; the longer token of two that begin alike comes first. */
static const struct level {
    struct {
        const char *token;
        enum op op;
    } v[8];
} levels[] = { { { { "||", OP_OR }, { "or", OP_OR } } },
               { { { "&&", OP_AND }, { "and", OP_AND } } },
               { { { "==", OP_EQUAL },
                   { "=", OP_EQUAL },
                   { "!=", OP_UNEQUAL },
                   { "~", OP_HAS },
                   { "<=", OP_LESS_EQUAL },
                   { ">=", OP_MORE_EQUAL },
                   { "<", OP_LESS },
                   { ">", OP_MORE } } },
               { { { "+", OP_ADD }, { "-", OP_SUBTRACT } } },
               { { { "*", OP_MULTIPLY }, { "/", OP_DIVIDE }, { "%", OP_REMAINDER } } } };

static int parse_level(struct parser *p, size_t level)
{
    if (level == ARRAY_LEN(levels))
        return parse_unary(p);
    int a = parse_level(p, level + 1);
    for (size_t i = 0; a >= 0 && i < ARRAY_LEN(levels[0].v);) {
        const char *token = levels[level].v[i].token;
        if (!token || !take(p, token)) {
            i++;
            continue;
        }
        int b = parse_level(p, level + 1);
        a = b < 0 ? b : put_op(p, levels[level].v[i].op, a, b);
        i = 0;
    }
    return a;
}

static int parse_or(struct parser *p)
{
    return parse_level(p, 0);
}

int expr_parse(struct expr **out, const char *text, const char *const *names, size_t n_names, struct err *e)
{
    return expr_parse_open(out, text, names, n_names, NULL, e);
}

int expr_parse_open(struct expr **out, const char *text, const char *const *names, size_t n_names, struct strv *others,
                    struct err *e)
{
    struct parser p = {
        .x = calloc(1, sizeof *p.x), .at = text, .names = names, .n_names = n_names, .others = others, .e = e
    };
    if (!p.x)
        return err_sys(e, -ENOMEM, "an expression");
    int rc = parse_or(&p);
    skip_space(&p);
    if (rc >= 0 && *p.at)
        rc = fault(&p, p.at, "there is something more");
    if (rc < 0) {
        expr_free(p.x);
        return rc;
    }
    *out = p.x;
    return 0;
}

/* --- computing --- */

bool expr_uses(const struct expr *x, size_t name)
{
    for (size_t i = 0; i < x->n; i++)
        if (x->v[i].op == OP_NAME && x->v[i].name == name)
            return true;
    return false;
}

/* NAN where the two are of different kinds, or cannot be compared; else as strcmp() has it. */
static double compare(struct expr_value a, struct expr_value b)
{
    if (a.text && b.text)
        return strcmp(a.text, b.text);
    if (a.text || b.text || isnan(a.number) || isnan(b.number))
        return NAN;
    return (a.number > b.number) - (a.number < b.number);
}

/* Is there a line of `list` that `text` is all of, or a part of? */
static bool has_line(const char *list, const char *text, bool part)
{
    for (const char *at = list;; at += 1) {
        size_t len = strcspn(at, "\n"), n = strlen(text);
        for (size_t from = 0; part && from + n <= len; from++)
            if (strncasecmp(at + from, text, n) == 0)
                return true;
        if (!part && len == n && strncmp(at, text, n) == 0)
            return true;
        at += len;
        if (!*at)
            return false;
    }
}

static bool has(struct expr_value a, struct expr_value b)
{
    return a.text && b.text && !b.is_list &&
           (a.is_list ? has_line(a.text, b.text, true) : strcasestr(a.text, b.text) != NULL);
}

static bool equal(struct expr_value a, struct expr_value b)
{
    if (b.is_list && !a.is_list)
        return equal(b, a);
    return a.is_list && a.text && b.text && !b.is_list ? has_line(a.text, b.text, false) : compare(a, b) == 0;
}

static double number_of(struct expr_value v)
{
    return v.text ? NAN : v.number;
}

static bool is_true(struct expr_value v)
{
    return !v.text && v.number != 0 && !isnan(v.number);
}

static double compute(enum op op, struct expr_value a, struct expr_value b)
{
    double x = number_of(a), y = number_of(b);
    switch (op) {
    case OP_OR: return is_true(a) || is_true(b);
    case OP_AND: return is_true(a) && is_true(b);
    case OP_NOT: return !is_true(a);
    case OP_EQUAL: return equal(a, b);
    case OP_UNEQUAL: return !equal(a, b); /* a text is no number */
    case OP_HAS: return has(a, b);
    case OP_LESS: return compare(a, b) < 0;
    case OP_LESS_EQUAL: return compare(a, b) <= 0;
    case OP_MORE: return compare(a, b) > 0;
    case OP_MORE_EQUAL: return compare(a, b) >= 0;
    case OP_MINUS: return -x;
    case OP_ADD: return x + y;
    case OP_SUBTRACT: return x - y;
    case OP_MULTIPLY: return x * y;
    case OP_DIVIDE: return x / y;
    case OP_REMAINDER: return fmod(x, y);
    case OP_MIN: return isnan(x) || isnan(y) ? NAN : fmin(x, y);
    case OP_MAX: return isnan(x) || isnan(y) ? NAN : fmax(x, y);
    case OP_ABS: return fabs(x);
    case OP_LOG: return log(x);
    case OP_SQRT: return sqrt(x);
    case OP_FLOOR: return floor(x);
    default: return NAN;
    }
}

bool expr_holds(const struct expr *x, expr_read *value_of, void *ctx)
{
    struct expr_value v[NODES_MAX];
    for (size_t i = 0; i < x->n; i++) {
        const struct node *n = &x->v[i];
        const struct expr_value none = { .number = NAN };
        if (n->op == OP_NAME)
            v[i] = value_of(ctx, n->name);
        else if (n->op == OP_NUMBER || n->op == OP_TEXT)
            v[i] = (struct expr_value){ .number = n->number, .text = n->text };
        else
            v[i] = (struct expr_value){ .number = compute(n->op, v[n->a], n->b < 0 ? none : v[n->b]) };
    }
    return is_true(v[x->n - 1]);
}

/* --- what becomes of it --- */

static enum expr_trend turned(enum expr_trend t)
{
    return t == EXPR_RISES ? EXPR_FALLS : t == EXPR_FALLS ? EXPR_RISES : t;
}

/* Of what goes up with both. */
static enum expr_trend together(enum expr_trend a, enum expr_trend b)
{
    return a == EXPR_STAYS || a == b ? b : b == EXPR_STAYS ? a : EXPR_VARIES;
}

/* A product, or a quotient, goes as the one does where the other is a number as it is written. */
static enum expr_trend scaled(const struct node *number, enum expr_trend t)
{
    bool plain = number->op == OP_NUMBER;
    return t == EXPR_STAYS ? EXPR_STAYS : !plain ? EXPR_VARIES : number->number >= 0 ? t : turned(t);
}

static enum expr_trend trend_of_node(const struct expr *x, const struct node *n, const enum expr_trend *v)
{
    enum expr_trend a = n->a >= 0 ? v[n->a] : EXPR_STAYS, b = n->b >= 0 ? v[n->b] : EXPR_STAYS;
    bool still = a == EXPR_STAYS && b == EXPR_STAYS;
    switch (n->op) {
    case OP_LESS:
    case OP_LESS_EQUAL: return together(turned(a), b);
    case OP_MORE:
    case OP_MORE_EQUAL:
    case OP_SUBTRACT: return together(a, turned(b));
    case OP_NOT:
    case OP_MINUS: return turned(a);
    case OP_OR:
    case OP_AND:
    case OP_ADD:
    case OP_MIN:
    case OP_MAX: return together(a, b);
    case OP_MULTIPLY:
        return a == EXPR_STAYS ? scaled(&x->v[n->a], b) : b == EXPR_STAYS ? scaled(&x->v[n->b], a) : EXPR_VARIES;
    case OP_DIVIDE: return b == EXPR_STAYS ? scaled(&x->v[n->b], a) : EXPR_VARIES;
    case OP_LOG:
    case OP_SQRT:
    case OP_FLOOR: return a;
    default: return still ? EXPR_STAYS : EXPR_VARIES;
    }
}

bool expr_only_falls(const struct expr *x, const enum expr_trend *trend_of)
{
    enum expr_trend v[NODES_MAX];
    for (size_t i = 0; i < x->n; i++) {
        const struct node *n = &x->v[i];
        bool leaf = n->op == OP_NUMBER || n->op == OP_TEXT;
        v[i] = leaf ? EXPR_STAYS : n->op == OP_NAME ? trend_of[n->name] : trend_of_node(x, n, v);
    }
    return v[x->n - 1] == EXPR_FALLS || v[x->n - 1] == EXPR_STAYS;
}
