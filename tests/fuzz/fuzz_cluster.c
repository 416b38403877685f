/* An answer of any bytes, to any request of any row, is a view that room can be found in, or one line that says why not; so is any file that
 * names a cluster. The first byte chooses the row and the request; 9 is the file. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/own.h"
#include "bigdl/cluster.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct cluster_key keys[] = { { "pt-1", "app-1" }, { "pt-2", NULL } };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_room(const struct cluster_view *v, bool all)
{
    struct layout_room r;
    struct cluster_launch l[] = { { keys[0], { 2, 1, 1 }, false }, { keys[1], { 1, 2, 0 }, true } };
    cluster_room(v, l, ARRAY_LEN(l), all, &r);
    check(r.n_workers >= 0 && r.n_workers <= LAYOUT_WORKERS_MAX);
    for (int i = 0; i < r.n_workers; i++)
        check(r.workers[i].count >= 0 && r.workers[i].cores >= 0 && r.workers[i].memory_gb >= 0);
    int most = layout_most(&r, 64, 0, 0, 1);
    check(most == 0 || layout_divide(&r, most, 0, 0, 1) >= 1);
    char why[CLUSTER_WHY_MAX];
    cluster_why(v, &l[0], why);
    check(strlen(why) < sizeof why && !strchr(why, '\n'));
}

static void check_answer(const struct cluster_row *row, size_t i, const char *text, size_t size)
{
    struct cluster_view v = { 0 };
    struct cluster_asked a = { .base = "http://h", .space = "s", .keys = keys, .n_keys = ARRAY_LEN(keys) };
    struct err e = { 0 };
    if (row->begin)
        row->begin(&v);
    int rc = row->answer(&v, &a, i, 200, text, size, &e);
    check(rc == 0 || rc == -EINVAL || rc == -ENODEV || rc == -ENOMEM);
    check(rc == 0 || (e.text[0] && !strchr(e.text, '\n')));
    for (size_t k = 0; k < v.n_apps; k++) {
        struct cluster_request r = { 0 };
        check(cluster_app_of(&v, v.apps[k].tag) != NULL);
        check(!row->end(&a, &v.apps[k], &r) || !strpbrk(buf_text(&r.url) + 8, " \r\n"));
        cluster_request_done(&r);
    }
    check_room(&v, false);
    check_room(&v, true);
    cluster_view_done(&v);
}

static void check_file(const struct cluster_row *row, const char *text)
{
    AUTO_STRV struct strv out = STRV_INIT;
    struct err e = { 0 };
    int rc = row->bases(row->file ? row->begins : text, text, &out, &e);
    check(rc == 0 ? out.n > 0 : rc == -EINVAL && e.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t row = (data[0] - 48u) % 3u, i = (data[1] - 48u) % 10u;
    AUTO_FREE char *text = strndup((const char *)data + 2, size - 2);
    check(text != NULL);
    if (i == 9 && (row == 1 || cluster_find(text) == cluster_rows[row]))
        check_file(cluster_rows[row], text);
    else if (i < (row == 0 ? 3u : 4u))
        check_answer(cluster_rows[row], i, text, strlen(text));
    return 0;
}
