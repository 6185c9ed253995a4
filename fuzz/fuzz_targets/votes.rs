//! Decoding of votes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_roles::parse_labels;

fuzz_target!(|bytes: &[u8]| {
    let _ = parse_labels(bytes, 4, 3);
});
