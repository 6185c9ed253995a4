//! Decoding of votes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_round::{Question, QueryNames, parse_answer};

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_answer(bytes, &Question { queries: 4, classes: 3, form: None, names: QueryNames::NoList });
});
