/*
 * Multiples of one fixed point, for dev setup: window tables, signed digits, and affine additions
 * of many points at once that share one inversion.
 */
#ifndef BERTH_FIXED_BASE_H
#define BERTH_FIXED_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "blst.h"

/* Points that share an inversion; more gains little and leaves the second-level cache. */
#define BERTH_FIXED_BASE_BATCH 512

/*
 * out[i] = scalars[i] B for n <= BERTH_FIXED_BASE_BATCH canonical little-endian scalars of 32
 * bytes, none of them zero. bits is 8 or 16; with e = 2^(bits - 1) entries per window,
 * table[w e + d - 1] = d 2^(bits w) B for d = 1 .. e and w < 256 / bits: the caller makes it.
 * Returns 1; 0 if two points of an addition had the same x, which canonical scalars cannot bring
 * about (fixed_base.c has the argument).
 */
int berth_g1_fixed_base(blst_p1_affine *out, const blst_p1_affine *table, unsigned bits,
                        const uint8_t *scalars, size_t n);
int berth_g2_fixed_base(blst_p2_affine *out, const blst_p2_affine *table, unsigned bits,
                        const uint8_t *scalars, size_t n);

#endif
