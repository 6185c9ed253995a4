//! The protocol from outside: exactness, determinism, messages and refusals. Keys are made once for the whole process.

use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock};

use rand::RngExt;
use speed_aggregation::{
    AggregationError, Aggregator, Circuit, ClearText, DecodeError, EncodingError, Encrypted, EncryptedAnswer,
    EvaluationKey, KeySource, Message, NoisyVotes, OpenError, Parameters, PublicKey, RangeError, Round, Server,
    ServerError, Teacher, TeacherError, generate_keys,
};
use speed_random::{Stream, Streams};

const P: Parameters = Parameters::TOURNAMENT_128;
const SOURCE: KeySource = KeySource::Simulation([7; 32]);

fn threads(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).expect("not zero")
}

fn protocol() -> &'static Encrypted {
    static PROTOCOL: OnceLock<Encrypted> = OnceLock::new();
    PROTOCOL.get_or_init(|| Encrypted::new(&P, SOURCE, b"tests", threads(2)).expect("a simulation needs no entropy"))
}

/// Splits the counts of each query over teachers: the last teacher sends what is missing.
fn votes(counts: &[Vec<i64>], teachers: usize, noise_bound: u64, rng: &mut Stream) -> NoisyVotes {
    let classes = counts[0].len();
    let flat: Vec<i64> = counts.concat();
    let mut rest = flat.clone();
    let mut values = Vec::new();
    for _ in 1..teachers {
        for left in &mut rest {
            let share = rng.random_range(-30..=30);
            *left -= share;
            values.push(share);
        }
    }
    values.extend(rest);
    NoisyVotes::new(teachers, counts.len(), classes, noise_bound, values).expect("valid")
}

fn assert_same_winners(aggregator: &Encrypted, votes: &NoisyVotes, what: &str) {
    let seen = Mutex::new(vec![0; votes.queries()]);
    let clear = ClearText.aggregate(votes, &|_, _| {}).expect("clear text cannot fail");
    let encrypted =
        aggregator.aggregate(votes, &|query, _| seen.lock().expect("no panic")[query] += 1).expect("in range");
    assert_eq!(encrypted.winners, clear.winners, "{what}");
    assert!(seen.lock().expect("no panic").iter().all(|&times| times == 1), "{what}: progress");
    assert!(encrypted.query_times.iter().all(|time| !time.is_zero()), "{what}: times");
}

/// A histogram of 250 votes with noise, as real ensembles give: a clear plurality, or `uniform` votes.
fn histogram(uniform: bool, rng: &mut Stream) -> Vec<i64> {
    let mut counts = vec![0; 10];
    let favourite = rng.random_range(0..10);
    let agreement = rng.random_range(0.4..0.95);
    for _ in 0..250 {
        let class = if uniform || rng.random::<f64>() > agreement { rng.random_range(0..10) } else { favourite };
        counts[class] += 1;
    }
    // Geometric steps of scale 10 both ways: about the noise of the paper.
    for count in &mut counts {
        *count += (rng.random::<f64>().ln() * -10.0) as i64 - (rng.random::<f64>().ln() * -10.0) as i64;
    }
    counts
}

#[test]
fn the_encrypted_argmax_agrees_with_the_clear_one_on_all_kinds_of_counts() {
    let mut rng = Streams::new(11).stream("exactness", 0);
    let mut counts = Vec::new();
    counts.extend((0..9).map(|_| histogram(false, &mut rng)));
    counts.extend((0..9).map(|_| histogram(true, &mut rng)));
    // Ties: of all, of neighbours, of first and last, between the halves of the bracket, below zero; off by one.
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
}

#[test]
fn other_numbers_of_classes_agree_too() {
    let mut rng = Streams::new(12).stream("classes", 0);
    for classes in [2, 3, 7, 16, 17, 40] {
        let mut counts: Vec<Vec<i64>> =
            vec![(0..classes).map(|_| rng.random_range(-20..=20)).collect(), vec![1; classes]];
        counts[1][classes - 1] = 2;
        assert_same_winners(protocol(), &votes(&counts, 2, 200, &mut rng), &format!("{classes} classes"));
    }
}

#[test]
fn all_pairs_agrees_too() {
    let mut rng = Streams::new(13).stream("all pairs", 0);
    let aggregator = protocol().clone().with_circuit(Circuit::AllPairs);
    let counts = vec![histogram(true, &mut rng), vec![7, 9, 9, -3, 9, 8, 0, 1, 9, 2], vec![-9; 10]];
    assert_same_winners(&aggregator, &votes(&counts, 3, 200, &mut rng), "all pairs");
    let counts = vec![vec![-1, 3], vec![4, 4]];
    assert_same_winners(&aggregator, &votes(&counts, 3, 200, &mut rng), "all pairs, two classes");
}

#[test]
fn a_simulation_gives_the_same_bytes_on_one_and_two_threads() {
    let run = |public: &PublicKey, evaluation: &EvaluationKey, count: usize| {
        let round = Round::new(b"determinism", 2, 3, 1, 10).expect("valid");
        let mut server = Server::new(evaluation.clone(), round.clone()).expect("valid").with_source(SOURCE);
        let message = Teacher::new(0).answer(public, &round, &[1, 0, 0, 0, 1, 0], &SOURCE).expect("valid");
        server.add(0, &message).expect("valid");
        let answers = server.argmax(threads(count), &|_, _| {}).expect("complete");
        (message.to_bytes(), answers.iter().map(EncryptedAnswer::to_bytes).collect::<Vec<_>>())
    };
    // The shared keys were made on two threads. Answers depend on every bit of the keys that made them.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    let (public, evaluation) = pool.install(|| {
        let keys = generate_keys(&P, &SOURCE).expect("simulated");
        (keys.public, keys.evaluation.expand())
    });
    let shared = protocol();
    assert!(run(&public, &evaluation, 1) == run(shared.public_key(), shared.evaluation_key(), 2), "bytes differ");
}

#[test]
fn the_operating_system_gives_fresh_bytes_every_time() {
    let keys = protocol();
    let round = Round::new(b"fresh", 1, 2, 1, 0).expect("valid");
    let answer = || {
        Teacher::new(0)
            .answer(keys.public_key(), &round, &[0, 1], &KeySource::OperatingSystem)
            .expect("entropy")
            .to_bytes()
    };
    assert_ne!(answer(), answer());
}

fn round(label: &str) -> Round {
    Round::new(label.as_bytes(), 2, 3, 3, 100).expect("valid")
}

fn message(label: &str, teacher: usize) -> Message {
    Teacher::new(teacher).answer(protocol().public_key(), &round(label), &[1, 2, 3, 4, 5, 6], &SOURCE).expect("valid")
}

#[test]
fn a_message_survives_the_wire_and_has_the_documented_size() {
    let original = message("wire", 1);
    let bytes = original.to_bytes();
    let read = Message::from_bytes(&bytes).expect("intact");
    assert_eq!((read.teacher(), read.queries(), read.classes(), read.round()), (1, 2, 3, original.round()));
    assert_eq!(read.to_bytes(), bytes);
    let size = |queries, classes| {
        let round = Round::new(b"size", queries, classes, 1, 0).expect("valid");
        let values = vec![0; round.values()];
        Teacher::new(0).answer(protocol().public_key(), &round, &values, &SOURCE).expect("valid").to_bytes().len()
    };
    assert_eq!(size(1, 10), 16_536);
    assert_eq!(size(100, 10), 24_456);
    assert_eq!(size(300, 10), 72 + 2 * 8 * 2048 + 8 * 3000);
}

#[test]
fn the_bytes_of_a_simulated_message_are_pinned() {
    // Keys and encryption use integers only, so a simulation gives these bytes on every machine. A change means that
    // the format, a derivation of seeds or a parameter changed: raise the format's version.
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(message("pinned", 2).to_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "b8aff3e0a8550925bf56db11e1f6dfca9dff5b0260b0a715ed9dbc977911a433");
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = message("damage", 0).to_bytes();
    for length in [0, 1, 8, 12, 27, 28, 60, 72, bytes.len() - 17, bytes.len() - 1] {
        assert!(Message::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    let longer = [bytes.clone(), vec![0]].concat();
    assert!(matches!(Message::from_bytes(&longer), Err(DecodeError::Checksum)));
    // One bit in every header byte, and in some of the others.
    for position in (0..72).chain((72..bytes.len()).step_by(997)).chain([bytes.len() - 1]) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << (position % 8);
        assert!(Message::from_bytes(&damaged).is_err(), "byte {position}");
    }
    assert!(matches!(EncryptedAnswer::from_bytes(&bytes), Err(DecodeError::Kind { expected: 2, found: 1 })));
    let mut newer = bytes.clone();
    newer[8] = 2;
    assert!(matches!(Message::from_bytes(&newer), Err(DecodeError::Version { expected: 1, found: 2 })));
}

#[test]
fn a_lying_header_with_a_correct_checksum_is_refused_without_allocating() {
    use sha2::{Digest, Sha256};
    let bytes = message("header", 0).to_bytes();
    for (field, value) in
        [(44, u32::MAX), (48, u32::MAX), (48, 0), (48, 1 << 20), (48, 3), (52, 257), (52, 0), (52, 256)]
    {
        let mut forged = bytes.clone();
        forged[field..field + 4].copy_from_slice(&value.to_le_bytes());
        let end = forged.len() - 16;
        let digest = Sha256::digest(&forged[..end]);
        forged[end..].copy_from_slice(&digest[..16]);
        let error = Message::from_bytes(&forged).expect_err("forged");
        assert!(matches!(error, DecodeError::Field { .. } | DecodeError::Length { .. }), "{field}: {error}");
    }
}

#[test]
fn the_server_refuses_and_names_the_teacher_and_keeps_its_sum() {
    let keys = protocol();
    let mut server = Server::new(keys.evaluation_key().clone(), round("refusals")).expect("valid");
    let good = message("refusals", 0);
    server.add(0, &good).expect("valid");
    assert!(matches!(server.add(0, &good), Err(ServerError::Duplicate { teacher: 0 })));
    assert!(matches!(server.add(1, &good), Err(ServerError::WrongTeacher { teacher: 1, found: 0 })));
    assert!(matches!(server.add(3, &good), Err(ServerError::UnknownTeacher { teacher: 3, teachers: 3 })));
    let other = message("another round", 1);
    assert!(matches!(server.add(1, &other), Err(ServerError::WrongRound { teacher: 1, .. })));
    assert_eq!(server.received(), 1);
    let error = server.argmax(threads(1), &|_, _| {}).expect_err("incomplete");
    assert!(matches!(&error, ServerError::Missing { missing, teachers: 3 } if *missing == [1, 2]));
    assert_eq!(error.to_string(), "2 of 3 teachers have not answered, the first of them teacher 1");

    // A header that claims another shape of the same length for the same round.
    use sha2::{Digest, Sha256};
    let mut forged = message("refusals", 1).to_bytes();
    forged[48..52].copy_from_slice(&3_u32.to_le_bytes());
    forged[52..56].copy_from_slice(&2_u32.to_le_bytes());
    let end = forged.len() - 16;
    let digest = Sha256::digest(&forged[..end]);
    forged[end..].copy_from_slice(&digest[..16]);
    let forged = Message::from_bytes(&forged).expect("well-formed");
    assert!(matches!(server.add(1, &forged), Err(ServerError::Shape { teacher: 1, expected: (2, 3), found: (3, 2) })));
    // The refused teacher may still answer properly.
    server.add(1, &message("refusals", 1)).expect("valid");
}

#[test]
fn a_teacher_refuses_what_it_cannot_encrypt() {
    let key = protocol().public_key();
    let answer = |teacher, round: &Round, values: &[i64]| Teacher::new(teacher).answer(key, round, values, &SOURCE);
    let round = round("teacher");
    assert!(matches!(answer(3, &round, &[0; 6]), Err(TeacherError::Unknown { index: 3, teachers: 3 })));
    assert!(matches!(answer(0, &round, &[0; 5]), Err(TeacherError::Shape { found: 5, queries: 2, classes: 3 })));
    let error = answer(0, &round, &[0, 0, 0, 0, i64::MIN, 0]).expect_err("too large");
    assert!(matches!(error, TeacherError::Value { query: 1, class: 1, max: 8192 }));
    let wide = Round::new(b"wide", 1, 2, 300, 1123).expect("a round, but not for these parameters");
    let expected = EncodingError::Range(RangeError { needed: 2546, supported: 2544 });
    assert!(matches!(answer(0, &wide, &[0; 2]), Err(TeacherError::Encoding(error)) if error == expected));
}

#[test]
fn a_round_out_of_range_is_refused_by_the_server_and_the_aggregator() {
    let keys = protocol();
    let expected = EncodingError::Range(RangeError { needed: 2546, supported: 2544 });
    let wide = Round::new(b"wide", 1, 2, 300, 1123).expect("a round");
    assert!(matches!(Server::new(keys.evaluation_key().clone(), wide), Err(ServerError::Encoding(e)) if e == expected));
    let votes = NoisyVotes::new(300, 1, 2, 1123, vec![0; 600]).expect("valid");
    let error = protocol().aggregate(&votes, &|_, _| {}).expect_err("out of range");
    assert!(matches!(error, AggregationError::Encoding(e) if e == expected));
}

#[test]
fn noise_beyond_its_bound_is_an_error_and_not_a_wrong_label() {
    let votes = NoisyVotes::new(1, 2, 3, 5, vec![0, 1, 0, 1500, -1045, 0]).expect("valid");
    let error = protocol().aggregate(&votes, &|_, _| {}).expect_err("too noisy");
    assert!(matches!(
        error,
        AggregationError::NoiseBound { query: 1, source: RangeError { needed: 2545, supported: 2544 } }
    ));
}

#[test]
fn an_answer_survives_the_wire_and_opens_with_its_key_only() {
    let keys = protocol();
    let round = Round::new(b"answer", 1, 3, 1, 0).expect("valid");
    let mut server = Server::new(keys.evaluation_key().clone(), round.clone()).expect("valid");
    server
        .add(0, &Teacher::new(0).answer(keys.public_key(), &round, &[0, 0, 1], &SOURCE).expect("valid"))
        .expect("valid");
    let answer = server.argmax(threads(1), &|_, _| {}).expect("complete").remove(0);
    let bytes = answer.to_bytes();
    let read = EncryptedAnswer::from_bytes(&bytes).expect("intact");
    assert_eq!(read, answer);
    assert_eq!((read.query(), read.round()), (0, server.round_id()));
    assert_eq!(keys.secret_key().open(&read), Ok(2));
    assert!(EncryptedAnswer::from_bytes(&bytes[..bytes.len() - 1]).is_err());

    use sha2::{Digest, Sha256};
    let forge = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut forged = bytes.clone();
        change(&mut forged);
        let end = forged.len() - 16;
        let digest = Sha256::digest(&forged[..end]);
        forged[end..].copy_from_slice(&digest[..16]);
        keys.secret_key().open(&EncryptedAnswer::from_bytes(&forged).expect("well-formed"))
    };
    assert!(matches!(forge(&|b| b[12] ^= 1), Err(OpenError::Key { .. })));
    // The last body byte before the checksum: adds half a turn.
    let body = bytes.len() - 17;
    assert_eq!(
        forge(&|b| b[body] = b[body].wrapping_add(0x10)),
        Err(OpenError::Class { query: 0, class: 3, classes: 3 })
    );
}

#[test]
fn secrets_are_not_printed() {
    let keys = protocol();
    assert!(format!("{:?}", keys.secret_key()).ends_with(", ..)"));
    assert_eq!(format!("{SOURCE:?}"), "Simulation(..)");
    for text in [format!("{:?}", message("debug", 0)), format!("{:?}", protocol())] {
        assert!(text.len() < 200, "{text}");
    }
}
