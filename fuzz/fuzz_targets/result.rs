//! Decoding of a signed result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::protocol::SignedResult;

fuzz_target!(|bytes: &[u8]| {
    let _ = SignedResult::from_bytes(bytes);
});
