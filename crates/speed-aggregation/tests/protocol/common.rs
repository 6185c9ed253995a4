//! Keys, made once for a build, and small rounds.

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use rand::RngExt;
use sha2::{Digest, Sha256};
use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::protocol::{AnswerList, Signature};
use speed_aggregation::{
    Aggregator, ClearText, Encrypted, KeySet, Message, NoisyVotes, Outcome, Parameters, PublicKey, Round, RoundSpec,
    SecretKey, Server, Teacher, generate_keys,
};
use speed_core::fixture::fixture_of_this_test;
use speed_core::random::Stream;
use speed_core::{Randomness, VoteShape};

pub(crate) const P: Parameters = Parameters::TOURNAMENT_128;
pub(crate) const SOURCE: Randomness = Randomness::simulation([7; 32]);

pub(crate) fn threads(n: usize) -> NonZeroUsize {
    NonZeroUsize::new(n).expect("not zero")
}

/// The files of a set of keys.
pub(crate) const KEY_FILES: [&str; 3] = ["secret.key", "public.key", "evaluation.key"];

/// Returns the folder with the simulated keys of these parameters, which are made once for a build.
pub(crate) fn key_folder(parameters: &Parameters) -> PathBuf {
    fixture_of_this_test(&format!("keys-{}", parameters.name()), |folder| {
        let keys = generate_keys(parameters, &SOURCE).expect("a simulation needs no entropy");
        let bytes = [keys.secret.to_bytes().to_vec(), keys.public.to_bytes(), keys.evaluation.to_bytes()];
        KEY_FILES.iter().zip(bytes).for_each(|(name, bytes)| fs::write(folder.join(name), bytes).expect("a key"));
    })
}

/// Returns the simulated keys of these parameters.
pub(crate) fn keys(parameters: &Parameters) -> KeySet {
    let folder = key_folder(parameters);
    let [secret, public, evaluation] = KEY_FILES.map(|name| fs::read(folder.join(name)).expect("a key"));
    KeySet {
        secret: SecretKey::from_bytes(&secret).expect("a key"),
        public: PublicKey::from_bytes(&public).expect("a key"),
        evaluation: SeededEvaluationKey::from_bytes(&evaluation).expect("a key"),
    }
}

/// Returns the protocol with the keys of [`P`].
pub(crate) fn protocol() -> &'static Encrypted {
    static PROTOCOL: OnceLock<Encrypted> = OnceLock::new();
    PROTOCOL.get_or_init(|| Encrypted::with_keys(keys(&P), SOURCE, b"tests", threads(2)).expect("threads"))
}

/// Splits the counts of each query over teachers; the last teacher sends the remainder.
pub(crate) fn votes(counts: &[Vec<i64>], teachers: usize, noise_bound: u64, rng: &mut Stream) -> NoisyVotes {
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
    NoisyVotes::new(shape(teachers, counts.len(), classes), noise_bound, values).expect("valid")
}

pub(crate) fn assert_same_winners(aggregator: &Encrypted, votes: &NoisyVotes, what: &str) {
    let seen = Mutex::new(vec![0; votes.shape().queries()]);
    let clear = ClearText.aggregate(votes, &|_, _| {}).expect("clear text cannot fail");
    let encrypted =
        aggregator.aggregate(votes, &|query, _| seen.lock().expect("no panic")[query] += 1).expect("in range");
    assert_eq!(encrypted.outcomes, clear.outcomes, "{what}");
    assert!(seen.lock().expect("no panic").iter().all(|&times| times == 1), "{what}: progress");
    assert!(encrypted.query_times.iter().all(|time| !time.is_zero()), "{what}: times");
}

/// Returns a histogram of 250 votes with noise, as real ensembles give: a clear plurality, or `uniform` votes.
pub(crate) fn histogram(uniform: bool, rng: &mut Stream) -> Vec<i64> {
    let mut counts = vec![0; 10];
    let favourite = rng.random_range(0..10);
    let agreement = rng.random_range(0.4..0.95);
    for _ in 0..250 {
        let class = if uniform || rng.random::<f64>() > agreement { rng.random_range(0..10) } else { favourite };
        counts[class] += 1;
    }
    // Geometric steps of scale 10 in both directions: about the noise of the paper.
    for count in &mut counts {
        *count += (rng.random::<f64>().ln() * -10.0) as i64 - (rng.random::<f64>().ln() * -10.0) as i64;
    }
    counts
}

pub(crate) fn shape(teachers: usize, queries: usize, classes: usize) -> VoteShape {
    VoteShape::new(teachers, queries, classes).expect("a shape")
}

/// Returns the default terms of a round.
pub(crate) fn spec(label: &str, teachers: usize, queries: usize, classes: usize, noise_bound: u64) -> RoundSpec {
    RoundSpec::new(label.as_bytes(), shape(teachers, queries, classes), noise_bound)
}

pub(crate) fn round(label: &str) -> Round {
    Round::new(spec(label, 3, 2, 3, 100)).expect("valid")
}

pub(crate) fn message(label: &str, teacher: usize) -> Message {
    answer(&round(label), teacher, &[1, 2, 3, 4, 5, 6])
}

/// Returns a teacher's message with these values.
pub(crate) fn answer(round: &Round, teacher: usize, values: &[i64]) -> Message {
    Teacher::new(teacher).answer(protocol().public_key(), round, values, &SOURCE).expect("valid")
}

/// Returns a round's server without messages.
pub(crate) fn server_of(round: &Round) -> Server {
    let server = Server::new(protocol().evaluation_key().clone(), round.clone());
    server.expect("valid").with_randomness(SOURCE)
}

/// Returns the outcomes of a server's answers, which are the same for the key and for its two shares.
pub(crate) fn outcomes(server: &Server) -> Vec<Outcome> {
    let answers = server.argmax(threads(2), &|_, _| {}).expect("complete");
    let key = protocol().secret_key();
    let (student, opener) = key.split(speed_core::Digest::of("evaluation key"), &SOURCE).expect("simulated");
    let list = AnswerList::new(server.round(), server.key().id(), server.statuses().to_vec(), &answers);
    let result = (speed_core::Digest::of("result"), 0);
    let part = opener.part(&list.expect("complete"), result, |_| Signature::from_bytes([9; 64])).expect("of this key");
    let joint: Vec<_> = answers.iter().map(|answer| student.open(answer, &part).expect("an outcome")).collect();
    let alone: Vec<_> = answers.iter().map(|answer| key.open(answer).expect("an outcome")).collect();
    assert_eq!(joint, alone);
    alone
}

/// Returns the same bytes with a matching checksum, as a forger would make it.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 16;
    let digest = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&digest[..16]);
    bytes
}

/// Returns the same bytes with another number in the four-byte field at `offset`.
pub(crate) fn with_field(bytes: &[u8], offset: usize, value: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    sealed(bytes)
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
