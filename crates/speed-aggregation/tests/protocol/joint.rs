//! Joint openings of answers that the circuits computed.

use rand::RngExt;
use speed_aggregation::protocol::{AnswerList, OpeningPart, Signature};
use speed_aggregation::{Outcome, Parameters, Round, RoundKind, RoundSpec, Server, Teacher};
use speed_core::fixture::{draws, exhaustive};
use speed_core::random::Streams;
use speed_core::{Digest, Randomness};

use crate::protocol::common::{SOURCE, keys, spec, threads};

fn sign(_: Digest) -> Signature {
    Signature::from_bytes([9; 64])
}

/// Both openings of the answers of a round whose teachers send counts at random.
fn compare(parameters: &Parameters, spec: RoundSpec) -> Vec<Outcome> {
    let keys = keys(parameters);
    let (student, opener) =
        keys.secret.split(Digest::of(keys.evaluation.to_bytes()), &SOURCE).expect("a simulation needs no entropy");
    let round = Round::new(spec).expect("valid");
    let mut server = Server::new(keys.evaluation.expand(), round.clone())
        .expect("valid")
        .with_randomness(Randomness::OperatingSystem);
    let mut stream = Streams::new(5).stream("joint", 0);
    for teacher in 0..round.shape().teachers() {
        let values: Vec<i64> = (0..round.values()).map(|_| stream.random_range(-20..=20)).collect();
        server
            .add(&Teacher::new(teacher).answer(&keys.public, &round, &values, &SOURCE).expect("valid"))
            .expect("valid");
    }
    let answers = server.argmax(threads(2), &|_, _| {}).expect("complete");
    let list = AnswerList::new(&round, keys.public.id(), server.statuses().to_vec(), &answers).expect("complete");
    let of = (Digest::of(list.to_bytes()), 0);
    let part = opener.part(&list, of, sign).expect("of this key");
    assert_eq!(part.to_bytes().len(), OpeningPart::size(&round));
    let part = OpeningPart::from_bytes(&part.to_bytes()).expect("intact");
    assert!(part.agrees_with(&round) && part.round() == list.round());
    let joint: Vec<Outcome> = list.answers().map(|answer| student.open(&answer, &part).expect("an outcome")).collect();
    let alone: Vec<Outcome> = list.answers().map(|answer| keys.secret.open(&answer).expect("an outcome")).collect();
    assert_eq!(joint, alone);
    joint
}

#[test]
fn a_joint_opening_of_computed_answers_gives_the_outcome_of_the_key() {
    let narrow = Parameters::TOURNAMENT_128;
    let labels = compare(&narrow, spec("ten classes", 3, draws(4), 10, 100));
    assert!(labels.iter().any(|label| label != &labels[0]), "{labels:?}");
    let thresholds = compare(&narrow, RoundSpec { threshold: Some(32), ..spec("threshold", 3, draws(4), 4, 100) });
    assert!(thresholds.contains(&Outcome::NoAnswer) && thresholds.iter().any(|outcome| outcome.label().is_some()));
    let digits = compare(&narrow, spec("two digits", 3, draws(4), 40, 100));
    assert!(digits.iter().any(|outcome| outcome.label() > Some(15)), "{digits:?}");
    let check = RoundSpec { threshold: Some(32), kind: RoundKind::Check, ..spec("check", 3, draws(4), 4, 100) };
    assert!(compare(&narrow, check).contains(&Outcome::NoAnswer));
    if exhaustive() {
        compare(&Parameters::WIDE_128, spec("wide", 3, draws(1), 10, 2_000));
    }
}
