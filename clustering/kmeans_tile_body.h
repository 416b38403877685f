/* Included by kmeans_tile.c once per instruction set: FN(name) names the variant, TARGET is its attribute, POINTS is how many
 * rows share a load of the tile. */

TARGET static void FN(scores)(const struct kmeans_pick *p, const float *tile, const float *base, float *out)
{
    size_t d = p->d;
    const v8 first = *(const v8u *)base;
    for (size_t i = 0; i < p->n; i += POINTS) {
        const float *row[POINTS];
        v8 acc[POINTS];
        UNROLL
        for (size_t j = 0; j < POINTS; j++) {
            row[j] = p->rows + d * p->idx[i + j < p->n ? i + j : p->n - 1];
            acc[j] = first;
        }
        for (size_t f = 0; f < d; f++) {
            v8 c = *(const v8u *)(tile + KMEANS_LANES * f);
            UNROLL
            for (size_t j = 0; j < POINTS; j++)
                acc[j] += c * row[j][f];
        }
        UNROLL
        for (size_t j = 0; j < POINTS; j++)
            *(v8u *)(out + KMEANS_LANES * (i + j)) = acc[j];
    }
}

/* Four rows of four lanes turned into four lanes of four rows. */
#define TURN(out, in, stride)                                                                                          \
    do {                                                                                                               \
        v4 r0_ = *(const v4u *)(in), r1_ = *(const v4u *)((in) + (stride));                                            \
        v4 r2_ = *(const v4u *)((in) + 2 * (stride)), r3_ = *(const v4u *)((in) + 3 * (stride));                       \
        v4 a_ = MIX(r0_, r1_, 0, 4, 1, 5), b_ = MIX(r2_, r3_, 0, 4, 1, 5);                                             \
        v4 c_ = MIX(r0_, r1_, 2, 6, 3, 7), d_ = MIX(r2_, r3_, 2, 6, 3, 7);                                             \
        (out)[0] = MIX(a_, b_, 0, 1, 4, 5);                                                                            \
        (out)[1] = MIX(a_, b_, 2, 3, 6, 7);                                                                            \
        (out)[2] = MIX(c_, d_, 0, 1, 4, 5);                                                                            \
        (out)[3] = MIX(c_, d_, 2, 3, 6, 7);                                                                            \
    } while (0)

TARGET static void FN(lowest)(const float *scores, size_t n, const struct kmeans_low *out)
{
    for (size_t i = 0; i < n; i += 4) {
        v4 col[KMEANS_LANES];
        TURN(col, scores + KMEANS_LANES * i, KMEANS_LANES);
        TURN(col + 4, scores + KMEANS_LANES * i + 4, KMEANS_LANES);
        v4 first = col[0];
        v4 second = (v4){ 0 } + INFINITY;
        v4i lane = { 0 };
        UNROLL
        for (int j = 1; j < KMEANS_LANES; j++) {
            v4i lower = col[j] < first;
            v4 loser = PICK(v4, lower, first, col[j]);
            first = PICK(v4, lower, col[j], first);
            lane = (lower & j) | (~lower & lane);
            second = PICK(v4, loser < second, loser, second);
        }
        *(v4u *)(out->first + i) = first;
        *(v4u *)(out->second + i) = second;
        *(v4iu *)(out->lane + i) = lane;
    }
}

TARGET static void FN(gains)(const float *dist, const double *near, const uint32_t *idx, size_t n, double *gain)
{
    v4d low = *(const v4du *)gain;
    v4d high = *(const v4du *)(gain + 4);
    for (size_t i = 0; i < n; i++) {
        double was = near[idx[i]];
        v4d by_low = was - __builtin_convertvector(*(const v4u *)(dist + KMEANS_LANES * i), v4d);
        v4d by_high = was - __builtin_convertvector(*(const v4u *)(dist + KMEANS_LANES * i + 4), v4d);
        low += (v4d)((v4l)by_low & (by_low > 0));
        high += (v4d)((v4l)by_high & (by_high > 0));
    }
    *(v4du *)gain = low;
    *(v4du *)(gain + 4) = high;
}

TARGET static void FN(own)(const struct kmeans_pick *p, const float *neg2, const float *base, const uint32_t *label,
                           float *out)
{
    size_t d = p->d;
    for (size_t i = 0; i < p->n; i++) {
        const float *x = p->rows + d * p->idx[i];
        const float *c = neg2 + d * label[i];
        v8 acc = { 0 };
        float rest = base[label[i]];
        size_t f = 0;
        for (; f + KMEANS_LANES <= d; f += KMEANS_LANES)
            acc += *(const v8u *)(x + f) * *(const v8u *)(c + f);
        for (; f < d; f++)
            rest += x[f] * c[f];
        float pair[4];
        UNROLL
        for (int j = 0; j < 4; j++)
            pair[j] = acc[j] + acc[j + 4];
        out[i] = ((pair[0] + pair[2]) + (pair[1] + pair[3])) + rest;
    }
}

TARGET NO_ERRNO static void FN(roots)(float *x, size_t n, float factor)
{
    size_t i = 0;
    for (; i + KMEANS_LANES <= n; i += KMEANS_LANES) {
        UNROLL
        for (size_t j = 0; j < KMEANS_LANES; j++)
            x[i + j] = sqrtf(x[i + j] > 0 ? x[i + j] : 0) * factor;
    }
    for (; i < n; i++)
        x[i] = sqrtf(x[i] > 0 ? x[i] : 0) * factor;
}

TARGET static double FN(dist2)(const double *a, const double *b, size_t d)
{
    v4d acc0 = { 0 }, acc1 = { 0 };
    double rest = 0;
    size_t f = 0;
    for (; f + 8 <= d; f += 8) {
        v4d t0 = *(const v4du *)(a + f) - *(const v4du *)(b + f);
        v4d t1 = *(const v4du *)(a + f + 4) - *(const v4du *)(b + f + 4);
        acc0 += t0 * t0;
        acc1 += t1 * t1;
    }
    for (; f < d; f++) {
        double t = a[f] - b[f];
        rest += t * t;
    }
    acc0 += acc1;
    return ((acc0[0] + acc0[2]) + (acc0[1] + acc0[3])) + rest;
}

TARGET static double FN(masked)(const double *a, const unsigned char *in_a, const double *b, const unsigned char *in_b,
                                size_t d, size_t *out_common)
{
    static const unsigned char all[] = { 1, 1, 1, 1 };
    v4d acc = { 0 };
    v4l both = { 0 };
    double rest = 0;
    size_t common = 0;
    size_t f = 0;
    for (; f + 4 <= d; f += 4) {
        v4b there = (*(const v4bu *)(in_a ? in_a + f : all) != 0) & (*(const v4bu *)(in_b ? in_b + f : all) != 0);
        v4l wide = __builtin_convertvector(there, v4l);
        v4d t = (v4d)((v4l)(*(const v4du *)(a + f) - *(const v4du *)(b + f)) & wide);
        acc += t * t;
        both -= wide;
    }
    for (; f < d; f++)
        if ((!in_a || in_a[f]) && (!in_b || in_b[f])) {
            rest += (a[f] - b[f]) * (a[f] - b[f]);
            common++;
        }
    *out_common = common + (size_t)(both[0] + both[1] + both[2] + both[3]);
    return ((acc[0] + acc[2]) + (acc[1] + acc[3])) + rest;
}

TARGET static void FN(relax)(float *lower, size_t n, float drift, float *lowest)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        v4 l = (*(const v4u *)(lower + i) - drift) * KMEANS_DOWN;
        v4 m = *(const v4u *)(lowest + i);
        *(v4u *)(lower + i) = l;
        *(v4u *)(lowest + i) = PICK(v4, l < m, l, m);
    }
    for (; i < n; i++) {
        lower[i] = (lower[i] - drift) * KMEANS_DOWN;
        lowest[i] = lower[i] < lowest[i] ? lower[i] : lowest[i];
    }
}

TARGET static int FN(within)(const double *x, size_t n, double most)
{
    v4l good = { -1, -1, -1, -1 };
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        v4d v = *(const v4du *)(x + i);
        good &= (v <= most) & (v >= -most);
    }
    for (; i < n; i++)
        good[0] &= -(int64_t)(x[i] <= most && x[i] >= -most);
    return (good[0] & good[1] & good[2] & good[3]) != 0;
}

TARGET static void FN(span)(const double *x, size_t d, double *sum, double *low, double *high)
{
    size_t f = 0;
    for (; f + 4 <= d; f += 4) {
        v4d v = *(const v4du *)(x + f);
        v4d l = *(const v4du *)(low + f);
        v4d h = *(const v4du *)(high + f);
        *(v4du *)(sum + f) += v;
        *(v4du *)(low + f) = WIDE_PICK(v < l, v, l);
        *(v4du *)(high + f) = WIDE_PICK(v > h, v, h);
    }
    for (; f < d; f++) {
        sum[f] += x[f];
        low[f] = x[f] < low[f] ? x[f] : low[f];
        high[f] = x[f] > high[f] ? x[f] : high[f];
    }
}

TARGET static double FN(move)(const double *x, const double *middle, double scale, size_t d, float *out)
{
    v4d acc = { 0 };
    double rest = 0;
    size_t f = 0;
    for (; f + 4 <= d; f += 4) {
        v4d v = (*(const v4du *)(x + f) - *(const v4du *)(middle + f)) * scale;
        acc += v * v;
        *(v4u *)(out + f) = __builtin_convertvector(v, v4);
    }
    for (; f < d; f++) {
        double v = (x[f] - middle[f]) * scale;
        rest += v * v;
        out[f] = (float)v;
    }
    return ((acc[0] + acc[2]) + (acc[1] + acc[3])) + rest;
}

/* Knuth's two-sum: `s` and `err` are together exactly a + b. */
#define TWO_SUM(type, at)                                                                                              \
    do {                                                                                                               \
        type a_ = *(const type *)(hi + (at));                                                                          \
        type b_ = *(const type *)(x + (at)) * sign;                                                                    \
        type s_ = a_ + b_;                                                                                             \
        type v_ = s_ - a_;                                                                                             \
        *(type *)(hi + (at)) = s_;                                                                                     \
        *(type *)(lo + (at)) += (a_ - (s_ - v_)) + (b_ - v_);                                                          \
    } while (0)

TARGET static void FN(add)(double *hi, double *lo, const double *x, double sign, size_t d)
{
    size_t f = 0;
    for (; f + 4 <= d; f += 4)
        TWO_SUM(v4du, f);
    for (; f < d; f++)
        TWO_SUM(double, f);
}

static const struct kmeans_tiles FN(tiles) = { FN(scores), FN(lowest), FN(gains), FN(own),    FN(roots), FN(dist2),
                                               FN(masked), FN(relax),  FN(add),   FN(within), FN(span),  FN(move) };

#undef TURN
#undef TWO_SUM
