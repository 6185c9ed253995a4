//! A server that is interrupted, and what it keeps.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use speed_aggregation::EncryptedAnswer;
use speed_core::NoisePlacement;
use speed_roles::server::{self, Progress, Refusal, ServerOptions, default_state};
use speed_roles::{ResultsFault, RolesError};

use crate::common::{Place, Silent, noise, reasons, terms};

/// Dies, as far as a test can, when so many queries are answered.
struct DiesAfter(AtomicUsize);

impl Progress for DiesAfter {
    fn refused(&self, _: &Refusal) {}
    fn begin(&self, _: usize, _: usize) {}
    fn advance(&self, queries: usize) {
        if self.0.fetch_sub(queries, Ordering::SeqCst) <= queries {
            panic!("interrupted");
        }
    }
}

/// A round with central noise, so that drawing it twice would show.
fn place(name: &str) -> Place {
    let mut terms = terms(name, 5, 3);
    (terms.placement, terms.min_teachers, terms.noise) = (NoisePlacement::Central, 2, noise(0.2));
    let place = Place::new(&terms);
    for teacher in 0..2 {
        place.answer(teacher, &[0, 1, 2, 0, 1], &place.inbox(&format!("teacher-{teacher}.msg")));
    }
    place
}

#[test]
fn an_interrupted_server_goes_on_to_the_same_bytes() {
    let undisturbed = place("interrupted");
    undisturbed.aggregate().expect("enough");
    let expected = fs::read(undisturbed.path("result")).expect("a result");
    assert!(!default_state(&undisturbed.path("result")).exists(), "the state is removed at the end");

    let place = place("interrupted");
    let mut options = place.options();
    options.threads = std::num::NonZeroUsize::MIN;
    let died = catch_unwind(AssertUnwindSafe(|| server::aggregate(&options, &DiesAfter(AtomicUsize::new(1)))));
    assert!(died.is_err() && !place.path("result").exists());
    let state = default_state(&place.path("result"));
    let sum = fs::read(state.join("sum")).expect("a closed sum");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(state.join("sum")).expect("a sum").permissions().mode();
        assert_eq!(mode & 0o077, 0, "with central noise the sum is the server's alone");
    }
    // Other threads finish what they have begun. Leave two answers and half of a third, as a kill could.
    let record = EncryptedAnswer::size(place.file.round().outcomes());
    let journal = fs::read(state.join("answers")).expect("answers");
    assert!(journal.len() >= 32 + 3 * record && (journal.len() - 32).is_multiple_of(record));
    fs::write(state.join("answers"), &journal[..32 + 2 * record + record / 2]).expect("answers");
    // A message that comes now is late, and changes nothing.
    place.answer(2, &[2, 2, 2, 2, 2], &place.inbox("teacher-2.msg"));
    let report = place.aggregate().expect("goes on");
    assert_eq!(reasons(&report), [(Some(2), "late")]);
    assert_eq!((report.resumed, report.counted), (2, 2));
    assert!(fs::read(place.path("result")).expect("a result") == expected, "bytes differ");
    assert!(!sum.is_empty() && !state.exists());
}

#[test]
fn a_state_that_is_damaged_or_in_use_is_an_error_and_is_left_alone() {
    let place = place("state");
    let state = default_state(&place.path("result"));
    fs::create_dir(&state).expect("a folder");
    fs::write(state.join("sum"), b"SPEEDAGG rubbish").expect("rubbish");
    let error = place.aggregate().expect_err("damaged");
    assert!(matches!(&error, RolesError::Input { path, .. } if path.ends_with("sum")), "{error}");
    assert_eq!(fs::read(state.join("sum")).expect("still there"), b"SPEEDAGG rubbish");

    let lock = fs::File::options().append(true).create(true).open(state.join("lock")).expect("a lock");
    lock.lock().expect("free");
    let error = place.aggregate().expect_err("in use");
    assert!(matches!(error, RolesError::Results { .. }) && error.exit_code().code() == 4, "{error}");
}

#[test]
fn a_result_of_another_round_is_not_overwritten() {
    let place = place("overwrite");
    fs::write(place.path("result"), b"something else").expect("a file");
    let error = place.aggregate().expect_err("there already");
    assert!(matches!(error, RolesError::Results { .. }), "{error}");
    assert_eq!(fs::read(place.path("result")).expect("a file"), b"something else");
    let mut options = place.options();
    options.out = place.path("absent folder").join("result");
    assert!(matches!(server::aggregate(&options, &Silent), Err(RolesError::Io { .. })));
}

#[test]
fn answers_of_a_sum_that_was_removed_are_not_mixed_with_another() {
    let place = place("mixed");
    let mut options = place.options();
    options.threads = std::num::NonZeroUsize::MIN;
    let died = catch_unwind(AssertUnwindSafe(|| server::aggregate(&options, &DiesAfter(AtomicUsize::new(1)))));
    assert!(died.is_err());
    let state = default_state(&place.path("result"));
    fs::remove_file(state.join("sum")).expect("a sum");
    place.answer(2, &[2, 2, 2, 2, 2], &place.inbox("teacher-2.msg"));
    let before = fs::read(state.join("answers")).expect("answers");
    let error = place.aggregate().expect_err("another sum");
    assert!(error.exit_code().code() == 3 && error.to_string().contains("answers of another sum"), "{error}");
    assert!(!place.path("result").exists());
    assert_eq!(fs::read(state.join("answers")).expect("answers"), before, "nothing is lost");
}

#[test]
fn a_result_that_cannot_be_written_is_known_before_the_work() {
    let place = place("early");
    fs::create_dir(place.path("result")).expect("a folder");
    let error = place.aggregate().expect_err("a folder");
    assert!(matches!(&error, RolesError::Results { source: ResultsFault::NoFile, .. }), "{error}");
    fs::remove_dir(place.path("result")).expect("an empty folder");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("nowhere"), place.path("result")).expect("a link");
        let error = place.aggregate().expect_err("a dangling link");
        assert!(matches!(&error, RolesError::Results { source: ResultsFault::NoFile, .. }), "{error}");
        fs::remove_file(place.path("result")).expect("a link");
    }
    assert!(!default_state(&place.path("result")).exists(), "nothing was begun");
    // Another server with a state of its own is about to write it.
    let lock = fs::File::options().append(true).create(true).open(place.path("result.lock")).expect("a lock");
    lock.lock().expect("free");
    let options = ServerOptions { state: Some(place.path("other state")), ..place.options() };
    let error = server::aggregate(&options, &Silent).expect_err("in use");
    assert!(matches!(&error, RolesError::Results { source: ResultsFault::InUse, .. }), "{error}");
    drop(lock);
    place.aggregate().expect("free again");
    assert!(!place.path("result.lock").exists());
}

#[test]
fn names_of_files_cannot_move_the_cursor() {
    let place = place("names");
    fs::write(place.inbox("teacher-1\u{1b}[2J\nteacher 0 refused as forged"), b"rubbish").expect("inbox");
    let report = place.aggregate().expect("enough");
    let line = report.refused[0].to_string();
    assert!(!line.chars().any(char::is_control) && line.contains("\\u{1b}[2J\\u{a}teacher 0"), "{line}");
}
