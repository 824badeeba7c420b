//! The parts of a slot that is being filled: one exclusive guard each, for threads of their own.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use blstrs::Scalar;

use super::{Filling, Hold, Ready, Shared, Slot};
use crate::circuit::shape::Shape;

impl Slot<Filling> {
    /// One guard for each part of the circuit, in order: the header, then the blocks. They may go
    /// to different threads; a guard that is not taken out of the iterator counts as dropped.
    pub fn split(mut self) -> Parts {
        let shared = Arc::clone(&self.hold.shared);
        let index = self.hold.index;
        self.hold.home = false;
        let guards = &shared.slots[index];
        guards.failed.store(false, Ordering::Relaxed);
        guards.out.store(shared.shape.parts(), Ordering::Relaxed);
        Parts { shared, slot: index, next: 0 }
    }
}

/// The guards of a split slot that have not been handed out yet.
pub struct Parts {
    shared: Arc<Shared>,
    slot: usize,
    next: usize,
}

impl Iterator for Parts {
    type Item = Part;

    fn next(&mut self) -> Option<Part> {
        if self.next == self.shared.shape.parts() {
            return None;
        }
        let part = self.next;
        self.next += 1;
        let shared = Arc::clone(&self.shared);
        Some(Part { shared, slot: self.slot, part, fresh: true, whole: false })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.shared.shape.parts() - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Parts {}

impl Drop for Parts {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

/// The exclusive right to write one part of a slot.
///
/// Dropped without [`Part::finish`], by an error or a panic, it marks the slot, which goes home
/// when all parts have come back.
pub struct Part {
    shared: Arc<Shared>,
    slot: usize,
    part: usize,
    /// Nobody has looked at the planes yet, so they hold the last witness.
    fresh: bool,
    /// Finished.
    whole: bool,
}

/// What the return of a part means.
pub enum Home {
    /// Other parts are still out.
    Waiting,
    /// This was the last, and all are whole.
    Ready(Slot<Ready>),
    /// This was the last, and another was dropped unfinished; the slot is home.
    Failed,
}

impl Part {
    /// Number of the part: 0 is the header, k + 1 is block k.
    pub fn part(&self) -> usize {
        self.part
    }

    /// Position of the slot in its pool.
    pub fn slot(&self) -> usize {
        self.slot
    }

    /// The shape of the whole witness.
    pub fn shape(&self) -> &Shape {
        &self.shared.shape
    }

    /// Wides and bits of this part, padding included; zero when first seen. The padding must be
    /// left so.
    pub fn planes(&mut self) -> (&mut [Scalar], &mut [u64]) {
        let (wides, bits) = self.shared.planes(self.slot, self.part);
        let shape = self.shared.shape.part(self.part);
        // SAFETY: the ranges are those of this part alone, and there is one guard for a part;
        // they are within the slot, and every pattern of bytes is a value.
        let (wides, bits) = unsafe {
            (
                std::slice::from_raw_parts_mut(wides, shape.wide_len()),
                std::slice::from_raw_parts_mut(bits, shape.word_len()),
            )
        };
        if self.fresh {
            self.fresh = false;
            // The thread that writes the part also clears it.
            wides.fill(Scalar::default());
            bits.fill(0);
        }
        (wides, bits)
    }

    /// Brings the part home as whole.
    pub fn finish(mut self) -> Home {
        self.planes();
        self.whole = true;
        match self.come_home() {
            None => Home::Waiting,
            Some(slot) if self.shared.slots[self.slot].failed.load(Ordering::Relaxed) => {
                drop(slot);
                Home::Failed
            }
            Some(hold) => {
                let slot: Slot<Filling> = Slot { hold, state: PhantomData };
                Home::Ready(slot.step())
            }
        }
    }

    /// Gives the part up: the slot goes home once all parts have come back. True if this was the
    /// last one out.
    pub fn abandon(mut self) -> bool {
        self.shared.slots[self.slot].failed.store(true, Ordering::Relaxed);
        self.whole = true;
        self.come_home().is_some()
    }

    /// The right to the slot, if this was the last part that was out. Called once for each part,
    /// by `finish` or by drop.
    fn come_home(&self) -> Option<Hold> {
        // Release: what this part wrote is seen by the last. Acquire: the last sees it.
        let out = self.shared.slots[self.slot].out.fetch_sub(1, Ordering::AcqRel);
        (out == 1).then(|| Hold { shared: Arc::clone(&self.shared), index: self.slot, home: true })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.whole {
            self.shared.slots[self.slot].failed.store(true, Ordering::Relaxed);
            drop(self.come_home());
        }
    }
}
