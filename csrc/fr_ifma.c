#include "fr_ifma.h"

bool berth_fr_has_ifma(void)
{
#if BERTH_HAVE_IFMA
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512ifma");
#else
    return false;
#endif
}

#if BERTH_HAVE_IFMA

#include <immintrin.h>

/* Eight values of five limbs of 52 bits: limb k of lane i is lane i of l[k].
 *
 * In memory a value is x * 2^256 mod r, canonical, as blst keeps it. Twiddles are w * 2^260 mod r
 * instead, so that vec_mul, which divides by 2^260, gives data again: (x 2^256)(w 2^260)/2^260.
 * A product of two data elements comes out as x y 2^252, that is, divided by 16.
 *
 * Between operations a value is any representative below 35 r < 2^260, and a limb may be any
 * signed number of less than 62 bits: sums are not carried. Only the multiplication needs limbs
 * of 52 bits, and carries its first operand itself. */
typedef struct {
    __m512i l[5];
} vec;

_Static_assert(sizeof(vec) <= BERTH_NTT_ROW_BYTES, "a row of the IFMA path fits");
_Static_assert(BERTH_NTT_LANES == 8, "eight lanes of 64 bits");
_Static_assert(4 + 2 * BERTH_NTT_LOG_ROWS_MAX < 32, "lazy sums of the forward layers fit");

#define TARGET __attribute__((target("avx512f,avx512ifma")))
#define STEP TARGET static inline __attribute__((always_inline))
#define STEP_ENTRY TARGET
#define NAME berth_ntt_group_ifma

#define LIMB UINT64_C(0xfffffffffffff)

/* r and multiples of it, in limbs of 52 bits. */
static const uint64_t MODULUS[5] = {
    0xfffff00000001, 0x02fffe5bfefff, 0x9a1d80553bda4, 0x7d483339d8080, 0x73eda753299d};
/* 2^260 - r: adding q times this, modulo 2^260, takes q r away. */
static const uint64_t NEGATED[5] = {
    0x00000ffffffff, 0xfd0001a401000, 0x65e27faac425b, 0x82b7ccc627f7f, 0xf8c1258acd662};
static const uint64_t TWICE[5] = {
    0xffffe00000002, 0x05fffcb7fdfff, 0x343b00aa77b48, 0xfa906673b0101, 0xe7db4ea6533a};
static const uint64_t FOUR_TIMES[5] = {
    0xffffc00000004, 0x0bfff96ffbfff, 0x68760154ef690, 0xf520cce760202, 0x1cfb69d4ca675};
static const uint64_t EIGHT_TIMES[5] = {
    0xffff800000008, 0x17fff2dff7fff, 0xd0ec02a9ded20, 0xea4199cec0404, 0x39f6d3a994ceb};
/* -1 / r mod 2^52 */
#define NEGATED_INVERSE UINT64_C(0xffffeffffffff)
/* floor(2^304 / r): estimates x / r from x >> 252. */
#define QUOTIENT UINT64_C(0x2355094edfede)

STEP __m512i word(uint64_t x) { return _mm512_set1_epi64((long long)x); }

/* Limbs of any sign to limbs of 52 bits. The value is modulo 2^260. */
STEP void carry(vec *o, const vec *a)
{
    const __m512i mask = word(LIMB);
    __m512i c = a->l[0];
    o->l[0] = _mm512_and_si512(c, mask);
    c = _mm512_add_epi64(a->l[1], _mm512_srai_epi64(c, 52));
    o->l[1] = _mm512_and_si512(c, mask);
    c = _mm512_add_epi64(a->l[2], _mm512_srai_epi64(c, 52));
    o->l[2] = _mm512_and_si512(c, mask);
    c = _mm512_add_epi64(a->l[3], _mm512_srai_epi64(c, 52));
    o->l[3] = _mm512_and_si512(c, mask);
    c = _mm512_add_epi64(a->l[4], _mm512_srai_epi64(c, 52));
    o->l[4] = _mm512_and_si512(c, mask);
}

STEP void vec_add(vec *o, const vec *a, const vec *b)
{
    for (int k = 0; k < 5; k++) {
        o->l[k] = _mm512_add_epi64(a->l[k], b->l[k]);
    }
}

/* bound: 2, 4 or 8, a constant. */
STEP void vec_sub(vec *o, const vec *a, const vec *b, unsigned bound)
{
    const uint64_t *room = bound == 2 ? TWICE : bound == 4 ? FOUR_TIMES : EIGHT_TIMES;
    for (int k = 0; k < 5; k++) {
        o->l[k] = _mm512_add_epi64(_mm512_sub_epi64(a->l[k], b->l[k]), word(room[k]));
    }
}

/* One round of Montgomery reduction: makes the lowest of six columns zero modulo 2^52 and gives
 * its carry to the next one. */
STEP void reduce_column(__m512i *t)
{
    const __m512i zero = _mm512_setzero_si512();
    const __m512i q = _mm512_madd52lo_epu64(zero, t[0], word(NEGATED_INVERSE));
    for (int k = 1; k < 5; k++) {
        t[k] = _mm512_madd52lo_epu64(t[k], q, word(MODULUS[k]));
    }
    for (int k = 1; k < 5; k++) {
        t[k + 1] = _mm512_madd52hi_epu64(t[k + 1], q, word(MODULUS[k]));
    }
    t[0] = _mm512_madd52lo_epu64(t[0], q, word(MODULUS[0]));
    t[1] = _mm512_madd52hi_epu64(t[1], q, word(MODULUS[0]));
    t[1] = _mm512_add_epi64(t[1], _mm512_srli_epi64(t[0], 52));
}

/* a * b / 2^260 + less than r; b has limbs of 52 bits. Columns stay below 2^57. */
STEP void vec_mul(vec *o, const vec *a, const vec *b)
{
    vec x;
    __m512i t[10];
    carry(&x, a);
    for (int k = 0; k < 10; k++) {
        t[k] = _mm512_setzero_si512();
    }
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 5; k++) {
            t[i + k] = _mm512_madd52lo_epu64(t[i + k], x.l[i], b->l[k]);
        }
        for (int k = 0; k < 5; k++) {
            t[i + k + 1] = _mm512_madd52hi_epu64(t[i + k + 1], x.l[i], b->l[k]);
        }
    }
    for (int i = 0; i < 5; i++) {
        reduce_column(t + i);
    }
    const vec high = {{t[5], t[6], t[7], t[8], t[9]}};
    carry(o, &high);
}

/* Below 1.2 r: the estimate of the quotient is never above it, and at most one below. */
STEP void vec_reduce(vec *o, const vec *a)
{
    const __m512i zero = _mm512_setzero_si512();
    const __m512i top = _mm512_srai_epi64(a->l[4], 44);
    const __m512i q = _mm512_madd52hi_epu64(zero, top, word(QUOTIENT));
    vec t = *a;
    for (int k = 0; k < 5; k++) {
        t.l[k] = _mm512_madd52lo_epu64(t.l[k], q, word(NEGATED[k]));
    }
    for (int k = 0; k < 4; k++) {
        t.l[k + 1] = _mm512_madd52hi_epu64(t.l[k + 1], q, word(NEGATED[k]));
    }
    carry(o, &t);
}

/* Below r. */
STEP void vec_canonical(vec *o, const vec *a)
{
    vec x, less;
    carry(&x, a);
    vec_reduce(&x, &x);
    for (int k = 0; k < 5; k++) {
        less.l[k] = _mm512_sub_epi64(x.l[k], word(MODULUS[k]));
    }
    __m512i c = less.l[0];
    for (int k = 1; k < 5; k++) {
        c = _mm512_add_epi64(less.l[k], _mm512_srai_epi64(c, 52));
    }
    const __mmask8 below = _mm512_cmplt_epi64_mask(c, _mm512_setzero_si512());
    carry(&less, &less);
    for (int k = 0; k < 5; k++) {
        o->l[k] = _mm512_mask_blend_epi64(below, less.l[k], x.l[k]);
    }
}

/* Four words of 64 bits per lane to five limbs. */
STEP void split(vec *o, const __m512i w[4])
{
    const __m512i mask = word(LIMB);
    o->l[0] = _mm512_and_si512(w[0], mask);
    o->l[1] = _mm512_and_si512(
        _mm512_or_si512(_mm512_srli_epi64(w[0], 52), _mm512_slli_epi64(w[1], 12)), mask);
    o->l[2] = _mm512_and_si512(
        _mm512_or_si512(_mm512_srli_epi64(w[1], 40), _mm512_slli_epi64(w[2], 24)), mask);
    o->l[3] = _mm512_and_si512(
        _mm512_or_si512(_mm512_srli_epi64(w[2], 28), _mm512_slli_epi64(w[3], 36)), mask);
    o->l[4] = _mm512_srli_epi64(w[3], 16);
}

STEP void join(__m512i w[4], const vec *x)
{
    w[0] = _mm512_or_si512(x->l[0], _mm512_slli_epi64(x->l[1], 52));
    w[1] = _mm512_or_si512(_mm512_srli_epi64(x->l[1], 12), _mm512_slli_epi64(x->l[2], 40));
    w[2] = _mm512_or_si512(_mm512_srli_epi64(x->l[2], 24), _mm512_slli_epi64(x->l[3], 28));
    w[3] = _mm512_or_si512(_mm512_srli_epi64(x->l[3], 36), _mm512_slli_epi64(x->l[4], 16));
}

STEP void vec_set(vec *o, const blst_fr *x)
{
    const __m512i w[4] = {word(x->l[0]), word(x->l[1]), word(x->l[2]), word(x->l[3])};
    split(o, w);
}

/* Two values in one register: element i below, element i + 4 above. */
STEP __m512i load_two(const blst_fr *p, size_t stride)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)p);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(p + 4 * stride));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

STEP void store_two(blst_fr *p, size_t stride, __m512i x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_castsi512_si256(x));
    _mm256_storeu_si256((__m256i *)(p + 4 * stride), _mm512_extracti64x4_epi64(x, 1));
}

/* Transposes 4 x 4 words in each half of four registers; it is its own inverse. */
STEP void transpose(__m512i w[4])
{
    const __m512i even = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
    const __m512i odd = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    const __m512i a = _mm512_unpacklo_epi64(w[0], w[1]);
    const __m512i b = _mm512_unpackhi_epi64(w[0], w[1]);
    const __m512i c = _mm512_unpacklo_epi64(w[2], w[3]);
    const __m512i d = _mm512_unpackhi_epi64(w[2], w[3]);
    w[0] = _mm512_permutex2var_epi64(a, even, c);
    w[1] = _mm512_permutex2var_epi64(b, even, d);
    w[2] = _mm512_permutex2var_epi64(a, odd, c);
    w[3] = _mm512_permutex2var_epi64(b, odd, d);
}

STEP void load_lanes(vec *o, const blst_fr *p, size_t stride)
{
    __m512i w[4];
    for (int i = 0; i < 4; i++) {
        w[i] = load_two(p + (size_t)i * stride, stride);
    }
    transpose(w);
    split(o, w);
}

STEP void vec_load(vec *o, const blst_fr *p, const struct berth_ntt_group *g)
{
    load_lanes(o, p, g->lane_stride);
}

STEP void vec_store(blst_fr *p, const vec *x, const struct berth_ntt_group *g)
{
    vec full;
    __m512i w[4];
    vec_canonical(&full, x);
    join(w, &full);
    transpose(w);
    for (int i = 0; i < 4; i++) {
        store_two(p + (size_t)i * g->lane_stride, g->lane_stride, w[i]);
    }
}

STEP void vec_factor(vec *o, const blst_fr *lo, const blst_fr *hi)
{
    vec l, h;
    load_lanes(&l, lo, 1);
    vec_set(&h, hi);
    vec_mul(o, &l, &h);
}

#include "ntt_steps.h"

#endif
