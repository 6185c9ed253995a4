//! Decoding of an opener's share of a secret key.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::OpenerShare;

fuzz_target!(|bytes: &[u8]| {
    let _ = OpenerShare::from_bytes(bytes);
});
