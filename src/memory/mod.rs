//! Memory: arenas as the plan says, slots by typestate, and figures of the heap.

pub mod arena;
pub mod heap;
mod hugepage;
pub mod slot;
pub mod transparent;

pub use arena::{Arena, Plain};
pub use slot::SlotPool;
