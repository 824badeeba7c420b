/* Arithmetic on the base field of BLS12-381, eight elements at a time, with the AVX-512 IFMA
 * instructions.
 *
 * An element is eight limbs of 52 bits, and a `fe` holds eight elements, one per lane. `mul` is
 * Montgomery multiplication with R' = 2^416, the size of the eight limbs. R' is more than 2^35 p,
 * so a product of operands a < A p and b < B p is below (1 + A B 2^-35) p. */
#ifndef BERTH_FP_IFMA_H
#define BERTH_FP_IFMA_H

#include <immintrin.h>
#include <stdint.h>

#define TARGET __attribute__((target("avx512f,avx512vl,avx512dq,avx512ifma")))
#define INLINE TARGET static inline __attribute__((always_inline))

/* Repeats a statement for the limbs 0..=7, unrolled, so that limbs live in registers. */
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

enum { LANES = 8, LIMB_BITS = 52 };
#define LIMB_MASK ((1ull << LIMB_BITS) - 1)
/* -1/p mod 2^52 */
#define P_INVERSE 0x3fffcfffcfffdull

typedef struct {
    __m512i limb[8];
} fe;

/* Eight elements as blst's words, one element per lane. */
typedef struct {
    __m512i word[6];
} words;

static const uint64_t P[8] = {
    0xeffffffffaaab, 0xfeb153ffffb9f, 0x6b0f6241eabff, 0x12bf6730d2a0f,
    0x764774b84f385, 0x1ba7b6434bacd, 0x1ea397fe69a4b, 0x1a011};
static const uint64_t TWICE_P[8] = {
    0xdffffffff5556, 0xfd62a7ffff73f, 0xd61ec483d57ff, 0x257ece61a541e,
    0xec8ee9709e70a, 0x374f6c869759a, 0x3d472ffcd3496, 0x34022};

#define ALL(value) _mm512_set1_epi64((long long)(value))

/* Brings limbs that are sums and differences of limbs into 0..2^52. The value itself must not be
 * negative; if it is, the top limb is, and says so. */
INLINE fe carried(fe a) {
#define CARRY(i)                                                                                   \
    a.limb[i + 1] = _mm512_add_epi64(a.limb[i + 1], _mm512_srai_epi64(a.limb[i], LIMB_BITS));      \
    a.limb[i] = _mm512_and_si512(a.limb[i], ALL(LIMB_MASK));
    CARRY(0) CARRY(1) CARRY(2) CARRY(3) CARRY(4) CARRY(5) CARRY(6)
#undef CARRY
    return a;
}

/* Sum and difference limb by limb: not carried. */
INLINE fe add(fe a, fe b) {
#define ADD(i) a.limb[i] = _mm512_add_epi64(a.limb[i], b.limb[i]);
    EACH(ADD)
#undef ADD
    return a;
}

INLINE fe sub(fe a, fe b) {
#define SUB(i) a.limb[i] = _mm512_sub_epi64(a.limb[i], b.limb[i]);
    EACH(SUB)
#undef SUB
    return a;
}

INLINE fe constant(const uint64_t *value) {
    fe r;
#define SET(i) r.limb[i] = ALL(value[i]);
    EACH(SET)
#undef SET
    return r;
}

INLINE fe blend(__mmask8 second, fe a, fe b) {
#define BLEND(i) a.limb[i] = _mm512_mask_blend_epi64(second, a.limb[i], b.limb[i]);
    EACH(BLEND)
#undef BLEND
    return a;
}

/* a - bound where that is not negative, else a. */
INLINE fe reduced(fe a, const uint64_t *bound) {
    fe less = carried(sub(a, constant(bound)));
    __mmask8 negative = _mm512_movepi64_mask(less.limb[7]);
    return blend(negative, less, a);
}

/* a 2^16, for a below 2^400 with carried limbs. */
INLINE fe shifted(fe a) {
    fe r;
    r.limb[0] = _mm512_and_si512(_mm512_slli_epi64(a.limb[0], 16), ALL(LIMB_MASK));
#define SHIFT(i)                                                                                   \
    r.limb[i] = _mm512_or_si512(                                                                   \
        _mm512_and_si512(_mm512_slli_epi64(a.limb[i], 16), ALL(LIMB_MASK)),                        \
        _mm512_srli_epi64(a.limb[i - 1], LIMB_BITS - 16));
    SHIFT(1) SHIFT(2) SHIFT(3) SHIFT(4) SHIFT(5) SHIFT(6) SHIFT(7)
#undef SHIFT
    return r;
}

/* One row of `mul`: adds a_i b and the multiple q of p that clears the lowest limb, then drops that
 * limb. The high halves belong one limb up, so they are added after the drop. */
INLINE void mul_row(__m512i *t, __m512i a_i, const fe *b) {
#define LOW_A(j) t[j] = _mm512_madd52lo_epu64(t[j], a_i, b->limb[j]);
#define LOW_P(j) t[j] = _mm512_madd52lo_epu64(t[j], q, ALL(P[j]));
#define HIGH_A(j) t[j] = _mm512_madd52hi_epu64(t[j], a_i, b->limb[j]);
#define HIGH_P(j) t[j] = _mm512_madd52hi_epu64(t[j], q, ALL(P[j]));
    EACH(LOW_A)
    const __m512i q = _mm512_madd52lo_epu64(_mm512_setzero_si512(), t[0], ALL(P_INVERSE));
    EACH(LOW_P)
    t[0] = _mm512_add_epi64(t[1], _mm512_srli_epi64(t[0], LIMB_BITS));
    t[1] = t[2], t[2] = t[3], t[3] = t[4], t[4] = t[5], t[5] = t[6], t[6] = t[7];
    t[7] = _mm512_setzero_si512();
    EACH(HIGH_A)
    EACH(HIGH_P)
#undef LOW_A
#undef LOW_P
#undef HIGH_A
#undef HIGH_P
}

/* a b / 2^416 mod p, carried and below (1 + A B 2^-35) p for a < A p, b < B p, both carried. A limb
 * takes 4 halves of 52 bits a row: it stays below 2^57. */
INLINE fe mul(fe a, fe b) {
    fe r;
#define CLEAR(i) r.limb[i] = _mm512_setzero_si512();
    EACH(CLEAR)
#undef CLEAR
#define ROW(i) mul_row(r.limb, a.limb[i], &b);
    EACH(ROW)
#undef ROW
    return carried(r);
}

INLINE fe from_words(words a) {
    const __m512i *w = a.word;
    const __m512i mask = ALL(LIMB_MASK);
    fe r;
#define JOINED(low, right, high, left)                                                             \
    _mm512_and_si512(                                                                              \
        _mm512_or_si512(_mm512_srli_epi64(low, right), _mm512_slli_epi64(high, left)), mask)
    r.limb[0] = _mm512_and_si512(w[0], mask);
    r.limb[1] = JOINED(w[0], 52, w[1], 12);
    r.limb[2] = JOINED(w[1], 40, w[2], 24);
    r.limb[3] = JOINED(w[2], 28, w[3], 36);
    r.limb[4] = JOINED(w[3], 16, w[4], 48);
    r.limb[5] = _mm512_and_si512(_mm512_srli_epi64(w[4], 4), mask);
    r.limb[6] = JOINED(w[4], 56, w[5], 8);
    r.limb[7] = _mm512_srli_epi64(w[5], 44);
#undef JOINED
    return r;
}

/* The words of a value below 2^384 with carried limbs. */
INLINE words to_words(fe a) {
    const __m512i *l = a.limb;
    words r;
#define JOINED(low, right, high, left)                                                             \
    _mm512_or_si512(_mm512_srli_epi64(low, right), _mm512_slli_epi64(high, left))
    r.word[0] = JOINED(l[0], 0, l[1], 52);
    r.word[1] = JOINED(l[1], 12, l[2], 40);
    r.word[2] = JOINED(l[2], 24, l[3], 28);
    r.word[3] = JOINED(l[3], 36, l[4], 16);
    r.word[4] = _mm512_or_si512(JOINED(l[4], 48, l[5], 4), _mm512_slli_epi64(l[6], 56));
    r.word[5] = JOINED(l[6], 8, l[7], 44);
#undef JOINED
    return r;
}

#endif
