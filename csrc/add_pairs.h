/* Template, so without a guard: batches of affine additions over one field. Before including it
 * define GROUP (g1, g2), POINT, FIELD (types), F (the infix of blst's field functions) and
 * ONE(to) (sets a field element to one). */

#define JOIN3_(a, b, c) a##b##c
#define JOIN3(a, b, c) JOIN3_(a, b, c)
#define NAME(function) JOIN3(GROUP, _, function)
#define BLST(function) JOIN3(blst_, F, JOIN3(_, function, ))

static void NAME(load)(POINT *to, const POINT *from, uint32_t reference) {
    *to = from[reference & ~BERTH_NEGATED];
    if (reference & BERTH_NEGATED)
        BLST(cneg)(&to->y, &to->y, true);
}

/* What a pair needs; for a chord or a tangent also the denominator of its slope. */
static addition NAME(classify)(FIELD *denominator, const POINT *from, const berth_pair *pair) {
    POINT a, b;
    const POINT *at_a = &from[pair->a & ~BERTH_NEGATED], *at_b = &from[pair->b & ~BERTH_NEGATED];
    if (is_zero(at_b, sizeof *at_b))
        return FIRST_ALONE;
    if (is_zero(at_a, sizeof *at_a))
        return SECOND_ALONE;
    BLST(sub)(denominator, &at_b->x, &at_a->x);
    if (!is_zero(denominator, sizeof *denominator))
        return CHORD;
    NAME(load)(&a, from, pair->a);
    NAME(load)(&b, from, pair->b);
    BLST(add)(denominator, &a.y, &b.y);
    return is_zero(denominator, sizeof *denominator) ? CANCELLED : TANGENT;
}

/* The sum of `a` and `b` by the line through them; its slope has the denominator 1 / `inverse`. */
static void NAME(line)(POINT *out, const POINT *a, const POINT *b, addition how,
                       const FIELD *inverse) {
    FIELD slope, x, y;
    if (how == TANGENT) {
        BLST(sqr)(&slope, &a->x);
        BLST(mul_by_3)(&slope, &slope);
    } else {
        BLST(sub)(&slope, &b->y, &a->y);
    }
    BLST(mul)(&slope, &slope, inverse);
    BLST(sqr)(&x, &slope);
    BLST(sub)(&x, &x, &a->x);
    BLST(sub)(&x, &x, &b->x);
    BLST(sub)(&y, &a->x, &x);
    BLST(mul)(&y, &y, &slope);
    BLST(sub)(&out->y, &y, &a->y);
    out->x = x;
}

/* Forward, `before[k]` takes the product of the denominators of all pairs before k. Backward,
 * `running` is the inverse of the product of the denominators up to k: times `before[k]` it is the
 * inverse of denominator k, times denominator k it is the one to carry on with. */
void JOIN3(berth_, GROUP, _add_pairs)(POINT *out, const POINT *from, const berth_pair *pairs,
                                      size_t count, uint64_t *work) {
    FIELD *before = (FIELD *)work;
    FIELD running, denominator, inverse;
    POINT a, b;
    ONE(&running);
    for (size_t k = 0; k < count; k++) {
        if (k + PREFETCH < count) {
            BERTH_FETCH(from, pairs[k + PREFETCH].a);
            BERTH_FETCH(from, pairs[k + PREFETCH].b);
        }
        before[k] = running;
        if (NAME(classify)(&denominator, from, &pairs[k]) <= TANGENT)
            BLST(mul)(&running, &running, &denominator);
    }
    BLST(eucl_inverse)(&running, &running);
    for (size_t k = count; k-- > 0;) {
        POINT *sum = &out[pairs[k].out];
        addition how = NAME(classify)(&denominator, from, &pairs[k]);
        NAME(load)(&a, from, pairs[k].a);
        NAME(load)(&b, from, pairs[k].b);
        switch (how) {
        case CHORD:
        case TANGENT:
            BLST(mul)(&inverse, &running, &before[k]);
            BLST(mul)(&running, &running, &denominator);
            NAME(line)(sum, &a, &b, how, &inverse);
            break;
        case FIRST_ALONE:
            *sum = a;
            break;
        case SECOND_ALONE:
            *sum = b;
            break;
        case CANCELLED:
            *sum = (POINT){0};
            break;
        }
    }
}

#undef JOIN3_
#undef JOIN3
#undef NAME
#undef BLST
