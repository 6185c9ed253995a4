//! Decoding of an evaluation key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::keys::SeededEvaluationKey;

fuzz_target!(|bytes: &[u8]| {
    let _ = SeededEvaluationKey::from_bytes(bytes);
});
