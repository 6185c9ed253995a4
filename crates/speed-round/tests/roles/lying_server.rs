//! Attacks of a server that signs answers which it did not compute, and their discovery by a party that computes the
//! result again. Without a verification every attack here would succeed: `student open` would write the labels.

use std::fs;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use speed_accountant::PriceLimit;
use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::log::{LogEntry, LogEvent, RoundLog};
use speed_aggregation::protocol::{
    AnswerList, AnswerSeed, ExactCircuit, RevealedSeed, SignedResult, Submission, TeacherStatus, Verification,
};
use speed_aggregation::{EncryptedAnswer, Server};
use speed_core::{Digest, NoisePlacement, RandomnessKind};
use speed_round::server::{self, RevealOptions, ServerOptions, VerifyOptions, VerifyReport};
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{Refused, Roster, Terms, hash_file, student};

use crate::attacks::{resigned, secret_bits};
use crate::common::{
    Dies, REAL, RoundFolder, Silent, as_server, assert_mode, identity, key_of, keys, noise, numbered, receive, refused,
    says, signing_key, terms,
};
use crate::faults::seal;

pub(crate) const QUERIES: usize = 6;
const CLASSES: usize = 4;
const WORDS: usize = 2049;

/// The files of a round that an honest server evaluated: of four teachers, three answered. The directory `copies` has
/// their messages, and `seed` the seed.
pub(crate) fn evaluated() -> RoundFolder {
    RoundFolder::made_once("evaluated", || {
        let folder = answered("evaluated");
        evaluate(&folder);
        folder
    })
}

/// Writes the verification of a teacher as it signs it after it computed the result again.
pub(crate) fn sign_verification(folder: &RoundFolder, teacher: usize, out: &str) {
    let digests = ["result", "result.log"].map(|name| Digest::of(folder.bytes(name)));
    let signed = Verification::new(folder.file.id(), digests, teacher, |digest| identity(teacher).sign(digest));
    folder.write(out, signed.to_bytes());
}

/// Evaluates a round as an honest server, and reveals the seed.
pub(crate) fn evaluate(folder: &RoundFolder) {
    folder.aggregate_with(&server_options(folder), &Silent).expect("enough");
    server::reveal(&reveal_options(folder)).expect("a result");
}

pub(crate) fn server_options(folder: &RoundFolder) -> ServerOptions {
    let copies = Some(folder.path("copies"));
    ServerOptions { randomness: REAL, copies, ..folder.options() }
}

/// The same round, whose server was killed between the closing of the sum and the first answer.
fn interrupted(name: &str) -> RoundFolder {
    let folder = answered(name);
    let options = ServerOptions { randomness: REAL, ..folder.options() };
    let died = catch_unwind(AssertUnwindSafe(|| folder.aggregate_with(&options, &Dies::AtBegin)));
    assert!(died.is_err() && !folder.path("result").exists());
    folder
}

/// The round before its evaluation.
pub(crate) fn answered(name: &str) -> RoundFolder {
    answered_with(&real_terms(name))
}

fn answered_with(terms: &Terms) -> RoundFolder {
    let folder = RoundFolder::new(terms);
    for teacher in 0..3 {
        let labels: String = (0..QUERIES).map(|query| format!("{}\n", (query + teacher) % CLASSES)).collect();
        folder.answer_really(teacher, &labels);
    }
    folder
}

/// The terms of a real round of four teachers.
pub(crate) fn real_terms(name: &str) -> Terms {
    let terms = terms(name, QUERIES, 4);
    Terms { classes: numbered(CLASSES), noise: noise(0.5), randomness: RandomnessKind::OperatingSystem, ..terms }
}

pub(crate) fn reveal_options(folder: &RoundFolder) -> RevealOptions {
    RevealOptions {
        signing_key: signing_key("server"),
        registry: folder.path("server.registry"),
        round: folder.path("round.toml"),
        out: folder.path("seed"),
    }
}

pub(crate) fn verify_options(folder: &RoundFolder) -> VerifyOptions {
    VerifyOptions {
        evaluation_key: keys().join("evaluation.key"),
        proof_key: None,
        round: folder.path("round.toml"),
        result: folder.path("result"),
        log: folder.path("result.log"),
        seed: folder.path("seed"),
        messages: folder.path("copies"),
        threads: NonZeroUsize::new(2).expect("not zero"),
        sign: Some((key_of(1), folder.path("verification"))),
    }
}

fn verify(folder: &RoundFolder) -> VerifyReport {
    server::verify(&verify_options(folder), &Silent).expect("complete files")
}

fn open(folder: &RoundFolder, verifications: Vec<PathBuf>, unverified: bool) -> Result<String, Refused> {
    let _ = fs::remove_file(folder.path("labels.csv"));
    student::open(&student::OpenOptions { verifications, unverified, ..folder.open_options() })?;
    Ok(folder.text("labels.csv"))
}

/// Replaces the result by one with other answers, or with another sum, and signs everything as the server: result, log
/// and seed.
fn lie(folder: &RoundFolder, list: AnswerList, sum: Digest) {
    let is_counted = |entry: &&LogEntry| !matches!(entry.event(), LogEvent::Closed | LogEvent::Result);
    let counted = folder.log().entries().iter().filter(is_counted).copied().collect();
    let seed = folder.seed();
    sign_as_server(folder, (list, sum), counted, (seed.circuit(), seed.seed().clone()));
}

/// Signs a result, a log that begins with these entries, and a seed.
fn sign_as_server(
    folder: &RoundFolder,
    (list, sum): (AnswerList, Digest),
    mut entries: Vec<LogEntry>,
    seed: (ExactCircuit, AnswerSeed),
) {
    let result = SignedResult::new(list, sum, as_server).to_bytes();
    let end = [(LogEvent::Closed, sum), (LogEvent::Result, Digest::of(&result))];
    entries.extend(end.map(|(event, digest)| LogEntry::of_round(event, digest)));
    let log = RoundLog::new(folder.file.id(), entries, as_server);
    let seed = RevealedSeed::new(folder.file.id(), Digest::of(&result), seed, as_server);
    folder.write("result", result);
    folder.write("result.log", log.to_bytes());
    folder.write("seed", seed.to_bytes());
}

/// Returns a server that counts these messages, whatever their proofs, and its answers.
fn lying(folder: &RoundFolder, messages: &[Vec<u8>], seed: &AnswerSeed) -> (Server, Vec<EncryptedAnswer>) {
    let key = fs::read(keys().join("evaluation.key")).expect("a key");
    let key = SeededEvaluationKey::from_bytes(&key).expect("whole").expand();
    let mut server = Server::new(key, folder.file.round().clone()).expect("valid").with_answer_seed(seed.clone());
    for message in messages {
        server.add_checked(Submission::from_bytes(message).expect("whole").message()).expect("unchecked");
    }
    server.close(messages.len()).expect("enough");
    let answers = server.argmax(NonZeroUsize::new(2).expect("not zero"), &|_, _| {}).expect("a sum");
    (server, answers)
}

/// Changes the words of the answers.
fn changed(list: &AnswerList, change: impl FnOnce(&mut [[u8; 8]])) -> AnswerList {
    let mut bytes = list.to_bytes();
    let end = bytes.len() - 16;
    let (words, _) = bytes[end - 8 * WORDS * QUERIES..end].as_chunks_mut::<8>();
    change(words);
    seal(&mut bytes);
    AnswerList::from_bytes(&bytes).expect("well formed")
}

/// Replaces every answer by a probe: a ciphertext whose label is two bits of the secret key.
fn probes(words: &mut [[u8; 8]]) {
    for (query, words) in words.chunks_exact_mut(WORDS).enumerate() {
        words.fill([0; 8]);
        for place in 0..2 {
            let step = 1_u64 << (60 + place);
            words[2 * query + place] = step.wrapping_neg().to_le_bytes();
        }
        words[WORDS - 1] = (1_u64 << 59).to_le_bytes();
    }
}

/// Returns the bits of the secret key, lowest first, two at a time as a number.
fn bits_of_key() -> Vec<usize> {
    let bits = secret_bits();
    let number = |two: &[bool]| usize::from(two[0]) + 2 * usize::from(two[1]);
    bits.chunks_exact(2).take(QUERIES).map(number).collect()
}

#[test]
fn a_server_that_signs_probes_of_the_key_is_convicted_before_any_label_is_written() {
    let folder = evaluated();
    let honest = verify(&folder);
    assert!(honest.honest && honest.verification == Some(folder.path("verification")), "{honest:?}");
    let labels = open(&folder, vec![folder.path("verification")], false).expect("verified");
    assert_eq!(labels.lines().count(), 1 + QUERIES);

    let result = folder.result();
    lie(&folder, changed(result.list(), probes), result.sum());
    // The attack: all labels are valid, and each is two bits of the key.
    let labels = open(&folder, Vec::new(), true).expect("the server signed it");
    let labels: Vec<usize> =
        labels.lines().skip(1).map(|line| line.split_once(',').expect("a pair").1.parse().expect("a label")).collect();
    assert_eq!(labels, bits_of_key());
    // Refused without a verification, and with the one of the honest result.
    refused(open(&folder, Vec::new(), false), 2, "no teacher verified");
    refused(open(&folder, vec![folder.path("verification")], false), 3, "is of the result");
    assert!(!folder.path("labels.csv").exists());
    // What the server signed convicts it. No verification is written.
    fs::remove_file(folder.path("verification")).expect("a verification");
    let report = verify(&folder);
    assert!(!report.honest && !report.sum_differs && !report.log_differs, "{report:?}");
    assert_eq!(report.answers_differ, (0..QUERIES).collect::<Vec<_>>());
    assert!(!folder.path("verification").exists());
}

#[test]
fn a_server_that_signs_other_answers_of_its_own_is_convicted_by_query() {
    let folder = evaluated();
    let result = folder.result();
    // Two answers exchanged, and the body of a third moved by one label.
    let list = changed(result.list(), |words| {
        for word in 0..WORDS {
            words.swap(2 * WORDS + word, 5 * WORDS + word);
        }
        let body = &mut words[5 * WORDS - 1];
        *body = u64::from_le_bytes(*body).wrapping_add(1 << 60).to_le_bytes();
    });
    lie(&folder, list, result.sum());
    let report = verify(&folder);
    assert_eq!((report.honest, report.answers_differ), (false, vec![2, 4, 5]));
}

#[test]
fn a_server_that_evaluates_one_party_instead_of_the_sum_is_convicted() {
    let folder = evaluated();
    let honest = folder.result();
    let seed = AnswerSeed::from_bytes([5; 32]);
    let (server, answers) = lying(&folder, &[folder.bytes("inbox/1")], &seed);
    let statuses = honest.list().statuses().to_vec();
    let list = AnswerList::new(folder.file.round(), honest.list().key(), statuses, &answers).expect("all answers");
    let own = Digest::of(server.state().expect("closed"));
    for (sum, differs) in [(honest.sum(), false), (own, true)] {
        lie(&folder, list.clone(), sum);
        let digest = Digest::of(folder.bytes("result"));
        let parts = (ExactCircuit::Tournament, seed.clone());
        let seed = RevealedSeed::new(folder.file.id(), digest, parts, as_server);
        folder.write("seed", seed.to_bytes());
        let report = verify(&folder);
        assert_eq!((report.honest, report.sum_differs, report.log_differs), (false, differs, false), "{report:?}");
        assert_eq!(report.answers_differ.len(), if differs { 0 } else { QUERIES });
    }
}

/// The sum, the answers and the log are honest, and the server signs a seed from which these answers do not follow.
#[test]
fn a_server_that_signs_another_seed_is_convicted_by_it_alone() {
    let folder = evaluated();
    let seed = folder.seed();
    let parts = (seed.circuit(), AnswerSeed::from_bytes([5; 32]));
    let wrong = RevealedSeed::new(seed.round(), seed.result(), parts, as_server);
    folder.write("seed", wrong.to_bytes());
    let report = verify(&folder);
    assert!(!report.honest && !report.sum_differs && !report.log_differs && report.refused.is_empty(), "{report:?}");
    assert_eq!(report.answers_differ, (0..QUERIES).collect::<Vec<_>>());
    assert!(!folder.path("verification").exists());
}

/// A verifier that colludes with the server signs a lie. The student asks another verifier as well, and one honest one is enough.
#[test]
fn every_verification_that_the_student_gets_must_be_of_the_result() {
    let folder = evaluated();
    sign_verification(&folder, 1, "verification");
    let result = folder.result();
    // Two answers exchanged: all labels are valid.
    let list = changed(result.list(), |words| {
        let (one, two) = words.split_at_mut(WORDS);
        one.swap_with_slice(&mut two[..WORDS]);
    });
    lie(&folder, list, result.sum());
    sign_verification(&folder, 0, "colluding");
    let verifications = ["colluding", "verification"].map(|name| folder.path(name));
    for order in [verifications.to_vec(), verifications.iter().rev().cloned().collect()] {
        says(open(&folder, order, false), "verification: is of the result");
        assert!(!folder.path("labels.csv").exists());
    }
    // With the colluder's alone the student opens the result.
    let labels = open(&folder, vec![folder.path("colluding")], false).expect("a teacher of the round signed it");
    assert_eq!(labels.lines().count(), 1 + QUERIES);
}

/// Only the server knows its noise, so no other party can compute the sum.
#[test]
fn a_round_with_noise_from_the_server_is_not_verified_and_opens_only_unverified() {
    let folder = answered_with(&Terms { placement: NoisePlacement::Central, ..real_terms("central") });
    evaluate(&folder);
    refused(server::verify(&verify_options(&folder), &Silent), 2, "only the server knows it");
    assert!(!folder.path("verification").exists());
    refused(open(&folder, Vec::new(), false), 2, "no teacher verified");
    assert_eq!(open(&folder, Vec::new(), true).expect("labels").lines().count(), 1 + QUERIES);
}

/// Every opened result may tell as many key bits as its labels have, but only one is charged.
#[test]
fn a_second_result_of_a_round_is_not_opened() {
    let folder = evaluated();
    // Not beside the mark of simulated keys, whose results are not recorded.
    fs::copy(keys().join("secret.key"), folder.path("secret.key")).expect("a copy");
    let open = |result: &str, out: &str| folder.open(&folder.path("secret.key"), result, &folder.path(out));
    open("result", "first.csv").expect("the first");
    fs::rename(folder.path("result"), folder.path("kept")).expect("moved");
    let honest = SignedResult::from_bytes(&folder.bytes("kept")).expect("whole");
    lie(&folder, changed(honest.list(), probes), honest.sum());
    let error = refused(open("result", "second.csv"), 3, "secret.opened").to_string();
    assert!(error.contains("convicts"), "{error}");
    assert!(!folder.path("second.csv").exists());
    // The first one again gives the same labels.
    open("kept", "again.csv").expect("the first");
    assert_eq!(folder.bytes("first.csv"), folder.bytes("again.csv"));

    // A result counts as opened even if its labels were refused.
    let folder = evaluated();
    fs::copy(keys().join("secret.key"), folder.path("secret.key")).expect("a copy");
    let honest = folder.result();
    lie(&folder, changed(honest.list(), |words| words[WORDS - 1] = (5_u64 << 60).to_le_bytes()), honest.sum());
    let open = || folder.open(&folder.path("secret.key"), "result", &folder.path("labels.csv"));
    let _ = open();
    lie(&folder, changed(honest.list(), probes), honest.sum());
    says(open(), "was opened before");
}

/// In a result of one teacher, its noise alone would protect its vote.
#[test]
fn a_result_of_fewer_teachers_than_the_minimum_is_refused() {
    let folder = answered_with(&Terms { min_teachers: 3, ..real_terms("minimum") });
    evaluate(&folder);
    let honest = folder.result();
    let answers: Vec<_> = honest.list().answers().collect();
    let mut statuses = honest.list().statuses().to_vec();
    statuses[0] = TeacherStatus::Missing;
    let list = AnswerList::new(folder.file.round(), honest.list().key(), statuses, &answers).expect("all answers");
    lie(&folder, list, honest.sum());
    refused(open(&folder, Vec::new(), true), 3, "counts 2 teachers, but at least 3");
    refused(server::verify(&verify_options(&folder), &Silent), 3, "counts 2 teachers, but at least 3");
    assert!(!folder.path("labels.csv").exists());
}

#[test]
fn two_results_and_incomplete_files_are_told_apart() {
    let folder = evaluated();
    let fails = |words: &str, change: &dyn Fn(&mut VerifyOptions)| {
        let mut options = verify_options(&folder);
        change(&mut options);
        refused(server::verify(&options, &Silent), 3, words);
        assert!(!folder.path("verification").exists());
    };
    // The messages of two teachers only.
    fs::create_dir(folder.path("some")).expect("a folder");
    for teacher in [0, 2] {
        let name = format!("teacher-{teacher}.message");
        fs::copy(folder.path("copies").join(&name), folder.path("some").join(&name)).expect("a copy");
    }
    fails("the message of teacher 1 that the server counted", &|options| options.messages = folder.path("some"));
    let student = || Some((signing_key("student"), folder.path("verification")));
    fails("only a teacher's verification counts", &|options| options.sign = student());
    fails("expected a revealed seed", &|options| options.seed = folder.path("result"));
    // A log from before the result.
    let log = folder.log();
    let signed = |entries: Vec<LogEntry>| RoundLog::new(log.round(), entries, as_server).to_bytes();
    let count = log.entries().len();
    folder.write("early.log", signed(log.entries()[..count - 1].to_vec()));
    fails("ends before the result", &|options| options.log = folder.path("early.log"));
    // A log of another result: the server signed both.
    let mut entries = log.entries().to_vec();
    entries[count - 1] = LogEntry::of_round(LogEvent::Result, Digest::of("another"));
    folder.write("other.log", signed(entries));
    let options = VerifyOptions { log: folder.path("other.log"), ..verify_options(&folder) };
    let report = server::verify(&options, &Silent).expect("complete files");
    assert_eq!((report.honest, report.log_differs, report.answers_differ.len()), (false, true, 0));
    // A seed is written once, and only by the round's server.
    refused(server::reveal(&reveal_options(&folder)), 4, "");
    let options = RevealOptions { signing_key: key_of(0), out: folder.path("mine"), ..reveal_options(&folder) };
    says(server::reveal(&options), "not the round's server");
    // A verification of a party that is not a teacher of the round, or of another teacher's name, is not accepted.
    sign_verification(&folder, 1, "verification");
    let mut forged = folder.bytes("verification");
    forged[12 + 96] = 2;
    seal(&mut forged);
    folder.write("forged", forged);
    says(open(&folder, vec![folder.path("forged")], false), "is not signed by teacher 2");
}

/// A server that colludes with a teacher counts this teacher's malformed message, and computes everything else properly.
#[test]
fn a_server_that_counts_an_unproven_message_is_convicted() {
    let mut terms = terms("unproven", QUERIES, 3);
    terms.noise = noise(5.0);
    let folder = RoundFolder::with_proofs(&terms);
    for teacher in 0..3 {
        folder.answer(teacher, &[2, 1, 0, 1, 2, 0], &folder.inbox(&format!("{teacher}")));
    }
    let read = |teacher: usize| folder.bytes(&format!("inbox/{teacher}"));
    let honest = Submission::from_bytes(&read(2)).expect("whole");
    // A word of the mask: it adds a multiple of a key bit to the counts.
    let probe = resigned(&honest, 2, |bytes| bytes[88 + 7] ^= 0x10);
    fs::create_dir(folder.path("copies")).expect("a folder");
    let messages = [read(0), read(1), probe];
    let seed = AnswerSeed::from_bytes([5; 32]);
    let (server, answers) = lying(&folder, &messages, &seed);
    for (teacher, message) in messages.iter().enumerate() {
        folder.write(&format!("copies/{teacher}"), message);
    }
    let statuses = server.statuses().to_vec();
    let list = AnswerList::new(folder.file.round(), server.key().id(), statuses, &answers).expect("all answers");
    let sum = Digest::of(server.state().expect("closed"));
    let counted = messages.iter().enumerate();
    let counted = counted.map(|(teacher, bytes)| LogEntry::of_message(LogEvent::Counted, teacher, Digest::of(bytes)));
    sign_as_server(&folder, (list, sum), counted.collect(), (ExactCircuit::Tournament, seed));
    let options = VerifyOptions { proof_key: Some(folder.path("proof.key")), ..verify_options(&folder) };
    let report = server::verify(&options, &Silent).expect("complete files");
    let [unproven] = &report.refused[..] else { panic!("{report:?}") };
    assert_eq!((report.honest, unproven.teacher, unproven.reason), (false, Some(2), "unproven"));
    assert!(!folder.path("verification").exists());
}

#[test]
fn a_result_of_a_server_that_was_killed_is_verified() {
    let folder = interrupted("killed");
    let copies = Some(folder.path("copies"));
    // The circuit of the first start is kept.
    let circuit = speed_core::Circuit::AllPairs;
    let options = ServerOptions { randomness: REAL, circuit, copies, ..folder.options() };
    let report = folder.aggregate_with(&options, &Silent).expect("resumes");
    assert_eq!(report.resumed, 0);
    server::reveal(&reveal_options(&folder)).expect("a result");
    assert!(verify(&folder).honest);
}

/// The registry deletes the messages of the network when it stores the result, and without copies no one could verify it.
#[test]
fn a_server_that_lacks_copies_of_counted_messages_says_so_before_it_forgets_them() {
    let folder = answered("copies");
    // Teacher 2 sends its message over the network only.
    let round = server::RoundServer::open(server_options(&folder)).expect("fitting files");
    assert!(receive(&round, 2, folder.bytes("inbox/2")));
    drop(round);
    fs::remove_file(folder.inbox("2")).expect("a message");
    let without = ServerOptions { copies: None, ..server_options(&folder) };
    assert!(catch_unwind(AssertUnwindSafe(|| folder.aggregate_with(&without, &Dies::AtBegin))).is_err());
    fs::create_dir(folder.path("empty")).expect("a folder");
    let aggregate =
        |inbox: &str| server::aggregate(&server_options(&folder), &folder.path(inbox), &folder.path("result"), &Silent);
    let lacks = |inbox: &str, which: &str| {
        let error = refused(aggregate(inbox), 3, which).to_string();
        assert!(error.contains("--answers"), "{error}");
    };
    lacks("empty", "messages of teacher 0, teacher 1:");
    assert!(!folder.path("result").exists());
    aggregate("inbox").expect("all messages");
    assert_mode(&folder.path("copies"), 0o700);
    assert_mode(&folder.path("copies/teacher-1.message"), 0o600);
    // After the result the messages of the inbox can be copied, and those of the network are deleted.
    fs::rename(folder.path("copies").join("teacher-2.message"), folder.inbox("2 again")).expect("a copy");
    fs::remove_dir_all(folder.path("copies")).expect("copies");
    aggregate("inbox").expect("all messages");
    assert_eq!(fs::read_dir(folder.path("copies")).expect("copies").count(), 3);
    fs::remove_file(folder.inbox("2 again")).expect("a message");
    fs::remove_dir_all(folder.path("copies")).expect("copies");
    lacks("inbox", "messages of teacher 2:");
    assert_eq!(fs::read_dir(folder.path("copies")).expect("copies").count(), 2);
    // A longer file is not a copy.
    fs::remove_file(folder.path("copies/teacher-1.message")).expect("a copy");
    fs::remove_file(folder.inbox("1")).expect("a message");
    sparse(&folder, "copies/teacher-1.message");
    lacks("inbox", "messages of teacher 1, teacher 2:");
}

/// Creates a file of terabytes that takes no space.
fn sparse(folder: &RoundFolder, name: &str) {
    fs::File::create(folder.path(name)).and_then(|file| file.set_len(1 << 42)).expect("a sparse file");
}

/// Otherwise a gigabyte would be decoded for a small round, and a list of terabytes hashed for hours.
#[test]
fn a_file_longer_than_its_kind_is_not_read() {
    let folder = answered("long");
    sparse(&folder, "result");
    let expected = format!("expected at most {} bytes, found 4398046511104", SignedResult::size(folder.file.round()));
    refused(open(&folder, Vec::new(), true), 3, &expected);
    sparse(&folder, "list");
    let options = folder.teacher_options(3, &folder.path("message"));
    let options = TeacherOptions { query_list: Some(folder.path("list")), randomness: REAL, ..options };
    let error = says(teacher::answer(&options), "list").to_string();
    assert!(error.contains("expected at most"), "{error}");
    // A wrong name creates no empty registry.
    let options = RevealOptions { registry: folder.path("typo.registry"), ..reveal_options(&folder) };
    refused(server::reveal(&options), 4, "typo.registry");
    assert!(!folder.path("typo.registry").exists());
}

/// Not only the command line refuses such a round.
#[test]
fn a_program_that_uses_the_library_refuses_a_round_that_costs_too_much() {
    let folder = RoundFolder::new(&Terms { noise: noise(9.0), ..real_terms("dear") });
    folder.write("votes.csv", "0\n".repeat(QUERIES));
    let options = TeacherOptions {
        randomness: REAL,
        limit: PriceLimit::default(),
        ..folder.teacher_options(0, &folder.path("message"))
    };
    let error = teacher::answer(&options).expect_err("too dear");
    assert!(error.exit_code().code() == 2 && error.to_string().starts_with("--max-epsilon: "), "{error}");
    assert!(!folder.path("message").exists());
}

/// Otherwise one charge would pay for two messages with the same votes and different noise.
#[test]
fn two_simultaneous_answers_with_one_ledger_release_one_message() {
    let folder = RoundFolder::new(&real_terms("simultaneous"));
    folder.write("votes.csv", "0\n".repeat(QUERIES));
    let outs = ["first", "second"].map(|out| folder.path(out));
    let options = |out: &PathBuf| TeacherOptions { randomness: REAL, ..folder.teacher_options(0, out) };
    let answers = outs.each_ref().map(options);
    assert_ne!(answers[0].registry, answers[1].registry);
    let results = std::thread::scope(|scope| {
        answers
            .each_ref()
            .map(|options| scope.spawn(|| teacher::answer(options)))
            .map(|thread| thread.join().expect("no panic"))
    });
    let refused: Vec<&Refused> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    assert_eq!(refused.len(), 1, "{results:?}");
    assert_eq!(outs.iter().filter(|out| out.exists()).count(), 1);
}

#[test]
fn a_party_counts_with_all_its_teachers_in_a_verification() {
    // A verifier that compared parties with teachers would convict this honest server.
    let mut terms = real_terms("parties");
    let parties = terms.roster.teachers().iter().zip([3, 2, 4, 1]);
    let parties = parties.map(|(party, teachers)| party.clone().with_teachers(teachers).expect("teachers")).collect();
    terms.roster =
        Roster::new(terms.roster.student().clone(), terms.roster.server().clone(), parties).expect("a roster");
    terms.min_teachers = 9;
    let folder = RoundFolder::new(&terms);
    for (party, teachers) in [3, 2, 4].into_iter().enumerate() {
        let row = (0..QUERIES).map(|query| (query % CLASSES).to_string()).collect::<Vec<_>>().join(",") + "\n";
        folder.answer_really(party, &row.repeat(teachers));
    }
    evaluate(&folder);
    let report = verify(&folder);
    assert_eq!((report.honest, report.counted, report.teachers), (true, 9, 10), "{report:?}");
}

/// Opens the result of a round in which the student knows the answers to four queries.
fn open_with_known(folder: &RoundFolder, known: &str, wrong: usize) -> Result<student::OpenReport, Refused> {
    folder.write("known.csv", known);
    let _ = fs::remove_file(folder.path("labels.csv"));
    let known = student::KnownOptions { answers: folder.path("known.csv"), query_list: None, wrong };
    student::open(&student::OpenOptions { known: Some(known), ..folder.open_options() })
}

/// Without known answers the labels of the replaced result would be written.
#[test]
fn known_answers_refuse_replaced_labels_before_any_is_written() {
    let folder = evaluated();
    let honest = open(&folder, Vec::new(), true).expect("labels");
    let known = |queries: &[usize]| -> String {
        let lines: Vec<&str> = honest.lines().skip(1).collect();
        std::iter::once("query,label\n".to_owned()).chain(queries.iter().map(|q| format!("{}\n", lines[*q]))).collect()
    };
    let four = known(&[0, 2, 3, 5]);
    let report = open_with_known(&folder, &four, 0).expect("all right");
    let compared = report.known_answers.expect("known answers");
    assert_eq!((compared.known, compared.wrong, report.labelled), (4, 0, QUERIES - 4));
    let text = folder.text("labels.csv");
    let (without, all): (Vec<&str>, Vec<&str>) = (text.lines().skip(1).collect(), honest.lines().skip(1).collect());
    for query in 0..QUERIES {
        let expected = if [0, 2, 3, 5].contains(&query) { format!("{query},") } else { all[query].to_owned() };
        assert_eq!(without[query], expected);
    }
    // The server moves two of the known answers, and one that is not known.
    let result = folder.result();
    let list = changed(result.list(), |words| {
        for query in [3, 4, 5] {
            let body = &mut words[(query + 1) * WORDS - 1];
            // The next class, or the class before if there is none.
            let step = if all[query].ends_with('3') { (1_u64 << 60).wrapping_neg() } else { 1 << 60 };
            *body = u64::from_le_bytes(*body).wrapping_add(step).to_le_bytes();
        }
    });
    lie(&folder, list, result.sum());
    refused(open_with_known(&folder, &four, 1), 3, "2 of 4 known answers are wrong");
    assert!(!folder.path("labels.csv").exists() && keys().join("secret.key").exists());
    // Probes that happen to hit no known query are not caught, and neither is a lie within the allowance.
    open_with_known(&folder, &known(&[0, 2]), 0).expect("the lie is elsewhere");
    open_with_known(&folder, &four, 2).expect("two may be wrong");
    for (text, wrong, words) in [
        ("query,label\n0,1\n0,2\n", 0, "occurs on line 2 already"),
        ("query,label\n6,1\n", 0, "line 2: expected a query of the round"),
        ("query,label\n00,1\n", 0, "line 2: expected a query of the round"),
        ("query,label\n0,4\n", 0, "line 2: expected a class of the round (0, 1, 2, 3)"),
        ("query,label\n0,\n", 0, "line 2: expected a class of the round (0, 1, 2, 3)"),
        ("name,label\na.png,1\n", 0, "--query-list"),
        ("query,label\n0,1\n", 1, "fewer wrong ones than known ones"),
    ] {
        refused(open_with_known(&folder, text, wrong), 3, words);
    }
}

#[test]
fn known_pictures_are_mixed_in_a_secret_order() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let names: Vec<String> = (0..40).map(|image| format!("{image:02}, \"a\".png")).collect();
    let list: String = names.iter().map(|name| format!("\"{}\"\n", name.replace('"', "\"\""))).collect();
    fs::write(path("queries.csv"), format!("name\n{list}")).expect("a list");
    fs::write(path("known.csv"), "name,label\nx.png,3\ny.png,1\n").expect("known answers");
    let mixed = |out: &str, known: &str| {
        let options = student::MixOptions { query_list: path("queries.csv"), known: path(known), out: path(out) };
        student::mix(&options).map(|report| (report.queries, report.known))
    };
    assert_eq!(mixed("first", "known.csv").expect("a list"), (42, 2));
    assert_eq!(mixed("second", "known.csv").expect("a list"), (42, 2));
    let read = |name: &str| {
        let list = speed_core::vote_files::NamedQueries::parse(&fs::read(path(name)).expect("a list")).expect("a list");
        list.names().to_vec()
    };
    let (first, second) = (read("first"), read("second"));
    assert_ne!(first, second, "drawn anew");
    let mut all = names.clone();
    all.extend(["x.png".into(), "y.png".into()]);
    for mut list in [first, second] {
        list.sort_unstable();
        assert_eq!(list, all);
    }
    fs::write(path("twice.csv"), "name,label\n\"07, \"\"a\"\".png\",3\n").expect("known answers");
    says(mixed("third", "twice.csv"), "occurs on line");
    fs::write(path("queries.csv"), "name,group\na,x\n").expect("a list");
    says(mixed("fourth", "known.csv"), "has groups");
    assert!(!path("third").exists() && !path("fourth").exists());
}

/// A courier may change a body of the evaluation key and correct its checksum: the key id stays, because it covers the public key
/// only. Server and verifier then refuse the file, since the round states its SHA-256.
#[test]
fn an_evaluation_key_that_was_changed_on_the_way_is_refused() {
    let folder = answered("changed evaluation key");
    let mut bytes = fs::read(keys().join("evaluation.key")).expect("a key");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let changed = folder.path("changed.key");
    seal(&mut bytes);
    fs::write(&changed, bytes).expect("a key");
    let options = ServerOptions { evaluation_key: changed.clone(), ..server_options(&folder) };
    let expect_refused = |error: Refused| {
        let words = error.to_string();
        let [stated, found] = [folder.file.round().evaluation_key(), hash_file(&changed, 1 << 30).ok()];
        for digest in [stated, found] {
            assert!(words.contains(&digest.expect("a digest").to_string()), "{words}");
        }
        assert!(words.contains("changed.key") && words.contains("evaluation.sha256"), "{words}");
    };
    expect_refused(folder.aggregate_with(&options, &Silent).expect_err("another key"));
    // A verifier must not convict this server.
    let verified = evaluated();
    let options = VerifyOptions { evaluation_key: changed.clone(), ..verify_options(&verified) };
    expect_refused(server::verify(&options, &Silent).expect_err("another key"));
}
