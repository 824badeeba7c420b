/* Memory mappings, page placement and population by raw system calls. */
#ifndef BERTH_PAGES_H
#define BERTH_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* The page size in bytes of the base pages. */
size_t berth_page_bytes(void);

#endif
