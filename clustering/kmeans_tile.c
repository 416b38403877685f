/* Vectors of GNU C: the compiler lowers them to whatever registers there are. Where the instruction set is chosen at run time
 * the body is compiled again rather than cloned: gcc lowers vectors before it clones, and would leave the clone with the narrow
 * ones. AVX2 comes without FMA on purpose, as a fused sum differs from the others in its last bit. */
#include "clustering/kmeans_tile.h"

#include <math.h>

#ifdef __clang__
#define MIX(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define NO_ERRNO
#else
#define MIX(a, b, ...) __builtin_shuffle(a, b, (v4i){ __VA_ARGS__ })
#define UNROLL _Pragma("GCC unroll 8")
#define NO_ERRNO __attribute__((optimize("no-math-errno")))
#endif

typedef float v8 __attribute__((vector_size(32)));
typedef float v8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef float v4 __attribute__((vector_size(16)));
typedef float v4u __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t v4i __attribute__((vector_size(16)));
typedef int32_t v4iu __attribute__((vector_size(16), aligned(4), may_alias));
typedef double v4d __attribute__((vector_size(32)));
typedef double v4du __attribute__((vector_size(32), aligned(8), may_alias));

typedef int64_t v4l __attribute__((vector_size(32)));
typedef signed char v4b __attribute__((vector_size(4)));
typedef signed char v4bu __attribute__((vector_size(4), aligned(1), may_alias));

#define PICK(type, mask, yes, no) ((type)(((v4i)(yes) & (mask)) | ((v4i)(no) & ~(mask))))

#define WIDE_PICK(mask, yes, no) ((v4d)(((v4l)(yes) & (mask)) | ((v4l)(no) & ~(mask))))

#define FN(name) plain_##name
#define TARGET
#define POINTS 6 /* 12 of the 16 registers of 128 bits that every x86-64 has */
#include "clustering/kmeans_tile_body.h"
#undef FN
#undef TARGET
#undef POINTS

#ifdef __x86_64__
#define FN(name) avx2_##name
#define TARGET __attribute__((target("avx2")))
#define POINTS 8
#include "clustering/kmeans_tile_body.h"
#endif

const struct kmeans_tiles *kmeans_tiles_plain(void)
{
    return &plain_tiles;
}

const struct kmeans_tiles *kmeans_tiles_here(void)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2"))
        return &avx2_tiles;
#endif
    return &plain_tiles;
}
