//! Decoding of a revealed seed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::protocol::RevealedSeed;

fuzz_target!(|bytes: &[u8]| {
    let _ = RevealedSeed::from_bytes(bytes);
});
