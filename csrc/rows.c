#include "rows.h"

static inline bool bit_at(const uint64_t *bits, uint32_t i) { return bits[i / 64] >> (i % 64) & 1; }

/* sum += coefficient * value, with the multiplication left out where it is by 1. */
static inline void add_wide(blst_fr *sum, const struct berth_rows *m, size_t coefficient,
                            const blst_fr *value)
{
    blst_fr product;
    if (coefficient != m->one) {
        blst_fr_mul(&product, value, m->coefficients + coefficient);
        value = &product;
    }
    blst_fr_add(sum, sum, value);
}

static inline void add_bit(blst_fr *sum, const struct berth_rows *m, size_t coefficient, bool bit)
{
    if (bit) {
        blst_fr_add(sum, sum, m->coefficients + coefficient);
    }
}

/* The terms at..end of one row. */
static inline bool evaluate_row(const struct berth_rows *m, size_t at, size_t end, blst_fr *out)
{
    /* column_bits may be 32: then every coefficient is escaped. */
    const uint32_t mask = (uint32_t)((UINT64_C(1) << m->column_bits) - 1);
    const size_t escape = ((uint64_t)UINT32_MAX) >> m->column_bits;
    blst_fr sum = {{0}};
    while (at < end) {
        const uint32_t word = m->words[at++];
        const uint32_t column = word & mask;
        size_t coefficient = (uint64_t)word >> m->column_bits;
        if (coefficient == escape) {
            if (at == end) {
                return false;
            }
            coefficient = m->words[at++];
        }
        if (column >= m->columns || coefficient >= m->coefficients_len) {
            return false;
        }
        if (column >= m->block_bits) {
            add_bit(&sum, m, coefficient, bit_at(m->block_bit, column - m->block_bits));
        } else if (column >= m->block_wides) {
            add_wide(&sum, m, coefficient, m->block_wide + (column - m->block_wides));
        } else if (column >= m->header_bits) {
            add_bit(&sum, m, coefficient, bit_at(m->header_bit, column - m->header_bits));
        } else {
            add_wide(&sum, m, coefficient, m->header_wide + column);
        }
    }
    *out = sum;
    return true;
}

bool berth_rows_evaluate(const struct berth_rows *rows, size_t first, size_t count, blst_fr *out)
{
    for (size_t i = 0; i < count; i++) {
        const size_t at = rows->offsets[first + i];
        const size_t end = rows->offsets[first + i + 1];
        if (end > rows->words_len || !evaluate_row(rows, at, end, out + i)) {
            return false;
        }
    }
    return true;
}
