#include "ntt.h"

#include "fr_ifma.h"

/* The portable path: every lane by itself, every value canonical. */

typedef struct {
    blst_fr lane[BERTH_NTT_LANES];
} vec;

_Static_assert(sizeof(vec) <= BERTH_NTT_ROW_BYTES, "a row of the portable path fits");

#define STEP static inline
#define STEP_ENTRY static
#define NAME group_portable
#define EACH_LANE for (size_t i = 0; i < BERTH_NTT_LANES; i++)

static inline void vec_add(vec *o, const vec *a, const vec *b)
{
    EACH_LANE blst_fr_add(&o->lane[i], &a->lane[i], &b->lane[i]);
}

static inline void vec_sub(vec *o, const vec *a, const vec *b, unsigned bound)
{
    (void)bound; /* canonical values need no room */
    EACH_LANE blst_fr_sub(&o->lane[i], &a->lane[i], &b->lane[i]);
}

static inline void vec_mul(vec *o, const vec *a, const vec *t)
{
    EACH_LANE blst_fr_mul(&o->lane[i], &a->lane[i], &t->lane[i]);
}

static inline void vec_reduce(vec *o, const vec *a) { *o = *a; }

static inline void vec_set(vec *o, const blst_fr *x) { EACH_LANE o->lane[i] = *x; }

static inline void vec_load(vec *o, const blst_fr *p, const struct berth_ntt_group *g)
{
    static const blst_fr zero;
    EACH_LANE o->lane[i] = i < g->lanes ? p[i * g->lane_stride] : zero;
}

static inline void vec_store(blst_fr *p, const vec *x, const struct berth_ntt_group *g)
{
    for (size_t i = 0; i < g->lanes; i++) {
        p[i * g->lane_stride] = x->lane[i];
    }
}

static inline void vec_factor(vec *o, const blst_fr *lo, const blst_fr *hi)
{
    EACH_LANE blst_fr_mul(&o->lane[i], lo + i, hi);
}

#include "ntt_steps.h"

void berth_ntt_group(const struct berth_ntt_group *group, bool ifma)
{
#if BERTH_HAVE_IFMA
    if (ifma) {
        berth_ntt_group_ifma(group);
        return;
    }
#endif
    (void)ifma;
    group_portable(group);
}
