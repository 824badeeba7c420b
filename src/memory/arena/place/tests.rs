use super::*;
use crate::memory::arena::tests::{plan_of, smaps};
use crate::plan::Pages;

#[path = "../../../../tests/common/pool.rs"]
mod pool;

const MIB: usize = 1 << 20;
const QUIET: &(dyn Fn(u64, u64) + Sync) = &|_, _| ();

/// An arena whose pages nobody has touched.
fn untouched(plan: &ArenaPlan) -> Arena {
    let mapping = Mapping::new(plan.pages, plan.page_bytes, plan.bytes).unwrap();
    Arena { start: mapping.address(), bytes: mapping.bytes(), mapping: Arc::new(mapping) }
}

/// How many of the pages of a range are present.
fn present(start: *mut std::ffi::c_void, page_bytes: usize, pages: usize) -> usize {
    let addresses: Vec<_> = (0..pages).map(|n| start.wrapping_byte_add(n * page_bytes)).collect();
    let mut nodes = vec![-1; pages];
    // SAFETY: both lists have `pages` entries.
    let errno = unsafe { sys::berth_pages_nodes(addresses.as_ptr(), nodes.as_mut_ptr(), pages) };
    assert_eq!(errno, 0);
    nodes.iter().filter(|node| **node >= 0).count()
}

/// What a kernel without `MADV_POPULATE_WRITE` gets.
#[test]
fn reading_zeros_makes_every_page_present() {
    for pages in [Pages::Plain, Pages::Transparent] {
        let arena = untouched(&plan_of(pages, 4 * MIB));
        let (start, bytes, page) = (arena.address(), arena.bytes(), base_page_bytes());
        assert_eq!(smaps(start, "Rss"), (4 * MIB, 0));
        // SAFETY: the range is the arena.
        assert_eq!(unsafe { sys::berth_pages_populate_by_read(start, bytes, page) }, 0);
        assert_eq!(smaps(start, "Rss"), (4 * MIB, 4 * MIB));
        assert!(arena.view().take::<u64>(bytes / 8).iter().all(|word| *word == 0));
        // Over the end the page without access is met: an error, no signal.
        // SAFETY: what lies behind the arena is its own guard page.
        let errno = unsafe { sys::berth_pages_populate_by_read(start, bytes + page, page) };
        assert_eq!(errno, libc::EFAULT);
    }
}

/// More pages are mapped than there are: without a promise (`MAP_NORESERVE`) the kernel finds out
/// when they are populated, which is where a touch would be a SIGBUS.
#[test]
fn a_pool_that_runs_dry_is_an_error_and_no_signal() {
    const PAGE: usize = 2 * MIB;
    let Some(pool) = pool::Pool::with_free(PAGE, 3) else { return };
    type Populate = fn(*mut std::ffi::c_void, usize) -> i32;
    let ways: [Populate; 2] = [
        // SAFETY: the range is a whole mapping.
        |start, bytes| unsafe { sys::berth_pages_populate(start, bytes) },
        // SAFETY: as above.
        |start, bytes| unsafe { sys::berth_pages_populate_by_read(start, bytes, PAGE) },
    ];
    for (number, populate) in ways.into_iter().enumerate() {
        let held = pool::Held::map(PAGE, 4, libc::MAP_NORESERVE).unwrap();
        assert_eq!((pool.free(), present(held.address, PAGE, 4)), (3, 0), "way {number}");
        let errno = populate(held.address, 4 * PAGE);
        assert!(errno == libc::EFAULT || (number, errno) == (0, libc::EINVAL), "{number}: {errno}");
        if errno == libc::EFAULT {
            assert_eq!((pool.free(), present(held.address, PAGE, 4)), (0, 3), "way {number}");
        }
        drop(held);
        assert_eq!(pool.free(), 3, "way {number}: all are given back");
        let held = pool::Held::map(PAGE, 3, libc::MAP_NORESERVE).unwrap();
        let errno = populate(held.address, 3 * PAGE);
        assert!(errno == 0 || (number, errno) == (0, libc::EINVAL), "{number}: {errno}");
    }
}

/// Makes this thread, and those that it starts, believe in a kernel before 5.14.
fn forget_populate_write() {
    const POPULATE_WRITE: u32 = 23;
    let step = |code, k, jt, jf| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let end = libc::BPF_RET | libc::BPF_K;
    // Offsets are those of struct seccomp_data: the number of the call, its third argument.
    let mut steps = [
        step(load, 0, 0, 0),
        step(equal, libc::SYS_madvise as u32, 0, 3),
        step(load, 32, 0, 0),
        step(equal, POPULATE_WRITE, 0, 1),
        step(end, libc::SECCOMP_RET_ERRNO | libc::EINVAL as u32, 0, 0),
        step(end, libc::SECCOMP_RET_ALLOW, 0, 0),
    ];
    let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    // SAFETY: the filter lives over both calls, which change this thread alone.
    let set = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter)
    };
    assert_eq!(set, 0, "a filter can be set");
}

#[test]
fn an_old_kernel_gives_whole_arenas_too() {
    let pool = pool::Pool::with_free(2 * MIB, 3);
    let sizes = [(Pages::Plain, 2 * STEP_BYTES), (Pages::Transparent, 5 * MIB)];
    let reserved = pool.iter().map(|_| (Pages::Huge2M, 6 * MIB));
    for (pages, bytes) in sizes.into_iter().chain(reserved) {
        let mut plan = plan_of(pages, bytes);
        plan.cpus = vec![plan.cpus[0]; 2];
        let mapping = move || {
            forget_populate_write();
            let new = untouched(&plan);
            // SAFETY: the range is the arena.
            let errno = unsafe { sys::berth_pages_populate(new.address(), new.bytes()) };
            assert_eq!(errno, libc::EINVAL, "the call is gone");
            drop(new);
            Arena::map(&plan).unwrap().0
        };
        let arena = std::thread::spawn(mapping).join().unwrap();
        let page = if pages.hugetlb() { 2 * MIB } else { base_page_bytes() };
        let count = arena.bytes() / page;
        assert_eq!(present(arena.address(), page, count), count, "{pages:?}");
    }
}

#[test]
fn a_fault_of_one_thread_stops_all_and_is_told() {
    let mut plan = plan_of(Pages::Plain, 6 * STEP_BYTES);
    plan.cpus = vec![plan.cpus[0]; 3];
    let arena = untouched(&plan);
    // SAFETY: a page of the arena, which nobody uses.
    let closed = unsafe { libc::mprotect(arena.address(), plan.page_bytes, libc::PROT_NONE) };
    assert_eq!(closed, 0);
    assert_eq!(arena.populate(&plan, QUIET).unwrap(), libc::EFAULT);
    // Threads that were at work end their step; none begins another one.
    let (_, resident) = smaps(arena.address().wrapping_byte_add(plan.page_bytes), "Rss");
    assert!(resident <= 4 * STEP_BYTES, "{resident} bytes are present");
}

#[test]
fn progress_begins_at_nothing_only_rises_and_ends_at_all() {
    let mut plan = plan_of(Pages::Plain, 3 * STEP_BYTES - MIB);
    plan.lock = Mode::Off;
    for threads in 1..=3 {
        plan.cpus = vec![plan.cpus[0]; threads];
        let shown = Mutex::new(Vec::new());
        let (arena, _) =
            Arena::map_showing(&plan, &|done, total| shown.lock().unwrap().push((done, total)))
                .unwrap();
        assert_eq!(smaps(arena.address(), "Rss"), (plan.bytes, plan.bytes));
        let shown = shown.into_inner().unwrap();
        let all = plan.bytes as u64;
        assert_eq!((shown[0], shown[3]), ((0, all), (all, all)), "{shown:?}");
        assert!(shown.is_sorted() && shown.iter().all(|(_, total)| *total == all), "{shown:?}");
        assert_eq!(shown.len(), 4, "one for each step");
    }
}

#[test]
fn one_thread_for_every_step_and_at_most_one_for_every_cpu() {
    let mut plan = plan_of(Pages::Plain, MIB);
    let threads = |plan: &mut ArenaPlan, bytes, cpus: usize| {
        (plan.bytes, plan.cpus) = (bytes, (10..10 + cpus).collect());
        populating_cpus(plan)
    };
    assert_eq!(threads(&mut plan, MIB, 0), [None]);
    assert_eq!(threads(&mut plan, MIB, 8), [Some(10)]);
    assert_eq!(threads(&mut plan, 2 * STEP_BYTES, 8), [Some(10), Some(14)]);
    let cpus: Vec<_> = (10..138).map(Some).collect();
    assert_eq!(threads(&mut plan, 1 << 40, 128), cpus);
}

/// Numbers around those of a mask's words: the kernel knows no such nodes and says so.
#[test]
fn any_number_of_a_node_can_be_asked_for() {
    let plan = plan_of(Pages::Plain, MIB);
    let arena = untouched(&plan);
    // SAFETY: the range is the arena.
    let bind = |node| unsafe { sys::berth_pages_bind(arena.address(), arena.bytes(), node) };
    assert_eq!(bind(plan.node as u32), 0);
    for node in [500, 1023, 1024, 4095, 4096, u32::MAX] {
        assert_eq!(bind(node), libc::EINVAL, "node {node}");
    }
    let words = pool::numa_maps(arena.address());
    assert_eq!(words[0], format!("bind:{}", plan.node), "the last that could be");
}

/// What is refused after it was mapped is unmapped again. The size is one that no other test has.
#[test]
fn a_refused_arena_leaves_no_mapping() {
    let mut plan = plan_of(Pages::Plain, 37 * MIB + 12_288);
    (plan.bind, plan.lock) = (Mode::Strict, Mode::Off);
    let there = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let bytes = |line: &str| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            let number = |text| usize::from_str_radix(text, 16).ok();
            Some(number(end)? - number(start)?)
        };
        maps.lines().filter(|line| bytes(line) == Some(plan.bytes)).count()
    };
    let (arena, _) = Arena::map(&plan).unwrap();
    assert_eq!(there(), 1);
    drop(arena);
    assert_eq!(there(), 0);
    let error = Arena::map(&ArenaPlan { node: 900, ..plan.clone() }).map(|_| ()).unwrap_err();
    assert_eq!(error.exit_code(), 3);
    assert!(error.to_string().contains("node 900"), "{error}");
    assert_eq!(there(), 0);
}
