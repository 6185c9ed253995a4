//! Every decoder of untrusted files, and the memory that it may use (docs/protocol.md, "Limits and memory"). `fuzz/` has the same list.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::LazyLock;

use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::log::{Receipt, RoundLog};
use speed_aggregation::proofs::{ProofKey, Proofs};
use speed_aggregation::protocol::{OpeningPart, RevealedSeed, SignedResult, Submission, Verification};
use speed_aggregation::{
    EncryptedAnswer, EvaluationKey, OpenerShare, Parameters, PublicKey, Round, RoundSpec, SecretKey, Server,
    StudentShare, generate_keys,
};
use speed_core::vote_files::{NamedQueries, QueryNames, Question, parse_answer};
use speed_core::{Classes, Randomness, VoteShape};
use speed_round::{Roster, RoundFile};

/// An allocator that counts the bytes that each thread uses. Decoders run in a pool of one thread, so that the work that they
/// give to rayon counts, and tests at the same time do not.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static IN_USE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    IN_USE.set(IN_USE.get() + bytes);
    PEAK.set(PEAK.get().max(IN_USE.get()));
}

// SAFETY: every call goes to the system's allocator with unchanged arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

pub(crate) struct Decoder {
    pub(crate) name: &'static str,
    /// True if files end with a checksum.
    pub(crate) is_sealed: bool,
    /// Decodes, and returns whether decoding succeeded.
    decode: fn(&[u8]) -> bool,
    /// The largest number of bytes that decoding may allocate, from the length of the file.
    limit: fn(usize) -> usize,
}

impl Decoder {
    pub(crate) const fn new(name: &'static str, decode: fn(&[u8]) -> bool, limit: fn(usize) -> usize) -> Self {
        Self { name, is_sealed: false, decode, limit }
    }

    const fn sealed(name: &'static str, decode: fn(&[u8]) -> bool, limit: fn(usize) -> usize) -> Self {
        Self { is_sealed: true, ..Self::new(name, decode, limit) }
    }

    /// Decodes, and returns whether decoding succeeded.
    ///
    /// # Panics
    /// If decoding allocates more than the limit.
    pub(crate) fn accepts(&self, file: &[u8]) -> bool {
        // Created at the first use, so it does not count as memory of a decoder.
        LazyLock::force(&STATE);
        let (accepted, peak) = POOL.install(|| {
            let before = IN_USE.get();
            PEAK.set(before);
            let accepted = (self.decode)(file);
            (accepted, (PEAK.get() - before).cast_unsigned())
        });
        let limit = (self.limit)(file.len());
        assert!(peak <= limit, "{}: {peak} bytes for a file of {}, at most {limit} are allowed", self.name, file.len());
        accepted
    }
}

pub(crate) const ALL: [Decoder; 20] = [
    Decoder::sealed("message", |bytes| Submission::from_bytes(bytes).is_ok(), copied_once),
    Decoder::sealed("answer", |bytes| EncryptedAnswer::from_bytes(bytes).is_ok(), copied_once),
    Decoder::sealed("result", |bytes| SignedResult::from_bytes(bytes).is_ok(), copied_once),
    Decoder::sealed("revealed-seed", |bytes| RevealedSeed::from_bytes(bytes).is_ok(), copied_once),
    Decoder::sealed("verification", |bytes| Verification::from_bytes(bytes).is_ok(), copied_once),
    Decoder::sealed("receipt", |bytes| Receipt::from_bytes(bytes).is_ok(), copied_once),
    Decoder::sealed("student-share", |bytes| StudentShare::from_bytes(bytes).is_ok(), copied_once),
    Decoder::sealed("opener-share", |bytes| OpenerShare::from_bytes(bytes).is_ok(), copied_once),
    Decoder::sealed("part", |bytes| OpeningPart::from_bytes(bytes).is_ok(), copied_once),
    // A server's sum and the plans of its transforms exist before its state is read.
    Decoder::sealed("state", is_state, |length| 2 * length + (1 << 20)),
    Decoder::sealed("log", |bytes| RoundLog::from_bytes(bytes).is_ok(), |length| 2 * length + (1 << 20)),
    // A secret key stores its bits as words.
    Decoder::sealed("secret-key", |bytes| SecretKey::from_bytes(bytes).is_ok(), |length| copied_once(64 * length)),
    // The mask of a public key is expanded from its seed.
    Decoder::sealed("public-key", |bytes| PublicKey::from_bytes(bytes).is_ok(), |length| copied_once(3 * length)),
    // It begins with a public key. The bodies of bootstrapping keys have six bytes in the file, and eight in memory.
    Decoder::sealed(
        "evaluation-key",
        |bytes| SeededEvaluationKey::from_bytes(bytes).is_ok(),
        |length| length + length / 3 + (64 << 10),
    ),
    // Up to a MiB is allocated for each list of points before it is read.
    Decoder::sealed("proof-key", |bytes| ProofKey::from_bytes(bytes).is_ok(), |length| 8 * length + (8 << 20)),
    // Points of curves are converted into another form and checked.
    Decoder::new("proofs", |bytes| Proofs::from_bytes(bytes).is_ok(), |length| 8 * length + (1 << 20)),
    Decoder::new("round-file", |bytes| text(bytes).is_some_and(|text| RoundFile::from_toml(text).is_ok()), document),
    Decoder::new("roster", |bytes| text(bytes).is_some_and(|text| Roster::from_toml(text).is_ok()), document),
    // Labels of one byte become numbers of eight bytes.
    Decoder::new("votes", are_votes, |length| 32 * length + (64 << 10)),
    // A name of one letter becomes two texts, entries of two tables, and a list of a group's pictures.
    Decoder::new("query-list", is_query_list, |length| 64 * length + (64 << 10)),
];

static POOL: LazyLock<rayon::ThreadPool> =
    LazyLock::new(|| rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread"));

fn copied_once(length: usize) -> usize {
    length + (16 << 10)
}

/// TOML turns three letters into a value of a hundred bytes before it checks for unknown keys.
fn document(length: usize) -> usize {
    200 * length + (64 << 10)
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The key and the round of a server's state.
pub(crate) static STATE: LazyLock<(EvaluationKey, Round)> = LazyLock::new(|| {
    let keys = generate_keys(&Parameters::TOURNAMENT_128, &Randomness::simulation([3; 32])).expect("a simulation");
    let spec = RoundSpec::new(b"state", VoteShape::new(2, 2, 3).expect("a shape"), 40);
    let round = Round::new(RoundSpec { min_teachers: 1, threshold: Some(1), ..spec }).expect("valid");
    (keys.evaluation.expand(), round)
});

fn is_state(bytes: &[u8]) -> bool {
    let (key, round) = &*STATE;
    Server::resume(key.clone(), round.clone(), bytes).is_ok()
}

fn are_votes(bytes: &[u8]) -> bool {
    let names = ["a", "b", "c", "d"].map(str::to_owned);
    let classes = Classes::numbered(3).expect("three classes");
    let question = Question { queries: 4, classes: &classes, form: None, names: QueryNames::Known(&names) };
    parse_answer(bytes, &question).is_ok()
}

fn is_query_list(bytes: &[u8]) -> bool {
    let Ok(queries) = NamedQueries::parse(bytes) else { return false };
    let all = (0..queries.names().len()).map(|query| queries.pictures(query).len());
    assert!(all.clone().all(|pictures| pictures > 0) && all.sum::<usize>() == queries.all_pictures().count());
    true
}
