//! Decoding of the card of a model.
#![no_main]

use libfuzzer_sys::fuzz_target;
use speed_experiment::report::ModelCard;

fuzz_target!(|bytes: &[u8]| {
    let _ = ModelCard::from_json(bytes);
});
