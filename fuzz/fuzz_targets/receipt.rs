//! Decoding of a receipt.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::log::Receipt;

fuzz_target!(|bytes: &[u8]| {
    let _ = Receipt::from_bytes(bytes);
});
