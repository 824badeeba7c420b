/* Rows of a compiled circuit times a compact witness. */
#ifndef BERTH_ROWS_H
#define BERTH_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "blst.h"

/* One matrix of one part; the words are described in src/circuit/compiled.rs. */
struct berth_rows {
    const uint32_t *offsets;
    const uint32_t *words;
    size_t words_len;
    const blst_fr *coefficients;
    size_t coefficients_len;
    /* Where the coefficient 1 is, or coefficients_len. */
    size_t one;
    uint32_t column_bits;
    /* First column code of header bits, block wides and block bits, and the first that is none. */
    uint32_t header_bits;
    uint32_t block_wides;
    uint32_t block_bits;
    uint32_t columns;
    /* The planes of the header and of the block at hand. */
    const blst_fr *header_wide;
    const uint64_t *header_bit;
    const blst_fr *block_wide;
    const uint64_t *block_bit;
};

/* out[i] is row first + i times the witness, canonical. False where a word points outside. */
bool berth_rows_evaluate(const struct berth_rows *rows, size_t first, size_t count, blst_fr *out);

#endif
