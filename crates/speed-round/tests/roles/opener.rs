//! Openers refuse rounds of a student that colludes with the server, and students refuse parts that their opener changed.

use std::fs;

use speed_aggregation::protocol::OpeningPart;
use speed_core::{Digest, RandomnessKind};
use speed_round::opener::{self, OpenerOptions, ShareState};
use speed_round::server::ServerOptions;
use speed_round::student::{self, KnownOptions, OpenOptions, OpenReport};
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{Refused, RoundFile, RoundRegistry, Terms};

use crate::common::{REAL, RoundFolder, Silent, identity, noise, refused, terms};
use crate::faults::seal;
use crate::joint::{
    OPENER, QUERIES, answer, joint_terms, labels, open_options, options, shares, sign_result, verified, verify,
};
use crate::lying_server::evaluate;

/// The terms of a real round.
fn real(terms: Terms) -> Terms {
    Terms { randomness: RandomnessKind::OperatingSystem, ..terms }
}

/// The terms of a real joint round, whose labels of two teachers are exact but for one round in eight million.
fn exact_terms(name: &str) -> Terms {
    Terms { noise: noise(9.0), ..real(joint_terms(name)) }
}

/// A real joint round with proofs, whose result the opener verified. The keys come from a seed, but the shares do not say so.
pub(crate) fn real_round() -> RoundFolder {
    RoundFolder::made_once("real", || {
        let folder = RoundFolder::with_proofs(&exact_terms("real"));
        // Two of three, because proofs take time.
        (0..2).for_each(|teacher| answer(&folder, teacher, REAL, &folder.path("opener.registry")));
        evaluate(&folder);
        verify(&folder);
        ["student.share", "opener.share"].iter().for_each(|name| copy_real_share(&folder, name));
        folder
    })
}

/// Copies a share without the flag of a simulation.
fn copy_real_share(folder: &RoundFolder, name: &str) {
    copy_share(folder, name, |bytes| {
        assert_eq!(bytes[48], 1);
        bytes[48] = 0;
    });
}

fn copy_share(folder: &RoundFolder, name: &str, change: impl FnOnce(&mut [u8])) {
    let mut bytes = fs::read(shares().join(name)).expect("a share");
    change(&mut bytes);
    seal(&mut bytes);
    folder.write(name, bytes);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o600)).expect("permissions");
    }
}

fn open(folder: &RoundFolder, part: &str, known: Option<KnownOptions>) -> Result<OpenReport, Refused> {
    student::open(&OpenOptions { known, ..open_options(folder, "student.share", Some(part)) })
}

#[test]
fn an_opener_opens_no_round_that_it_did_not_answer() {
    let folder = verified();
    let other = OpenerOptions { registry: folder.path("other.registry"), ..options(&folder) };
    refused(opener::part(&other), 4, "there is no registry here");
    drop(RoundRegistry::open(&other.registry, true).expect("a new one"));
    refused(opener::part(&other), 3, "has no message of this opener to round");
    assert!(!folder.path("part").exists() && folder.path("opener.share").exists());
    opener::part(&options(&folder)).expect("answered");
}

#[test]
fn an_opener_opens_one_round_of_a_key_and_no_more_bits_than_it_has() {
    let rounds = [real_round(), RoundFolder::with_proofs(&exact_terms("of the same key"))];
    let registry = rounds[0].path("opener.registry");
    answer(&rounds[1], OPENER, REAL, &registry);
    sign_result(&rounds[1]);
    copy_real_share(&rounds[1], "opener.share");
    let of = |round: &RoundFolder| OpenerOptions { registry: registry.clone(), keep_share: true, ..options(round) };
    // Both rounds were answered, so neither is the only one of the key.
    refused(opener::part(&of(&rounds[0])), 2, &format!("already answered round {}", rounds[1].file.id()));
    let first = OpenerOptions { reuse_keys: true, ..of(&rounds[0]) };
    assert_eq!(opener::part(&first).expect("2 times 10 bits").share, ShareState::Kept);
    refused(opener::part(&of(&rounds[1])), 2, &format!("already answered round {}", rounds[0].file.id()));
    assert!(!rounds[1].path("part").exists());
    let allowed = OpenerOptions { reuse_keys: true, ..of(&rounds[1]) };
    opener::part(&allowed).expect("2 times 10 bits");
    // The part of the first round is still there.
    let again = OpenerOptions { out: rounds[0].path("again"), ..of(&rounds[0]) };
    assert!(opener::part(&again).expect("the first").repeated);
}

/// A round with more labels than a key serves, as a student with another program could write it, and a result with the signatures of server and
/// opener.
fn worn_out() -> RoundFolder {
    // 300 queries of three outcomes: 475 bits.
    let terms = Terms { queries: 300, proofs: Some(Digest::of(b"a proof key")), ..real(joint_terms("long")) };
    let folder = RoundFolder::new(&terms);
    sign_result(&folder);
    copy_real_share(&folder, "opener.share");
    drop(RoundRegistry::open(&folder.path("opener.registry"), true).expect("a new one"));
    folder
}

/// The student's program refuses to write such a round. The other parties refuse it as well, because the student may be dishonest.
#[test]
fn every_party_refuses_a_round_whose_labels_could_reveal_too_much_of_the_key() {
    let folder = worn_out();
    refused(opener::part(&options(&folder)), 2, "475 bits of the secret key");
    assert!(!folder.path("part").exists() && folder.path("opener.share").exists());

    let alone = RoundFolder::new(&real(terms("long", 300, 3)));
    alone.write("votes.csv", "0\n".repeat(300));
    let teacher = TeacherOptions { randomness: REAL, ..alone.teacher_options(0, &alone.inbox("0")) };
    refused(teacher::answer(&teacher), 2, "475 bits of the secret key");
    let server = ServerOptions { randomness: REAL, ..alone.options() };
    refused(alone.aggregate_with(&server, &Silent), 2, "475 bits of the secret key");
}

#[test]
fn a_joint_round_needs_proofs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["public.key", "student.share"] {
        fs::copy(shares().join(name), path(name)).expect("a copy");
    }
    let terms = real(joint_terms("unproven"));
    let options = crate::common::round_options(&path("public.key"), &path("round.toml"));
    refused(student::round(&terms, &options), 2, "a joint opening needs proofs");
    // The file of a student with another program is refused by all who read it.
    let file = student::terms(&terms, &path("public.key"), &path("round.toml")).expect("valid");
    student::write_round(&file, &path("round.toml")).expect("a new file");
    refused(RoundFile::read(&path("round.toml")), 2, "found no [proofs]");
    let simulation = student::terms(&joint_terms("simulation"), &path("public.key"), &path("other.toml"));
    student::write_round(&simulation.expect("valid"), &path("other.toml")).expect("a new file");
    RoundFile::read(&path("other.toml")).expect("a simulation");
}

#[test]
fn a_real_share_opens_no_simulation() {
    let folder = verified();
    copy_real_share(&folder, "opener.share");
    refused(opener::part(&options(&folder)), 3, "opener.share");
    assert!(!folder.path("part").exists() && folder.path("opener.share").exists());
    fs::copy(shares().join("opener.share"), folder.path("opener.share")).expect("a copy");
    opener::part(&options(&folder)).expect("a simulated share");
    copy_real_share(&folder, "student.share");
    refused(open(&folder, "part", None), 3, "student.share");
    // The key of the flooding is zero in the student's share and random in the opener's.
    for (name, key) in [("student.share", 1), ("opener.share", 0)] {
        copy_share(&folder, name, |bytes| bytes[84..116].fill(key));
    }
    refused(open(&folder, "part", None), 3, "a key of the flooding is 1");
    fs::remove_file(folder.path("part")).expect("a part");
    refused(opener::part(&options(&folder)), 3, "a key of the flooding is 0");
    fs::copy(shares().join("opener.share"), folder.path("opener.share")).expect("a copy");
    opener::part(&options(&folder)).expect("a simulated share");
    // And the other way round.
    let real = real_round();
    for name in ["student.share", "opener.share"] {
        fs::copy(shares().join(name), real.path(name)).expect("a copy");
    }
    refused(opener::part(&options(&real)), 3, "opener.share");
    fs::copy(folder.path("part"), real.path("part")).expect("a copy");
    refused(open(&real, "part", None), 3, "student.share");
}

/// Returns the part that adds a number of outcomes to the label of every query, signed by the opener.
fn shifted(part: &[u8], outcomes: impl Fn(usize) -> u64) -> Vec<u8> {
    let mut bytes = part.to_vec();
    let end = bytes.len() - 16 - 64;
    for (query, word) in bytes[84..end].chunks_exact_mut(8).enumerate() {
        let value = u64::from_le_bytes(word.try_into().expect("eight bytes"));
        word.copy_from_slice(&value.wrapping_sub(outcomes(query) << 60).to_le_bytes());
    }
    seal(&mut bytes);
    let signature = identity(OPENER).sign(OpeningPart::from_bytes(&bytes).expect("well formed").signed().0);
    bytes[end..end + 64].copy_from_slice(signature.as_bytes());
    seal(&mut bytes);
    bytes
}

/// A verification covers the result and not the part, so known answers are the only check of the part.
#[test]
fn an_opener_that_changes_its_part_is_found_by_known_answers_and_has_one_try() {
    let folder = real_round();
    opener::part(&options(&folder)).expect("answered and verified");
    let part = folder.bytes("part");
    let labels = labels();
    // 0 and 15 add up to a number that is not an outcome. The share is kept, but a second part is refused.
    folder.write("refused", shifted(&part, |_| 15));
    refused(open(&folder, "refused", None), 3, "the opener of a joint round changed its part");
    refused(open(&folder, "part", None), 3, "two parts with the opener's signature convict it");
    assert!(!folder.path("labels.csv").exists() && folder.path("student.share").exists());

    // Every label 0 becomes 1. All labels are outcomes, so only known answers find it.
    folder.write("changed", shifted(&part, |query| u64::from(labels[query] == 0)));
    let lines: String = (0..4).map(|query| format!("{query},{}\n", labels[query])).collect();
    folder.write("known.csv", format!("query,label\n{lines}"));
    let known = KnownOptions { answers: folder.path("known.csv"), query_list: None, wrong: 0 };
    let again = || fs::remove_file(folder.path("student.opened")).expect("a list");
    again();
    refused(open(&folder, "changed", Some(known.clone())), 3, "known");
    assert!(!folder.path("labels.csv").exists() && folder.path("student.share").exists());
    again();
    open(&folder, "changed", None).expect("nothing to compare with");
    let written = folder.text("labels.csv");
    assert_eq!(written.matches(",1\n").count(), QUERIES * 2 / 3, "{written}");
    fs::remove_file(folder.path("labels.csv")).expect("labels");
    again();
    assert_eq!(open(&folder, "part", Some(known)).expect("honest").labelled, QUERIES - 4);
}
