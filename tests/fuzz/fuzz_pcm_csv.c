/* PCM's CSV, of any bytes: sane rows, and the same ones in whatever pieces it comes. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "monitoring/pcm_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROWS_MAX = 1024 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void check_part(const struct pcm_layout *l, const struct pcm_part *p)
{
    check(p->n <= PCM_PARTS_MAX && (p->n == 0) == (p->form == 0) && p->form >= 0 && p->form <= 3);
    check(p->form != 1 || p->n == 1);
    for (size_t i = 0; i < p->n; i++)
        check(p->at[i] < l->columns && (i == 0 || p->at[i] > p->at[i - 1]));
}

static void check_row(const struct pcm_csv *c, const struct pcm_row *r)
{
    const struct pcm_layout *l = &c->layout;
    check(l->separator == ';' || l->separator == ',');
    check(l->date == 0 && l->time == 1 && l->columns >= 2 && l->sockets >= 1 && l->sockets <= PCM_PARTS_MAX);
    check_part(l, &l->proc);
    check_part(l, &l->dram);
    check(r->local_ms >= 0 && (r->step_ms == 1 || r->step_ms == 1000));
    check(isnan(r->proc_j) || (r->proc_j >= 0 && l->proc.n > 0));
    check(isnan(r->dram_j) || r->dram_j >= 0);
    check(r->error_j >= 0);
}

/* Rows of the text in pieces of so many bytes. */
static size_t rows_of(const char *text, size_t len, size_t piece, struct pcm_row *out, uint64_t *passed_over)
{
    struct pcm_csv c = { 0 };
    struct pcm_row row;
    size_t n = 0;
    for (size_t at = 0, more; at < len; at += more) {
        more = len - at < piece ? len - at : piece;
        check(pcm_csv_put(&c, text + at, more) == 0);
        while (pcm_csv_next(&c, &row) == 1) {
            check_row(&c, &row);
            if (n < ROWS_MAX)
                out[n++] = row;
        }
        check(c.text.len <= PCM_LINE_MAX);
    }
    *passed_over = c.passed_over;
    pcm_csv_done(&c);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct pcm_row whole[ROWS_MAX], pieces[ROWS_MAX];
    uint64_t over_whole, over_pieces;
    const char *text = (const char *)data;
    size_t n = rows_of(text, size, size ? size : 1, whole, &over_whole);
    check(n == rows_of(text, size, size ? 1 + data[0] % 32u : 1, pieces, &over_pieces) && over_whole == over_pieces);
    for (size_t i = 0; i < n; i++)
        check(whole[i].local_ms == pieces[i].local_ms && same(whole[i].proc_j, pieces[i].proc_j) &&
              same(whole[i].dram_j, pieces[i].dram_j) && whole[i].fresh == pieces[i].fresh);
    return 0;
}
