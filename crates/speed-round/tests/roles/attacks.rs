//! Attacks on a round by a teacher that does not follow the protocol: they succeed if messages carry no proofs, and
//! fail if they do.

use std::fs;

use speed_aggregation::Message;
use speed_aggregation::protocol::Submission;
use speed_round::server::{ServerOptions, ServerReport};
use speed_round::student;

use crate::common::{
    RoundFolder, Silent, identity, keys, noise, numbered, reasons, refused, round_options, says, terms,
};
use crate::faults::seal;

/// Reads the message that a teacher sends.
fn submission(folder: &RoundFolder, teacher: usize, labels: &[u8]) -> Submission {
    Submission::from_bytes(&folder.message(teacher, labels)).expect("a submission")
}

/// Changes a message, and signs it as the teacher.
pub(crate) fn resigned(submission: &Submission, teacher: usize, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = submission.message().to_bytes();
    change(&mut bytes);
    seal(&mut bytes);
    let message = Message::from_bytes(&bytes).expect("well formed");
    Submission::new(message, submission.proofs().to_vec(), |digest| identity(teacher).sign(digest)).to_bytes()
}

const HEADER: usize = 88;
const DEGREE: usize = 2048;
const CLASSES: usize = 3;

/// Replaces the ciphertexts of a message by fakes: a mask of zeros except for its first word, 1500 votes, and -100 k
/// votes for class k. In the sum, every class whose bit of the secret key is 1 loses 1500 votes, and the label is the
/// first class whose bit is 0.
fn probe(bytes: &mut [u8]) {
    let votes = |votes: i64| (votes << 50).to_le_bytes();
    let end = bytes.len() - 16;
    bytes[HEADER..HEADER + 8 * DEGREE].fill(0);
    bytes[HEADER..HEADER + 8].copy_from_slice(&votes(1500));
    for (value, body) in bytes[HEADER + 8 * DEGREE..end].chunks_exact_mut(8).enumerate() {
        body.copy_from_slice(&votes(-100 * (value % CLASSES) as i64));
    }
}

/// Returns the bits of the secret key, lowest first.
pub(crate) fn secret_bits() -> Vec<bool> {
    let file = fs::read(keys().join("secret.key")).expect("a key");
    let bits = &file[file.len() - 16 - DEGREE / 8..file.len() - 16];
    (0..DEGREE).map(|bit| bits[bit / 8] >> (bit % 8) & 1 == 1).collect()
}

const QUERIES: usize = 6;

/// Returns the labels that honest teachers agree on.
fn labels() -> Vec<u8> {
    (0..QUERIES).map(|query| (query * 7 % CLASSES) as u8).collect()
}

/// Runs a round of four teachers: the last one sends a probe, and the third one a copy of the first one's ciphertexts.
fn attacked(name: &str, gamma: f64, proofs: bool) -> (RoundFolder, ServerReport) {
    let mut terms = terms(name, QUERIES, 4);
    (terms.classes, terms.noise) = (numbered(CLASSES), noise(gamma));
    let folder = if proofs { RoundFolder::with_proofs(&terms) } else { RoundFolder::new(&terms) };
    for teacher in 0..2 {
        folder.answer(teacher, &labels(), &folder.inbox(&format!("{teacher}")));
    }
    let first = Submission::from_bytes(&fs::read(folder.inbox("0")).expect("a message")).expect("a submission");
    fs::write(folder.inbox("2"), resigned(&first, 2, |bytes| bytes[76] = 2)).expect("inbox");
    // The probe carries the proofs of an honest message, if there are any.
    let honest = submission(&folder, 3, &labels());
    fs::write(folder.inbox("3"), resigned(&honest, 3, probe)).expect("inbox");
    let report = folder.aggregate().expect("enough");
    (folder, report)
}

fn published(folder: &RoundFolder) -> Vec<usize> {
    let lines = folder.labels();
    lines
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(1).and_then(|label| label.parse().ok()).expect("a label"))
        .collect()
}

#[test]
fn without_proofs_labels_are_bits_of_the_secret_key() {
    // With this much noise, counts may differ by hundreds of votes, and the comparisons reach that far.
    let (folder, report) = attacked("off", 0.3, false);
    assert_eq!((report.counted, report.proven), (4, false));
    let bits = secret_bits();
    let leak = |query: usize| {
        let bit = |class: &usize| bits[query * CLASSES + class];
        // All classes lose the same if all bits are 1.
        (0..CLASSES).find(|class| !bit(class)).or(Some(0))
    };
    let known: Vec<_> = (0..QUERIES).map(leak).collect();
    let published: Vec<_> = published(&folder).into_iter().map(Some).collect();
    assert_eq!(published, known, "every label names the first class whose bit of the key is 0");
}

#[test]
fn with_proofs_neither_a_probe_nor_a_copy_is_counted() {
    let (folder, report) = attacked("required", 5.0, true);
    assert_eq!(reasons(&report), [(Some(2), "unproven"), (Some(3), "unproven")], "{:#?}", report.refused);
    assert_eq!((report.counted, report.proven), (2, true));
    let expected: Vec<usize> = labels().into_iter().map(usize::from).collect();
    assert_eq!(published(&folder), expected);
    // The round and honest messages need the proof key, and accept no other.
    let fresh = || ServerOptions { registry: folder.path("fresh"), ..folder.options() };
    fs::remove_file(folder.path("result")).expect("a result");
    let options = ServerOptions { proof_key: None, ..fresh() };
    says(folder.aggregate_with(&options, &Silent), "--proof-key");
    let other = RoundFolder::new(&terms("other", 2, 2));
    let options = ServerOptions { proof_key: Some(other.path("round.toml")), ..fresh() };
    says(folder.aggregate_with(&options, &Silent), "expected a proof key");
    let options = round_options(&keys().join("public.key"), &folder.path("again.toml"));
    let options = student::RoundOptions { proof_key: Some(folder.path("proof.key")), ..options };
    refused(student::round(&terms("again", 2, 2), &options), 4, "");
}

/// A check of proofs takes time, so a teacher that sends many messages must not cause many checks.
#[test]
fn a_second_message_is_a_duplicate_whatever_its_proofs_are() {
    let folder = RoundFolder::with_proofs(&terms("second", QUERIES, 2));
    (0..2).for_each(|teacher| folder.answer(teacher, &labels(), &folder.path(&format!("{teacher}"))));
    let unproven = |teacher: usize| {
        let message = Submission::from_bytes(&folder.bytes(&format!("{teacher}"))).expect("a submission");
        resigned(&message, teacher, |bytes| bytes[HEADER + 7] ^= 0x10)
    };
    // The inbox is read in the order of names. The same change makes a first message unproven.
    fs::copy(folder.path("0"), folder.inbox("0")).expect("a copy");
    fs::write(folder.inbox("1"), unproven(0)).expect("inbox");
    fs::write(folder.inbox("2"), unproven(1)).expect("inbox");
    let report = folder.aggregate().expect("one is enough");
    assert_eq!(reasons(&report), [(Some(0), "duplicate"), (Some(1), "unproven")], "{:#?}", report.refused);
}
