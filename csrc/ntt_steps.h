/* The steps of one group, for any vector type: a template, included once per path.
 *
 * The including file defines, before this line:
 *   vec                        LANES field elements, one per column
 *   STEP                       attributes of every function here
 *   NAME                       name of the entry function
 *   vec_add(o, a, b)           o = a + b, lazily
 *   vec_sub(o, a, b, k)        o = a - b, where b < k * r
 *   vec_mul(o, a, t)           o = a * t, below 2 r
 *   vec_reduce(o, a)           o = a, below 2 r
 *   vec_set(o, x)              every lane is *x
 *   vec_load(o, p, g)          lane i is p[i * lane_stride], canonical
 *   vec_store(p, x, g)         the converse; makes x canonical
 *   vec_factor(o, lo, hi)      lane i is lo[i] * hi[0]
 *
 * Bounds (in multiples of r; the vector path holds up to 35): an inverse layer pair takes and
 * gives values below 4; a forward layer adds at most 2, so 11 layers after an inverse end below
 * 26. Products of values below 32 with a twiddle are below 2. */

/* The twiddle of a layer: from the table, times the column's factor. */
STEP void twiddle(vec *out, const blst_fr *table, size_t index, const vec *factor)
{
    vec_set(out, table + index);
    if (factor != NULL) {
        vec_mul(out, out, factor);
    }
}

/* Two layers from natural to bit-reversed order: blocks of 4 * quarter rows. */
STEP void inverse_pair(vec *x, size_t rows, size_t quarter, const blst_fr *table,
                       const vec *factor)
{
    const vec *upper = factor == NULL ? NULL : factor + 1;
    for (size_t j = 0; j < quarter; j++) {
        vec w0, w1, w2;
        twiddle(&w0, table, 2 * quarter + j, upper);
        twiddle(&w1, table, 3 * quarter + j, upper);
        twiddle(&w2, table, quarter + j, factor);
        for (vec *p = x + j; p < x + rows; p += 4 * quarter) {
            vec a0, a1, d0, d1;
            vec_add(&a0, p, p + 2 * quarter);
            vec_add(&a1, p + quarter, p + 3 * quarter);
            vec_sub(&d0, p, p + 2 * quarter, 4);
            vec_mul(&d0, &d0, &w0);
            vec_sub(&d1, p + quarter, p + 3 * quarter, 4);
            vec_mul(&d1, &d1, &w1);
            vec_sub(p + quarter, &a0, &a1, 8);
            vec_mul(p + quarter, p + quarter, &w2);
            vec_add(&a0, &a0, &a1);
            vec_reduce(p, &a0);
            vec_add(p + 2 * quarter, &d0, &d1);
            vec_sub(&d0, &d0, &d1, 2);
            vec_mul(p + 3 * quarter, &d0, &w2);
        }
    }
}

/* The last layer, where their number is odd: blocks of 2 rows. */
STEP void inverse_single(vec *x, size_t rows, const blst_fr *table, const vec *factor)
{
    vec w;
    twiddle(&w, table, 1, factor);
    for (vec *p = x; p < x + rows; p += 2) {
        vec sum;
        vec_add(&sum, p, p + 1);
        vec_sub(p + 1, p, p + 1, 4);
        vec_mul(p + 1, p + 1, &w);
        vec_reduce(p, &sum);
    }
}

/* Two layers from bit-reversed to natural order: blocks of 4 * quarter rows. */
STEP void forward_pair(vec *x, size_t rows, size_t quarter, const blst_fr *table,
                       const vec *factor)
{
    const vec *upper = factor == NULL ? NULL : factor + 1;
    for (size_t j = 0; j < quarter; j++) {
        vec w0, w1, w2;
        twiddle(&w0, table, 2 * quarter + j, upper);
        twiddle(&w1, table, 3 * quarter + j, upper);
        twiddle(&w2, table, quarter + j, factor);
        for (vec *p = x + j; p < x + rows; p += 4 * quarter) {
            vec a0, a1, a2, a3, b;
            vec_mul(&b, p + quarter, &w2);
            vec_add(&a0, p, &b);
            vec_sub(&a1, p, &b, 2);
            vec_mul(&b, p + 3 * quarter, &w2);
            vec_add(&a2, p + 2 * quarter, &b);
            vec_sub(&a3, p + 2 * quarter, &b, 2);
            vec_mul(&a2, &a2, &w0);
            vec_mul(&a3, &a3, &w1);
            vec_add(p, &a0, &a2);
            vec_sub(p + 2 * quarter, &a0, &a2, 2);
            vec_add(p + quarter, &a1, &a3);
            vec_sub(p + 3 * quarter, &a1, &a3, 2);
        }
    }
}

/* The first layer, where their number is odd: blocks of 2 rows. */
STEP void forward_single(vec *x, size_t rows, const blst_fr *table, const vec *factor)
{
    vec w;
    twiddle(&w, table, 1, factor);
    for (vec *p = x; p < x + rows; p += 2) {
        vec b;
        vec_mul(&b, p + 1, &w);
        vec_sub(p + 1, p, &b, 2);
        vec_add(p, p, &b);
    }
}

STEP void read_rows(vec *x, size_t rows, const struct berth_ntt_group *g)
{
    for (size_t i = 0; i < rows; i++) {
        vec_load(x + i, g->in + i * g->row_stride, g);
        if (g->times != NULL) {
            vec t;
            vec_load(&t, g->times + i * g->row_stride, g);
            vec_mul(x + i, x + i, &t);
        }
    }
}

STEP void subtract_rows(vec *x, size_t rows, const struct berth_ntt_group *g)
{
    vec s0, s1;
    vec_set(&s0, g->scale);
    vec_set(&s1, g->scale + 1);
    for (size_t i = 0; i < rows; i++) {
        vec c;
        vec_load(&c, g->minus + i * g->row_stride, g);
        vec_mul(&c, &c, &s1);
        vec_mul(x + i, x + i, &s0);
        vec_sub(x + i, x + i, &c, 2);
    }
}

STEP void write_rows(const vec *x, size_t rows, const struct berth_ntt_group *g)
{
    for (size_t i = 0; i < rows; i++) {
        vec_store(g->out + i * g->row_stride, x + i, g);
    }
}

/* factors[s] is the factor of layer s + 1. */
STEP const vec *column_factors(vec *factors, const struct berth_ntt_group *g)
{
    if (g->lo == NULL) {
        return NULL;
    }
    vec_factor(factors + g->log_rows - 1, g->lo, g->hi);
    for (uint32_t s = g->log_rows - 1; s > 0; s--) {
        vec_mul(factors + s - 1, factors + s, factors + s);
    }
    return factors;
}

#define FACTOR(s) (factor == NULL ? NULL : factor + (s) - 1)

STEP_ENTRY void NAME(const struct berth_ntt_group *g)
{
    vec *x = g->scratch;
    vec factors[BERTH_NTT_LOG_ROWS_MAX];
    const size_t rows = (size_t)1 << g->log_rows;
    const vec *factor = column_factors(factors, g);
    read_rows(x, rows, g);
    if (g->inverse != NULL) {
        uint32_t s = g->log_rows;
        for (; s >= 2; s -= 2) {
            inverse_pair(x, rows, (size_t)1 << (s - 2), g->inverse, FACTOR(s - 1));
        }
        if (s == 1) {
            inverse_single(x, rows, g->inverse, FACTOR(1));
        }
    }
    if (g->forward != NULL) {
        uint32_t s = g->log_rows % 2;
        if (s == 1) {
            forward_single(x, rows, g->forward, FACTOR(1));
        }
        for (; s < g->log_rows; s += 2) {
            forward_pair(x, rows, (size_t)1 << s, g->forward, FACTOR(s + 1));
        }
    }
    if (g->minus != NULL) {
        subtract_rows(x, rows, g);
    }
    write_rows(x, rows, g);
}

#undef FACTOR
