/* Additions on G1, eight at a time, with the AVX-512 IFMA instructions.
 *
 * Memory holds blst's form, where the value v is stored as v 2^384 mod p, but `mul` divides by
 * R' = 2^416. No multiplication is spent on conversion:
 *
 *     denominator   d 2^384, shifted left by 16 bits: d 2^400
 *     its inverse   d^-1 2^432   (against R', the denominator is d 2^-16)
 *     slope s       (n 2^384) (d^-1 2^432) / 2^416 = s 2^400
 *     s^2           (s 2^400)^2 / 2^416            = s^2 2^384
 *     s t           (s 2^400) (t 2^384 2^16) / 2^416 = s t 2^384
 *
 * By the bound of `mul`, a product with one operand below 2 p shifted by 16 bits and the other one
 * a product is below (1 + 2^-16) p; the square of a shifted x, in a tangent, is below 1.2 p. */
#include "msm.h"

#if defined(__x86_64__)

#include <string.h>

#include "fetch.h"
#include "fp_ifma.h"

/* How many pairs ahead points are asked for. */
enum { PREFETCH = 48 };

/* Eight points, one per lane. */
typedef struct {
    words x, y;
    __mmask8 negate;
} points;

/* Words at..at+4 of eight points, turned from a point per row to a word per row. */
INLINE void load_quad(__m512i *to, const blst_p1_affine *const *from, size_t at) {
#define HALF(k) _mm256_loadu_si256((const __m256i *)((const uint64_t *)from[k] + at))
#define ROW(k) _mm512_inserti64x4(_mm512_castsi256_si512(HALF(k)), HALF(k + 2), 1)
    __m512i r02 = ROW(0), r13 = ROW(1), r46 = ROW(4), r57 = ROW(5);
#undef ROW
#undef HALF
    __m512i low0 = _mm512_unpacklo_epi64(r02, r13), high0 = _mm512_unpackhi_epi64(r02, r13);
    __m512i low4 = _mm512_unpacklo_epi64(r46, r57), high4 = _mm512_unpackhi_epi64(r46, r57);
    to[0] = _mm512_shuffle_i64x2(low0, low4, 0x88);
    to[1] = _mm512_shuffle_i64x2(high0, high4, 0x88);
    to[2] = _mm512_shuffle_i64x2(low0, low4, 0xdd);
    to[3] = _mm512_shuffle_i64x2(high0, high4, 0xdd);
}

INLINE void store_quad(blst_p1_affine *const *to, size_t at, const __m512i *from) {
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    __m512i even0 = _mm512_unpacklo_epi64(from[0], from[1]);
    __m512i odd0 = _mm512_unpackhi_epi64(from[0], from[1]);
    __m512i even2 = _mm512_unpacklo_epi64(from[2], from[3]);
    __m512i odd2 = _mm512_unpackhi_epi64(from[2], from[3]);
#define STORE(k, low, high, order)                                                                 \
    {                                                                                              \
        __m512i two = _mm512_permutex2var_epi64(low, order, high);                                 \
        _mm256_storeu_si256((__m256i *)((uint64_t *)to[k] + at), _mm512_castsi512_si256(two));     \
        _mm256_storeu_si256((__m256i *)((uint64_t *)to[k + 2] + at),                               \
                            _mm512_extracti64x4_epi64(two, 1));                                    \
    }
    STORE(0, even0, even2, first)
    STORE(1, odd0, odd2, first)
    STORE(4, even0, even2, second)
    STORE(5, odd0, odd2, second)
#undef STORE
}

/* Eight points by reference; y is not yet negated. */
INLINE points load(const blst_p1_affine *from, const uint32_t *references) {
    const blst_p1_affine *each[LANES];
    points r = {.negate = 0};
    for (int k = 0; k < LANES; k++) {
        each[k] = &from[references[k] & ~BERTH_NEGATED];
        r.negate |= (__mmask8)((references[k] >> 31) << k);
    }
    __m512i word[12];
    load_quad(word, each, 0);
    load_quad(word + 4, each, 4);
    load_quad(word + 8, each, 8);
    memcpy(r.x.word, word, sizeof r.x);
    memcpy(r.y.word, word + 6, sizeof r.y);
    return r;
}

/* The y of the point that is meant: limbs not carried where it is negated. */
INLINE fe signed_y(const points *a) {
    fe y = from_words(a->y);
#define NEGATE(i) y.limb[i] = _mm512_mask_sub_epi64(y.limb[i], a->negate, ALL(P[i]), y.limb[i]);
    EACH(NEGATE)
#undef NEGATE
    return y;
}

INLINE __mmask8 zero_lanes(words a) {
    __m512i low = _mm512_or_si512(_mm512_or_si512(a.word[0], a.word[1]), a.word[2]);
    __m512i high = _mm512_or_si512(_mm512_or_si512(a.word[3], a.word[4]), a.word[5]);
    return _mm512_testn_epi64_mask(_mm512_or_si512(low, high), _mm512_or_si512(low, high));
}

INLINE __mmask8 equal_lanes(words a, words b) {
#define DIFFER(i) _mm512_xor_si512(a.word[i], b.word[i])
    words difference = {{DIFFER(0), DIFFER(1), DIFFER(2), DIFFER(3), DIFFER(4), DIFFER(5)}};
#undef DIFFER
    return zero_lanes(difference);
}

/* Lanes that are no addition along a chord. */
typedef struct {
    __mmask8 tangent, first_alone, second_alone, cancelled;
} exceptions;

/* x_b - x_a with the inverse's shift; in lanes of `exceptions` 2 y for a tangent, else anything
 * but 0, which keeps the product of the batch invertible. */
INLINE fe denominator(exceptions *what, const points *a, const points *b) {
    fe d = carried(add(sub(from_words(b->x), from_words(a->x)), constant(P)));
    *what = (exceptions){0};
    __mmask8 same_x = equal_lanes(a->x, b->x);
    __mmask8 suspect = same_x | zero_lanes(a->x) | zero_lanes(b->x);
    if (__builtin_expect(suspect != 0, 0)) {
        __mmask8 no_a = zero_lanes(a->x) & zero_lanes(a->y);
        __mmask8 no_b = zero_lanes(b->x) & zero_lanes(b->y);
        /* On the curve an equal x leaves y equal or opposite, and y is never 0: with equal words
         * the points meant are equal if both or neither are negated, and the other way round. */
        __mmask8 same_y = (__mmask8)(equal_lanes(a->y, b->y) ^ a->negate ^ b->negate);
        what->second_alone = no_a;
        what->first_alone = (__mmask8)(no_b & ~no_a);
        what->tangent = (__mmask8)(same_x & same_y & ~no_a & ~no_b);
        what->cancelled = (__mmask8)(same_x & ~same_y & ~no_a & ~no_b);
        fe y = signed_y(a), one = {{ALL(1)}};
        d = blend(what->tangent, d, carried(add(y, y)));
        d = blend(no_a | no_b | what->cancelled, d, one);
    }
    return shifted(d);
}

/* y_b - y_a, or 3 x^2 for a tangent. */
INLINE fe numerator(const exceptions *what, const points *a, fe y_a, fe y_b) {
    fe n = carried(add(sub(y_b, y_a), constant(P)));
    if (__builtin_expect(what->tangent != 0, 0)) {
        fe x = shifted(from_words(a->x));
        fe square = mul(x, x);
        n = blend(what->tangent, n, carried(add(add(square, square), square)));
    }
    return n;
}

INLINE void store(blst_p1_affine *const *to, fe x, fe y) {
    words x_words = to_words(x), y_words = to_words(y);
    __m512i word[12];
    memcpy(word, x_words.word, sizeof x_words);
    memcpy(word + 6, y_words.word, sizeof y_words);
    store_quad(to, 0, word);
    store_quad(to, 4, word + 4);
    store_quad(to, 8, word + 8);
}

/* The sums, given the inverse denominators. */
INLINE void line(blst_p1_affine *const *to, const exceptions *what, const points *a,
                 const points *b, fe inverse) {
    const fe p = constant(P), twice_p = constant(TWICE_P);
    fe x_a = from_words(a->x), x_b = from_words(b->x), y_a = signed_y(a), y_b = signed_y(b);
    fe slope = mul(numerator(what, a, y_a, y_b), inverse);
    fe x = carried(sub(add(mul(slope, slope), twice_p), add(x_a, x_b))); /* 0..3.1 p */
    x = reduced(reduced(x, TWICE_P), P);
    fe t = shifted(carried(add(sub(x_a, x), p)));
    fe y = carried(add(sub(mul(slope, t), y_a), p)); /* 0..2.1 p */
    if (__builtin_expect((what->first_alone | what->second_alone | what->cancelled) != 0, 0)) {
        /* a negated identity has y = p here, which is reduced to 0 */
        const fe zero = {{_mm512_setzero_si512()}};
        x = blend(what->first_alone, x, x_a), y = blend(what->first_alone, y, carried(y_a));
        x = blend(what->second_alone, x, x_b), y = blend(what->second_alone, y, carried(y_b));
        x = blend(what->cancelled, x, zero), y = blend(what->cancelled, y, zero);
    }
    store(to, x, reduced(reduced(y, P), P));
}

/* a^-1 2^832 in every lane: the inverse against R' of a value against R'. */
TARGET static fe inverse_of(fe a) {
    static const uint64_t shift[6] = {0, 1}; /* 2^64: blst's inverse is a^-1 2^768 */
    union {
        blst_fp fp;
        uint64_t word[6];
    } lane[LANES];
    blst_fp before[LANES], running, factor;
    words w = to_words(reduced(a, P));
    for (int i = 0; i < 6; i++) {
        uint64_t row[LANES];
        _mm512_storeu_si512(row, w.word[i]);
        for (int k = 0; k < LANES; k++)
            lane[k].word[i] = row[k];
    }
    running = lane[0].fp;
    for (int k = 1; k < LANES; k++) {
        before[k] = running;
        blst_fp_mul(&running, &running, &lane[k].fp);
    }
    blst_fp_eucl_inverse(&running, &running);
    blst_fp_from_uint64(&factor, shift);
    blst_fp_mul(&running, &running, &factor);
    for (int k = LANES - 1; k > 0; k--) {
        blst_fp inverse;
        blst_fp_mul(&inverse, &running, &before[k]);
        blst_fp_mul(&running, &running, &lane[k].fp);
        lane[k].fp = inverse;
    }
    lane[0].fp = running;
    for (int i = 0; i < 6; i++) {
        uint64_t row[LANES];
        for (int k = 0; k < LANES; k++)
            row[k] = lane[k].word[i];
        w.word[i] = _mm512_loadu_si512(row);
    }
    return from_words(w);
}

/* The operands of up to eight pairs; spare lanes repeat the first pair. */
INLINE void load_group(points *a, points *b, const blst_p1_affine *from, const berth_pair *pairs,
                       size_t count) {
    uint32_t left[LANES], right[LANES];
    for (size_t k = 0; k < LANES; k++) {
        left[k] = pairs[k < count ? k : 0].a;
        right[k] = pairs[k < count ? k : 0].b;
    }
    *a = load(from, left);
    *b = load(from, right);
}

/* As the portable one (add_pairs.h): the products before each group, one inversion of the product
 * of all, lane by lane, and the same way back. The products start from 2^-416, whatever that is
 * worth: the inverse of the whole product takes it out again. */
TARGET void berth_g1_add_pairs_ifma(blst_p1_affine *out, const blst_p1_affine *from,
                                    const berth_pair *pairs, size_t count, uint64_t *work) {
    fe running = {{ALL(1)}}, *before = (fe *)work;
    points a, b;
    exceptions what;
    for (size_t k = 0; k < count; k += LANES) {
        if (k + PREFETCH + LANES <= count) {
            for (size_t next = k + PREFETCH; next < k + PREFETCH + LANES; next++) {
                BERTH_FETCH(from, pairs[next].a);
                BERTH_FETCH(from, pairs[next].b);
            }
        }
        load_group(&a, &b, from, pairs + k, count - k);
        memcpy(before + k / LANES, &running, sizeof running);
        running = mul(running, denominator(&what, &a, &b));
    }
    running = inverse_of(running);
    for (size_t k = (count + LANES - 1) / LANES * LANES; k > 0;) {
        k -= LANES;
        blst_p1_affine spare, *to[LANES];
        for (size_t lane = 0; lane < LANES; lane++)
            to[lane] = k + lane < count ? &out[pairs[k + lane].out] : &spare;
        load_group(&a, &b, from, pairs + k, count - k);
        fe d = denominator(&what, &a, &b), product;
        memcpy(&product, before + k / LANES, sizeof product);
        fe inverse = mul(running, product);
        running = mul(running, d);
        line(to, &what, &a, &b, inverse);
    }
}

bool berth_has_ifma(void) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512ifma");
}

#else

void berth_g1_add_pairs_ifma(blst_p1_affine *out, const blst_p1_affine *from,
                             const berth_pair *pairs, size_t count, uint64_t *work) {
    berth_g1_add_pairs(out, from, pairs, count, work);
}

bool berth_has_ifma(void) {
    return false;
}

#endif
