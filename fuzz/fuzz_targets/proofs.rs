//! Decoding of proofs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::proofs::Proofs;

fuzz_target!(|bytes: &[u8]| {
    let _ = Proofs::from_bytes(bytes);
});
