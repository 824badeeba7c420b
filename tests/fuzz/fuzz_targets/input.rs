//! Any bytes as a request: an error or a value, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    berth::fuzz::input(bytes);
});
