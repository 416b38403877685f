#include "live/host_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/own.h"
#include "base/suggest.h"
#include "core/config.h"
#include "live/ssh.h"

enum { FILE_MAX = 1 << 20 };

static const char blanks[] = " \t\r";

/* In the working directory, else beside the config; *out NULL: at neither place. -ENOMEM. */
static int find_file(char **out, const char *name, const struct json_doc *config, struct err *e)
{
    AUTO_FREE char *dir = config->name ? io_dirname(config->name) : NULL;
    AUTO_FREE char *beside = dir ? io_join(dir, name) : NULL; /* `name` itself where it is absolute */
    const char *found = io_exists(name) || !beside ? name : beside;
    bool there = io_exists(found) && !io_is_dir(found);
    *out = there ? strdup(found) : NULL;
    return (config->name && !beside) || (there && !*out) ? err_sys(e, -ENOMEM, "'%s'", name) : 0;
}

/* --- entries --- */

static int check_entry(const json_t *entry, const char *where, struct err *e)
{
    const json_t *named = json_is_string(entry) ? entry : json_object_get(entry, "host"),
                 *port = json_object_get(entry, "port");
    const struct node_cfg cfg = { .host = (char *)json_string_value(named),
                                  .user = (char *)json_string_value(json_object_get(entry, "user")),
                                  .key = (char *)json_string_value(json_object_get(entry, "key")) };
    json_int_t n = port ? json_integer_value(port) : 22;
    int rc = cfg.host ? ssh_check(&cfg, e) : err_set(e, -EINVAL, "an entry without a host");
    if (rc == 0 && (n < 1 || n > 65535))
        rc = err_set(e, -EINVAL, "host '%s': its port must be between 1 and 65535", cfg.host);
    return rc < 0 ? err_prefix(e, "%s", where) : 0;
}

static int check_entries(const json_t *list, const char *where, struct err *e)
{
    size_t n = json_array_size(list);
    int rc = n == 0              ? err_set(e, -EINVAL, "%s: there are no hosts", where)
             : n > HOST_LIST_MAX ? err_set(e, -EINVAL, "%s: there are %zu hosts, more than %d", where, n, HOST_LIST_MAX)
                                 : 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        rc = check_entry(json_array_get(list, i), where, e);
        for (size_t k = 0; rc == 0 && k < i; k++)
            if (json_equal(json_array_get(list, i), json_array_get(list, k)))
                rc = err_set(e, -EINVAL, "%s: host %zu is there twice: it is host %zu, too", where, i + 1, k + 1);
    }
    return rc;
}

/* [USER@]HOST */
static json_t *entry_of(const char *word, size_t len)
{
    const char *at = memchr(word, '@', len);
    if (!at)
        return json_stringn(word, len);
    size_t user = (size_t)(at - word);
    return json_pack("{s:o, s:o}", "host", json_stringn(at + 1, len - user - 1), "user", json_stringn(word, user));
}

static int add_word(json_t *list, const char *word, size_t len, const char *where, struct err *e)
{
    while (len > 0 && strchr(blanks, word[len - 1]))
        len--;
    for (; len > 0 && strchr(blanks, *word); len--)
        word++;
    if (len == 0)
        return 0;
    json_t *entry = memchr(word, '\0', len) ? NULL : entry_of(word, len);
    if (!entry)
        return err_set(e, -EINVAL, "%s: a host that is no UTF-8", where);
    return json_array_append_new(list, entry) < 0 ? err_sys(e, -ENOMEM, "%s", where) : 0;
}

/* Words between which `sep` stands; behind a '#' of a line there are none. */
static int read_words(json_t **out, const char *text, size_t len, char sep, const char *where, struct err *e)
{
    AUTO_JSON json_t *list = json_array();
    int rc = list ? 0 : err_sys(e, -ENOMEM, "%s", where);
    for (const char *p = text, *end = text + len; rc == 0 && p < end;) {
        const char *stop = memchr(p, sep, (size_t)(end - p));
        stop = stop ? stop : end;
        const char *comment = sep == '\n' ? memchr(p, '#', (size_t)(stop - p)) : NULL;
        rc = add_word(list, p, (size_t)((comment ? comment : stop) - p), where, e);
        p = stop + (stop < end);
    }
    if (rc == 0)
        rc = check_entries(list, where, e);
    if (rc == 0)
        *out = json_incref(list);
    return rc;
}

/* --- where they stand --- */

static int read_doc(struct json_doc *out, const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT;
    int rc = io_read_file(&text, path, FILE_MAX, e);
    return rc < 0 ? rc : json_doc_parse(out, path, buf_text(&text), text.len, e);
}

static int read_file(json_t **out, const char *path, struct err *e)
{
    AUTO_BUF struct buf text = BUF_INIT, where = BUF_INIT;
    AUTO_JSON_DOC struct json_doc doc = { 0 };
    int rc = io_read_file(&text, path, FILE_MAX, e);
    buf_printf(&where, "'%s'", path);
    if (rc < 0)
        return rc;
    const char *begin = buf_text(&text) + strspn(buf_text(&text), " \t\r\n");
    if (*begin == '{')
        return err_set(e, -EINVAL,
                       "'%s' holds lists by name: name it in the config, \"hosts\": \"%s\", and give the name of one",
                       path, path);
    if (*begin != '[')
        return read_words(out, buf_text(&text), text.len, '\n', buf_text(&where), e);
    rc = json_doc_parse(&doc, path, buf_text(&text), text.len, e);
    if (rc == 0)
        rc = config_check_hosts(&doc, "", doc.root, e);
    if (rc == 0)
        rc = check_entries(doc.root, buf_text(&where), e);
    if (rc == 0)
        *out = json_incref(doc.root);
    return rc;
}

/* The config's lists; *out borrows from `kept`, or of the config. NULL: there are none. */
static int find_lists(const json_t **out, struct json_doc *kept, const struct json_doc *config, struct err *e)
{
    *out = json_object_get(config->root, "hosts");
    if (!json_is_string(*out))
        return 0;
    AUTO_FREE char *path = NULL;
    int rc = find_file(&path, json_string_value(*out), config, e);
    if (rc == 0 && !path)
        rc = json_doc_err(config, "hosts", e, -EINVAL,
                          "names the file '%s', which is neither in the working directory nor beside the config",
                          json_string_value(*out));
    if (rc == 0)
        rc = read_doc(kept, path, e);
    if (rc == 0)
        rc = config_check_lists(kept, "", kept->root, e);
    *out = kept->root;
    return rc;
}

/* What is no list's name. */
static int choose_others(json_t **out, const char *said, const struct json_doc *config, const char *where,
                         struct err *e)
{
    AUTO_FREE char *path = NULL;
    int rc = find_file(&path, said, config, e);
    if (rc < 0 || path)
        return rc < 0 ? rc : read_file(out, path, e);
    if (strchr(said, '/'))
        return err_set(e, -EINVAL, "no file of hosts '%s'", said);
    return read_words(out, said, strlen(said), ',', where, e);
}

int host_list_choose(json_t **out, const char *said, const struct json_doc *config, struct err *e)
{
    AUTO_JSON_DOC struct json_doc kept = { 0 };
    AUTO_BUF struct buf where = BUF_INIT;
    const json_t *lists;
    int rc = find_lists(&lists, &kept, config, e);
    json_t *list = rc == 0 ? json_object_get(lists, said) : NULL;
    buf_printf(&where, list ? "list '%s'" : "hosts '%s'", said);
    if (rc == 0 && !list)
        return choose_others(out, said, config, buf_text(&where), e);
    if (rc == 0)
        rc = check_entries(list, buf_text(&where), e);
    if (rc == 0)
        *out = json_incref(list);
    return rc;
}
