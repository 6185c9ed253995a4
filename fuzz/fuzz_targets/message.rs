//! Decoding of a teacher's signed message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::protocol::Submission;

fuzz_target!(|bytes: &[u8]| {
    let _ = Submission::from_bytes(bytes);
});
