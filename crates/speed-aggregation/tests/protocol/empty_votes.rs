//! Empty votes: labels of the noise alone, and messages of the same length as those of other votes.

use speed_aggregation::{Aggregator, ClearText, NoisyVotes, PrivacyNoise, Round, RoundSpec, teacher_values};
use speed_core::{Randomness, Vote};

use crate::protocol::common::{SOURCE, answer, shape};

const CLASSES: u8 = 3;

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
        answer(&round, 1, &values).to_bytes().len()
    });
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
}
