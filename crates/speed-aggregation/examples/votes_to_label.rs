//! From votes to a label: five teachers vote on one image, and only the student learns which class won.
//!
//! ```console
//! $ cargo run --release -p speed-aggregation --example votes_to_label
//! ```
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;

use speed_aggregation::encoding::{Encoding, VoteRange};
use speed_aggregation::{Outcome, PrivacyNoise, Round, RoundSpec, Server, Teacher, generate_keys, teacher_values};
use speed_core::{Randomness, VoteShape};

fn main() -> Result<(), Box<dyn Error>> {
    let votes: [u8; 5] = [7, 7, 1, 7, 7];
    let shape = VoteShape::new(votes.len(), 1, 10)?;
    let randomness = Randomness::OperatingSystem;

    // Noise of scale 1/gamma votes in total, shared among the teachers. Its bound decides which parameters are exact.
    let noise = PrivacyNoise::named("discrete-laplace", 2.0)?;
    let noise_bound = noise.bound(shape)?;
    let parameters = Encoding::choose_parameters(shape.classes(), VoteRange::new(shape.teachers(), noise_bound))?;

    // The student generates the keys of all parties and states the terms of the round.
    let keys = generate_keys(&parameters, &randomness)?;
    let spec = RoundSpec::new(b"votes to a label", shape, noise_bound);
    let round = Round::new(RoundSpec { mechanism: Some(noise.mechanism()), ..spec })?;

    // The server has no key that decrypts.
    let mut server = Server::new(keys.evaluation.expand(), round.clone())?;

    // Each teacher encrypts its vote plus its share of the noise under the student's key.
    let share = noise.share_of(shape.teachers())?;
    for (index, vote) in votes.into_iter().enumerate() {
        let values = teacher_values(shape, &[vote], Some((&share, &randomness)))?;
        let message = Teacher::new(index).answer(&keys.public, &round, &values, &randomness)?;
        server.add(&message)?;
    }

    // The server computes sum and argmax on ciphertexts. The student learns the label and nothing else.
    let answers = server.argmax(std::thread::available_parallelism()?, &|_, _| {})?;
    match keys.secret.open(&answers[0])? {
        Outcome::Label(label) => println!("the teachers' label is {label}"),
        Outcome::Reached => println!("the teachers agree"),
        Outcome::NoAnswer => println!("the teachers did not agree"),
    }
    Ok(())
}
