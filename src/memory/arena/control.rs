//! The control build (feature `heap-arenas`): lanes and slots out of the C library's heap, neither
//! placed nor populated nor locked, as programs without arenas have them.

use std::sync::Arc;

use super::{Arena, PIECE_ALIGN};
use crate::error::{Error, Result};
use crate::memory::hugepage::Mapping;
use crate::plan::ArenaPlan;

impl Arena {
    /// What [`Arena::map`] is here, for lanes and slots.
    pub(super) fn from_heap(plan: &ArenaPlan) -> Result<Self> {
        let mapping = Mapping::from_heap(plan.need_bytes.next_multiple_of(PIECE_ALIGN))
            .map_err(|errno| refused(plan.need_bytes, errno))?;
        let (start, bytes) = (mapping.address(), mapping.bytes());
        Ok(Arena { mapping: Arc::new(mapping), start, bytes })
    }

    /// Gives the memory back to the heap and takes as much anew; what it held is lost.
    ///
    /// # Panics
    /// If the arena was cut, or is none of the heap.
    pub fn renew(&mut self) -> Result<()> {
        let mapping = Arc::get_mut(&mut self.mapping).expect("a lane has an arena of its own");
        assert_eq!(self.bytes, mapping.bytes(), "a lane's arena is whole");
        mapping.renew().map_err(|errno| refused(self.bytes, errno))?;
        self.start = mapping.address();
        Ok(())
    }
}

fn refused(bytes: usize, errno: i32) -> Error {
    let text = std::io::Error::from_raw_os_error(errno);
    Error::Host(format!("the C library's heap has no {bytes} bytes: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Purpose;

    #[test]
    fn a_lane_is_taken_anew_and_can_be_written() {
        let (mut arena, warnings) =
            Arena::map(&ArenaPlan::unplaced(Purpose::Lane, 48 << 20)).unwrap();
        assert!(warnings.is_empty());
        for round in 0..3u8 {
            let bytes = arena.carve().take::<u8>(48 << 20);
            bytes.fill(round);
            assert!(bytes.as_ptr().addr().is_multiple_of(PIECE_ALIGN));
            arena.renew().unwrap();
        }
        // Larger than glibc keeps for later, so it is fresh from the kernel.
        assert!(arena.view().take::<u8>(48 << 20).iter().all(|byte| *byte == 0));
    }
}
