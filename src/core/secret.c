#include "core/secret.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/own.h"
#include "base/sha256.h"

enum { NAME_MAX_BYTES = 256, PATH_MAX_BYTES = 512, HASH_HEX = 32 };

/* --- names --- */

/* Small letters, without dashes and underscores; cut where it is too long. */
static void fold_name(const char *name, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    for (; *name && n + 1 < NAME_MAX_BYTES; name++)
        if (*name != '-' && *name != '_')
            out[n++] = (char)tolower((unsigned char)*name);
    out[n] = '\0';
}

/* '*' is anything. A pattern has few of them, and names are short. */
static bool matches(const char *pattern, const char *name)
{
    if (*pattern == '*')
        return matches(pattern + 1, name) || (*name && matches(pattern, name + 1));
    return *pattern == *name && (!*pattern || matches(pattern + 1, name + 1));
}

static bool is_among(const struct strv *names, const char *folded)
{
    char one[NAME_MAX_BYTES];
    for (size_t i = 0; names && i < names->n; i++) {
        fold_name(names->v[i], one);
        if (matches(one, folded))
            return true;
    }
    return false;
}

/* (?i)secret|password|token|access[.]?key, as others redact them, too. */
static bool is_telling(const char *name)
{
    static const char *const words[] = { "secret", "password", "token", "accesskey", "access.key" };
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

bool secret_is(const struct secret_rules *r, const char *name)
{
    char folded[NAME_MAX_BYTES];
    fold_name(name, folded);
    if (is_among(r->named, folded))
        return true;
    return (is_telling(name) || is_telling(folded)) && !is_among(r->tuned, folded);
}

/* --- texts --- */

/* NAME=VALUE=…; a value may be a pair itself, as options of a runtime are. */
static void put_word(const struct secret_rules *r, const char *word, size_t len, struct buf *out)
{
    const char *sign = memchr(word, '=', len);
    if (!sign) {
        buf_put(out, word, len);
        return;
    }
    size_t n = (size_t)(sign - word);
    char name[NAME_MAX_BYTES];
    (void)snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), word);
    buf_put(out, word, n + 1);
    if (secret_is(r, name))
        buf_puts(out, len > n + 1 ? SECRET_MASK : "");
    else
        put_word(r, sign + 1, len - n - 1, out);
}

/* SCHEME://USER:PASSWORD@HOST: the place of the password and its length, 0: there is none. */
static size_t url_password(const char *text, const char **out)
{
    for (const char *at = text; (at = strstr(at, "://")); at += 3) {
        const char *user = at + 3;
        size_t len = strcspn(user, "/?# \t\n\"'");
        const char *end = len ? memrchr(user, '@', len) : NULL;
        const char *colon = end ? memchr(user, ':', (size_t)(end - user)) : NULL;
        if (!colon || end == colon + 1)
            continue;
        *out = colon + 1;
        return (size_t)(end - colon - 1);
    }
    return 0;
}

static void put_words(const struct secret_rules *r, const char *text, struct buf *out)
{
    while (*text) {
        size_t blanks = strspn(text, " \t\n"), len = strcspn(text + blanks, " \t\n");
        buf_put(out, text, blanks);
        put_word(r, text + blanks, len, out);
        text += blanks + len;
    }
}

void secret_put(const struct secret_rules *r, const char *text, struct buf *out)
{
    AUTO_BUF struct buf bare = BUF_INIT;
    const char *password;
    for (size_t len; (len = url_password(text, &password)) > 0; text = password + len) {
        buf_put(&bare, text, (size_t)(password - text));
        buf_puts(&bare, SECRET_MASK);
    }
    buf_puts(&bare, text);
    out->failed |= bare.failed;
    put_words(r, buf_text(&bare), out);
}

/* An option whose value is the next word. */
static bool announces(const struct secret_rules *r, const char *word)
{
    return word && word[0] == '-' && !strchr(word, '=') && secret_is(r, word);
}

void secret_put_argv(const struct secret_rules *r, const struct strv *argv, struct strv *out)
{
    for (size_t i = 0; i < argv->n; i++) {
        struct buf b = BUF_INIT;
        if (announces(r, i ? argv->v[i - 1] : NULL) && strncmp(argv->v[i], "--", 2) != 0)
            buf_puts(&b, SECRET_MASK);
        else
            secret_put(r, argv->v[i], &b);
        if (!b.failed && b.len == 0)
            strv_add(out, "");
        else
            strv_take(out, buf_take(&b));
    }
    out->failed |= argv->failed;
}

char *secret_hide(const struct strv *values, const char *text)
{
    struct buf b = BUF_INIT;
    for (const char *p = text; *p;) {
        size_t len = 0;
        for (size_t i = 0; i < values->n; i++) {
            size_t n = strlen(values->v[i]);
            if (n >= SECRET_VALUE_MIN && n > len && strncmp(p, values->v[i], n) == 0)
                len = n;
        }
        if (len)
            buf_puts(&b, SECRET_MASK);
        else
            buf_putc(&b, *p);
        p += len ? len : 1;
    }
    if (b.len == 0 && !b.failed)
        return strdup("");
    return buf_take(&b);
}

/* --- JSON --- */

struct masking {
    const struct secret_rules *r;
    const char *salt;
    json_t *hashes; /* NULL: nobody wants them */
};

static json_t *copy(const struct masking *m, const json_t *j, const char *path, bool secret);

static int note(const struct masking *m, const json_t *value, const char *path)
{
    if (!m->hashes)
        return 0;
    AUTO_BUF struct buf text = BUF_INIT;
    struct sha256 sum;
    char hex[SHA256_HEX_MAX];
    json_put(&text, value, JSON_STYLE_COMPACT);
    sha256_init(&sum);
    sha256_add(&sum, m->salt, strlen(m->salt));
    sha256_add(&sum, buf_text(&text), text.len);
    sha256_hex(&sum, hex);
    hex[HASH_HEX] = '\0';
    return text.failed ? -1 : json_object_set_new(m->hashes, path, json_string(hex));
}

static json_t *masked(const struct masking *m, const json_t *value, const char *path)
{
    return note(m, value, path) < 0 ? NULL : json_string(SECRET_MASK);
}

/* Its first password may be all that differs: the sum is of the whole text. */
static json_t *copy_text(const struct masking *m, const json_t *j, const char *path)
{
    AUTO_BUF struct buf b = BUF_INIT;
    secret_put(m->r, json_string_value(j), &b);
    if (b.failed)
        return NULL;
    if (strcmp(buf_text(&b), json_string_value(j)) != 0 && note(m, j, path) < 0)
        return NULL;
    return json_string(buf_text(&b));
}

static json_t *copy_list(const struct masking *m, const json_t *j, const char *path, bool secret)
{
    json_t *to = json_array();
    for (size_t i = 0; to && i < json_array_size(j); i++) {
        char below[PATH_MAX_BYTES];
        (void)snprintf(below, sizeof below, "%s.%zu", path, i);
        const char *word = json_string_value(json_array_get(j, i));
        bool behind =
            i && word && strncmp(word, "--", 2) != 0 && announces(m->r, json_string_value(json_array_get(j, i - 1)));
        json_t *one = copy(m, json_array_get(j, i), below, secret || behind);
        if (!one || json_array_append_new(to, one) < 0) {
            json_decref(to);
            to = NULL;
        }
    }
    return to;
}

static json_t *copy_members(const struct masking *m, const json_t *j, const char *path, bool secret)
{
    json_t *to = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)j, key, value)
    {
        char below[PATH_MAX_BYTES];
        (void)snprintf(below, sizeof below, "%s%s%s", path, *path ? "." : "", key);
        json_t *one = to ? copy(m, value, below, secret || secret_is(m->r, key)) : NULL;
        if (to && (!one || json_object_set_new(to, key, one) < 0)) {
            json_decref(to);
            to = NULL;
        }
    }
    return to;
}

static json_t *copy(const struct masking *m, const json_t *j, const char *path, bool secret)
{
    if (json_is_object(j))
        return copy_members(m, j, path, secret);
    if (json_is_array(j))
        return copy_list(m, j, path, secret);
    if (secret && (json_is_string(j) || json_is_number(j)))
        return masked(m, j, path);
    return json_is_string(j) ? copy_text(m, j, path) : json_deep_copy(j);
}

json_t *secret_masked(const struct secret_rules *r, const json_t *j, const char *salt, json_t *hashes)
{
    const struct masking m = { .r = r, .salt = salt, .hashes = hashes };
    return copy(&m, j, "", false);
}
