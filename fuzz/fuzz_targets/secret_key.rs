//! Decoding of a secret key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::SecretKey;

fuzz_target!(|bytes: &[u8]| {
    let _ = SecretKey::from_bytes(bytes);
});
