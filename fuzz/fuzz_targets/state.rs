//! Decoding of a server's state.
#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use speed_aggregation::{EvaluationKey, Parameters, Round, RoundSpec, Server, generate_keys};
use speed_core::{Randomness, VoteShape};

fn setting() -> &'static (EvaluationKey, Round) {
    static SETTING: OnceLock<(EvaluationKey, Round)> = OnceLock::new();
    SETTING.get_or_init(|| {
        let keys = generate_keys(&Parameters::TOURNAMENT_128, &Randomness::simulation([3; 32])).expect("a simulation");
        let shape = VoteShape::new(2, 2, 3).expect("a shape");
        (keys.evaluation.expand(), Round::new(RoundSpec::new(b"fuzz", shape, 40)).expect("valid"))
    })
}

fuzz_target!(|bytes: &[u8]| {
    let (key, round) = setting();
    let _ = Server::resume(key.clone(), round.clone(), bytes);
});
