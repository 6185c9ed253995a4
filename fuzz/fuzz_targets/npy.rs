//! Decoding of an npy file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_core::npy::WholeNumbers;

fuzz_target!(|bytes: &[u8]| {
    let _ = WholeNumbers::parse(bytes);
});
