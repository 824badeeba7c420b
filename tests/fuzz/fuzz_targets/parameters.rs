//! Any bytes as a parameter file of a tiny circuit: an error or a set of checked points.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    berth::fuzz::parameters(bytes);
});
