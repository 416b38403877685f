#include "monitoring/pdu_json.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "monitoring/decimal.h"

#define OUTLET "{outlet}"

/* --- paths --- */

int pdu_path_check(const char *path, struct err *e)
{
    size_t len = strlen(path);
    if (len == 0 || len > PDU_PATH_MAX)
        return err_set(e, -EINVAL, "the path to the watts must have 1 to %d characters", PDU_PATH_MAX);
    if (*path == '/' || path[len - 1] == '/' || strstr(path, "//"))
        return err_set(e, -EINVAL, "'%s': a word of the path to the watts is empty", path);
    return 0;
}

/* The outlet in its place. -EINVAL: too long with it. */
static int put_outlet(char to[PDU_PATH_MAX + 1], const char *path, int outlet, struct err *e)
{
    size_t n = 0;
    while (*path && n <= PDU_PATH_MAX) {
        bool stands = strncmp(path, OUTLET, strlen(OUTLET)) == 0;
        if (stands)
            n += (size_t)snprintf(to + n, PDU_PATH_MAX + 1 - n, "%d", outlet);
        else
            to[n++] = *path;
        path += stands ? strlen(OUTLET) : 1;
    }
    if (n > PDU_PATH_MAX)
        return err_set(e, -EINVAL, "the path to the watts is too long with the outlet in it");
    to[n] = '\0';
    return 0;
}

/* --- the answer --- */

/* Messages are one printable line, whatever bytes they quote. */
static void make_plain(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
            *text = '?';
}

int pdu_json_parse(json_t **out, const char *text, size_t len, struct err *e)
{
    json_error_t why;
    if (len > PDU_BODY_MAX)
        return err_set(e, -EFBIG, "the answer is longer than %d bytes", PDU_BODY_MAX);
    json_t *root = len ? json_loadb(text, len, 0, &why) : NULL;
    if (root) {
        *out = root;
        return 0;
    }
    if (len && json_error_code(&why) == json_error_out_of_memory)
        return err_sys(e, -ENOMEM, "the answer");
    if (len == 0)
        return err_set(e, -EPROTO, "the answer is empty");
    make_plain(why.text);
    return err_set(e, -EPROTO, "the answer is no JSON: line %d: %s", why.line, why.text);
}

static const char *kind_of(const json_t *j)
{
    switch (json_typeof(j)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a text";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "true or false";
    default: return "null";
    }
}

/* The element of a list that this word counts; NULL: it is no number, or there are fewer. */
static const json_t *element(const json_t *list, const char *word)
{
    size_t len = strlen(word);
    if (len > 6 || strspn(word, "0123456789") != len)
        return NULL;
    return json_array_get(list, strtoul(word, NULL, 10));
}

/* One word further. `path` is the way so far, this word included; `from` is where the word begins in it. */
static int step(const json_t **at, const char *path, size_t from, struct err *e)
{
    const char *word = path + from;
    const json_t *next = NULL;
    if (json_is_array(*at))
        next = element(*at, word);
    else if (json_is_object(*at))
        next = json_object_get(*at, word);
    else
        return err_set(e, -EPROTO, "'%.*s' is %s, and nothing is in it", (int)(from ? from - 1 : 0), path,
                       kind_of(*at));
    if (!next && json_is_array(*at))
        return err_set(e, -ENOENT, "the answer has no '%s': that list has %zu elements", path, json_array_size(*at));
    if (!next)
        return err_set(e, -ENOENT, "the answer has no '%s'", path);
    *at = next;
    return 0;
}

/* Follows the path, which is cut at each word in turn, so that messages can name how far it went. */
static int walk(const json_t **at, char *path, struct err *e)
{
    int rc = 0;
    for (size_t from = 0; rc == 0;) {
        size_t len = strcspn(path + from, "/");
        char end = path[from + len];
        path[from + len] = '\0';
        rc = step(at, path, from, e);
        path[from + len] = end;
        if (end == '\0')
            break;
        from += len + 1;
    }
    return rc;
}

/* --- the number --- */

static int read_number(const json_t *j, const char *path, double *out, double *step_out, struct err *e)
{
    char text[NUM_TEXT_MAX];
    const char *shown = json_string_value(j);
    if (json_is_integer(j))
        (void)snprintf(text, sizeof text, "%lld", (long long)json_integer_value(j));
    else if (json_is_real(j)) /* the fewest digits that read back: those that were shown, but for zeros at the end */
        (void)num_print(json_real_value(j), text);
    else if (!shown)
        return err_set(e, -EPROTO, "'%s' is %s, not a number", path, kind_of(j));
    shown = shown ? shown : text;
    if (decimal_read(shown, strlen(shown), ".", out, step_out))
        return 0;
    char plain[41];
    (void)snprintf(plain, sizeof plain, "%s", shown);
    make_plain(plain);
    return err_set(e, -EPROTO, "'%s' is '%s', not a number", path, plain);
}

int pdu_json_power(const json_t *root, const struct pdu_where *where, int outlet, struct pdu_power *out, struct err *e)
{
    char path[PDU_PATH_MAX + 1];
    double x, digit;
    int rc = pdu_path_check(where->path, e);
    if (rc == 0)
        rc = put_outlet(path, where->path, outlet, e);
    if (rc == 0)
        rc = walk(&root, path, e);
    if (rc == 0)
        rc = read_number(root, path, &x, &digit, e);
    if (rc < 0)
        return rc;
    double watts = x * where->scale;
    if (!(watts >= 0))
        return err_set(e, -ERANGE, "'%s' says %g W, which is less than nothing", path, watts);
    if (!(watts <= where->max_w))
        return err_set(e, -ERANGE, "'%s' says %g W, more than the %g W that are plausible", path, watts, where->max_w);
    *out = (struct pdu_power){ .watts = watts == 0 ? 0 : watts, .error_w = digit * where->scale / 2 };
    return 0;
}
