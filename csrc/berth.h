/* All of csrc, for bindgen. */
#ifndef BERTH_H
#define BERTH_H

#include "pages.h"

#endif
