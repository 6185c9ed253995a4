//! Every decoder, with valid inputs and the memory that it may use.

use std::num::NonZeroUsize;

use npyz::WriterBuilder;
use speed_aggregation::{
    AnswerList, EncryptedAnswer, EvaluationKey, KeySet, Message, Parameters, PrivacyNoise, PublicKey, Round, RoundSpec,
    SecretKey, SeededEvaluationKey, Server, Teacher, generate_keys,
};
use speed_core::{Digest, NoisePlacement, Randomness, RandomnessKind, VoteShape};
use speed_roles::{RoundFile, Terms, parse_labels};

/// Decodes, and says whether that went well.
type Decoder = Box<dyn Fn(&[u8]) -> bool>;

pub(crate) struct Target {
    /// After how many inputs the clock is read.
    pub(crate) stride: u64,
    pub(crate) inputs: Vec<Vec<u8>>,
    /// True if files end with a checksum.
    pub(crate) sealed: bool,
    pub(crate) decode: Decoder,
    /// Most bytes that decoding an input of so many bytes may allocate.
    pub(crate) limit: fn(usize) -> usize,
}

/// The content of a binary file is copied at most once.
fn copied_once(length: usize) -> usize {
    length + (16 << 10)
}

/// Text makes strings, keys and error messages; labels of a byte become numbers of eight.
fn text(length: usize) -> usize {
    32 * length + (64 << 10)
}

/// A secret key holds its bits as words.
fn bits(length: usize) -> usize {
    copied_once(64 * length)
}

/// A server's sum, and the plans of its transforms, exist before its state is read.
fn state(length: usize) -> usize {
    2 * length + (1 << 20)
}

fn round(label: &[u8], queries: usize, classes: usize, threshold: Option<i64>) -> Round {
    let shape = VoteShape::new(2, queries, classes).expect("a shape");
    Round::new(RoundSpec { min_teachers: 1, threshold, ..RoundSpec::new(label, shape, 40) }).expect("valid")
}

const SOURCE: Randomness = Randomness::simulation([3; 32]);

fn keys() -> KeySet {
    generate_keys(&Parameters::TOURNAMENT_128, &SOURCE).expect("a simulation needs no entropy")
}

/// Messages of two teachers, and the state of the server that has them.
fn collect(round: &Round, public: &PublicKey, key: &EvaluationKey) -> (Vec<Vec<u8>>, Server) {
    let mut server = Server::new(key.clone(), round.clone()).expect("valid").with_randomness(SOURCE);
    let mut messages = Vec::new();
    for teacher in 0..2 {
        let values: Vec<i64> = (0..round.values() as i64).map(|value| value * 7 % 5 - 1).collect();
        let message = Teacher::new(teacher).answer(public, round, &values, &SOURCE).expect("valid");
        server.add(teacher, &message).expect("valid");
        messages.push(message.to_bytes());
    }
    server.close(2).expect("all");
    (messages, server)
}

/// A round whose answers have one digit, and one whose answers have two.
fn two_rounds() -> [Round; 2] {
    [round(b"first", 2, 3, Some(1)), round(b"second", 1, 20, None)]
}

fn binary(inputs: Vec<Vec<u8>>, decode: impl Fn(&[u8]) -> bool + 'static) -> Target {
    Target { stride: 16, inputs, sealed: true, decode: Box::new(decode), limit: copied_once }
}

/// The name of a target, and how to make it.
type Named = (&'static str, fn() -> Target);

/// All targets.
pub(crate) const ALL: [Named; 9] = [
    ("message", messages),
    ("answer", answers),
    ("result", results),
    ("state", server_state),
    ("secret-key", secret_key),
    ("public-key", || binary(vec![keys().public.to_bytes()], |bytes| PublicKey::from_bytes(bytes).is_ok())),
    ("evaluation-key", || {
        let inputs = vec![keys().evaluation.to_bytes()];
        Target { stride: 1, ..binary(inputs, |bytes| SeededEvaluationKey::from_bytes(bytes).is_ok()) }
    }),
    ("round-file", round_file),
    ("votes", votes),
];

fn messages() -> Target {
    let keys = keys();
    let key = keys.evaluation.expand();
    let inputs = two_rounds().iter().flat_map(|round| collect(round, &keys.public, &key).0).collect();
    binary(inputs, |bytes| Message::from_bytes(bytes).is_ok())
}

/// The answers of both rounds, and their results.
fn answered() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let keys = keys();
    let key = keys.evaluation.expand();
    let (mut answers, mut results) = (Vec::new(), Vec::new());
    for round in two_rounds() {
        let server = collect(&round, &keys.public, &key).1;
        let list = server.argmax(NonZeroUsize::MIN, &|_, _| {}).expect("complete");
        answers.extend(list.iter().map(EncryptedAnswer::to_bytes));
        let result = AnswerList::new(&round, key.id(), server.statuses().to_vec(), &list);
        results.push(result.expect("complete").to_bytes());
    }
    (answers, results)
}

fn answers() -> Target {
    binary(answered().0, |bytes| EncryptedAnswer::from_bytes(bytes).is_ok())
}

fn results() -> Target {
    binary(answered().1, |bytes| AnswerList::from_bytes(bytes).is_ok())
}

fn server_state() -> Target {
    let keys = keys();
    let key = keys.evaluation.expand();
    let [round, _] = two_rounds();
    let state_of_round = collect(&round, &keys.public, &key).1.state().expect("closed");
    let decode = move |bytes: &[u8]| Server::resume(key.clone(), round.clone(), bytes).is_ok();
    Target { limit: state, ..binary(vec![state_of_round], decode) }
}

fn secret_key() -> Target {
    Target {
        limit: bits,
        ..binary(vec![keys().secret.to_bytes().to_vec()], |bytes| SecretKey::from_bytes(bytes).is_ok())
    }
}

fn round_file() -> Target {
    let decode = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| RoundFile::from_toml(text).is_ok());
    Target { stride: 16, inputs: rounds(&keys().public), sealed: false, decode: Box::new(decode), limit: text }
}

fn rounds(key: &PublicKey) -> Vec<Vec<u8>> {
    let terms = Terms {
        name: "a round".into(),
        shape: VoteShape::new(250, 100, 10).expect("a shape"),
        query_list: Some(Digest::from_bytes([3; 32])),
        min_teachers: 200,
        noise: PrivacyNoise::named("discrete-laplace", 0.1).expect("valid"),
        placement: NoisePlacement::Distributed,
        threshold: Some(-7),
        randomness: RandomnessKind::Simulation,
    };
    let other = Terms {
        query_list: None,
        threshold: None,
        randomness: RandomnessKind::OperatingSystem,
        placement: NoisePlacement::Central,
        ..terms.clone()
    };
    [terms, other].map(|terms| RoundFile::new(&terms, key).expect("valid").to_toml().into_bytes()).into()
}

fn votes() -> Target {
    let mut bytes = Vec::new();
    let mut writer =
        npyz::WriteOptions::new().default_dtype().shape(&[4]).writer(&mut bytes).begin_nd().expect("memory");
    writer.extend([0_i32, 2, 1, 1]).expect("memory");
    writer.finish().expect("memory");
    let inputs = vec![bytes, b"0\n2\n1\n1\n".to_vec(), b"query,label\n0,0\n1,2\n2,1\n3,1\n".to_vec()];
    Target {
        stride: 16,
        inputs,
        sealed: false,
        decode: Box::new(|bytes| parse_labels(bytes, 4, 3).is_ok()),
        limit: text,
    }
}
