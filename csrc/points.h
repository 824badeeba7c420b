/* Points of parameter files: uncompressed, big-endian, to and from affine Montgomery form. */
#ifndef BERTH_POINTS_H
#define BERTH_POINTS_H

#include <stddef.h>
#include <stdint.h>

#include "blst.h"

/* Why a point was refused. */
#define BERTH_POINT_ENCODING 1u
#define BERTH_POINT_INFINITY 2u
#define BERTH_POINT_NOT_ON_CURVE 3u
#define BERTH_POINT_NOT_IN_SUBGROUP 4u

/*
 * Reads n points of 96 (G1) or 192 (G2) bytes; each must be canonical, on its curve, not infinity
 * and, with subgroup != 0, of order r. Returns n, or the index of the first refused point, whose
 * reason is then in *why; points after it are not written.
 */
size_t berth_g1_read(blst_p1_affine *out, const uint8_t *in, size_t n, int subgroup,
                     uint32_t *why);
size_t berth_g2_read(blst_p2_affine *out, const uint8_t *in, size_t n, int subgroup,
                     uint32_t *why);

/* Writes n points, none of them infinity, as 96 or 192 bytes each. */
void berth_g1_write(uint8_t *out, const blst_p1_affine *in, size_t n);
void berth_g2_write(uint8_t *out, const blst_p2_affine *in, size_t n);

#endif
