/* Fr of BLS12-381 in eight lanes with AVX-512 IFMA. */
#ifndef BERTH_FR_IFMA_H
#define BERTH_FR_IFMA_H

#include "ntt.h"

/* Is the path compiled at all? */
#if defined(__x86_64__)
#define BERTH_HAVE_IFMA 1
void berth_ntt_group_ifma(const struct berth_ntt_group *group);
#else
#define BERTH_HAVE_IFMA 0
#endif

#endif
