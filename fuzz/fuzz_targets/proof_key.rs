//! Decoding of a proof key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::proofs::ProofKey;

fuzz_target!(|bytes: &[u8]| {
    let _ = ProofKey::from_bytes(bytes);
});
