//! Decoding of a student's share of a secret key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::StudentShare;

fuzz_target!(|bytes: &[u8]| {
    let _ = StudentShare::from_bytes(bytes);
});
