/* Memory mappings, page placement and population by raw system calls.
 *
 * Every function returns 0 or an errno value and keeps no state. Addresses and lengths are those
 * of a whole mapping or of whole pages in it, unless said otherwise. */
#ifndef BERTH_PAGES_H
#define BERTH_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The page size in bytes of the base pages. */
size_t berth_page_bytes(void);

/* Maps |bytes| of private, zeroed hugetlb pages of 1 << |page_log| bytes each; the kernel takes
 * them out of the free pool here, and fails if the whole pool is too small. */
int berth_pages_map_huge(size_t bytes, unsigned page_log, void **address);

/* Maps |bytes| of private, zeroed base pages that start at a multiple of |align|, a power of two,
 * and sets whether the kernel may join them to transparent hugepages. A page without access on
 * either side stops whoever runs over an end, and keeps the mapping apart from its neighbours. */
int berth_pages_map(size_t bytes, size_t align, bool transparent, void **address);

/* Binds the pages of a range to one node, before they are touched: no other node will do. */
int berth_pages_bind(void *address, size_t bytes, unsigned node);

/* Makes every page of a range present and writable. A shortage is an error here, EFAULT where a
 * touch would be a SIGBUS. EINVAL: the kernel is older than 5.14 and lacks the call. */
int berth_pages_populate(void *address, size_t bytes);

/* What berth_pages_populate does, for a kernel that lacks the call: read(2) of /dev/zero lets the
 * kernel write a zero into the first byte of each page of |page_bytes|, so that a page which cannot
 * be had is EFAULT. For a new range alone, where there are only zeros. */
int berth_pages_populate_by_read(void *address, size_t bytes, size_t page_bytes);

/* The nodes of |count| pages, one address each, into |nodes|: a node number, or a negative errno
 * for a page that is not present. */
int berth_pages_nodes(void *const *pages, int *nodes, size_t count);

/* Keeps a range in memory. */
int berth_pages_lock(void *address, size_t bytes);

/* Keeps a range out of children of fork, which would make its pages copy-on-write. */
int berth_pages_dont_fork(void *address, size_t bytes);

/* Undoes berth_pages_map_huge. */
int berth_pages_unmap_huge(void *address, size_t bytes);

/* Undoes berth_pages_map, the pages on either side included. */
int berth_pages_unmap(void *address, size_t bytes);

#endif
