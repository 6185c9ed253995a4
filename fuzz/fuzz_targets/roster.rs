//! Decoding of a roster.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_round::Roster;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Roster::from_toml(text);
    }
});
