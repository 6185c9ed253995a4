//! Joint openings: the student and the opener together open a result, and neither opens a teacher's message alone. The same
//! attacks succeed with the complete secret key.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use speed_aggregation::protocol::{AnswerList, OpeningPart, SignedResult, Submission, TeacherStatus, Verification};
use speed_aggregation::{EncryptedAnswer, OpenerShare, Parameters, SecretKey, StudentShare};
use speed_core::Digest;
use speed_core::fixture::fixture_of_this_test;
use speed_round::opener::{self, OpenerOptions, OpenerReport, ShareState};
use speed_round::server::{self, VerifyOptions};
use speed_round::{Refused, RoundFile, RoundRandomness, RoundRegistry, Terms, student, teacher};

use crate::attacks::secret_bits;
use crate::common::{RoundFolder, SEED, Silent, as_server, assert_mode, identity, key_of, keys, refused, terms};
use crate::faults::seal;
use crate::lying_server::{evaluated, reveal_options, verify_options};

pub(crate) const QUERIES: usize = 6;
pub(crate) const OPENER: usize = 1;
const WORDS: usize = 2049;

/// The two shares of the key of [`keys`]: a simulation's keys are the same in both forms.
pub(crate) fn shares() -> &'static Path {
    static SHARES: OnceLock<PathBuf> = OnceLock::new();
    SHARES.get_or_init(|| {
        fixture_of_this_test("shares", |folder| {
            student::keygen_joint(folder, &Parameters::TOURNAMENT_128, SEED).expect("an empty folder");
        })
    })
}

pub(crate) fn joint_terms(name: &str) -> Terms {
    Terms { opener: Some(format!("hospital {OPENER}")), ..terms(name, QUERIES, 3) }
}

pub(crate) fn labels() -> Vec<u8> {
    (0..QUERIES).map(|query| (query * 5 % 3) as u8).collect()
}

/// A round whose result the opener verified.
pub(crate) fn verified() -> RoundFolder {
    RoundFolder::made_once("verified", || {
        let folder = RoundFolder::new(&joint_terms("verified"));
        for teacher in 0..3 {
            answer(&folder, teacher, SEED, &folder.path("opener.registry"));
        }
        let options = server::ServerOptions { copies: Some(folder.path("copies")), ..folder.options() };
        folder.aggregate_with(&options, &Silent).expect("enough");
        server::reveal(&reveal_options(&folder)).expect("a result");
        verify(&folder);
        fs::copy(shares().join("student.share"), folder.path("student.share")).expect("a copy");
        fs::copy(keys().join("SIMULATION.txt"), folder.path("SIMULATION.txt")).expect("a copy");
        fs::copy(shares().join("opener.share"), folder.path("opener.share")).expect("a copy");
        folder
    })
}

/// Writes a result of other terms with the signatures of server and opener, as both could make it with other programs.
pub(crate) fn sign_result(folder: &RoundFolder) {
    let template = verified().result();
    let answer = template.list().answers().next().expect("one").to_bytes();
    let queries = u32::try_from(folder.file.round().shape().queries()).expect("few");
    let answers: Vec<EncryptedAnswer> = (0..queries)
        .map(|query| {
            let mut bytes = answer.clone();
            bytes[44..76].copy_from_slice(folder.file.id().as_bytes());
            bytes[76..80].copy_from_slice(&query.to_le_bytes());
            seal(&mut bytes);
            EncryptedAnswer::from_bytes(&bytes).expect("well formed")
        })
        .collect();
    let statuses = vec![TeacherStatus::Counted; 3];
    let list = AnswerList::new(folder.file.round(), folder.file.key(), statuses, &answers).expect("in order");
    let result = SignedResult::new(list, template.sum(), as_server).to_bytes();
    sign_verification(folder, OPENER, OPENER, Digest::of(&result), "verification");
    folder.write("result", result);
}

/// Writes a teacher's verification of a result, in the name of a teacher.
fn sign_verification(folder: &RoundFolder, teacher: usize, named: usize, result: Digest, name: &str) -> PathBuf {
    let sign = |digest| identity(teacher).sign(digest);
    folder.write(name, Verification::new(folder.file.id(), [result; 2], named, sign).to_bytes());
    folder.path(name)
}

/// A teacher's message; the opener has this registry.
pub(crate) fn answer(folder: &RoundFolder, teacher: usize, randomness: RoundRandomness, opener: &Path) {
    folder.write("votes.csv", labels().iter().map(|label| format!("{label}\n")).collect::<String>());
    let mut options = folder.teacher_options(teacher, &folder.inbox(&format!("{teacher}")));
    options.randomness = randomness;
    if teacher == OPENER {
        options.registry = opener.to_path_buf();
        if opener.exists() {
            refused(teacher::answer(&options), 2, "under the same key, and keys are for one round");
            options.reuse_keys = true;
        }
    }
    teacher::answer(&options).expect("valid");
}

/// Lets the opener verify the result.
pub(crate) fn verify(folder: &RoundFolder) {
    let sign = Some((key_of(OPENER), folder.path("verification")));
    let options = VerifyOptions { proof_key: folder.options().proof_key, sign, ..verify_options(folder) };
    assert!(server::verify(&options, &Silent).expect("complete files").honest);
}

pub(crate) fn options(folder: &RoundFolder) -> OpenerOptions {
    OpenerOptions {
        signing_key: key_of(OPENER),
        share: folder.path("opener.share"),
        round: folder.path("round.toml"),
        result: folder.path("result"),
        verification: folder.path("verification"),
        registry: folder.path("opener.registry"),
        keep_share: false,
        reuse_keys: false,
        out: folder.path("part"),
    }
}

fn part(folder: &RoundFolder) -> OpenerReport {
    opener::part(&options(folder)).expect("a verified result")
}

/// The options that open the verified result with a share of the student and a part.
pub(crate) fn open_options(folder: &RoundFolder, key: &str, part: Option<&str>) -> student::OpenOptions {
    student::OpenOptions {
        secret_key: folder.path(key),
        part: part.map(|part| folder.path(part)),
        verifications: vec![folder.path("verification")],
        unverified: false,
        ..folder.open_options()
    }
}

fn open(folder: &RoundFolder, key: &str, part: Option<&str>) -> Result<String, Refused> {
    let _ = fs::remove_file(folder.path("labels.csv"));
    student::open(&open_options(folder, key, part))?;
    Ok(folder.text("labels.csv"))
}

#[test]
fn student_and_opener_open_a_round_together() {
    let folder = verified();
    assert_eq!(
        fs::read(shares().join("public.key")).expect("a key"),
        fs::read(keys().join("public.key")).expect("a key"),
        "the same keys"
    );
    let report = part(&folder);
    assert_eq!(
        (report.opener, report.queries, report.repeated, report.share),
        (OPENER, QUERIES, false, ShareState::Destroyed)
    );
    assert!(!folder.path("opener.share").exists());
    let bytes = folder.bytes("part");
    assert_eq!(bytes.len(), OpeningPart::size(folder.file.round()));
    let text = open(&folder, "student.share", Some("part")).expect("both");
    let lines: String = labels().iter().enumerate().map(|(query, label)| format!("{query},{label}\n")).collect();
    assert_eq!(text, format!("query,label\n{lines}"));
    // Again without the share: the same bytes, also at another path.
    let again = opener::part(&OpenerOptions { out: folder.path("again"), ..options(&folder) }).expect("the same");
    assert!(again.repeated && again.share == ShareState::Missing);
    assert_eq!(folder.bytes("again"), bytes);
    assert!(part(&folder).repeated, "the same file is accepted");
    // The student's share is destroyed with its labels.
    let mut open = student::OpenOptions {
        verifications: Vec::new(),
        keep_keys: false,
        ..open_options(&folder, "student.share", Some("part"))
    };
    let report = student::open(&open).expect("both");
    assert!(report.key_destroyed && report.opener == Some(OPENER) && !folder.path("student.share").exists());
    open.out = folder.path("other.csv");
    refused(student::open(&open), 3, "cannot read");
}

/// Returns the votes that a key finds in a message: for each value the phase in votes, rounded.
fn votes(message: &[u8], product: impl Fn(&[u64]) -> u64) -> Vec<i64> {
    let submission = Submission::from_bytes(message).expect("a submission");
    let bytes = submission.message().to_bytes();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let (mask, bodies) = (88, 88 + 8 * (WORDS - 1));
    let value = |value: usize| {
        // The mask of a value: the ring element times X^value.
        let n = WORDS - 1;
        let rotated: Vec<u64> = (0..n)
            .map(|i| match i.checked_sub(value) {
                Some(from) => word(mask + 8 * from),
                None => word(mask + 8 * (i + n - value)).wrapping_neg(),
            })
            .collect();
        let phase = word(bodies + 8 * value).wrapping_sub(product(&rotated));
        (phase.cast_signed() + (1 << 49)) >> 50
    };
    (0..3 * QUERIES).map(value).collect()
}

/// Returns the words of a share's file.
fn share_words(path: &Path) -> Vec<u64> {
    let bytes = fs::read(path).expect("a share");
    bytes[116..bytes.len() - 16]
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().expect("eight")))
        .collect()
}

fn inner(key: &[u64], mask: &[u64]) -> u64 {
    key.iter().zip(mask).fold(0, |sum: u64, (a, b)| sum.wrapping_add(a.wrapping_mul(*b)))
}

#[test]
fn a_student_that_colludes_with_the_server_opens_no_message() {
    let folder = verified();
    part(&folder);
    let message = fs::read(folder.inbox("0")).expect("a message");
    // With the complete key the two read the vote of every query: the noise of gamma 5 is almost always 0.
    let whole: Vec<u64> = secret_bits().into_iter().map(u64::from).collect();
    let agree = |votes: &[i64]| {
        let argmax = |votes: &[i64]| (0..3).max_by_key(|class| votes[*class]).expect("three");
        votes.chunks(3).zip(labels()).filter(|(votes, label)| argmax(votes) == usize::from(*label)).count()
    };
    let read = votes(&message, |mask| inner(&whole, mask));
    assert!(read.iter().all(|vote| vote.abs() < 10) && agree(&read) >= QUERIES - 2, "{read:?}");
    // With the student's share, values spread over all 2^14 votes of the torus.
    let share = share_words(&folder.path("student.share"));
    let read = votes(&message, |mask| inner(&share, mask));
    let small = read.iter().filter(|vote| vote.abs() < 400).count();
    assert!(small <= 10 && read.iter().any(|vote| vote.abs() > 4000), "{small}: {read:?}");
    // The opener's share, and the part that the pair has in addition, do not help: a part is for the result's masks only.
    let share = share_words(&shares().join("opener.share"));
    let read = votes(&message, |mask| inner(&share, mask));
    assert!(read.iter().filter(|vote| vote.abs() < 400).count() <= 10, "{read:?}");
    // The result is encrypted under this key, which none of their files contains.
    let key = SecretKey::from_bytes(&fs::read(keys().join("secret.key")).expect("a key")).expect("a key");
    let list = folder.result();
    assert!(list.list().answers().all(|answer| key.open(&answer).is_ok()), "the complete key opens the result");
}

/// A result of the server's choice with its own signature: each answer is an encryption of a bit of the key, as in a probe.
fn probing(folder: &RoundFolder) -> Vec<u8> {
    let result = folder.result();
    let answers: Vec<EncryptedAnswer> = result
        .list()
        .answers()
        .map(|answer| {
            let mut bytes = answer.to_bytes();
            let end = bytes.len() - 16;
            bytes[88..end].fill(0);
            let place = 88 + 8 * answer.query();
            // Half of the torus times one word of the key.
            bytes[place..place + 8].copy_from_slice(&(1_u64 << 63).to_le_bytes());
            seal(&mut bytes);
            EncryptedAnswer::from_bytes(&bytes).expect("well formed")
        })
        .collect();
    let statuses = result.list().statuses().to_vec();
    let list = AnswerList::new(folder.file.round(), folder.file.key(), statuses, &answers).expect("in order");
    SignedResult::new(list, result.sum(), as_server).to_bytes()
}

#[test]
fn an_opener_makes_no_part_of_a_result_that_it_did_not_verify() {
    let folder = verified();
    let probe = probing(&folder);
    folder.write("probe", &probe);
    // If the opener made a part of it, the words would be bits of its share, through any flooding below a half.
    let share = OpenerShare::from_bytes(&folder.bytes("opener.share")).expect("a share");
    let list = SignedResult::from_bytes(&probe).expect("whole");
    let leaked = share.part(list.list(), (Digest::of(&probe), OPENER), |_| {
        speed_aggregation::protocol::Signature::from_bytes([0; 64])
    });
    let words = share_words(&folder.path("opener.share"));
    let bits =
        leaked.expect("of this key").words().iter().map(|word| word.wrapping_add(1 << 62) >> 63).collect::<Vec<_>>();
    assert!(bits.iter().zip(&words).all(|(bit, word)| *bit == word & 1), "the probe works");

    let result = folder.path("probe");
    let probed = OpenerOptions { result: result.clone(), ..options(&folder) };
    refused(opener::part(&probed), 3, "is of the result with SHA-256");
    // A verification by another teacher does not count, even one that colludes.
    let other = sign_verification(&folder, 2, 2, Digest::of(&probe), "other");
    let colluding = OpenerOptions { verification: other, ..probed.clone() };
    refused(opener::part(&colluding), 3, "by teacher 2, expected one by the opener, teacher 1");
    let forged = sign_verification(&folder, 2, OPENER, Digest::of(&probe), "forged");
    refused(opener::part(&OpenerOptions { verification: forged, ..probed.clone() }), 3, "is not signed by teacher 1");
    assert!(!folder.path("part").exists() && folder.path("opener.share").exists());
    // The honest result with the verification of another teacher.
    let honest = Digest::of(folder.bytes("result"));
    let verification = sign_verification(&folder, 0, 0, honest, "of teacher 0");
    let with_other = OpenerOptions { verification, ..options(&folder) };
    refused(opener::part(&with_other), 3, "by teacher 0");
    // Another party's signing key, another file as share.
    let stranger = OpenerOptions { signing_key: key_of(0), ..options(&folder) };
    refused(opener::part(&stranger), 3, "is not the round's opener");
    let swapped = OpenerOptions { share: folder.path("student.share"), ..options(&folder) };
    let words = "is a student's share of a secret key (student.share), expected an opener's share";
    refused(opener::part(&swapped), 3, words);
    assert!(!folder.path("part").exists());
}

/// The key id does not cover all of the evaluation key. A student and a server that collude could state a key in the round
/// whose circuit gives answers of their choice, and the opener's verification with this key would succeed.
#[test]
fn an_opener_makes_no_part_of_a_round_with_another_evaluation_key() {
    let terms = Terms { evaluation_key: Some(Digest::of(b"another key")), ..joint_terms("evaluation key") };
    let folder = RoundFolder::new(&terms);
    sign_result(&folder);
    fs::copy(shares().join("opener.share"), folder.path("opener.share")).expect("a copy");
    drop(RoundRegistry::open(&folder.path("opener.registry"), true).expect("a new one"));
    refused(opener::part(&options(&folder)), 3, "was generated with the evaluation key");
    assert!(!folder.path("part").exists() && folder.path("opener.share").exists());
    let terms = Terms { evaluation_key: None, ..joint_terms("no evaluation key") };
    let stated = student::terms(&terms, &keys().join("public.key"), &folder.path("none"));
    refused(stated, 2, "a joint opening needs the SHA-256 of the evaluation key");
}

#[test]
fn an_opener_makes_a_part_of_one_result_of_a_round() {
    let folder = verified();
    let kept = OpenerOptions { keep_share: true, ..options(&folder) };
    assert_eq!(opener::part(&kept).expect("verified").share, ShareState::Kept);
    let first = folder.bytes("part");
    // A second result with the signatures of the server and of the opener as its verifier.
    for name in ["result", "verification"] {
        fs::rename(folder.path(name), folder.path(&format!("{name}.1"))).expect("a file");
    }
    sign_result(&folder);
    let second = OpenerOptions { out: folder.path("second"), ..kept.clone() };
    refused(opener::part(&second), 3, "it opens one result of a round");
    assert!(!folder.path("second").exists());
    // The first result still gets the same bytes, whatever the randomness.
    let again = OpenerOptions {
        result: folder.path("result.1"),
        verification: folder.path("verification.1"),
        out: folder.path("again"),
        ..kept
    };
    assert!(opener::part(&again).expect("the first result").repeated);
    assert_eq!(folder.bytes("again"), first);
}

#[test]
fn the_student_refuses_parts_that_are_missing_changed_or_of_others() {
    let folder = verified();
    part(&folder);
    let bytes = folder.bytes("part");
    refused(open(&folder, "student.share", None), 2, "give --part FILE");
    let refuses = |key: &str, part: &str, words: &str| {
        refused(open(&folder, key, Some(part)), 3, words);
    };
    fs::copy(keys().join("secret.key"), folder.path("secret.key")).expect("a copy");
    refuses("secret.key", "part", "is a secret key (secret.key), expected a student's share");
    fs::copy(shares().join("opener.share"), folder.path("opener.share")).expect("a copy");
    refuses("opener.share", "part", "is an opener's share of a secret key (opener.share), expected a student's");
    refuses("student.share", "result", "is a round's result, expected an opener's part");
    for at in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        folder.write("changed", &changed);
        assert!(open(&folder, "student.share", Some("changed")).is_err(), "{at}");
        seal(&mut changed);
        folder.write("changed", &changed);
        // The checksum at the end was restored.
        let is_checksum = at >= bytes.len() - 16;
        assert_eq!(open(&folder, "student.share", Some("changed")).is_ok(), is_checksum, "{at}");
    }
    folder.write("short", &bytes[..bytes.len() - 1]);
    assert!(open(&folder, "student.share", Some("short")).is_err());
    folder.write("long", vec![0; OpeningPart::MAX_BYTES + 1]);
    refuses("student.share", "long", "expected at most");
    // Parts that other parties sign, in their own name and in the opener's.
    let share = OpenerShare::from_bytes(&folder.bytes("opener.share")).expect("a share");
    let result = folder.bytes("result");
    let list = SignedResult::from_bytes(&result).expect("whole");
    let part_by = |signer: usize, named: usize, digest: Digest| {
        share.part(list.list(), (digest, named), |digest| identity(signer).sign(digest)).expect("a part").to_bytes()
    };
    for (signer, named) in [(2, 2), (2, OPENER), (OPENER, 2)] {
        folder.write("other", part_by(signer, named, Digest::of(&result)));
        refuses("student.share", "other", "is not signed by the round's opener \"hospital 1\"");
    }
    folder.write("other", part_by(OPENER, OPENER, Digest::of(b"another result")));
    refuses("student.share", "other", "is of the result with SHA-256");
    let mut other = bytes;
    other[12] ^= 1;
    seal(&mut other);
    folder.write("other", &other);
    refuses("student.share", "other", "is of round");

    // A round that the student opens alone takes no part and no share, and has no opener.
    let alone = evaluated();
    let open_alone = |key: PathBuf, part: Option<PathBuf>| {
        student::open(&student::OpenOptions { secret_key: key, part, ..alone.open_options() })
    };
    let whole = keys().join("secret.key");
    refused(open_alone(whole, Some(folder.path("part"))), 2, "remove --part");
    let words = "is a student's share of a secret key (student.share), expected a secret key";
    refused(open_alone(folder.path("student.share"), None), 3, words);
    let without = OpenerOptions { round: alone.path("round.toml"), ..options(&folder) };
    refused(opener::part(&without), 2, "it has no opener");
}

#[test]
fn keys_are_split_if_and_only_if_the_round_has_an_opener() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let report = student::keygen_joint(folder.path(), &Parameters::TOURNAMENT_128, SEED);
    let lengths: Vec<usize> = report.expect("an empty folder").files.iter().map(|(_, bytes)| *bytes).collect();
    assert_eq!(lengths, [16_516, 16_516, 16_448, 102_539_392]);
    assert!(!path("secret.key").exists());
    for share in ["student.share", "opener.share"] {
        assert_mode(&path(share), 0o600);
    }
    let again = student::keygen_joint(folder.path(), &Parameters::TOURNAMENT_128, SEED);
    refused(again, 4, "never overwritten");
    let student_share = StudentShare::from_bytes(&fs::read(path("student.share")).expect("a share")).expect("a share");
    let opener_share = OpenerShare::from_bytes(&fs::read(path("opener.share")).expect("a share")).expect("a share");
    assert_eq!(student_share.id(), opener_share.id());
    let round = |terms: &Terms, out: &str| {
        student::round(terms, &crate::common::round_options(&path("public.key"), &path(out)))
    };
    let whole = Terms { opener: None, ..joint_terms("split") };
    refused(round(&whole, "round.toml"), 2, "--opener");
    round(&joint_terms("split"), "round.toml").expect("split keys");
    let read = RoundFile::read(&path("round.toml")).expect("a round");
    assert_eq!(
        read.opener().map(|(index, party)| (index, party.name().to_owned())),
        Some((OPENER, format!("hospital {OPENER}")))
    );
    let whole = crate::common::round_options(&keys().join("public.key"), &path("other.toml"));
    refused(student::round(&joint_terms("whole"), &whole), 2, "speed student keygen --joint");
    let nobody = Terms { opener: Some("nobody".into()), ..joint_terms("n") };
    refused(round(&nobody, "n.toml"), 2, "is not the name of one of the parties");
}
