/* Number-theoretic transforms over Fr of BLS12-381, one group of columns at a time. */
#ifndef BERTH_NTT_H
#define BERTH_NTT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blst.h"

/* Columns that one group transforms side by side. */
#define BERTH_NTT_LANES 8
/* Most rows of a group, as a power of two: 2^11 rows of 320 bytes stay in a 1 MiB L2 cache, and
 * the lazy sums of the vector path stay below 2^260 (see fr_ifma.c). */
#define BERTH_NTT_LOG_ROWS_MAX 11
/* Bytes of scratch per row; the scratch itself is aligned to 64 bytes. */
#define BERTH_NTT_ROW_BYTES 320

/* Element (row, lane) lies at row * row_stride + lane * lane_stride from each pointer of data.
 * Twiddles are in Montgomery form with R = 2^256 for the portable path and R = 2^260 for IFMA. */
struct berth_ntt_group {
    /* Read: in[], or in[] * times[] where times is not null. */
    const blst_fr *in;
    const blst_fr *times;
    /* Written: x, or x * scale[0] - minus[] * scale[1] where minus is not null. */
    blst_fr *out;
    const blst_fr *minus;
    const blst_fr *scale;
    /* Layer s of 2^s rows has its 2^(s-1) twiddles at [2^(s-1)]. A null direction is left out;
     * with both, the inverse comes first. */
    const blst_fr *inverse;
    const blst_fr *forward;
    /* Factor of the twiddles of the top layer: lane i has lo[i] * hi[0]; of each layer below, the
     * square. Null where all factors are one. */
    const blst_fr *lo;
    const blst_fr *hi;
    size_t row_stride;
    size_t lane_stride;
    uint32_t log_rows;
    uint32_t lanes;
    /* (BERTH_NTT_ROW_BYTES << log_rows) bytes. */
    void *scratch;
};

/* Does this CPU have the instructions of the IFMA path? */
bool berth_fr_has_ifma(void);

/* Transforms one group: inverse from natural to bit-reversed order of rows, forward back, both
 * without the factor 1/2^log_rows. All values read and written are canonical.
 * A product of two data elements is a * b in the portable path and a * b / 16 with IFMA.
 * ifma: only where berth_fr_has_ifma(); then lanes must be BERTH_NTT_LANES. */
void berth_ntt_group(const struct berth_ntt_group *group, bool ifma);

#endif
