/* A text that all matches of an expression hold. It need not be found: whatever is not plainly literal ends a run, and what could make
 * letters mean something else (flags, alternatives, quotes) ends the search. */
#include <ctype.h>
#include <string.h>

#include "app/pattern.h"

struct scan {
    const char *at;
    int depth; /* of brackets: what is inside of them may be optional */
    char run[PATTERN_LITERAL_MAX], best[PATTERN_LITERAL_MAX];
    size_t n, n_best;
};

static void end_run(struct scan *s)
{
    if (s->n > s->n_best) {
        memcpy(s->best, s->run, s->n);
        s->n_best = s->n;
    }
    s->n = 0;
}

static void add_letter(struct scan *s, char c)
{
    if (s->depth > 0)
        return;
    if (s->n == PATTERN_LITERAL_MAX - 1)
        end_run(s);
    s->run[s->n++] = c;
}

/* Behind '[': to behind its ']'. False: it does not end. */
static bool skip_class(struct scan *s)
{
    s->at += *s->at == '^';
    if (*s->at == ']')
        s->at++;
    while (*s->at && *s->at != ']') {
        if (s->at[0] == '\\' && s->at[1])
            s->at++;
        else if (s->at[0] == '[' && s->at[1] == ':' && strstr(s->at, ":]"))
            s->at = strstr(s->at, ":]") + 1;
        s->at++;
    }
    return *s->at++ == ']';
}

/* Behind '(': may the search go on, and what is read by the group's begin? */
static bool enter_group(struct scan *s)
{
    s->depth++;
    if (*s->at == '*')
        return false;
    if (*s->at != '?')
        return true;
    s->at++;
    if (strchr(":=!>", *s->at))
        return *s->at++ != '\0';
    if (*s->at == 'P')
        s->at++;
    return *s->at++ == '<'; /* a name's letters, or what is behind "<=" and "<!", stand inside and are not looked at */
}

/* Behind '\\'. */
static bool take_escape(struct scan *s)
{
    char c = *s->at++;
    if (c == '\0' || c == 'Q' || c == 'E')
        return false;
    if (isalnum((unsigned char)c)) {
        end_run(s);
        return strchr("dDsSwWbBAzZGKRhHvVNtnrfae123456789", c) != NULL && *s->at != '{';
    }
    add_letter(s, c);
    return true;
}

/* '?', '*' or '{': what stands before it may be absent. */
static void unlearn_letter(struct scan *s)
{
    if (s->n > 0)
        s->n--;
    end_run(s);
}

static bool step(struct scan *s)
{
    char c = *s->at++;
    switch (c) {
    case '(': end_run(s); return enter_group(s);
    case ')': s->depth--; return s->depth >= 0;
    case '[': end_run(s); return skip_class(s);
    case '|': return s->depth > 0;
    case '\\': return take_escape(s);
    case '?':
    case '*':
    case '{': unlearn_letter(s); break;
    case '}':
    case '+':
    case '^':
    case '$':
    case '.': end_run(s); break;
    default: add_letter(s, c);
    }
    if (c == '{') /* of a count: one that is not is looked at as it stands, which asks for no more than it says */
        s->at += strspn(s->at, "0123456789,");
    return true;
}

bool pattern_literal(const char *pattern, char out[PATTERN_LITERAL_MAX])
{
    struct scan s = { .at = pattern };
    while (*s.at)
        if (!step(&s))
            return false;
    end_run(&s);
    if (s.depth != 0 || s.n_best == 0)
        return false;
    memcpy(out, s.best, s.n_best);
    out[s.n_best] = '\0';
    return true;
}
