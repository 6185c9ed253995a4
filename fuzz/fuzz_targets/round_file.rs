//! Decoding of a round's file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_round::RoundFile;

fuzz_target!(|text: &str| {
    let _ = RoundFile::from_toml(text);
});
