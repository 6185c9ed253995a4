//! Decoding of an opener's part of a result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::protocol::OpeningPart;

fuzz_target!(|bytes: &[u8]| {
    let _ = OpeningPart::from_bytes(bytes);
});
