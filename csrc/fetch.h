/* Asks for the cache lines of a point, into the second level cache: asked for into the first, more
 * lines than it can wait for at a time stop the core (125 ns an addition against 96 on a Zen 4,
 * with points all over memory). A macro, since gcc 12 drops calls of functions that do nothing but
 * prefetch. */
#ifndef BERTH_FETCH_H
#define BERTH_FETCH_H

#include "msm.h"

#define BERTH_FETCH(points, reference)                                                             \
    do {                                                                                           \
        const char *point = (const char *)&(points)[(reference) & ~BERTH_NEGATED];                 \
        for (size_t at = 0; at + 64 < sizeof *(points); at += 64)                                  \
            __builtin_prefetch(point + at, 0, 2);                                                  \
        __builtin_prefetch(point + sizeof *(points) - 1, 0, 2);                                    \
    } while (0)

#endif
