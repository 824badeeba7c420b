#include "pages.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14, asm-generic/mman-common.h */
#endif
#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

/* No kernel is built for more than 1,024 nodes (CONFIG_NODES_SHIFT ends at 10); four times that. */
enum { WORD_BITS = 8 * sizeof(unsigned long), NODE_WORDS = 4096 / WORD_BITS };

size_t berth_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

int berth_pages_map_huge(size_t bytes, unsigned page_log, void **address) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (int)(page_log << MAP_HUGE_SHIFT);
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapped == MAP_FAILED) return errno;
    *address = mapped;
    return 0;
}

int berth_pages_map(size_t bytes, size_t align, bool transparent, void **address) {
    /* Map more than is asked for, without access, cut both ends and open the middle:
     *
     *   mapped   start - guard        start            start + bytes       mapped + length
     *   |  cut   |  guard, no access  |  read, write   |  guard  |  cut    |
     */
    size_t guard = berth_page_bytes(), length = bytes + align + 2 * guard;
    if (length < bytes) return ENOMEM;
    char *mapped = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return errno;
    char *start = (char *)(((uintptr_t)mapped + guard + align - 1) & ~(uintptr_t)(align - 1));
    size_t head = (size_t)(start - guard - mapped), tail = length - head - bytes - 2 * guard;
    int error = 0;
    if (head != 0 && munmap(mapped, head) != 0) error = errno;
    if (tail != 0 && munmap(start + bytes + guard, tail) != 0) error = errno;
    if (error == 0 && mprotect(start, bytes, PROT_READ | PROT_WRITE) != 0) error = errno;
    /* A kernel without transparent hugepages answers EINVAL; not to have them is then granted. */
    if (error == 0 && madvise(start, bytes, transparent ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0 &&
        (transparent || errno != EINVAL))
        error = errno;
    if (error != 0) {
        berth_pages_unmap(start, bytes);
        return error;
    }
    *address = start;
    return 0;
}

int berth_pages_bind(void *address, size_t bytes, unsigned node) {
    unsigned long mask[NODE_WORDS] = {0};
    if (node >= NODE_WORDS * WORD_BITS) return EINVAL;
    mask[node / WORD_BITS] = 1UL << (node % WORD_BITS);
    /* The kernel reads one bit fewer than it is told (get_nodes in mm/mempolicy.c). */
    unsigned long bits = NODE_WORDS * WORD_BITS + 1;
    return syscall(SYS_mbind, address, bytes, MPOL_BIND, mask, bits,
                   MPOL_MF_STRICT | MPOL_MF_MOVE) == 0
               ? 0
               : errno;
}

int berth_pages_populate(void *address, size_t bytes) {
    int result;
    do {
        result = madvise(address, bytes, MADV_POPULATE_WRITE);
    } while (result != 0 && (errno == EAGAIN || errno == EINTR));
    return result == 0 ? 0 : errno;
}

int berth_pages_populate_by_read(void *address, size_t bytes, size_t page_bytes) {
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), error = zero < 0 ? errno : 0;
    for (size_t offset = 0; error == 0 && offset < bytes;) {
        ssize_t got = read(zero, (char *)address + offset, 1);
        if (got == 1)
            offset += page_bytes;
        else if (got == 0 || errno != EINTR)
            error = got == 0 ? EIO : errno;
    }
    if (zero >= 0) close(zero);
    return error;
}

int berth_pages_nodes(void *const *pages, int *nodes, size_t count) {
    return syscall(SYS_move_pages, 0, count, pages, NULL, nodes, 0) == 0 ? 0 : errno;
}

int berth_pages_lock(void *address, size_t bytes) { return mlock(address, bytes) == 0 ? 0 : errno; }

int berth_pages_dont_fork(void *address, size_t bytes) {
    return madvise(address, bytes, MADV_DONTFORK) == 0 ? 0 : errno;
}

int berth_pages_unmap_huge(void *address, size_t bytes) {
    return munmap(address, bytes) == 0 ? 0 : errno;
}

int berth_pages_unmap(void *address, size_t bytes) {
    size_t guard = berth_page_bytes();
    return munmap((char *)address - guard, bytes + 2 * guard) == 0 ? 0 : errno;
}
