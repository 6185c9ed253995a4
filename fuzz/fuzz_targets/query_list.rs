//! Decoding of lists of queries.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_round::NamedQueries;

fuzz_target!(|bytes: &[u8]| {
    let _ = NamedQueries::parse(bytes);
});
