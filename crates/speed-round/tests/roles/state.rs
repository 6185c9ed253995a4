//! Interruptions of a server, and its stored state.

use std::fs;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::{Database, ReadableDatabase as _, ReadableTableMetadata as _, TableDefinition};
use speed_aggregation::log::{LogEntry, LogEvent, LogHead, Receipt, RoundLog};
use speed_core::fixture::exhaustive;
use speed_core::{Digest, NoisePlacement, RandomnessKind};
use speed_round::server::{self, ServerOptions, log_of};
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{LogCheckOptions, RoundRegistry, check_log};

use crate::common::{
    Dies, REAL, RoundFolder, SEED, Silent, as_server, assert_mode, noise, reasons, receive, refused, says,
    server_identity, terms,
};

/// Creates a round with central noise, so that drawing it twice would be visible.
fn round_folder(name: &str) -> RoundFolder {
    let mut terms = terms(name, 5, 3);
    (terms.placement, terms.min_teachers, terms.noise) = (NoisePlacement::Central, 2, noise(0.2));
    let folder = RoundFolder::new(&terms);
    for teacher in 0..2 {
        folder.answer(teacher, &[0, 1, 2, 0, 1], &folder.inbox(&format!("teacher-{teacher}.msg")));
    }
    folder
}

/// Aggregates in one thread, and crashes.
fn interrupt(folder: &RoundFolder) {
    let options = ServerOptions { threads: NonZeroUsize::MIN, ..folder.options() };
    let died = catch_unwind(AssertUnwindSafe(|| folder.aggregate_with(&options, &Dies::AtAnswers)));
    assert!(died.is_err() && !folder.path("result").exists());
}

#[test]
fn an_interrupted_server_resumes_to_the_same_bytes() {
    let undisturbed = round_folder("interrupted");
    undisturbed.aggregate().expect("enough");
    let expected = undisturbed.bytes("result");

    let folder = round_folder("interrupted");
    interrupt(&folder);
    // With central noise the sum is the server's alone.
    assert_mode(&folder.path("server.registry"), 0o600);
    // A message that comes now is late, and changes nothing.
    folder.answer(2, &[2, 2, 2, 2, 2], &folder.inbox("teacher-2.msg"));
    let report = folder.aggregate().expect("goes on");
    assert_eq!(reasons(&report), [(Some(2), "late")]);
    assert_eq!(report.counted, 2);
    assert!(report.resumed >= 1, "nothing was kept");
    assert!(folder.bytes("result") == expected, "bytes differ");
}

#[test]
fn a_round_is_evaluated_once() {
    let mut terms = terms("once", 5, 3);
    // Noise that is drawn again would average out.
    terms.randomness = RandomnessKind::OperatingSystem;
    (terms.placement, terms.min_teachers, terms.noise) = (NoisePlacement::Central, 2, noise(0.2));
    let folder = RoundFolder::new(&terms);
    for teacher in 0..3 {
        folder.answer_really(teacher, "0\n1\n2\n0\n1\n");
    }
    let options = ServerOptions { randomness: REAL, ..folder.options() };
    folder.aggregate_with(&options, &Silent).expect("enough");
    let (first, log) = (folder.bytes("result"), folder.bytes("result.log"));
    // A call with another output path, without one of the messages and without the student's keys, writes the same
    // bytes.
    fs::remove_file(folder.inbox("1")).expect("a message");
    let other = folder.path("again");
    let options = ServerOptions { evaluation_key: folder.path("deleted"), ..options };
    let report = server::aggregate(&options, &folder.path("inbox"), &other, &Silent).expect("done before");
    let options = ServerOptions { evaluation_key: folder.options().evaluation_key, ..options };
    assert_eq!((report.counted, report.resumed), (3, 5));
    assert!(fs::read(&other).expect("a result") == first, "another result of one round");
    assert_eq!(fs::read(log_of(&other)).expect("a log"), log);
    // With a registry without this round, the ledger still has it, so the round is not evaluated again with other
    // noise.
    let forgetful = ServerOptions { registry: folder.path("other.registry"), ..options.clone() };
    let third = server::aggregate(&forgetful, &folder.path("inbox"), &folder.path("third"), &Silent);
    refused(third, 4, "the ledger was charged for it");
    // It is refused before it could take a message and sign a receipt that contradicts the first.
    assert!(server::RoundServer::open(forgetful).is_err());
    let again = TeacherOptions { randomness: REAL, ..folder.teacher_options(1, &folder.path("again.msg")) };
    refused(teacher::answer(&again), 4, "the ledger was charged for it");
    // The round was charged once.
    let ledger = speed_accountant::ledger::Ledger::open(&folder.path("server.ledger")).expect("a ledger");
    let charges = ledger.statement().expect("whole").charges;
    assert_eq!((charges.len(), charges[0].queries, charges[0].label.as_str()), (1, 5, "once"));
}

#[test]
fn the_same_message_by_two_ways_counts_once_and_is_no_second_one() {
    let folder = round_folder("two ways");
    let server = server::RoundServer::open(folder.options()).expect("fitting files");
    assert!(receive(&server, 0, folder.bytes("inbox/teacher-0.msg")));
    drop(server);
    let report = folder.aggregate().expect("enough");
    assert_eq!((report.counted, reasons(&report)), (2, vec![]));
    // The same holds after the closing, and another message of that teacher is a duplicate.
    assert_eq!(reasons(&folder.aggregate().expect("done before")), []);
    folder.answer(0, &[2, 2, 2, 2, 2], &folder.inbox("other.msg"));
    assert_eq!(reasons(&folder.aggregate().expect("done before")), [(Some(0), "duplicate")]);
}

#[test]
fn the_signed_log_records_which_messages_were_counted() {
    let folder = round_folder("log");
    folder.answer(0, &[2, 2, 2, 2, 2], &folder.inbox("teacher-0 again"));
    // Many messages of one teacher take eight lines of the log, and names of files cannot move the cursor.
    for copy in 0..20 {
        folder.answer(0, &[copy % 3, 2, 2, 2, 2], &folder.inbox(&format!("x-{copy}.msg")));
    }
    fs::write(folder.inbox("z\u{1b}[2J\nteacher 0 refused as forged"), b"rubbish").expect("inbox");
    let report = folder.aggregate().expect("enough");
    let line = report.refused.last().expect("rubbish").to_string();
    assert!(!line.chars().any(char::is_control) && line.contains("\\u{1b}[2J\\u{a}teacher 0"), "{line}");
    let log = folder.log();
    let key = server_identity().key();
    let (digest, signature) = log.signed();
    assert!(key.verifies(digest, signature) && log.round() == folder.file.id());
    let digest = |name: &str| Digest::of(folder.bytes(name));
    // "teacher-0 again" is the first by name.
    let [first, refused, second] =
        ["teacher-0 again", "teacher-0.msg", "teacher-1.msg"].map(|name| digest(&format!("inbox/{name}")));
    let found: Vec<_> = log.entries().iter().map(|entry| (entry.event(), entry.teacher())).collect();
    let expected = [
        &[(LogEvent::Counted, Some(0)), (LogEvent::Duplicate, Some(0)), (LogEvent::Counted, Some(1))][..],
        &[(LogEvent::Duplicate, Some(0)); 7],
        &[(LogEvent::Closed, None), (LogEvent::Result, None)],
    ];
    assert_eq!(found, expected.concat());
    let digests: Vec<_> = log.entries().iter().map(|entry| entry.digest()).collect();
    assert_eq!([digests[0], digests[1], digests[2], digests[11]], [first, refused, second, digest("result")]);
}

#[test]
fn a_receipt_and_a_log_convict_a_server_that_changed_it_and_no_other() {
    let folder = round_folder("receipt");
    let message = |teacher: usize| folder.bytes(&format!("inbox/teacher-{teacher}.msg"));
    let received = |teacher: usize| LogEntry::of_message(LogEvent::Received, teacher, Digest::of(message(teacher)));
    let (empty, round) = (LogHead::empty(folder.file.id()), folder.file.id());
    let receipt =
        |before: LogHead, teacher: usize| Receipt::new(before, teacher, Digest::of(message(teacher)), as_server);
    let check = |receipt: Receipt, entries: &[LogEntry]| {
        folder.write("receipt", receipt.to_bytes());
        folder.write("log", RoundLog::new(round, entries.to_vec(), as_server).to_bytes());
        let options = folder.log_check("teacher-1.msg", "log");
        let checked = check_log(&LogCheckOptions { receipt: Some(folder.path("receipt")), ..options });
        checked.map(|report| report.received)
    };
    let refused = |receipt: Receipt, entries: &[LogEntry], words: &str| {
        says(check(receipt, entries), words);
    };
    let (zero, one) = (received(0), received(1));
    let genuine = receipt(empty.then(&zero), 1);
    assert_eq!(check(genuine, &[zero, one]), Ok(true));
    refused(genuine, &[zero], "has 1 entries and is older than the receipt, which was signed at 2 entries");
    for changed in [[one, zero], [zero, zero]] {
        refused(genuine, &changed, "does not record this message at entry 1, but the receipt");
    }
    // A position beyond any log of the round does not help the server.
    let end = LogEntry::of_round(LogEvent::Closed, Digest::of("sum"));
    let [other, counted] =
        [0, 1].map(|teacher| LogEntry::of_message(LogEvent::Counted, teacher, Digest::of(message(teacher))));
    let far = receipt((0..50).fold(empty, |head, _| head.then(&zero)), 1);
    for log in [&[zero, one, counted, end][..], &[zero, one, end]] {
        refused(far, log, "does not record this message at entry 50, but the receipt");
    }
    assert_eq!(check(genuine, &[zero, one, other, counted, end]), Ok(true));
    refused(genuine, &[zero, one, counted, end], "entry 3 closes a sum of fewer teachers than the round's minimum");
    refused(genuine, &[zero, one, end], "the sum was closed without this message of teacher 1");
    // Not evidence against the server: receipts for other messages, and receipts forged from an older head of an honest
    // log.
    let of_another = receipt(empty, 0);
    for forged in [of_another, receipt(empty.then(&one), 0)] {
        refused(forged, &[zero, one], "is not a receipt of the round's server \"server\" for this message");
    }
}

#[test]
fn a_teacher_answers_a_round_once() {
    let folder = round_folder("twice");
    let registry = || folder.path("teacher.registry");
    let options = |out: &str| TeacherOptions { registry: registry(), ..folder.teacher_options(2, &folder.path(out)) };
    let answer = |votes: &str, out: &str| {
        folder.write("votes.csv", votes);
        teacher::answer(&options(out)).expect("valid")
    };
    assert!(!answer("0\n0\n0\n0\n0\n", "first").repeated);
    assert!(answer("1\n1\n1\n1\n1\n", "second").repeated);
    let [first, second] = ["first", "second"].map(|out| folder.bytes(out));
    assert!(first == second, "two messages of one teacher to one round");
    // Without its registry the key cannot answer again with other noise.
    let lost = TeacherOptions { registry: folder.path("lost.registry"), new_registry: false, ..options("third") };
    let error = says(teacher::answer(&lost), "lost.registry").to_string();
    assert!(error.contains("there is no registry here"), "{error}");
    assert!(!folder.path("third").exists());
}

#[test]
fn a_registry_that_is_damaged_or_in_use_is_an_error_and_is_left_alone() {
    let folder = round_folder("state");
    let path = folder.path("server.registry");
    fs::write(&path, b"SPEEDAGG rubbish").expect("rubbish");
    let error = folder.aggregate().expect_err("damaged");
    assert!(error.to_string().starts_with("registry ") && error.exit_code().code() == 3, "{error}");
    assert_eq!(fs::read(&path).expect("still there"), b"SPEEDAGG rubbish");
    fs::remove_file(&path).expect("rubbish");

    let registry = RoundRegistry::open(&path, true).expect("free");
    refused(folder.aggregate(), 4, "another program uses this registry");
    drop(registry);

    // No flipped bit of a registry causes a panic or changes a result.
    folder.aggregate().expect("enough");
    let (whole, expected) = (fs::read(&path).expect("a registry"), folder.bytes("result"));
    for place_of_bit in (0..whole.len()).step_by(whole.len() / if exhaustive() { 97 } else { 41 }) {
        let mut turned = whole.clone();
        turned[place_of_bit] ^= 1 << (place_of_bit % 8);
        fs::write(&path, &turned).expect("a registry");
        let _ = fs::remove_file(folder.path("again"));
        let _ = fs::remove_file(log_of(&folder.path("again")));
        if server::aggregate(&folder.options(), &folder.path("inbox"), &folder.path("again"), &Silent).is_ok() {
            assert!(folder.bytes("again") == expected, "byte {place_of_bit}");
        }
    }
}

#[test]
fn a_result_that_cannot_be_written_is_known_before_the_work() {
    let folder = round_folder("early");
    fs::create_dir(folder.path("result")).expect("a folder");
    refused(folder.aggregate(), 4, "is not a file");
    fs::remove_dir(folder.path("result")).expect("an empty folder");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(folder.path("nowhere"), folder.path("result")).expect("a link");
        refused(folder.aggregate(), 4, "is not a file");
        fs::remove_file(folder.path("result")).expect("a link");
    }
    assert!(!folder.path("server.registry").exists(), "nothing was begun");
    // Another server with a separate registry is about to write the result.
    let lock = fs::File::options().append(true).create(true).open(folder.path("result.lock")).expect("a lock");
    lock.lock().expect("free");
    let options = ServerOptions { registry: folder.path("another.registry"), ..folder.options() };
    let error = folder.aggregate_with(&options, &Silent).expect_err("in use");
    assert!(error.to_string().ends_with("another program uses it"), "{error}");
    drop(lock);
    let absent = folder.path("absent folder").join("result");
    let aggregate = |out: &Path| server::aggregate(&folder.options(), &folder.path("inbox"), out, &Silent);
    refused(aggregate(&absent), 5, "");
    // A file with another content is not overwritten.
    folder.write("result", b"something else");
    refused(folder.aggregate(), 4, "");
    assert_eq!(folder.bytes("result"), b"something else");
    fs::remove_file(folder.path("result")).expect("a file");
    assert_eq!(folder.aggregate().expect("free again").resumed, 0, "known before the work");
    assert!(!folder.path("result.lock").exists());
}

/// The number of rows of a registry's tables, of which the first ones have a row for each part of a round.
fn rows(folder: &RoundFolder) -> Vec<(&'static str, u64)> {
    let registry = Database::open(folder.path("server.registry")).expect("a registry");
    let registry = registry.begin_read().expect("a registry");
    let parts = ["received", "refused", "answers", "log"].map(|name| {
        let table: TableDefinition<'_, (&[u8; 32], u32), &[u8]> = TableDefinition::new(name);
        (name, registry.open_table(table).map_or(0, |table| table.len().expect("a table")))
    });
    let rounds = ["sums", "seeds", "results"].map(|name| {
        let table: TableDefinition<'_, &[u8; 32], &[u8]> = TableDefinition::new(name);
        (name, registry.open_table(table).map_or(0, |table| table.len().expect("a table")))
    });
    [&parts[..], &rounds].concat()
}

/// All files below a directory.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn the_registry_deletes_messages_sum_and_answers_when_it_stores_the_result() {
    let folder = round_folder("noise on disk");
    let server = server::RoundServer::open(folder.options()).expect("fitting files");
    for teacher in 0..2 {
        assert!(receive(&server, teacher, folder.bytes(&format!("inbox/teacher-{teacher}.msg"))));
    }
    drop(server);
    let randomness = SEED.server_noise(folder.file.id());
    let share = folder.file.noise().share_of(1).expect("one party");
    let noise = share.draw(folder.file.round().values(), &randomness).expect("a simulation");
    assert!(noise.iter().any(|value| value.unsigned_abs() > 2), "{noise:?}");
    let bytes = |encode: &dyn Fn(i64) -> Vec<u8>| noise.iter().flat_map(|value| encode(*value)).collect::<Vec<u8>>();
    let text = |between: &str| {
        let values: Vec<String> = noise.iter().map(ToString::to_string).collect();
        values.join(between).into_bytes()
    };
    let forms = [
        randomness.key().expect("a simulation").to_vec(),
        bytes(&|value| value.to_le_bytes().to_vec()),
        bytes(&|value| (value << 50).to_le_bytes().to_vec()),
        bytes(&|value| (value as i32).to_le_bytes().to_vec()),
        bytes(&|value| (value as i16).to_le_bytes().to_vec()),
        bytes(&|value| vec![value as u8]),
        text(","),
        text(", "),
        text("\n"),
    ];
    let found = || -> Vec<(PathBuf, usize)> {
        let files = files_below(&folder.path(""));
        let in_file = |path: PathBuf| {
            let file = fs::read(&path).expect("a file");
            let has = |form: &Vec<u8>| file.windows(form.len()).any(|window| window == form);
            let found: Vec<_> = forms.iter().enumerate().filter(|(_, form)| has(form)).collect();
            found.into_iter().map(|(form, _)| (path.clone(), form)).collect::<Vec<_>>()
        };
        files.into_iter().flat_map(in_file).collect()
    };
    // While the registry has the sum, and when the result is there.
    interrupt(&folder);
    assert_eq!(found(), []);
    let before = rows(&folder);
    assert_eq!((before[0], before[4], before[6]), (("received", 2), ("sums", 1), ("results", 0)));
    assert!(before[2].1 > 0, "{before:?}");
    folder.aggregate().expect("goes on");
    assert_eq!(found(), []);
    let after =
        [("received", 0), ("refused", 0), ("answers", 0), ("log", 6), ("sums", 0), ("seeds", 1), ("results", 1)];
    assert_eq!(rows(&folder), after);
    folder.write("written", forms.concat());
    assert_eq!(found().len(), forms.len(), "the search finds every form");
}
