//! Decoding of a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_aggregation::Message;

fuzz_target!(|bytes: &[u8]| {
    let _ = Message::from_bytes(bytes);
});
