//! Decoding of an answer.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::EncryptedAnswer;

fuzz_target!(|bytes: &[u8]| {
    let _ = EncryptedAnswer::from_bytes(bytes);
});
