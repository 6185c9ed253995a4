//! Empty votes: labels on ciphertexts as in clear text, and messages of the same length as those of other votes.

use rand::RngExt;
use speed_aggregation::{Aggregator, ClearText, NoisyVotes, PrivacyNoise, Round, RoundSpec, Teacher, teacher_values};
use speed_core::fixture::draws;
use speed_core::random::Streams;
use speed_core::{Randomness, Vote};

use crate::protocol::common::{SOURCE, assert_same_winners, protocol, shape};

const CLASSES: u8 = 3;

#[test]
fn random_empty_votes_give_the_labels_of_clear_text_on_ciphertexts() {
    let mut rng = Streams::new(14).stream("empty votes", 0);
    let (teachers, queries) = (6, 3 + draws(1));
    let shape = shape(teachers, queries, CLASSES.into());
    let noise = PrivacyNoise::of_coins(4, teachers).expect("valid");
    let share = noise.share_of(teachers).expect("a share");
    let mut vote = |query: usize| -> Vote {
        // No teacher votes on query 0, and all vote on query 1.
        let is_empty = query == 0 || (query > 1 && rng.random::<f64>() < 0.5);
        (!is_empty).then(|| rng.random_range(0..CLASSES))
    };
    let mut values = Vec::new();
    for teacher in 0..teachers {
        let votes: Vec<Vote> = (0..queries).map(&mut vote).collect();
        let randomness = Randomness::simulation([teacher as u8; 32]);
        values.extend_from_slice(&teacher_values(shape, &votes, Some((&share, &randomness))).expect("no entropy"));
    }
    let votes = NoisyVotes::new(shape, noise.bound(shape).expect("bounded"), values).expect("valid");
    assert_same_winners(protocol(), &votes, "empty votes");
    assert_same_winners(protocol(), &votes.clone().with_parties(vec![3, 2, 1]).expect("six"), "empty votes of parties");
    assert_same_winners(protocol(), &votes.with_threshold(2), "empty votes with a threshold");
}

#[test]
fn a_query_without_votes_has_the_argmax_of_the_noise_or_no_answer() {
    let shape = shape(4, 40, CLASSES.into());
    let noise = PrivacyNoise::of_coins(4, 4).expect("valid");
    let share = noise.share_of(4).expect("a share");
    let values = (0..4_u8).flat_map(|teacher| {
        let source = Randomness::simulation([teacher; 32]);
        teacher_values(shape, &[None::<u8>; 40], Some((&share, &source))).expect("no entropy").to_vec()
    });
    let votes = NoisyVotes::new(shape, noise.bound(shape).expect("bounded"), values.collect()).expect("valid");
    let labels = ClearText.aggregate(&votes, &|_, _| {}).expect("in the clear").labels();
    assert!((0..CLASSES).all(|class| labels.contains(&Some(class))), "{labels:?}");
    // Sixteen coins, less eight, never exceed eight.
    let labels = ClearText.aggregate(&votes.with_threshold(9), &|_, _| {}).expect("in the clear").labels();
    assert_eq!(labels, [None; 40]);
}

#[test]
fn a_message_of_empty_votes_has_the_length_of_any_other() {
    let shape = shape(3, 2, CLASSES.into());
    let noise = PrivacyNoise::named("discrete-laplace", 1.0).expect("valid");
    let share = noise.share_of(3).expect("a share");
    let spec = RoundSpec::new(b"empty votes", shape, noise.bound(shape).expect("bounded"));
    let round = Round::new(RoundSpec { mechanism: Some(noise.mechanism()), ..spec }).expect("valid");
    let lengths = [[Some(2), Some(0)], [Some(2), None], [None, None]].map(|votes: [Vote; 2]| {
        let values = teacher_values(shape, &votes, Some((&share, &SOURCE))).expect("no entropy");
        let message = Teacher::new(1).answer(protocol().public_key(), &round, &values, &SOURCE).expect("in range");
        message.to_bytes().len()
    });
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
}
