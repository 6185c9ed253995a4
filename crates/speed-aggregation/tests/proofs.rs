//! Proofs of well-formed messages: honest proofs are accepted, and nothing else is. Needs the feature `proofs`:
//! `cargo test --release -p speed-aggregation --features proofs --test proofs -- --nocapture` also prints their cost.
#![expect(clippy::print_stdout, reason = "costs, for whoever asks with --nocapture")]

use std::time::Instant;

use speed_aggregation::error::{ProofError, TeacherError};
use speed_aggregation::proofs::{ProofKey, Proofs};
use speed_aggregation::{Encrypted, Message, Parameters, Round, RoundSpec, Server, Teacher};
use speed_core::{Randomness, VoteShape};

const SOURCE: Randomness = Randomness::simulation([5; 32]);

#[test]
fn only_honest_messages_pass_verification() {
    let threads = std::num::NonZeroUsize::MIN;
    let keys = Encrypted::new(&Parameters::TOURNAMENT_128, SOURCE, b"proofs", threads).expect("a simulation");
    let public = keys.public_key();
    let round = Round::new(RoundSpec::new(b"proofs", VoteShape::new(3, 1, 10).expect("a shape"), 400)).expect("valid");
    let values = [1, -200, 0, 3, 511, -511, 7, 0, 0, 90];

    let timed = Instant::now();
    let proof_key = ProofKey::generate(public.parameters(), &round, &SOURCE).expect("valid");
    println!("proof key {:.2?}", timed.elapsed());
    assert_eq!((proof_key.range_log(), round.largest_move()), (10, 512.0));
    let timed = Instant::now();
    let answer = |teacher| Teacher::new(teacher).answer_with_proof(public, &round, &values, &proof_key, &SOURCE);
    let (message, proof) = answer(0).expect("in range");
    println!("proof {:.2?}", timed.elapsed());
    let bytes = proof.to_bytes().expect("small");
    println!("{} bytes", bytes.len());
    let proof = Proofs::from_bytes(&bytes).expect("intact");
    let timed = Instant::now();
    proof_key.verify(public, &round, &message, &proof).expect("honest");
    println!("verification {:.2?}", timed.elapsed());

    let invalid = |message: &Message, proof: &Proofs| {
        matches!(proof_key.verify(public, &round, message, proof), Err(ProofError::Invalid { .. }))
    };
    // Another teacher's proof, and a message without a proof: the same values, encrypted without proofs.
    let (other, other_proof) = answer(1).expect("in range");
    assert!(invalid(&message, &other_proof) && invalid(&other, &proof));
    let plain = Teacher::new(0).answer(public, &round, &values, &SOURCE).expect("valid");
    assert!(invalid(&plain, &proof));
    // A message changed after its proof was made: one more vote for the last class.
    let mut changed = message.to_bytes();
    let body = changed.len() - 16 - 2;
    changed[body] = changed[body].wrapping_add(4);
    let end = changed.len() - 16;
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&changed[..end]);
    changed[end..].copy_from_slice(&digest[..16]);
    assert!(invalid(&Message::from_bytes(&changed).expect("well-formed"), &proof));
    // A value beyond the range cannot be proved.
    let error =
        Teacher::new(0).answer_with_proof(public, &round, &[512; 10], &proof_key, &SOURCE).expect_err("too wide");
    assert!(matches!(error, ProofError::Teacher(TeacherError::Value { max: 511 })));
    assert!(!error.to_string().contains("512"), "the value is secret: {error}");
    // A key for values of another range is refused before anything is encrypted or verified.
    let narrow = RoundSpec::new(b"narrow", VoteShape::new(3, 1, 10).expect("a shape"), 200);
    let narrow = Round::new(narrow).expect("valid");
    let error =
        Teacher::new(0).answer_with_proof(public, &narrow, &values, &proof_key, &SOURCE).expect_err("another range");
    assert!(matches!(error, ProofError::OtherRange { expected: 9, found: 10 }), "{error}");
    let error = proof_key.verify(public, &narrow, &message, &proof).expect_err("another range");
    assert!(matches!(error, ProofError::OtherRange { expected: 9, found: 10 }), "{error}");
    // Damaged bytes are refused or fail to verify.
    for position in (0..bytes.len()).step_by(37) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        if let Ok(damaged) = Proofs::from_bytes(&damaged) {
            assert!(invalid(&message, &damaged), "byte {position}");
        }
    }
    assert!(Proofs::from_bytes(&bytes[..bytes.len() - 1]).is_err());

    let mut server = Server::new(keys.evaluation_key().clone(), round.clone()).expect("valid");
    server.add_proven(&message, &proof, &proof_key).expect("honest");
    assert!(matches!(server.add_proven(&other, &proof, &proof_key), Err(ProofError::Invalid { teacher: 1 })));
    assert_eq!(server.received(), 1);
    server.add_proven(&other, &other_proof, &proof_key).expect("the refused teacher may still answer properly");
}
