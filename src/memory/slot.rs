//! Slots: the memory of witnesses, and the only admission there is.
//!
//! ```text
//! Free -> fill -> Filling -> split -> one Part per part of the circuit
//!  ^                                     | the last one home
//!  +- release - Proving <- prove - Ready <+
//! ```
//!
//! A slot's state is its type and moves by value. Whatever happens to a slot, its drop brings it
//! back to Free: an error, a panic, a request that nobody waits for any more. Where each slot is
//! stands in one list, and every figure is counted from that list.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock};

use blstrs::Scalar;
use crossbeam_utils::CachePadded;

use super::arena::{Arena, PIECE_ALIGN};
use crate::circuit::shape::{Shape, WIDE_BYTES, Witness};

mod part;

pub use part::{Home, Part, Parts};

const _: () = assert!(size_of::<Scalar>() == WIDE_BYTES);
const _: () = assert!(PIECE_ALIGN.is_multiple_of(align_of::<Scalar>()));

/// Where a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the pool.
    Home,
    /// Out of the pool as a `Slot<Free>`.
    Taken,
    /// Being written.
    Filling,
    /// Holds a whole witness.
    Ready,
    /// A lane reads it.
    Proving,
}

/// Sealed: a slot has these states and no others.
mod state {
    pub trait State {
        const PLACE: super::Place;
    }
    pub trait Filled: State {}
}
use state::{Filled, State};

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $place:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $name {}
            impl State for $name {
                const PLACE: Place = Place::$place;
            }
        )*
    };
}

states! {
    /// Taken and empty.
    Free = Taken;
    /// Being written, by one thread or several.
    Filling = Filling;
    /// Holds a whole witness.
    Ready = Ready;
    /// A lane reads it.
    Proving = Proving;
}
impl Filled for Ready {}
impl Filled for Proving {}

/// How many slots are where; they sum up to the pool's count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// In the pool, for anyone to take.
    pub home: usize,
    pub taken: usize,
    pub filling: usize,
    pub ready: usize,
    pub proving: usize,
}

impl Occupancy {
    fn of(&mut self, place: Place) -> &mut usize {
        match place {
            Place::Home => &mut self.home,
            Place::Taken => &mut self.taken,
            Place::Filling => &mut self.filling,
            Place::Ready => &mut self.ready,
            Place::Proving => &mut self.proving,
        }
    }

    /// The number of slots in a place.
    pub fn at(mut self, place: Place) -> usize {
        *self.of(place)
    }
}

/// Called with a slot and where it went, by the thread that moved it and in the order of the
/// moves. It must be quick and must not ask the pool anything.
pub type Watch = Box<dyn Fn(usize, Place) + Send + Sync>;

/// The slots of one circuit on one node. A clone is another handle to the same slots.
#[derive(Clone)]
pub struct SlotPool {
    shared: Arc<Shared>,
}

struct Shared {
    arena: Arena,
    shape: Shape,
    /// Each on cache lines of its own: threads of different slots do not disturb each other.
    slots: Box<[CachePadded<Guards>]>,
    places: Mutex<Places>,
    freed: Condvar,
    watch: OnceLock<Watch>,
}

struct Places {
    of: Box<[Place]>,
    /// The most slots that were ever in each place.
    peak: Occupancy,
    closed: bool,
}

/// The parts of a slot that is split. Their number falls by the drop of a `Part` alone.
#[derive(Default)]
struct Guards {
    out: AtomicUsize,
    failed: AtomicBool,
}

impl SlotPool {
    /// `count` slots for witnesses of `shape`, one after the other from the start of `arena`.
    ///
    /// # Panics
    /// If the arena is smaller than that: the plan has counted every slot.
    pub fn new(arena: Arena, shape: Shape, count: usize) -> Self {
        let need = count.checked_mul(shape.slot_bytes()).expect("the plan fits the memory");
        assert!(count > 0, "a pool has at least one slot");
        assert!(need <= arena.bytes(), "{need} bytes of slots in {}", arena.bytes());
        SlotPool {
            shared: Arc::new(Shared {
                arena,
                shape,
                slots: (0..count).map(|_| CachePadded::default()).collect(),
                places: Mutex::new(Places {
                    of: vec![Place::Home; count].into_boxed_slice(),
                    peak: Occupancy { home: count, ..Occupancy::default() },
                    closed: false,
                }),
                freed: Condvar::new(),
                watch: OnceLock::new(),
            }),
        }
    }

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.shared.slots.len()
    }

    /// The shape of every witness in this pool.
    pub fn shape(&self) -> &Shape {
        &self.shared.shape
    }

    /// Where the slots lie.
    pub fn arena(&self) -> &Arena {
        &self.shared.arena
    }

    /// Tells every move of a slot from now on.
    ///
    /// # Panics
    /// If somebody watches already.
    pub fn watch(&self, watch: Watch) {
        assert!(self.shared.watch.set(watch).is_ok(), "a pool has one watch");
    }

    /// Waits for a slot; `None` once the pool is closed.
    pub fn take(&self) -> Option<Slot<Free>> {
        let mut places = self.shared.places();
        loop {
            if places.closed {
                return None;
            }
            if let Some(slot) = self.take_from(&mut places) {
                return Some(slot);
            }
            places = self.shared.freed.wait(places).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// A slot, if one is home and the pool is not closed.
    pub fn try_take(&self) -> Option<Slot<Free>> {
        let mut places = self.shared.places();
        if places.closed { None } else { self.take_from(&mut places) }
    }

    fn take_from(&self, places: &mut Places) -> Option<Slot<Free>> {
        let index = places.of.iter().position(|place| *place == Place::Home)?;
        self.shared.move_to(places, index, Free::PLACE);
        let hold = Hold { shared: Arc::clone(&self.shared), index, home: true };
        Some(Slot { hold, state: PhantomData })
    }

    /// Where the slots are now.
    pub fn occupancy(&self) -> Occupancy {
        self.shared.places().count()
    }

    /// The most slots that were ever in each place.
    pub fn peak(&self) -> Occupancy {
        self.shared.places().peak
    }

    /// Lets nobody take a slot any more and wakes those who wait; slots that are out go on.
    pub fn close(&self) {
        self.shared.places().closed = true;
        self.shared.freed.notify_all();
    }

    /// Closes the pool when all work is done.
    ///
    /// # Panics
    /// If a slot is not home: somebody still works.
    pub fn shutdown(self) {
        self.close();
        let occupancy = self.occupancy();
        assert_eq!(occupancy.home, self.count(), "slots are out at shutdown: {occupancy:?}");
    }
}

impl Places {
    fn count(&self) -> Occupancy {
        let mut occupancy = Occupancy::default();
        for place in self.of.iter() {
            *occupancy.of(*place) += 1;
        }
        occupancy
    }
}

impl Shared {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// First address of the wide plane of a part, and of its bit plane.
    fn planes(&self, slot: usize, part: usize) -> (*mut Scalar, *mut u64) {
        let start: *mut u8 = self.arena.address().cast();
        // SAFETY: slot and part are of this pool, so that by `SlotPool::new` the sums stay within
        // the arena; every base is aligned to `PART_ALIGN`.
        unsafe {
            let slot = start.add(slot * self.shape.slot_bytes());
            let wides = slot.cast::<Scalar>();
            let bits = wides.add(self.shape.wide_len()).cast::<u64>();
            (wides.add(self.shape.wide_base(part)), bits.add(self.shape.word_base(part)))
        }
    }

    fn move_to(&self, places: &mut Places, slot: usize, place: Place) {
        places.of[slot] = place;
        let now = places.count().at(place);
        let peak = places.peak.of(place);
        *peak = now.max(*peak);
        if let Some(watch) = self.watch.get() {
            watch(slot, place);
        }
    }

    fn put(&self, slot: usize, place: Place) {
        let mut places = self.places();
        self.move_to(&mut places, slot, place);
        drop(places);
        if place == Place::Home {
            self.freed.notify_one();
        }
    }
}

/// The right to one slot.
struct Hold {
    shared: Arc<Shared>,
    index: usize,
    /// Goes home on drop; false once the right has passed to the parts.
    home: bool,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.home {
            self.shared.put(self.index, Place::Home);
        }
    }
}

/// One slot in state `S`. Dropped in any state it goes home.
pub struct Slot<S: State> {
    hold: Hold,
    state: PhantomData<fn() -> S>,
}

impl<S: State> Slot<S> {
    /// Position in the pool.
    pub fn index(&self) -> usize {
        self.hold.index
    }

    /// The shape of its witness.
    pub fn shape(&self) -> &Shape {
        &self.hold.shared.shape
    }

    fn step<T: State>(self) -> Slot<T> {
        self.hold.shared.put(self.hold.index, T::PLACE);
        Slot { hold: self.hold, state: PhantomData }
    }
}

impl Slot<Free> {
    /// Begins a witness.
    pub fn fill(self) -> Slot<Filling> {
        self.step()
    }
}

impl<S: Filled> Slot<S> {
    /// The witness that was filled in.
    pub fn witness(&self) -> Witness<'_> {
        let shared = &*self.hold.shared;
        let shape = &shared.shape;
        let (wides, bits) = shared.planes(self.hold.index, 0);
        // SAFETY: both planes are within the slot; all parts are home, so nobody writes while
        // this right to the slot is borrowed, and every pattern of bytes is a value.
        let (wides, bits) = unsafe {
            (
                std::slice::from_raw_parts(wides, shape.wide_len()),
                std::slice::from_raw_parts(bits, shape.word_len()),
            )
        };
        Witness { shape, wides, bits }
    }
}

impl Slot<Ready> {
    /// Hands the witness to a lane.
    pub fn prove(self) -> Slot<Proving> {
        self.step()
    }
}

impl Slot<Proving> {
    /// Sends the slot home, as a drop does; said where the last read is over.
    pub fn release(self) {
        drop(self);
    }
}

#[cfg(test)]
mod tests;
