/* Families of curves, fitted to what a curve was so far: what they foretell together. Values are normed: 0 where trials of the study begin,
 * -1 the best that is known, less is better. Pure. */
#ifndef SEARCH_FAMILIES_H
#define SEARCH_FAMILIES_H

enum { FAMILIES_SEEN_MAX = 28 };

/* At which epochs curves are seen, one at least and in order; which one is ahead; to which they go. */
struct seen {
    int n;
    double epoch[FAMILIES_SEEN_MAX];
    double ahead, epochs;
};

struct families_told {
    double median, low, high; /* 10 %, 90 % */
};

struct families;

/* What is the same for all curves that are seen there. 0, -ENOMEM. */
int families_new(struct families **out, const struct seen *seen);

/* The value at the epoch ahead of a curve that had these values where it was seen. */
struct families_told families_foretell(const struct families *f, const double *values);

void families_free(struct families *f);

#endif
