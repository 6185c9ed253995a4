//! Refusals of student and teacher.

use std::fs;

use speed_aggregation::Parameters;
use speed_aggregation::protocol::{AnswerList, SignedResult};
use speed_round::server::ServerOptions;
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{Identity, RoundRandomness, student};

use crate::common::{RoundFolder, Silent, key_of, keys, noise, numbered, roster, round_options, signing_key, terms};
use crate::faults::seal;
use crate::joint::refused;

#[test]
fn keys_are_never_overwritten_and_the_secret_one_is_private() {
    let before = fs::read(keys().join("secret.key")).expect("a key");
    let again = student::keygen(keys(), &Parameters::TOURNAMENT_128, RoundRandomness::OPERATING_SYSTEM);
    assert_eq!(again.expect_err("there already").exit_code().code(), 4);
    assert_eq!(fs::read(keys().join("secret.key")).expect("a key"), before);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(keys().join("secret.key")).expect("a key").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert!(keys().join("SIMULATION.txt").exists(), "simulated keys say so");
}

#[test]
fn a_teacher_refuses_what_does_not_fit() {
    let folder = RoundFolder::new(&terms("teacher", 2, 3));
    let out = folder.path("out.msg");
    let fails = |change: &dyn Fn(&mut TeacherOptions)| {
        fs::write(folder.path("votes.csv"), "0\n2\n").expect("votes");
        let mut options = folder.teacher_options(1, &out);
        change(&mut options);
        let error = teacher::answer(&options).expect_err("refused");
        assert!(!out.exists());
        (error.exit_code().code(), error.to_string())
    };
    let (code, message) = fails(&|options| options.signing_key = key_of(3));
    assert!(code == 3 && message.contains("none of the round's teachers"), "{message}");
    let (code, message) = fails(&|options| options.signing_key = keys().join("public.key"));
    assert!(code == 3 && message.contains("expected a signing key"), "{message}");
    let (code, message) = fails(&|options| options.proof_key = Some(keys().join("public.key")));
    assert!(code == 2 && message.contains("asks for no proofs"), "{message}");
    assert_eq!(fails(&|options| options.randomness = RoundRandomness::OPERATING_SYSTEM).0, 2);
    let other = noise(0.1).mechanism();
    let (code, message) = fails(&|options| options.mechanism = Some(other));
    assert!(code == 2 && message.contains("gamma=0.1") && message.contains("gamma=5"), "{message}");
    assert_eq!(fails(&|options| options.public_key = keys().join("evaluation.key")).0, 3);
    assert_eq!(fails(&|options| options.public_key = keys().join("secret.key")).0, 3);
    assert_eq!(fails(&|options| options.round = folder.path("absent")).0, 2);
    let (code, message) = fails(&|options| options.query_list = Some(folder.path("round.toml")));
    assert!(code == 3 && message.contains("the round names no list of queries"), "{message}");
    fs::write(folder.path("bad.csv"), "0\n3\n").expect("votes");
    let (code, message) = fails(&|options| options.votes = folder.path("bad.csv"));
    assert!(code == 3 && message.contains("query 1: label 3, expected 0 to 2"), "{message}");
    let changed = fs::read_to_string(folder.path("round.toml")).expect("a round").replace("minimum = 1", "minimum = 2");
    fs::write(folder.path("changed.toml"), changed).expect("a round");
    let (code, message) = fails(&|options| options.round = folder.path("changed.toml"));
    assert!(code == 2 && message.contains("it was changed"), "{message}");

    folder.answer(1, &[0, 2], &out);
    let before = fs::read(&out).expect("a message");
    assert_eq!(folder.try_answer(1, &[1, 2], &out).expect_err("there already").exit_code().code(), 4);
    assert_eq!(fs::read(&out).expect("a message"), before);
}

#[test]
fn a_round_that_the_keys_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [public, out] = [keys().join("public.key"), folder.path().join("round.toml")];
    let make = |terms| student::round(&terms, &round_options(&public, &out));
    let mut wide = terms("wide", 100, 3000);
    refused(make(wide.clone()), 2, "noisy counts can differ by");
    wide.roster = roster(250);
    wide.min_teachers = 251;
    refused(make(wide.clone()), 2, "251 teachers must answer");
    wide.min_teachers = 250;
    wide.threshold = Some(10_000);
    refused(make(wide.clone()), 2, "threshold 10000");
    wide.threshold = None;
    make(wide.clone()).expect("valid");
    assert_eq!(make(wide).expect_err("there already").exit_code().code(), 4);
}

#[test]
fn a_teacher_answers_the_queries_that_it_voted_on() {
    let list = tempfile::NamedTempFile::new().expect("a temporary file");
    fs::write(list.path(), "image 17\nimage 4\n").expect("queries");
    let mut terms = terms("queries", 2, 3);
    terms.query_list = Some(speed_round::hash_file(list.path(), 1 << 20).expect("a file"));
    let folder = RoundFolder::new(&terms);
    fs::write(folder.path("votes.csv"), "0\n2\n").expect("votes");
    let answer = |list: &std::path::Path| {
        let options = folder.teacher_options(1, &folder.path("out.msg"));
        teacher::answer(&TeacherOptions { query_list: Some(list.to_path_buf()), ..options })
    };
    let error = answer(&folder.path("votes.csv")).expect_err("other queries").to_string();
    assert!(error.contains("votes.csv: has the SHA-256") && !folder.path("out.msg").exists(), "{error}");
    answer(list.path()).expect("the round's queries");
}

#[test]
fn an_answer_that_is_no_outcome_refuses_the_result_and_labels_are_private() {
    let folder = RoundFolder::new(&terms("undecodable answer", 3, 2));
    folder.answer(0, &[2, 1, 2], &folder.inbox("teacher-0.msg"));
    folder.aggregate().expect("enough");
    // The last word of the second of three answers: adding five gives no outcome of three classes. A faulty server
    // signs it.
    let result = SignedResult::from_bytes(&fs::read(folder.path("result")).expect("a result")).expect("whole");
    let mut list = result.list().to_bytes();
    let end = list.len() - 16 - 8 * 2049;
    list[end - 1] = list[end - 1].wrapping_add(5 << 4);
    seal(&mut list);
    let list = AnswerList::from_bytes(&list).expect("well formed");
    let server = Identity::read(&signing_key("server")).expect("a key");
    let faulty = SignedResult::new(list.clone(), result.sum(), |digest| server.sign(digest));
    fs::write(folder.path("result"), faulty.to_bytes()).expect("a result");

    let (secret, out) = (keys().join("secret.key"), folder.path("labels.csv"));
    // A label less would be one more outcome by which a server could read the key.
    let error = folder.open(&secret, "result", &out).expect_err("not an outcome");
    assert!(error.exit_code().code() == 3 && error.to_string().contains("the first for query 1"), "{error}");
    assert!(!out.exists() && secret.exists());
    let honest = SignedResult::new(result.list().clone(), result.sum(), |digest| server.sign(digest));
    fs::write(folder.path("honest"), honest.to_bytes()).expect("a result");
    let report = folder.open(&secret, "honest", &out).expect("three labels");
    assert_eq!(report.labelled, 3);
    assert_eq!(fs::read_to_string(&out).expect("labels"), "query,label\n0,2\n1,1\n2,2\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&out).expect("labels").permissions().mode() & 0o777, 0o600);
    }
    // A result signed by another party is refused, and so is a changed result of the server.
    let teacher = Identity::read(&key_of(0)).expect("a key");
    let foreign = SignedResult::new(list, faulty.sum(), |digest| teacher.sign(digest)).to_bytes();
    let mut changed = faulty.to_bytes();
    let sum = changed.len() - 16 - 64 - 1;
    changed[sum] ^= 1;
    seal(&mut changed);
    for bytes in [foreign, changed] {
        fs::write(folder.path("foreign"), bytes).expect("a result");
        let open = folder.open(&secret, "foreign", &folder.path("foreign.csv"));
        assert!(
            open.expect_err("not the server's").to_string().contains("not signed by the round's server \"server\"")
        );
    }
    // Another round's result is refused, whatever its content.
    let other = RoundFolder::new(&terms("another round", 3, 2));
    fs::copy(folder.path("result"), other.path("result")).expect("a copy");
    let error = other.open(&secret, "result", &other.path("labels.csv"));
    assert!(error.expect_err("another round").to_string().contains("expected round"));
}

/// Proofs do not bound what labels reveal, so a round with proofs is charged like another one.
#[test]
fn keys_are_for_one_round_and_every_label_wears_them_out() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    let randomness = RoundRandomness::OPERATING_SYSTEM;
    student::keygen(folder.path(), &Parameters::TOURNAMENT_128, randomness).expect("an empty folder");
    let round = |name: &str, queries, reuse_keys| {
        let mut terms = terms(name, queries, 2);
        terms.randomness = speed_core::RandomnessKind::OperatingSystem;
        terms.classes = numbered(10);
        let options = round_options(&path("public.key"), &path(name));
        student::round(&terms, &student::RoundOptions { reuse_keys, ..options })
    };
    // 333 bits are 100 labels of ten classes.
    let error = round("too many", 101, false).expect_err("worn out");
    let text = error.to_string();
    assert!(error.exit_code().code() == 2 && text.contains("336 bits") && text.contains("serve 100 queries"), "{text}");
    // Proofs bind teachers, and the server can lie all the same. Refused before the slow generation of the proof key.
    let mut proven = terms("proven", 101, 2);
    (proven.randomness, proven.classes) = (speed_core::RandomnessKind::OperatingSystem, numbered(10));
    let options = round_options(&path("public.key"), &path("proven"));
    let options = student::RoundOptions { proof_key: Some(path("proof.key")), ..options };
    let error = student::round(&proven, &options).expect_err("worn out").to_string();
    assert!(error.contains("336 bits") && !path("proof.key").exists(), "{error}");
    // A threshold is one more outcome: 96 queries of eleven.
    let mut threshold = terms("threshold", 97, 2);
    (threshold.randomness, threshold.classes) = (speed_core::RandomnessKind::OperatingSystem, numbered(10));
    threshold.threshold = Some(1);
    let error = student::round(&threshold, &round_options(&path("public.key"), &path("threshold")));
    let error = error.expect_err("worn out").to_string();
    assert!(error.contains("serve 96 queries"), "{error}");
    let first = round("first", 60, false).expect("fresh keys");
    let error = round("second", 1, false).expect_err("used").to_string();
    assert!(error.contains(&first.id().to_string()) && error.contains("--reuse-keys"), "{error}");
    round("second", 40, true).expect("100 labels");
    let error = round("third", 1, true).expect_err("worn out").to_string();
    assert!(error.contains("3 bits") && error.contains("earlier rounds 332"), "{error}");
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
    assert_eq!(round("fourth", 1, true).expect_err("damaged").exit_code().code(), 3);
}

/// A simulation is charged nothing and needs no verification. Under real keys a rehearsal would let a lying server read the secret key from
/// its labels, and opening it would destroy the key.
#[test]
fn simulations_never_use_real_keys_and_real_rounds_never_simulated_ones() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name);
    student::keygen(folder.path(), &Parameters::TOURNAMENT_128, RoundRandomness::OPERATING_SYSTEM).expect("new keys");
    let public = path("public.key");
    let error = student::round(&terms("rehearsal", 2000, 2), &round_options(&public, &path("rehearsal.toml")));
    let error = error.expect_err("real keys");
    assert!(error.exit_code().code() == 3 && error.to_string().contains("not a simulation's key"), "{error}");
    let mut real = terms("real", 1, 2);
    real.randomness = speed_core::RandomnessKind::OperatingSystem;
    let error = student::round(&real, &round_options(&keys().join("public.key"), &path("real.toml")));
    assert!(error.expect_err("simulated keys").to_string().contains("is a simulation's key"));
    assert!(!path("rehearsal.toml").exists() && !path("real.toml").exists() && !path("public.rounds").exists());

    // A student that gets such a round's file from elsewhere.
    let simulated = RoundFolder::new(&terms("from elsewhere", 1, 2));
    simulated.answer(0, &[2], &simulated.inbox("teacher-0.msg"));
    simulated.aggregate().expect("enough");
    fs::copy(keys().join("secret.key"), path("secret.key"))
        .and_then(|_| fs::remove_file(&public))
        .expect("an unmarked key");
    let error = simulated.open(&path("secret.key"), "result", &path("labels.csv")).expect_err("an unmarked key");
    assert!(error.to_string().contains("not a simulation's key") && path("secret.key").exists(), "{error}");
}

#[test]
fn a_key_without_a_list_of_rounds_is_not_destroyed() {
    let mut terms = terms("moved", 1, 2);
    terms.randomness = speed_core::RandomnessKind::OperatingSystem;
    let folder = RoundFolder::new(&terms);
    let options = speed_round::teacher::TeacherOptions {
        randomness: speed_round::RoundRandomness::OPERATING_SYSTEM,
        ..folder.teacher_options(0, &folder.inbox("0"))
    };
    fs::write(&options.votes, "2\n").expect("votes");
    speed_round::teacher::answer(&options).expect("valid");
    let server = ServerOptions { randomness: speed_round::RoundRandomness::OPERATING_SYSTEM, ..folder.options() };
    folder.aggregate_with(&server, &Silent).expect("enough");
    fs::copy(keys().join("secret.key"), folder.path("secret.key")).expect("a copy");
    let open = |out: &str| {
        student::open(&student::OpenOptions {
            secret_key: folder.path("secret.key"),
            part: None,
            result: folder.path("result"),
            round: folder.path("round.toml"),
            verifications: Vec::new(),
            unverified: true,
            known: None,
            keep_keys: false,
            out: folder.path(out),
        })
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
    let options = student::OpenOptions {
        secret_key: secret.clone(),
        part: None,
        result: folder.path("result"),
        round: folder.path("round.toml"),
        verifications: Vec::new(),
        unverified: true,
        known: None,
        keep_keys: false,
        out: out.clone(),
    };
    // Other labels are at the output's path: nothing is lost.
    fs::write(&out, "query,label\n0,1\n").expect("a file");
    assert_eq!(student::open(&options).expect_err("other labels").exit_code().code(), 4);
    assert!(secret.exists());
    // The state after a kill between writing the labels and removing the key.
    fs::write(&out, "query,label\n0,2\n").expect("a file");
    assert!(student::open(&options).expect("the same labels").key_destroyed);
    assert!(!secret.exists());
}
