//! Decoding of a result.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::AnswerList;

fuzz_target!(|bytes: &[u8]| {
    let _ = AnswerList::from_bytes(bytes);
});
