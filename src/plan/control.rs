//! The control build (feature `heap-arenas`) in the plan: lanes and slots are the C library's.

use super::{Mode, Pages, Plan, Purpose};

impl Plan {
    /// Plans lanes and slots as the heap gives them, and says so.
    pub(crate) fn take_from_heap(&mut self) {
        let page_bytes = crate::host::base_page_bytes();
        for arena in self.arenas.iter_mut().filter(|arena| arena.purpose != Purpose::Srs) {
            let node = self.nodes.iter_mut().find(|node| node.node == arena.node);
            let node = node.expect("an arena is on a node of the plan");
            let pool = node.pools.iter_mut().find(|pool| pool.page_bytes == arena.page_bytes);
            match pool {
                Some(pool) if arena.pages.hugetlb() => pool.need -= arena.bytes / arena.page_bytes,
                _ => node.ordinary_bytes -= arena.bytes,
            }
            arena.pages = Pages::Plain;
            arena.page_bytes = page_bytes;
            arena.bytes = arena.need_bytes.next_multiple_of(page_bytes);
            arena.bind = Mode::Off;
            arena.lock = Mode::Off;
            node.ordinary_bytes += arena.bytes;
        }
        self.warnings.insert(
            0,
            "CONTROL BUILD, for measuring only: lanes and slots come from the C library's heap \
             (feature heap-arenas)"
                .into(),
        );
    }
}
