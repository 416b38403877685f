#include "base/suggest.h"

#include <string.h>

enum { FOLDED_MAX = 64 }; /* no name of ours is longer; what is cannot be a slip of one */

static bool is_joiner(char c)
{
    return c == '_' || c == '-';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool suggest_same(const char *a, const char *b)
{
    for (;; a++, b++) {
        while (is_joiner(*a))
            a++;
        while (is_joiner(*b))
            b++;
        if (lower(*a) != lower(*b))
            return false;
        if (!*a)
            return true;
    }
}

/* Lower case without joiners. Returns the length, FOLDED_MAX when it does not fit. */
static size_t fold(const char *word, char out[FOLDED_MAX])
{
    size_t n = 0;
    for (; *word && n < FOLDED_MAX; word++)
        if (!is_joiner(*word))
            out[n++] = lower(*word);
    return n;
}

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Optimal string alignment: Damerau-Levenshtein in which no pair is edited twice. Three rows of the matrix are enough. */
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][FOLDED_MAX + 1];
    for (size_t j = 0; j <= nb; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3];
        const size_t *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && above2[j - 2] + 1 < row[j])
                row[j] = above2[j - 2] + 1;
        }
    }
    return rows[na % 3][nb];
}

static size_t near_enough(size_t na, size_t nb)
{
    size_t third = (na > nb ? na : nb) / 3;
    return third < 3 ? third : 3;
}

const char *suggest_nearest(const char *word, const char *const *names, size_t n)
{
    char folded[FOLDED_MAX];
    size_t len = fold(word, folded);
    if (len == 0 || len == FOLDED_MAX)
        return NULL;
    const char *best = NULL;
    size_t least = 2 * FOLDED_MAX;
    for (size_t i = 0; i < n; i++) {
        char name[FOLDED_MAX];
        size_t name_len = fold(names[i], name);
        if (name_len == FOLDED_MAX)
            continue;
        size_t d = distance(folded, len, name, name_len);
        size_t cost = 2 * d + (name_len != len); /* equally near: a wrong letter is likelier than a missing one */
        if (cost < least && d <= near_enough(len, name_len)) {
            best = names[i];
            least = cost;
        }
    }
    return best;
}
