//! Every decoder, with valid inputs and the memory that it may use.

use std::num::NonZeroUsize;
use std::str::FromStr as _;
use std::sync::LazyLock;

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey as _;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use npyz::WriterBuilder;
use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::log::{LogEntry, LogEvent, Receipt, RoundLog};
use speed_aggregation::proofs::{ProofKey, Proofs};
use speed_aggregation::protocol::{
    AnswerList, AnswerSeed, ExactCircuit, OpeningPart, RevealedSeed, RoundId, Signature, SignedResult, Submission,
    Verification,
};
use speed_aggregation::{
    EncryptedAnswer, EvaluationKey, OpenerShare, Parameters, PrivacyNoise, PublicKey, Round, RoundSpec, SecretKey,
    Server, StudentShare, Teacher, generate_keys,
};
use speed_core::{Classes, Digest, NoisePlacement, Randomness, RandomnessKind, VoteShape};
use speed_round::{NamedQueries, Party, QueryNames, Question, Role, Roster, RoundFile, Terms, parse_answer};

/// Decodes, and returns whether decoding succeeded.
type Decoder = Box<dyn Fn(&[u8]) -> bool>;

pub(crate) struct Target {
    /// Number of inputs between two readings of the clock.
    pub(crate) stride: u64,
    pub(crate) inputs: Vec<Vec<u8>>,
    /// True if files end with a checksum.
    pub(crate) sealed: bool,
    pub(crate) decode: Decoder,
    /// The largest number of bytes that decoding may allocate, from the length of the input.
    pub(crate) limit: fn(usize) -> usize,
}

/// The content of a binary file is copied at most once.
fn copied_once(length: usize) -> usize {
    length + (16 << 10)
}

/// Labels of one byte become numbers of eight bytes.
fn text(length: usize) -> usize {
    32 * length + (64 << 10)
}

/// A name of one letter becomes two texts, entries of two tables, and a list of a group's pictures.
fn names(length: usize) -> usize {
    64 * length + (64 << 10)
}

/// TOML turns three letters into a value of a hundred bytes before it checks for unknown keys.
fn document(length: usize) -> usize {
    200 * length + (64 << 10)
}

/// An evaluation key begins with a public key, whose mask is expanded from its seed.
/// The bodies of bootstrapping keys have six bytes in the file, and eight in memory.
fn with_public_key(length: usize) -> usize {
    length + length / 3 + (64 << 10)
}

/// The mask of a public key is expanded from its seed.
fn grown(length: usize) -> usize {
    3 * length + (16 << 10)
}

/// A secret key stores its bits as words.
fn bits(length: usize) -> usize {
    copied_once(64 * length)
}

/// Points of curves are converted into another form and checked.
fn points(length: usize) -> usize {
    8 * length + (1 << 20)
}

/// Up to a MiB is allocated for each list of points of a proof key before it is read.
fn lists_of_points(length: usize) -> usize {
    points(length) + (7 << 20)
}

/// A server's sum and the plans of its transforms exist before its state is read.
fn state(length: usize) -> usize {
    2 * length + (1 << 20)
}

fn round(label: &[u8], queries: usize, classes: usize, threshold: Option<i64>) -> Round {
    let shape = VoteShape::new(2, queries, classes).expect("a shape");
    Round::new(RoundSpec { min_teachers: 1, threshold, ..RoundSpec::new(label, shape, 40) }).expect("valid")
}

const SOURCE: Randomness = Randomness::simulation([3; 32]);

/// The keys of all targets.
struct Keys {
    secret: SecretKey,
    public: PublicKey,
    evaluation: Vec<u8>,
    expanded: EvaluationKey,
}

fn keys() -> &'static Keys {
    static KEYS: LazyLock<Keys> = LazyLock::new(|| {
        let keys = generate_keys(&Parameters::TOURNAMENT_128, &SOURCE).expect("a simulation needs no entropy");
        let (evaluation, expanded) = (keys.evaluation.to_bytes(), keys.evaluation.expand());
        Keys { secret: keys.secret, public: keys.public, evaluation, expanded }
    });
    &KEYS
}

/// Creates messages of two teachers, and the server's state with them.
fn collect(round: &Round, public: &PublicKey, key: &EvaluationKey) -> (Vec<Vec<u8>>, Server) {
    let mut server = Server::new(key.clone(), round.clone()).expect("valid").with_randomness(SOURCE);
    let mut messages = Vec::new();
    for teacher in 0..2 {
        let values: Vec<i64> = (0..round.values() as i64).map(|value| value * 7 % 5 - 1).collect();
        let message = Teacher::new(teacher).answer(public, round, &values, &SOURCE).expect("valid");
        server.add(&message).expect("valid");
        let proofs = vec![7; 100 * teacher];
        messages.push(Submission::new(message, proofs, |_| Signature::from_bytes([9; 64])).to_bytes());
    }
    server.close(2).expect("all");
    (messages, server)
}

/// Creates a round whose answers have one digit, and one whose answers have two.
fn two_rounds() -> [Round; 2] {
    [round(b"first", 2, 3, Some(1)), round(b"second", 1, 20, None)]
}

fn binary(inputs: Vec<Vec<u8>>, decode: impl Fn(&[u8]) -> bool + 'static) -> Target {
    Target { stride: 16, inputs, sealed: true, decode: Box::new(decode), limit: copied_once }
}

/// The name of a target, and its constructor.
type Named = (&'static str, fn() -> Target);

/// All targets.
pub(crate) const ALL: [Named; 20] = [
    ("message", messages),
    ("answer", answers),
    ("result", results),
    ("state", server_state),
    ("secret-key", secret_key),
    ("public-key", || Target {
        limit: grown,
        ..binary(vec![keys().public.to_bytes()], |bytes| PublicKey::from_bytes(bytes).is_ok())
    }),
    ("evaluation-key", || {
        let inputs = vec![keys().evaluation.clone()];
        Target {
            stride: 1,
            limit: with_public_key,
            ..binary(inputs, |bytes| SeededEvaluationKey::from_bytes(bytes).is_ok())
        }
    }),
    ("proof-key", || proofs().0),
    ("proofs", || proofs().1),
    ("round-file", round_file),
    ("log", || logs().0),
    ("receipt", || logs().1),
    ("revealed-seed", || verification().0),
    ("verification", || verification().1),
    ("student-share", || joint().0),
    ("opener-share", || joint().1),
    ("part", || joint().2),
    ("roster", roster_file),
    ("votes", votes),
    ("query-list", query_list),
];

fn messages() -> Target {
    let Keys { public, expanded, .. } = keys();
    let inputs = two_rounds().iter().flat_map(|round| collect(round, public, expanded).0).collect();
    binary(inputs, |bytes| Submission::from_bytes(bytes).is_ok())
}

/// Returns the answers of both rounds, and their results.
fn answered() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let Keys { public, expanded, .. } = keys();
    let (mut answers, mut results) = (Vec::new(), Vec::new());
    for round in two_rounds() {
        let server = collect(&round, public, expanded).1;
        let list = server.argmax(NonZeroUsize::MIN, &|_, _| {}).expect("complete");
        answers.extend(list.iter().map(EncryptedAnswer::to_bytes));
        let result = AnswerList::new(&round, public.id(), server.statuses().to_vec(), &list);
        let signed =
            SignedResult::new(result.expect("complete"), Digest::of("sum"), |_| Signature::from_bytes([9; 64]));
        results.push(signed.to_bytes());
    }
    (answers, results)
}

fn answers() -> Target {
    binary(answered().0, |bytes| EncryptedAnswer::from_bytes(bytes).is_ok())
}

fn results() -> Target {
    binary(answered().1, |bytes| SignedResult::from_bytes(bytes).is_ok())
}

/// Creates a proof key, and the proofs of a message.
fn proofs() -> (Target, Target) {
    let public = &keys().public;
    let round = round(b"proofs", 1, 3, None);
    let key = ProofKey::generate(public.parameters(), &round, &SOURCE).expect("valid");
    let (_, proofs) = Teacher::new(0).answer_with_proof(public, &round, &[0, 1, 0], &key, &SOURCE).expect("valid");
    let key = Target {
        stride: 1,
        limit: lists_of_points,
        ..binary(vec![key.to_bytes().to_vec()], |bytes| ProofKey::from_bytes(bytes).is_ok())
    };
    let bytes = proofs.to_bytes().expect("small");
    let proofs =
        Target { sealed: false, limit: points, ..binary(vec![bytes], |bytes| Proofs::from_bytes(bytes).is_ok()) };
    (key, proofs)
}

/// Creates a log of two messages, and the receipt for the first.
fn logs() -> (Target, Target) {
    let round = RoundId::from_str(&"ab".repeat(32)).expect("hex");
    let received = |teacher| LogEntry::of_message(LogEvent::Received, teacher, Digest::of("a message"));
    let entries = vec![received(3), received(1), LogEntry::of_round(LogEvent::Closed, Digest::of("sum"))];
    let log = RoundLog::new(round, entries, |_| Signature::from_bytes([9; 64]));
    let receipt =
        Receipt::new(log.head(0).expect("no entry"), 3, Digest::of("a message"), |_| Signature::from_bytes([9; 64]));
    let log = Target { limit: state, ..binary(vec![log.to_bytes()], |bytes| RoundLog::from_bytes(bytes).is_ok()) };
    (log, binary(vec![receipt.to_bytes()], |bytes| Receipt::from_bytes(bytes).is_ok()))
}

/// Creates the files of a verification.
fn verification() -> (Target, Target) {
    let (round, result) = (RoundId::from_str(&"ab".repeat(32)).expect("hex"), Digest::of("a result"));
    let sign = |_| Signature::from_bytes([9; 64]);
    let parts = (ExactCircuit::AllPairs, AnswerSeed::from_bytes([7; 32]));
    let seed = RevealedSeed::new(round, result, parts, sign).to_bytes();
    let verification = Verification::new(round, [result, Digest::of("a log")], 3, sign).to_bytes();
    (
        binary(vec![seed], |bytes| RevealedSeed::from_bytes(bytes).is_ok()),
        binary(vec![verification], |bytes| Verification::from_bytes(bytes).is_ok()),
    )
}

/// Creates the shares of a secret key, and the opener's parts of the results of both rounds.
fn joint() -> (Target, Target, Target) {
    let (student, opener) = keys().secret.split(Digest::of(b"key"), &SOURCE).expect("a simulation needs no entropy");
    let part = |result: &Vec<u8>| {
        let list = SignedResult::from_bytes(result).expect("a result").list().clone();
        let sign = |_| Signature::from_bytes([9; 64]);
        opener.part(&list, (Digest::of(result), 3), sign).expect("of this key").to_bytes()
    };
    let parts = answered().1.iter().map(part).collect();
    (
        binary(vec![student.to_bytes().to_vec()], |bytes| StudentShare::from_bytes(bytes).is_ok()),
        binary(vec![opener.to_bytes().to_vec()], |bytes| OpenerShare::from_bytes(bytes).is_ok()),
        binary(parts, |bytes| OpeningPart::from_bytes(bytes).is_ok()),
    )
}

fn server_state() -> Target {
    let Keys { public, expanded, .. } = keys();
    let [round, _] = two_rounds();
    let state_of_round = collect(&round, public, expanded).1.state().expect("closed");
    let decode = move |bytes: &[u8]| Server::resume(expanded.clone(), round.clone(), bytes).is_ok();
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
    Target { stride: 16, inputs: rounds(&keys().public), sealed: false, decode: Box::new(decode), limit: document }
}

/// Creates a roster of a student, a server and twenty teachers.
fn roster() -> Roster {
    let party = |name: String| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("key");
        // Derived from the name, so that a run depends on its seed only.
        let key = SigningKey::from_bytes(Digest::of(&name).as_bytes()).to_pkcs8_pem(LineEnding::LF).expect("a key");
        std::fs::write(&path, key).expect("a file");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        }
        Party::new(&name, speed_round::Identity::read(&path).expect("a key").key()).expect("a name")
    };
    let teachers = (0..20).map(|teacher| party(format!("hospital {teacher}"))).collect();
    Roster::new(party("student".into()), party("server".into()), teachers).expect("parties")
}

fn roster_file() -> Target {
    let roster = roster();
    let cards = roster.teachers().iter().map(|party| party.card(Role::Teacher));
    let others = [roster.server().card(Role::Server), roster.student().card(Role::Student)];
    let text: String = cards.chain(others).collect();
    let decode = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(|text| Roster::from_toml(text).is_ok());
    Target { stride: 16, inputs: vec![text.into_bytes()], sealed: false, decode: Box::new(decode), limit: document }
}

fn rounds(key: &PublicKey) -> Vec<Vec<u8>> {
    let terms = Terms {
        name: "a round".into(),
        roster: roster(),
        queries: 100,
        classes: Classes::numbered(10).expect("ten classes"),
        query_list: Some(Digest::from_bytes([3; 32])),
        min_teachers: 15,
        noise: PrivacyNoise::named("discrete-laplace", 0.1).expect("valid"),
        placement: NoisePlacement::Distributed,
        threshold: Some(-7),
        proofs: Some(Digest::from_bytes([4; 32])),
        evaluation_key: Some(Digest::from_bytes([5; 32])),
        opener: None,
        randomness: RandomnessKind::Simulation,
    };
    let other = Terms {
        query_list: None,
        threshold: None,
        proofs: None,
        evaluation_key: None,
        opener: None,
        randomness: RandomnessKind::OperatingSystem,
        noise: PrivacyNoise::of_coins(4, terms.roster.teachers().len()).expect("valid"),
        placement: NoisePlacement::Central,
        ..terms.clone()
    };
    let joint = Terms { opener: Some("hospital 7".into()), ..terms.clone() };
    [terms, other, joint].map(|terms| RoundFile::new(&terms, key).expect("valid").to_toml().into_bytes()).into()
}

fn votes() -> Target {
    let mut bytes = Vec::new();
    let mut writer =
        npyz::WriteOptions::new().default_dtype().shape(&[4]).writer(&mut bytes).begin_nd().expect("memory");
    writer.extend([0_i32, 2, 1, 1]).expect("memory");
    writer.finish().expect("memory");
    let texts = [
        "0\n2\n1\n1\n",
        "query,label\n0,0\n1,2\n2,1\n3,1\n",
        "\u{feff}\"name\";label\r\nb;1\r\n\"a\";0\r\nd;1\r\nc;2\r\n",
        "1,0,0\n0,0,1\n0,1,0\n0,1,0\n",
    ];
    let mut inputs = vec![bytes];
    inputs.extend(texts.map(|text| text.as_bytes().to_vec()));
    let names = ["a", "b", "c", "d"].map(str::to_owned);
    Target {
        stride: 16,
        inputs,
        sealed: false,
        decode: Box::new(move |bytes| {
            let question = Question {
                queries: 4,
                classes: &Classes::numbered(3).expect("three classes"),
                form: None,
                names: QueryNames::Known(&names),
            };
            parse_answer(bytes, &question).is_ok()
        }),
        limit: text,
    }
}

fn query_list() -> Target {
    let texts = [
        "a\nb\nc\n",
        "\u{feff}Name\r\n\"a, left\"\r\nb\r\n",
        "name,group\na,x\nb,y\nc,x\n",
        "\"group\";name\r\nward 7;d\r\nward 7;e\r\n",
        &format!("name,encoder\na,{0}\nb,{0}\n", "0f".repeat(32)),
    ];
    let inputs = texts.map(|text| text.as_bytes().to_vec()).into();
    let decode = |bytes: &[u8]| {
        let Ok(queries) = NamedQueries::parse(bytes) else { return false };
        let all = (0..queries.names().len()).map(|query| queries.pictures(query).len());
        assert!(all.clone().all(|pictures| pictures > 0) && all.sum::<usize>() == queries.all_pictures().count());
        true
    };
    Target { stride: 16, inputs, sealed: false, decode: Box::new(decode), limit: names }
}
