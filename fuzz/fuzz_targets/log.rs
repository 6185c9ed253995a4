//! Decoding of a round's log.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::log::RoundLog;

fuzz_target!(|bytes: &[u8]| {
    let _ = RoundLog::from_bytes(bytes);
});
