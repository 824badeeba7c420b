//! The CPU backend: one partition's arithmetic on pinned threads, in planned memory.

pub mod lane;
pub mod msm;
pub mod ntt;
pub mod quotient;
pub mod rows;
