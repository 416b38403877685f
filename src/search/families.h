/* Families of curves, fitted to what a curve was so far: what they foretell together. Values are normed: 0 where trials of the study begin,
 * -1 the best that is known, less is better. Pure. */
#ifndef SEARCH_FAMILIES_H
#define SEARCH_FAMILIES_H

enum { FAMILIES_SEEN_MAX = 28 };

/* Some epochs of a curve, in order, and the values there. */
struct seen {
    int n;
    double epoch[FAMILIES_SEEN_MAX], value[FAMILIES_SEEN_MAX];
};

struct families_told {
    double median, low, high; /* 10 %, 90 % */
};

/* The value after `epoch` of a curve that goes to `epochs`; `seen` has at least one. */
struct families_told families_foretell(const struct seen *seen, int epochs, double epoch);

#endif
