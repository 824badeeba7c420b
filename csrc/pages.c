#include "pages.h"

#include <unistd.h>

size_t berth_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }
