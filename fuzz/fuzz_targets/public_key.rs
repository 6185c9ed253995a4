//! Decoding of a public key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::PublicKey;

fuzz_target!(|bytes: &[u8]| {
    let _ = PublicKey::from_bytes(bytes);
});
