#include "search/forest.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"

enum {
    TREES = 96,
    LEAF_MIN = 2,       /* rows that a tree is grown from */
    COLUMNS_TRIED = 70, /* of 100, at each cut */
    ROWS_GROWN = 70,    /* of 100: the others see how well the tree foretells */
};

#define NO_COLUMN UINT16_MAX

/* A cut, or a leaf; `from` and `n`: its rows, while the tree grows and of a leaf. */
struct node {
    double at;
    uint16_t column; /* NO_COLUMN: a leaf */
    uint16_t from, n;
    uint16_t left; /* the child with what is less than `at`; the other one stands behind it */
};

struct forest {
    size_t n, d, nodes_max;
    struct node *nodes; /* TREES times nodes_max */
    uint16_t *rows;     /* TREES times n: in the order of the leaves */
    bool *grown;        /* TREES times n: the tree was grown from this row */
};

/* What a tree is grown from. */
struct growing {
    const double *x, *y;
    size_t d;
    uint16_t *rows;
    uint16_t *columns; /* room for d */
    struct rng rng;
};

struct cut {
    double at, worth;
    uint16_t column;
};

static double cell(const struct growing *g, size_t i, uint16_t column)
{
    return g->x[g->rows[i] * g->d + column];
}

/* How much less the outcomes vary on both sides than together, but for what is the same for every cut. */
static double worth_of(const struct growing *g, const struct node *of, uint16_t column, double at)
{
    double sum[2] = { 0, 0 };
    size_t n[2] = { 0, 0 };
    for (size_t i = of->from; i < (size_t)of->from + of->n; i++) {
        bool right = cell(g, i, column) >= at;
        sum[right] += g->y[g->rows[i]];
        n[right]++;
    }
    return n[0] >= LEAF_MIN && n[1] >= LEAF_MIN ? sum[0] * sum[0] / (double)n[0] + sum[1] * sum[1] / (double)n[1]
                                                : -INFINITY;
}

/* A cut at random between the ends of a column; one that is all the same is no candidate. */
static bool try_column(struct growing *g, const struct node *of, uint16_t column, struct cut *best)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = of->from; i < (size_t)of->from + of->n; i++) {
        low = fmin(low, cell(g, i, column));
        high = fmax(high, cell(g, i, column));
    }
    if (!(high > low))
        return false;
    double at = low + (high - low) * rng_unit(&g->rng);
    at = at > low ? at : high;
    double worth = worth_of(g, of, column, at);
    if (worth > best->worth)
        *best = (struct cut){ at, worth, column };
    return true;
}

static struct cut choose_cut(struct growing *g, const struct node *of)
{
    struct cut best = { 0, -INFINITY, NO_COLUMN };
    size_t wanted = (g->d * COLUMNS_TRIED + 99) / 100, tried = 0;
    for (size_t i = 0; i < g->d && tried < wanted; i++) {
        size_t k = i + (size_t)rng_below(&g->rng, g->d - i);
        uint16_t column = g->columns[k];
        g->columns[k] = g->columns[i];
        g->columns[i] = column;
        tried += try_column(g, of, column, &best);
    }
    return best;
}

static bool all_alike(const struct growing *g, const struct node *of)
{
    for (size_t i = of->from + 1; i < (size_t)of->from + of->n; i++)
        if (g->y[g->rows[i]] != g->y[g->rows[of->from]])
            return false;
    return true;
}

/* The rows on the left of the cut to the front; how many they are. */
static uint16_t part_rows(struct growing *g, const struct node *of, const struct cut *c)
{
    size_t to = of->from;
    for (size_t i = of->from; i < (size_t)of->from + of->n; i++) {
        if (cell(g, i, c->column) >= c->at)
            continue;
        uint16_t row = g->rows[i];
        g->rows[i] = g->rows[to];
        g->rows[to++] = row;
    }
    return (uint16_t)(to - of->from);
}

/* Nodes, one level after the other; the root has all rows. Returns how many there are. */
static size_t grow_nodes(struct growing *g, struct node *nodes)
{
    size_t n = 1;
    for (size_t i = 0; i < n; i++) {
        struct node *node = &nodes[i];
        struct cut c = { .column = NO_COLUMN };
        if (node->n >= 2 * LEAF_MIN && !all_alike(g, node))
            c = choose_cut(g, node);
        node->column = c.column;
        if (c.column == NO_COLUMN)
            continue;
        uint16_t left = part_rows(g, node, &c);
        node->at = c.at;
        node->left = (uint16_t)n;
        nodes[n++] = (struct node){ .from = node->from, .n = left };
        nodes[n++] = (struct node){ .from = (uint16_t)(node->from + left), .n = (uint16_t)(node->n - left) };
    }
    return n;
}

static struct node *leaf_of(struct node *nodes, const double *row)
{
    struct node *at = nodes;
    while (at->column != NO_COLUMN)
        at = &nodes[at->left + (row[at->column] >= at->at)];
    return at;
}

/* All rows into the leaves, also those that the tree was not grown from. `leaf`: room for n. */
static void fill_leaves(const struct forest *f, const double *x, size_t tree, size_t n_nodes, uint16_t *leaf)
{
    struct node *nodes = f->nodes + tree * f->nodes_max;
    uint16_t *rows = f->rows + tree * f->n;
    for (size_t i = 0; i < n_nodes; i++)
        nodes[i].n = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct node *at = leaf_of(nodes, x + i * f->d);
        leaf[i] = (uint16_t)(at - nodes);
        at->n++;
    }
    for (size_t i = 0, from = 0; i < n_nodes; i++) {
        nodes[i].from = (uint16_t)from;
        from += nodes[i].n;
        nodes[i].n = 0;
    }
    for (size_t i = 0; i < f->n; i++) {
        struct node *at = &nodes[leaf[i]];
        rows[at->from + at->n++] = (uint16_t)i;
    }
}

static size_t rows_grown(size_t n)
{
    return (n * ROWS_GROWN + 99) / 100;
}

static void grow_tree(struct forest *f, struct growing *g, size_t tree, uint16_t *leaf)
{
    size_t grown = rows_grown(f->n);
    bool *used = f->grown + tree * f->n;
    g->rows = f->rows + tree * f->n;
    for (size_t i = 0; i < f->n; i++)
        g->rows[i] = (uint16_t)i;
    for (size_t i = 0; i < grown; i++) {
        size_t k = i + (size_t)rng_below(&g->rng, f->n - i);
        uint16_t row = g->rows[k];
        g->rows[k] = g->rows[i];
        g->rows[i] = row;
        used[row] = true;
    }
    struct node *nodes = f->nodes + tree * f->nodes_max;
    nodes[0] = (struct node){ .n = (uint16_t)grown };
    fill_leaves(f, g->x, tree, grow_nodes(g, nodes), leaf);
}

int forest_new(struct forest **out, const double *x, size_t d, const double *y, size_t n)
{
    assert(n > 0 && n <= FOREST_ROWS_MAX);
    struct forest *f = calloc(1, sizeof *f);
    uint16_t *room = calloc(n + d + 1, sizeof *room); /* columns, and the leaf of each row */
    if (f) {
        *f = (struct forest){ .n = n, .d = d, .nodes_max = rows_grown(n) + 1 }; /* leaves have two rows each */
        f->nodes = calloc(TREES * f->nodes_max, sizeof *f->nodes);
        f->rows = calloc(TREES * n + 1, sizeof *f->rows);
        f->grown = calloc(TREES * n + 1, sizeof *f->grown);
    }
    if (!f || !room || !f->nodes || !f->rows || !f->grown) {
        free(room);
        forest_free(f);
        return -ENOMEM;
    }
    struct growing g = { .x = x, .y = y, .d = d, .columns = room, .rng = rng_seeded(1) };
    for (size_t i = 0; i < d; i++)
        room[i] = (uint16_t)i;
    for (size_t tree = 0; tree < TREES; tree++)
        grow_tree(f, &g, tree, room + d);
    free(room);
    *out = f;
    return 0;
}

void forest_weigh(const struct forest *f, const double *row, size_t but, double *weights)
{
    size_t trees = 0;
    memset(weights, 0, f->n * sizeof *weights);
    for (size_t tree = 0; tree < TREES; tree++) {
        if (but != SIZE_MAX && f->grown[tree * f->n + but])
            continue;
        const struct node *leaf = leaf_of(f->nodes + tree * f->nodes_max, row);
        const uint16_t *rows = f->rows + tree * f->n + leaf->from;
        size_t others = (size_t)leaf->n - (but != SIZE_MAX); /* it is in the leaf itself */
        trees += others > 0;
        for (size_t i = 0; i < leaf->n; i++)
            weights[rows[i]] += rows[i] == but ? 0 : 1 / (double)others;
    }
    size_t others = f->n - (but != SIZE_MAX);
    for (size_t i = 0; i < f->n; i++)
        weights[i] = trees ? weights[i] / (double)trees : i == but ? 0 : 1 / (double)others;
}

void forest_free(struct forest *f)
{
    if (!f)
        return;
    free(f->nodes);
    free(f->rows);
    free(f->grown);
    free(f);
}
