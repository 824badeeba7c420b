#include "fixed_base.h"

/*
 * No addition meets its exceptions. Let k be the bits of a window and e = 2^(k - 1), let s < r
 * have the digits d_j in [1 - e, e], and t = sum over j < w of d_j 2^(k j), so |t| < 0.504 2^(k w).
 * The addition t B + d_w 2^(k w) B with d_w != 0 fails only if t = +-d_w 2^(k w) mod r. As
 * integers they differ, since |t| < 2^(k w); below the top window both are far below r / 2. In
 * the top window t + d_w 2^(k w) is s itself, not zero; and d_w 2^(k w) - t = r would need
 * d_w 2^(k w) < r and d_w 2^(k w) >= r - |t|: but r is 0x73.eda7.. 2^248 or 0x73ed.a753.. 2^240,
 * more than 0.504 above the next lower multiple of 2^(k w), so there is no such d_w.
 */

/* Digit w of a scalar, given the carry out of digit w - 1. */
static inline int32_t digit(const uint8_t *scalar, unsigned bits, unsigned w, uint8_t *carry)
{
    uint32_t raw = bits == 8 ? scalar[w] : scalar[2 * w] + ((uint32_t)scalar[2 * w + 1] << 8);
    raw += *carry;
    *carry = raw > 1u << (bits - 1);
    return (int32_t)raw - ((int32_t)*carry << bits);
}

static inline void prefetch(const void *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const char *)at + i, 0, 3);
}

/* How many additions ahead table entries are asked for. */
#define AHEAD 8

/* One addition, still without its inverse: out[at] += digit's sign times *entry. */
#define FIXED_BASE(NAME, POINT, FIELD, MUL, SQR, SUB, NEG, INVERSE, ONE, IS_ZERO)                  \
    struct NAME##_add {                                                                            \
        const POINT *entry;                                                                        \
        uint16_t at;                                                                               \
        uint16_t negative;                                                                         \
    };                                                                                             \
                                                                                                   \
    static int NAME##_add_all(POINT *out, const struct NAME##_add *adds, size_t n)                 \
    {                                                                                              \
        FIELD before[BERTH_FIXED_BASE_BATCH], product = ONE, inverse;                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            FIELD dx;                                                                              \
            if (i + AHEAD < n)                                                                     \
                prefetch(adds[i + AHEAD].entry, sizeof(POINT));                                    \
            SUB(&dx, &adds[i].entry->x, &out[adds[i].at].x);                                       \
            before[i] = product;                                                                   \
            MUL(&product, &product, &dx);                                                          \
        }                                                                                          \
        if (IS_ZERO(&product))                                                                     \
            return 0;                                                                              \
        INVERSE(&inverse, &product);                                                               \
        for (size_t i = n; i-- > 0;) {                                                             \
            POINT *p = &out[adds[i].at];                                                           \
            const POINT *q = adds[i].entry;                                                        \
            FIELD dx, slope, x, y = q->y;                                                          \
            if (i >= AHEAD)                                                                        \
                prefetch(adds[i - AHEAD].entry, sizeof(POINT));                                    \
            if (adds[i].negative)                                                                  \
                NEG(&y, &y);                                                                       \
            SUB(&dx, &q->x, &p->x);                                                                \
            SUB(&y, &y, &p->y);                                                                    \
            MUL(&slope, &before[i], &inverse);                                                     \
            MUL(&inverse, &inverse, &dx);                                                          \
            MUL(&slope, &slope, &y);                                                               \
            SQR(&x, &slope);                                                                       \
            SUB(&x, &x, &p->x);                                                                    \
            SUB(&x, &x, &q->x);                                                                    \
            SUB(&dx, &p->x, &x);                                                                   \
            MUL(&dx, &dx, &slope);                                                                 \
            SUB(&p->y, &dx, &p->y);                                                                \
            p->x = x;                                                                              \
        }                                                                                          \
        return 1;                                                                                  \
    }                                                                                              \
                                                                                                   \
    int berth_##NAME##_fixed_base(POINT *out, const POINT *table, unsigned bits,                   \
                                  const uint8_t *scalars, size_t n)                                \
    {                                                                                              \
        struct NAME##_add adds[BERTH_FIXED_BASE_BATCH];                                            \
        uint8_t carry[BERTH_FIXED_BASE_BATCH] = {0}, begun[BERTH_FIXED_BASE_BATCH] = {0};          \
        for (unsigned w = 0; w < 256 / bits; w++, table += (size_t)1 << (bits - 1)) {              \
            size_t count = 0;                                                                      \
            for (size_t i = 0; i < n; i++) {                                                       \
                int32_t d = digit(scalars + 32 * i, bits, w, &carry[i]);                           \
                if (d == 0)                                                                        \
                    continue;                                                                      \
                const POINT *entry = &table[(d < 0 ? -d : d) - 1];                                 \
                if (begun[i]) {                                                                    \
                    adds[count++] = (struct NAME##_add){entry, (uint16_t)i, d < 0};                \
                    if (count <= AHEAD)                                                            \
                        prefetch(entry, sizeof(POINT));                                            \
                    continue;                                                                      \
                }                                                                                  \
                begun[i] = 1;                                                                      \
                out[i] = *entry;                                                                   \
                if (d < 0)                                                                         \
                    NEG(&out[i].y, &out[i].y);                                                     \
            }                                                                                      \
            if (count > 0 && !NAME##_add_all(out, adds, count))                                    \
                return 0;                                                                          \
        }                                                                                          \
        return 1;                                                                                  \
    }

/* One in Montgomery form: 2^384 mod p. */
#define FP_ONE                                                                                     \
    {                                                                                              \
        {                                                                                          \
            0x760900000002fffd, 0xebf4000bc40c0002, 0x5f48985753c758ba, 0x77ce585370525745,        \
            0x5c071a97a256ec6d, 0x15f65ec3fa80e493                                                 \
        }                                                                                          \
    }
static const blst_fp fp_one = FP_ONE;
static const blst_fp2 fp2_one = {{FP_ONE}};

static inline int fp_is_zero(const blst_fp *a)
{
    return (a->l[0] | a->l[1] | a->l[2] | a->l[3] | a->l[4] | a->l[5]) == 0;
}

static inline int fp2_is_zero(const blst_fp2 *a)
{
    return fp_is_zero(&a->fp[0]) && fp_is_zero(&a->fp[1]);
}

static inline void fp_neg(blst_fp *out, const blst_fp *a) { blst_fp_cneg(out, a, 1); }
static inline void fp2_neg(blst_fp2 *out, const blst_fp2 *a) { blst_fp2_cneg(out, a, 1); }

FIXED_BASE(g1, blst_p1_affine, blst_fp, blst_fp_mul, blst_fp_sqr, blst_fp_sub, fp_neg,
           blst_fp_eucl_inverse, fp_one, fp_is_zero)
FIXED_BASE(g2, blst_p2_affine, blst_fp2, blst_fp2_mul, blst_fp2_sqr, blst_fp2_sub, fp2_neg,
           blst_fp2_eucl_inverse, fp2_one, fp2_is_zero)
