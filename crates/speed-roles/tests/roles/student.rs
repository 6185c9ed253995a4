//! Refusals of student and teacher.

use std::fs;

use speed_aggregation::Parameters;
use speed_core::VoteShape;
use speed_roles::teacher::{self, TeacherOptions};
use speed_roles::{RolesError, RoundRandomness, student};

use crate::common::{Place, SEED, keys, noise, terms};

#[test]
fn keys_are_never_overwritten_and_the_secret_one_is_private() {
    let before = fs::read(keys().join("secret.key")).expect("a key");
    let again = student::keygen(keys(), &Parameters::TOURNAMENT_128, RoundRandomness::OPERATING_SYSTEM);
    assert!(matches!(again, Err(RolesError::Results { .. })));
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
    let place = Place::new(&terms("teacher", 2, 3));
    let out = place.path("out.msg");
    let fails = |change: &dyn Fn(&mut TeacherOptions)| {
        fs::write(place.path("votes.csv"), "0\n2\n").expect("votes");
        let mut options = TeacherOptions {
            public_key: keys().join("public.key"),
            round: place.path("round.toml"),
            votes: place.path("votes.csv"),
            teacher: 1,
            out: out.clone(),
            mechanism: None,
            randomness: SEED,
        };
        change(&mut options);
        let error = teacher::answer(&options).expect_err("refused");
        assert!(!out.exists());
        (error.exit_code().code(), error.to_string())
    };
    assert_eq!(fails(&|options| options.teacher = 3).0, 2);
    assert_eq!(fails(&|options| options.randomness = RoundRandomness::OPERATING_SYSTEM).0, 2);
    let other = noise(0.1).mechanism();
    let (code, message) = fails(&|options| options.mechanism = Some(other));
    assert!(code == 2 && message.contains("gamma=0.1") && message.contains("gamma=5"), "{message}");
    assert_eq!(fails(&|options| options.public_key = keys().join("evaluation.key")).0, 3);
    assert_eq!(fails(&|options| options.public_key = keys().join("secret.key")).0, 3);
    assert_eq!(fails(&|options| options.round = place.path("absent")).0, 2);
    fs::write(place.path("bad.csv"), "0\n3\n").expect("votes");
    let (code, message) = fails(&|options| options.votes = place.path("bad.csv"));
    assert!(code == 3 && message.contains("query 1: label 3, expected 0 to 2"), "{message}");
    let changed = fs::read_to_string(place.path("round.toml")).expect("a round").replace("minimum = 1", "minimum = 2");
    fs::write(place.path("changed.toml"), changed).expect("a round");
    let (code, message) = fails(&|options| options.round = place.path("changed.toml"));
    assert!(code == 2 && message.contains("it was changed"), "{message}");

    place.answer(1, &[0, 2], &out);
    let before = fs::read(&out).expect("a message");
    assert!(matches!(place.try_answer(1, &[1, 2], &out), Err(RolesError::Results { .. })));
    assert_eq!(fs::read(&out).expect("a message"), before);
}

#[test]
fn a_round_that_the_keys_cannot_hold_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let make = |terms| student::round(&terms, &keys().join("public.key"), &folder.path().join("round.toml"));
    let mut wide = terms("wide", 100, 3000);
    assert!(matches!(make(wide.clone()), Err(RolesError::Encoding(_))));
    wide.shape = VoteShape::new(250, 100, 3).expect("a shape");
    wide.min_teachers = 251;
    assert!(matches!(make(wide.clone()), Err(RolesError::Terms(_))));
    wide.min_teachers = 250;
    wide.threshold = Some(10_000);
    assert!(matches!(make(wide.clone()), Err(RolesError::Terms(_))));
    wide.threshold = None;
    make(wide.clone()).expect("valid");
    assert!(matches!(make(wide), Err(RolesError::Results { .. })));
}
