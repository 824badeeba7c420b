/* The portable additions: blst's field arithmetic, the same code for G1 and G2. */
#include "msm.h"

#include "fetch.h"

/* How many pairs ahead points are asked for: they lie anywhere in a large array. */
enum { PREFETCH = 16 };

typedef enum { CHORD, TANGENT, FIRST_ALONE, SECOND_ALONE, CANCELLED } addition;

static inline bool is_zero(const void *value, size_t bytes) {
    const uint64_t *words = value;
    for (size_t i = 0; i < bytes / sizeof *words; i++)
        if (words[i] != 0)
            return false;
    return true;
}

static void fp_one(blst_fp *to) {
    static const uint64_t one[6] = {1};
    blst_fp_from_uint64(to, one);
}

static void fp2_one(blst_fp2 *to) {
    *to = (blst_fp2){0};
    fp_one(&to->fp[0]);
}

#define GROUP g1
#define POINT blst_p1_affine
#define FIELD blst_fp
#define F fp
#define ONE fp_one
#include "add_pairs.h"
#undef GROUP
#undef POINT
#undef FIELD
#undef F
#undef ONE

#define GROUP g2
#define POINT blst_p2_affine
#define FIELD blst_fp2
#define F fp2
#define ONE fp2_one
#include "add_pairs.h"
