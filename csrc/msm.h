/* Batches of independent affine additions on G1 and G2: the hot loop of every multi-scalar
 * multiplication and of every sum of points.
 *
 * One inversion serves a whole batch (Montgomery's simultaneous inversion: P. L. Montgomery,
 * "Speeding the Pollard and elliptic curve methods of factorization", 1987, section 10.3.1), so
 * that an addition costs 5 multiplications and 1 squaring. The functions neither allocate nor use
 * threads; all working memory is the caller's. */
#ifndef BERTH_MSM_H
#define BERTH_MSM_H

#include <blst.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The top bit of a reference to a point asks for the negated point; the rest is an index. */
#define BERTH_NEGATED 0x80000000u

/* One addition: out[`out`] is the sum of the points in `from` that `a` and `b` refer to. */
typedef struct {
    uint32_t a, b, out;
} berth_pair;

/* Working memory of a batch, aligned to 64 bytes: bytes for each pair, the count rounded up to a
 * multiple of 8. */
#define BERTH_G1_PAIR_WORK 64
#define BERTH_G2_PAIR_WORK 96

/* The additions of `pairs`, any of which may be a doubling, cancel out or have the identity, (0, 0)
 * as in blst, among its inputs. Points are affine in blst's form. `out` may be `from` if no point
 * is written that another pair reads. */
void berth_g1_add_pairs(blst_p1_affine *out, const blst_p1_affine *from, const berth_pair *pairs,
                        size_t count, uint64_t *work);
void berth_g2_add_pairs(blst_p2_affine *out, const blst_p2_affine *from, const berth_pair *pairs,
                        size_t count, uint64_t *work);

/* The same on G1 with the AVX-512 IFMA instructions: only where `berth_has_ifma` is true. */
void berth_g1_add_pairs_ifma(blst_p1_affine *out, const blst_p1_affine *from,
                             const berth_pair *pairs, size_t count, uint64_t *work);

/* Whether this machine, processor and kernel, runs AVX-512 F, VL, DQ and IFMA. */
bool berth_has_ifma(void);

#endif
