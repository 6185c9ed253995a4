//! Decoding of a verification.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::protocol::Verification;

fuzz_target!(|bytes: &[u8]| {
    let _ = Verification::from_bytes(bytes);
});
