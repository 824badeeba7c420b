/* All that Rust calls of csrc, for bindgen. */
#ifndef BERTH_H
#define BERTH_H

#include "fixed_base.h"
#include "msm.h"
#include "ntt.h"
#include "pages.h"
#include "points.h"
#include "rows.h"

#endif
