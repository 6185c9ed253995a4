//! Refusals of student and teacher.

use std::fs;

use speed_aggregation::Parameters;
use speed_aggregation::protocol::{AnswerList, SignedResult};
use speed_core::RandomnessKind;
use speed_round::server::ServerOptions;
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{Terms, student};

use crate::common::{
    REAL, RoundFolder, Silent, as_server, assert_mode, identity, key_of, keys, noise, numbered, refused, round_options,
    says, terms,
};
use crate::faults::seal;

#[test]
fn keys_are_never_overwritten_and_the_secret_one_is_private() {
    let before = fs::read(keys().join("secret.key")).expect("a key");
    refused(student::keygen(keys(), &Parameters::TOURNAMENT_128, REAL), 4, "");
    assert_eq!(fs::read(keys().join("secret.key")).expect("a key"), before);
    assert_mode(&keys().join("secret.key"), 0o600);
    assert!(keys().join("SIMULATION.txt").exists(), "simulated keys say so");
}

#[test]
fn a_teacher_refuses_what_does_not_fit() {
    let folder = RoundFolder::new(&terms("teacher", 2, 3));
    let out = folder.path("out.msg");
    folder.write("bad.csv", "0\n3\n");
    let changed = folder.text("round.toml").replace("minimum = 1", "minimum = 2");
    folder.write("changed.toml", changed);
    let path = |name: &str| folder.path(name);
    let other = noise(0.1).mechanism();
    type Change<'a> = &'a dyn Fn(&mut TeacherOptions);
    let changes: [(Change<'_>, u8, &[&str]); 11] = [
        (&|options| options.signing_key = key_of(3), 3, &["none of the round's teachers"]),
        (&|options| options.signing_key = keys().join("public.key"), 3, &["expected a signing key"]),
        (&|options| options.proof_key = Some(keys().join("public.key")), 2, &["asks for no proofs"]),
        (&|options| options.randomness = REAL, 2, &[]),
        (&|options| options.mechanism = Some(other), 2, &["gamma=0.1", "gamma=5"]),
        (&|options| options.public_key = keys().join("evaluation.key"), 3, &[]),
        (&|options| options.public_key = keys().join("secret.key"), 3, &[]),
        (&|options| options.round = path("absent"), 2, &[]),
        (&|options| options.query_list = Some(path("round.toml")), 3, &["the round names no list of queries"]),
        (&|options| options.votes = path("bad.csv"), 3, &["query 1: label 3, expected 0 to 2"]),
        (&|options| options.round = path("changed.toml"), 2, &["it was changed"]),
    ];
    for (change, code, words) in changes {
        folder.write("votes.csv", "0\n2\n");
        let mut options = folder.teacher_options(1, &out);
        change(&mut options);
        let error = refused(teacher::answer(&options), code, "").to_string();
        assert!(words.iter().all(|word| error.contains(word)) && !out.exists(), "{error}");
    }

    folder.answer(1, &[0, 2], &out);
    let before = fs::read(&out).expect("a message");
    refused(folder.try_answer(1, &[1, 2], &out), 4, "");
    assert_eq!(fs::read(&out).expect("a message"), before);
}

#[test]
fn a_teacher_answers_the_queries_that_it_voted_on() {
    let list = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(list.path(), "image 17\nimage 4\n").expect("queries");
    let mut terms = terms("queries", 2, 3);
    terms.query_list = Some(speed_round::hash_file(list.path(), 1 << 20).expect("a file"));
    let folder = RoundFolder::new(&terms);
    folder.write("votes.csv", "0\n2\n");
    let answer = |list: &std::path::Path| {
        let options = folder.teacher_options(1, &folder.path("out.msg"));
        teacher::answer(&TeacherOptions { query_list: Some(list.to_path_buf()), ..options })
    };
    says(answer(&folder.path("votes.csv")), "votes.csv: has the SHA-256");
    assert!(!folder.path("out.msg").exists());
    answer(list.path()).expect("the round's queries");
}

#[test]
fn an_answer_that_is_no_outcome_refuses_the_result_and_labels_are_private() {
    let folder = RoundFolder::new(&terms("undecodable answer", 3, 2));
    folder.answer(0, &[2, 1, 2], &folder.inbox("teacher-0.msg"));
    folder.aggregate().expect("enough");
    // The last word of the second of three answers: adding five gives no outcome of three classes. A faulty server
    // signs it.
    let result = folder.result();
    let mut list = result.list().to_bytes();
    let end = list.len() - 16 - 8 * 2049;
    list[end - 1] = list[end - 1].wrapping_add(5 << 4);
    seal(&mut list);
    let list = AnswerList::from_bytes(&list).expect("well formed");
    let faulty = SignedResult::new(list.clone(), result.sum(), as_server);
    folder.write("result", faulty.to_bytes());

    let (secret, out) = (keys().join("secret.key"), folder.path("labels.csv"));
    // A label less would be one more outcome by which a server could read the key.
    refused(folder.open(&secret, "result", &out), 3, "the first for query 1");
    assert!(!out.exists() && secret.exists());
    let honest = SignedResult::new(result.list().clone(), result.sum(), as_server);
    folder.write("honest", honest.to_bytes());
    let report = folder.open(&secret, "honest", &out).expect("three labels");
    assert_eq!(report.labelled, 3);
    assert_eq!(fs::read_to_string(&out).expect("labels"), "query,label\n0,2\n1,1\n2,2\n");
    assert_mode(&out, 0o600);
    // A result signed by another party is refused, and so is a changed result of the server.
    let foreign = SignedResult::new(list, faulty.sum(), |digest| identity(0).sign(digest)).to_bytes();
    let mut changed = faulty.to_bytes();
    let sum = changed.len() - 16 - 64 - 1;
    changed[sum] ^= 1;
    seal(&mut changed);
    for bytes in [foreign, changed] {
        folder.write("foreign", bytes);
        let open = folder.open(&secret, "foreign", &folder.path("foreign.csv"));
        says(open, "not signed by the round's server \"server\"");
    }
    // Another round's result is refused, whatever its content.
    let other = RoundFolder::new(&terms("another round", 3, 2));
    fs::copy(folder.path("result"), other.path("result")).expect("a copy");
    says(other.open(&secret, "result", &other.path("labels.csv")), "expected round");
}

/// Proofs do not bound what labels reveal, so a round with proofs is charged like another one.
#[test]
fn keys_are_for_one_round_and_every_label_wears_them_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    student::keygen(folder.path(), &Parameters::TOURNAMENT_128, REAL).expect("an empty folder");
    let terms = |name: &str, queries| {
        let terms = terms(name, queries, 2);
        Terms { randomness: RandomnessKind::OperatingSystem, classes: numbered(10), ..terms }
    };
    let options = |name: &str| round_options(&path("public.key"), &path(name));
    let round = |name: &str, queries, reuse_keys| {
        student::round(&terms(name, queries), &student::RoundOptions { reuse_keys, ..options(name) })
    };
    // 333 bits are 100 labels of ten classes.
    let error = refused(round("too many", 101, false), 2, "336 bits").to_string();
    assert!(error.contains("serve 100 queries"), "{error}");
    // Proofs bind teachers, and the server can lie all the same. Refused before the slow generation of the proof key.
    let proven = student::RoundOptions { proof_key: Some(path("proof.key")), ..options("proven") };
    says(student::round(&terms("proven", 101), &proven), "336 bits");
    assert!(!path("proof.key").exists());
    // A threshold is one more outcome: 96 queries of eleven.
    let threshold = Terms { threshold: Some(1), ..terms("threshold", 97) };
    says(student::round(&threshold, &options("threshold")), "serve 96 queries");
    let first = round("first", 60, false).expect("fresh keys");
    let error = says(round("second", 1, false), "--reuse-keys").to_string();
    assert!(error.contains(&first.id().to_string()), "{error}");
    round("second", 40, true).expect("100 labels");
    let error = says(round("third", 1, true), "earlier rounds 332").to_string();
    assert!(error.contains("3 bits"), "{error}");
    assert!(!path("third").exists() && !path("too many").exists());
    // A round whose file cannot be written is not charged.
    let before = fs::read(path("public.rounds")).expect("a list");
    fs::write(path("public.rounds"), "").expect("a list");
    assert!(round("absent/fourth", 1, false).is_err());
    assert_eq!(fs::read(path("public.rounds")).expect("a list"), b"");
    fs::write(path("public.rounds"), &before).expect("a list");
    // Half a line, as after a crash, is ignored.
    let list = fs::read_to_string(path("public.rounds")).expect("a list");
    fs::write(path("public.rounds"), format!("{list}{}", &list[..80])).expect("a list");
    assert!(round("third", 1, true).is_err(), "the whole lines are read");
    fs::write(path("public.rounds"), "rubbish\n").expect("a list");
    refused(round("fourth", 1, true), 3, "");
}

/// A simulation is charged nothing and needs no verification. Under real keys a rehearsal would let a lying server read the secret key from
/// its labels, and opening it would destroy the key.
#[test]
fn simulations_never_use_real_keys_and_real_rounds_never_simulated_ones() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    student::keygen(folder.path(), &Parameters::TOURNAMENT_128, REAL).expect("new keys");
    let public = path("public.key");
    let rehearsal = student::round(&terms("rehearsal", 2000, 2), &round_options(&public, &path("rehearsal.toml")));
    refused(rehearsal, 3, "not a simulation's key");
    let real = Terms { randomness: RandomnessKind::OperatingSystem, ..terms("real", 1, 2) };
    let round = student::round(&real, &round_options(&keys().join("public.key"), &path("real.toml")));
    says(round, "is a simulation's key");
    assert!(!path("rehearsal.toml").exists() && !path("real.toml").exists() && !path("public.rounds").exists());

    // A student that gets such a round's file from elsewhere.
    let simulated = RoundFolder::new(&terms("from elsewhere", 1, 2));
    simulated.answer(0, &[2], &simulated.inbox("teacher-0.msg"));
    simulated.aggregate().expect("enough");
    fs::copy(keys().join("secret.key"), path("secret.key"))
        .and_then(|_| fs::remove_file(&public))
        .expect("an unmarked key");
    says(simulated.open(&path("secret.key"), "result", &path("labels.csv")), "not a simulation's key");
    assert!(path("secret.key").exists());
}

#[test]
fn a_key_without_a_list_of_rounds_is_not_destroyed() {
    let folder = RoundFolder::new(&Terms { randomness: RandomnessKind::OperatingSystem, ..terms("moved", 1, 2) });
    folder.answer_really(0, "2\n");
    let server = ServerOptions { randomness: REAL, ..folder.options() };
    folder.aggregate_with(&server, &Silent).expect("enough");
    fs::copy(keys().join("secret.key"), folder.path("secret.key")).expect("a copy");
    let open = |out: &str| {
        let (secret_key, out) = (folder.path("secret.key"), folder.path(out));
        student::open(&student::OpenOptions { secret_key, keep_keys: false, out, ..folder.open_options() })
    };
    // No list of rounds beside the key, as after a move; then a list without this round; then one with this round and
    // another.
    let report = open("first.csv").expect("labels");
    assert_eq!((report.key_destroyed, report.other_rounds), (false, None));
    let (list, own) = (folder.path("public.rounds"), folder.file.id().to_hex());
    let other = "ab".repeat(32);
    for (text, expected) in [
        (format!("{other} 0.000\n"), (false, None)),
        (format!("{other} 0.000\n{own} 0.000\n"), (false, Some(1))),
        (format!("{own} 0.000\n"), (true, Some(0))),
    ] {
        fs::write(&list, text).expect("a list");
        let report = open("first.csv").expect("the same labels");
        assert_eq!((report.key_destroyed, report.other_rounds), expected);
    }
    assert!(!folder.path("secret.key").exists());
}

#[test]
fn the_secret_key_is_destroyed_once_the_labels_are_there() {
    let folder = RoundFolder::new(&terms("destroyed", 1, 2));
    folder.answer(0, &[2], &folder.inbox("teacher-0.msg"));
    folder.aggregate().expect("enough");
    let (secret, out) = (folder.path("secret.key"), folder.path("labels.csv"));
    fs::copy(keys().join("secret.key"), &secret).expect("a copy");
    fs::copy(keys().join("SIMULATION.txt"), folder.path("SIMULATION.txt")).expect("a copy");
    let options = student::OpenOptions { secret_key: secret.clone(), keep_keys: false, ..folder.open_options() };
    // Other labels are at the output's path: nothing is lost.
    fs::write(&out, "query,label\n0,1\n").expect("a file");
    refused(student::open(&options), 4, "");
    assert!(secret.exists());
    // The state after a kill between writing the labels and removing the key.
    fs::write(&out, "query,label\n0,2\n").expect("a file");
    assert!(student::open(&options).expect("the same labels").key_destroyed);
    assert!(!secret.exists());
}
