//! The decoder that the environment variable `DECODER` names: one that the tests of speed-round list, or that of npy files, models or cards.
#![no_main]

#[path = "../../crates/speed-round/tests/roles/decoders.rs"]
mod decoders;

use decoders::Decoder;
use libfuzzer_sys::fuzz_target;
use sha2::{Digest as _, Sha256};
use speed_core::npy::WholeNumbers;
use speed_experiment::model::Model;
use speed_experiment::report::ModelCard;

fn decoder() -> Decoder {
    let name = std::env::var("DECODER").expect("DECODER names a decoder");
    let others = [
        Decoder::new("npy", |bytes| WholeNumbers::parse(bytes).is_ok(), |_| usize::MAX),
        Decoder::new("model", |bytes| Model::from_bytes(bytes).is_ok(), |_| usize::MAX),
        Decoder::new("model-card", |bytes| ModelCard::from_json(bytes).is_ok(), |_| usize::MAX),
    ];
    decoders::ALL.into_iter().chain(others).find(|decoder| decoder.name == name).expect("a decoder")
}

thread_local! {
    static DECODER: Decoder = decoder();
}

fuzz_target!(|bytes: &[u8]| {
    DECODER.with(|decoder| {
        decoder.accepts(bytes);
        // Otherwise the checksum would hide the later checks.
        if let (true, Some(end)) = (decoder.is_sealed, bytes.len().checked_sub(16)) {
            decoder.accepts(&[&bytes[..end], &Sha256::digest(&bytes[..end])[..16]].concat());
        }
    });
});
