//! The decoder that the environment variable `DECODER` names: one of the test `fuzz` of speed-round, or of npy files, models or cards.
#![no_main]
#![expect(dead_code, reason = "the test also uses valid inputs and limits on memory")]

#[path = "../../crates/speed-round/tests/fuzz/targets.rs"]
mod targets;

use libfuzzer_sys::fuzz_target;
use speed_core::npy::WholeNumbers;
use speed_experiment::model::Model;
use speed_experiment::report::ModelCard;

type Decoder = Box<dyn Fn(&[u8]) -> bool>;

fn decoder() -> Decoder {
    let name = std::env::var("DECODER").expect("DECODER names a decoder");
    match name.as_str() {
        "npy" => Box::new(|bytes| WholeNumbers::parse(bytes).is_ok()),
        "model" => Box::new(|bytes| Model::from_bytes(bytes).is_ok()),
        "model-card" => Box::new(|bytes| ModelCard::from_json(bytes).is_ok()),
        _ => {
            let (_, make) = targets::ALL.iter().find(|(target, _)| *target == name).expect("a decoder");
            make().decode
        }
    }
}

thread_local! {
    static DECODER: Decoder = decoder();
}

fuzz_target!(|bytes: &[u8]| {
    DECODER.with(|decode| decode(bytes));
});
