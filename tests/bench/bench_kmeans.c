/* The parts of tests/bench/kmeans that are ours.
 *   bench_kmeans make FILE ROWS FEATURES CLUSTERS APART SEED
 *       FILE: rows and features as 64-bit integers, then the values, row by row, as doubles. Normal clusters of standard
 *       deviation 1, whose centres are normal with standard deviation APART.
 *   bench_kmeans fit FILE K SEED
 *       prints: seconds on the wall, seconds of CPU, inertia, rounds
 *   bench_kmeans choose FILE K_MAX
 *       prints: seconds of CPU, k */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/own.h"
#include "clustering/kmeans.h"
#include "core/rng.h"

static void die(const char *what)
{
    fprintf(stderr, "bench_kmeans: %s\n", what);
    exit(1);
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double gauss(struct rng *r)
{
    double u = rng_unit(r) + 0x1p-60;
    return sqrt(-2 * log(u)) * cos(2 * M_PI * rng_unit(r));
}

static int make(char **argv)
{
    AUTO_FCLOSE FILE *f = fopen(argv[0], "wb");
    uint64_t n = strtoull(argv[1], NULL, 10);
    uint64_t d = strtoull(argv[2], NULL, 10);
    uint64_t k = strtoull(argv[3], NULL, 10);
    struct rng r = rng_seeded(strtoull(argv[5], NULL, 10));
    AUTO_FREE double *centres = calloc(k, d * sizeof *centres);
    AUTO_FREE double *row = calloc(d, sizeof *row);
    if (!f || !centres || !row)
        die(argv[0]);
    for (size_t i = 0; i < k * d; i++)
        centres[i] = strtod(argv[4], NULL) * gauss(&r);
    size_t written = fwrite(&n, sizeof n, 1, f) + fwrite(&d, sizeof d, 1, f);
    for (size_t i = 0; i < n; i++) {
        const double *centre = centres + rng_below(&r, k) * d;
        for (size_t j = 0; j < d; j++)
            row[j] = centre[j] + gauss(&r);
        written += fwrite(row, sizeof *row, d, f);
    }
    if (written != 2 + n * d || fflush(f) != 0)
        die("cannot write");
    return 0;
}

static struct kmeans_data load(const char *path)
{
    AUTO_FCLOSE FILE *f = fopen(path, "rb");
    uint64_t head[2] = { 0 };
    if (!f || fread(head, sizeof *head, 2, f) != 2)
        die(path);
    double *values = calloc(head[0], head[1] * sizeof *values);
    if (!values || fread(values, sizeof *values, head[0] * head[1], f) != head[0] * head[1])
        die(path);
    return (struct kmeans_data){ .values = values, .n = head[0], .d = head[1] };
}

static int fit(char **argv)
{
    struct kmeans_data x = load(argv[0]);
    struct kmeans_cfg cfg = KMEANS_CFG(strtoull(argv[1], NULL, 10));
    cfg.seed = strtoull(argv[2], NULL, 10);
    struct kmeans km;
    struct err e;
    double wall = seconds(CLOCK_MONOTONIC);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (kmeans_fit(&x, &cfg, &km, NULL, &e) < 0)
        die(e.text);
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    wall = seconds(CLOCK_MONOTONIC) - wall;
    printf("%.4f %.4f %.9g %u\n", wall, cpu, km.inertia, km.iterations);
    kmeans_done(&km);
    free((double *)x.values);
    return 0;
}

static int choose(char **argv)
{
    struct kmeans_data x = load(argv[0]);
    struct kmeans_cfg cfg = KMEANS_CFG(0);
    struct kmeans km;
    struct err e;
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (kmeans_choose_k(&x, &cfg, strtoull(argv[1], NULL, 10), &km, NULL, &e) < 0)
        die(e.text);
    printf("%.4f %zu\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu, km.k);
    kmeans_done(&km);
    free((double *)x.values);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "make") == 0)
        return make(argv + 2);
    if (argc == 5 && strcmp(argv[1], "fit") == 0)
        return fit(argv + 2);
    if (argc == 4 && strcmp(argv[1], "choose") == 0)
        return choose(argv + 2);
    die("make FILE ROWS FEATURES CLUSTERS APART SEED | fit FILE K SEED | choose FILE K_MAX");
    return 1;
}
