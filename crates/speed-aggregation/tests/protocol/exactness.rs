//! The encrypted argmax equals the clear one, on any number of threads.

use rand::RngExt;
use speed_aggregation::error::{InexactCircuit, ServerError};
use speed_aggregation::{
    Aggregator, ClearText, EncryptedAnswer, EvaluationKey, NoisyVotes, Outcome, PrivacyNoise, PublicKey, Round,
    RoundKind, RoundSpec, Server, Teacher, generate_keys, teacher_values,
};
use speed_core::fixture::{draws, exhaustive};
use speed_core::random::Streams;
use speed_core::{Circuit, NoisePlacement, Randomness, Vote};

use crate::protocol::common::{
    P, SOURCE, answer, assert_same_winners, histogram, outcomes, protocol, server_of, shape, spec, threads, votes,
};

#[test]
fn the_encrypted_argmax_agrees_with_the_clear_one_on_all_kinds_of_counts() {
    let mut rng = Streams::new(11).stream("exactness", 0);
    let mut counts = Vec::new();
    counts.extend((0..draws(2)).map(|_| histogram(false, &mut rng)));
    counts.extend((0..draws(2)).map(|_| histogram(true, &mut rng)));
    // Ties: of all classes, of neighbours, of the first and the last, between the halves of the bracket, below zero;
    // and differences of one.
    counts.push(vec![3; 10]);
    counts.push(vec![0, 0, 40, 40, 0, 0, 0, 0, 0, 0]);
    counts.push(vec![125, 0, 0, 0, 0, 0, 0, 0, 0, 125]);
    counts.push(vec![0, 0, 0, 0, 0, 60, 0, 60, 60, 0]);
    counts.push(vec![-9, -5, -6, -5, -7, -8, -5, -9, -9, -9]);
    counts.push(vec![24, 25, 24, 25, 24, 25, 24, 26, 25, 26]);
    // The edges of the range: 250 + 2 * 1147 = 2544.
    counts.push(vec![-1147, 1397, -1147, 1397, -1147, -1147, -1147, -1147, -1147, 1396]);
    counts.push(vec![1397, -1147, 0, 0, 0, 0, 0, 0, -1147, 1397]);
    counts.push(vec![-1147, 1396, 0, -1147, 0, 0, 0, 0, 1397, 1397]);
    assert_same_winners(protocol(), &votes(&counts, 250, 1147, &mut rng), "ten classes");
    let parties = votes(&counts[..1], 6, 1147, &mut rng).with_parties(vec![3, 2, 1]).expect("six teachers");
    assert_same_winners(protocol(), &parties, "parties");
    // Empty votes of parties, of coins: no teacher votes on query 0, all vote on query 1.
    let (shape, noise) = (shape(6, 4, 3), PrivacyNoise::of_coins(4, 6).expect("valid"));
    let share = noise.share_of(6).expect("a share");
    let values = (0..6).flat_map(|teacher| {
        let mut vote = |query: usize| (query == 1 || query > 1 && rng.random()).then(|| rng.random_range(0..3));
        let votes: Vec<Vote> = (0..4).map(&mut vote).collect();
        let randomness = Randomness::simulation([teacher; 32]);
        teacher_values(shape, &votes, Some((&share, &randomness))).expect("no entropy").to_vec()
    });
    let votes = NoisyVotes::new(shape, noise.bound(shape).expect("bounded"), values.collect()).expect("valid");
    let votes = votes.with_parties(vec![3, 2, 1]).expect("six teachers");
    assert_same_winners(protocol(), &votes, "empty votes");
    assert_same_winners(protocol(), &votes.with_threshold(2), "empty votes with a threshold");
}

#[test]
fn other_numbers_of_classes_agree_too() {
    let mut rng = Streams::new(12).stream("classes", 0);
    let classes = if exhaustive() { &[2, 3, 7, 16, 17, 40, 128][..] } else { &[2, 16, 17] };
    for &classes in classes {
        let mut counts: Vec<Vec<i64>> =
            vec![(0..classes).map(|_| rng.random_range(-20..=20)).collect(), vec![1; classes]];
        counts[1][classes - 1] = 2;
        assert_same_winners(protocol(), &votes(&counts, 2, 200, &mut rng), &format!("{classes} classes"));
    }
}

#[test]
fn all_pairs_agrees_too() {
    let mut rng = Streams::new(13).stream("all pairs", 0);
    let aggregator = protocol().clone().with_circuit(Circuit::AllPairs).expect("exact");
    let mut counts = vec![histogram(true, &mut rng), vec![7, 9, 9, -3, 9, 8, 0, 1, 9, 2]];
    counts.extend(exhaustive().then(|| vec![-9; 10]));
    assert_same_winners(&aggregator, &votes(&counts, 3, 200, &mut rng), "all pairs");
    let counts = vec![vec![-1, 3], vec![4, 4]];
    assert_same_winners(&aggregator, &votes(&counts, 3, 200, &mut rng), "all pairs, two classes");
    let refused = protocol().clone().with_circuit(Circuit::Paper).expect_err("not exact");
    assert_eq!(refused, InexactCircuit { found: Circuit::Paper });
}

#[test]
fn a_simulation_gives_the_same_bytes_on_one_and_two_threads() {
    let run = |public: &PublicKey, evaluation: &EvaluationKey, count: usize| {
        let round = Round::new(spec("determinism", 1, 2, 3, 10)).expect("valid");
        let mut server = Server::new(evaluation.clone(), round.clone()).expect("valid").with_randomness(SOURCE);
        let message = Teacher::new(0).answer(public, &round, &[1, 0, 0, 0, 1, 0], &SOURCE).expect("valid");
        server.add(&message).expect("valid");
        let answers = server.argmax(threads(count), &|_, _| {}).expect("complete");
        (message.to_bytes(), answers.iter().map(EncryptedAnswer::to_bytes).collect::<Vec<_>>())
    };
    // The shared keys were generated on two threads. Answers depend on every bit of the keys that made them.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let (public, evaluation) = pool.install(|| {
        let keys = generate_keys(&P, &SOURCE).expect("simulated");
        (keys.public, keys.evaluation.expand())
    });
    let shared = protocol();
    assert!(run(&public, &evaluation, 1) == run(shared.public_key(), shared.evaluation_key(), 2), "bytes differ");
}

#[test]
fn a_threshold_gives_no_answer_exactly_when_the_maximum_is_below_it() {
    // With 15 classes "no answer" is the last outcome of one digit, with 16 the first that needs two.
    let mut cases = vec![(15, RoundKind::Labels, 1), (16, RoundKind::Labels, 2), (16, RoundKind::Check, 1)];
    cases.extend(exhaustive().then_some((3, RoundKind::Labels, 1)));
    for (classes, kind, digits) in cases {
        let maxima = [6, 7, 8, -5];
        let terms = RoundSpec { threshold: Some(7), kind, ..spec("threshold", 2, maxima.len(), classes, 20) };
        let round = Round::new(terms).expect("valid");
        assert_eq!(round.outcomes().digits(), digits);
        let mut server = server_of(&round);
        for teacher in 0..2 {
            let mut values = vec![-3; round.values()];
            for (query, maximum) in maxima.into_iter().enumerate() {
                // The last class wins, with its votes split between the two teachers.
                values[query * classes..(query + 1) * classes].fill(-3);
                values[(query + 1) * classes - 1] = if teacher == 0 { maximum - 2 } else { 2 };
            }
            server.add(&answer(&round, teacher, &values)).expect("valid");
        }
        let last = if kind == RoundKind::Check { Outcome::Reached } else { Outcome::Label(classes as u8 - 1) };
        assert_eq!(
            outcomes(&server),
            [Outcome::NoAnswer, last, last, Outcome::NoAnswer],
            "{classes} classes, {kind:?}"
        );
    }
}

#[test]
fn one_process_adds_the_servers_noise_and_keeps_the_threshold() {
    let aggregator = protocol();
    let mut rng = Streams::new(19).stream("confident", 0);
    let counts: Vec<Vec<i64>> = (0..6).map(|query| histogram(query % 2 == 0, &mut rng)).collect();
    let noise: Vec<i64> = (0..60).map(|_| rng.random_range(-40..=40)).collect();
    // With a threshold of a quarter of the votes, some maxima are below and some above.
    for threshold in [None, Some(70)] {
        let votes = votes(&counts, 3, 300, &mut rng).with_server_noise(noise.clone()).expect("a noise");
        let votes = threshold.into_iter().fold(votes, NoisyVotes::with_threshold);
        let clear = ClearText.aggregate(&votes, &|_, _| {}).expect("clear text cannot fail");
        let unanswered = clear.outcomes.iter().filter(|outcome| **outcome == Outcome::NoAnswer).count();
        assert_eq!(unanswered > 0 && unanswered < 6, threshold.is_some(), "{:?}", clear.outcomes);
        assert_same_winners(&aggregator.clone().with_label(&[u8::from(threshold.is_some())]), &votes, "central");
    }
}

#[test]
fn noise_of_the_server_is_added_to_the_votes() {
    let terms = RoundSpec { placement: NoisePlacement::Central, ..spec("central", 2, 2, 3, 50) };
    let round = Round::new(terms).expect("valid");
    let mut server = server_of(&round);
    for teacher in 0..2 {
        server.add(&answer(&round, teacher, &[1, 0, 0, 1, 0, 0])).expect("valid");
    }
    let refused = |error: Option<ServerError>| error.expect("refused").to_string();
    assert!(refused(server.close(2).err()).ends_with("is missing"));
    assert!(refused(server.argmax(threads(1), &|_, _| {}).err()).ends_with("is missing"));
    assert!(refused(server.add_noise(&[0; 5]).err()).starts_with("the server's noise has 5 values, expected 6"));
    server.add_noise(&[-4, -2, -1, 1, 0, 2]).expect("once");
    assert!(refused(server.add_noise(&[0; 6]).err()).ends_with("in the sum already"));
    assert_eq!(outcomes(&server), [Outcome::Label(2), Outcome::Label(0)]);

    let plain = Round::new(spec("distributed", 2, 2, 3, 50)).expect("valid");
    assert!(refused(server_of(&plain).add_noise(&[0; 6]).err()).ends_with("the server adds none"));
}

#[test]
fn encrypted_checks_agree_with_clear_ones_and_show_no_class() {
    let mut rng = Streams::new(15).stream("checks", 0);
    let mut cases = vec![(3, Circuit::AllPairs), (17, Circuit::Tournament)];
    if exhaustive() {
        cases.extend([
            (2, Circuit::Tournament),
            (10, Circuit::Tournament),
            (10, Circuit::AllPairs),
            (40, Circuit::Tournament),
        ]);
    }
    for (classes, circuit) in cases {
        let aggregator = protocol().clone().with_circuit(circuit).expect("exact");
        // The largest count is that of the first, the last and a middle class, below the threshold, at it and above it.
        let counts: Vec<Vec<i64>> =
            [(0, 24), (classes - 1, 25), (classes / 2, 24), (classes / 2, 26), (0, 90), (classes - 1, -3)]
                .into_iter()
                .map(|(top, most)| {
                    (0..classes)
                        .map(|class| if class == top { most } else { most - rng.random_range(0..=40) })
                        .collect()
                })
                .collect();
        let labels = votes(&counts, 90, 200, &mut rng).with_threshold(25);
        let votes = labels.clone().with_check(25);
        assert_same_winners(&aggregator, &votes, &format!("{classes} classes, {circuit:?}"));
        let clear = ClearText.aggregate(&votes, &|_, _| {}).expect("in the clear");
        assert_eq!(clear.reached(), [false, true, false, true, true, false]);
        // One digit, whatever the number of classes.
        let bytes = |votes: &NoisyVotes| {
            let one = votes.of_queries(&[0]).expect("a query");
            aggregator.aggregate(&one, &|_, _| {}).expect("in range").answer_bytes
        };
        let (check, label) = (bytes(&votes), bytes(&labels));
        assert!(if classes < 16 { check == label } else { check < label }, "{classes}: {check}, a label {label}");
    }
    // The server adds its noise to checks too.
    let counts = vec![vec![20, 3, 2], vec![9, 9, 7], vec![0, 25, 0]];
    let votes = votes(&counts, 25, 200, &mut rng).with_check(18);
    let votes = votes.with_server_noise(vec![-3, -3, -3, 9, 9, 9, -7, -7, -7]).expect("one value for each count");
    assert_same_winners(protocol(), &votes, "central");
    assert_eq!(ClearText.aggregate(&votes, &|_, _| {}).expect("in the clear").reached(), [false, true, true]);
}
