#include "points.h"

/* The top bits of byte 0: compressed, infinity, sign (zcash encoding). */
#define FLAGS 0xe0u
#define FLAG_INFINITY 0x40u

static int rest_is_zero(const uint8_t *in, size_t bytes)
{
    uint8_t any = in[0] & (uint8_t)~FLAG_INFINITY;
    for (size_t i = 1; i < bytes; i++)
        any |= in[i];
    return any == 0;
}

/* A point with a flag is refused before blst sees it: blst would decompress it. */
static uint32_t flagged(const uint8_t *in, size_t bytes)
{
    if ((in[0] & FLAGS) == FLAG_INFINITY && rest_is_zero(in, bytes))
        return BERTH_POINT_INFINITY;
    return BERTH_POINT_ENCODING;
}

static uint32_t reason(BLST_ERROR error)
{
    switch (error) {
    case BLST_SUCCESS:
        return 0;
    case BLST_POINT_NOT_ON_CURVE:
        return BERTH_POINT_NOT_ON_CURVE;
    case BLST_POINT_NOT_IN_GROUP: /* x = 0: blst refuses it without being asked */
        return BERTH_POINT_NOT_IN_SUBGROUP;
    default:
        return BERTH_POINT_ENCODING;
    }
}

static uint32_t g1_read(blst_p1_affine *out, const uint8_t *in, int subgroup)
{
    if (in[0] & FLAGS)
        return flagged(in, 96);
    uint32_t why = reason(blst_p1_deserialize(out, in));
    if (why == 0 && subgroup && !blst_p1_affine_in_g1(out))
        why = BERTH_POINT_NOT_IN_SUBGROUP;
    return why;
}

static uint32_t g2_read(blst_p2_affine *out, const uint8_t *in, int subgroup)
{
    if (in[0] & FLAGS)
        return flagged(in, 192);
    uint32_t why = reason(blst_p2_deserialize(out, in));
    if (why == 0 && subgroup && !blst_p2_affine_in_g2(out))
        why = BERTH_POINT_NOT_IN_SUBGROUP;
    return why;
}

size_t berth_g1_read(blst_p1_affine *out, const uint8_t *in, size_t n, int subgroup,
                     uint32_t *why)
{
    for (size_t i = 0; i < n; i++) {
        if ((*why = g1_read(&out[i], in + 96 * i, subgroup)) != 0)
            return i;
    }
    return n;
}

size_t berth_g2_read(blst_p2_affine *out, const uint8_t *in, size_t n, int subgroup,
                     uint32_t *why)
{
    for (size_t i = 0; i < n; i++) {
        if ((*why = g2_read(&out[i], in + 192 * i, subgroup)) != 0)
            return i;
    }
    return n;
}

void berth_g1_write(uint8_t *out, const blst_p1_affine *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        blst_p1_affine_serialize(out + 96 * i, &in[i]);
}

void berth_g2_write(uint8_t *out, const blst_p2_affine *in, size_t n)
{
    for (size_t i = 0; i < n; i++)
        blst_p2_affine_serialize(out + 192 * i, &in[i]);
}
