//! Decoding of a model's file.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_experiment::model::Model;

fuzz_target!(|bytes: &[u8]| {
    let _ = Model::from_bytes(bytes);
});
