//! Logs that a lying server signs, and the honest ones that must not be taken for lies.

use speed_aggregation::log::{LogEntry, LogEvent, RoundLog};
use speed_core::Digest;
use speed_round::server::{self, VerifyReport};
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{LogCheckOptions, Refused, check_log};

use crate::common::{REAL, RoundFolder, Silent, as_server, receive, says};
use crate::lying_server::{
    QUERIES, answered, evaluate, evaluated, real_terms, server_options, sign_verification, verify_options,
};

/// The entries of the round's log.
fn entries_of(folder: &RoundFolder) -> Vec<LogEntry> {
    folder.log().entries().to_vec()
}

/// Writes a log of these entries, which the server signed.
fn write_log(folder: &RoundFolder, entries: &[LogEntry]) {
    let log = RoundLog::new(folder.file.id(), entries.to_vec(), as_server);
    folder.write("false.log", log.to_bytes());
}

/// Verifies the result with a log of these entries, which the server signed.
fn verified(folder: &RoundFolder, entries: &[LogEntry]) -> VerifyReport {
    write_log(folder, entries);
    let options = server::VerifyOptions { log: folder.path("false.log"), sign: None, ..verify_options(folder) };
    server::verify(&options, &Silent).expect("complete files")
}

/// Checks the log that was written last as teacher 1, whose message all of these logs count.
fn checked(folder: &RoundFolder) -> Result<usize, Refused> {
    check_log(&folder.log_check("1", "false.log")).map(|report| report.teachers_counted)
}

/// A server gives teacher 2 a receipt, sums the messages of the others, and shows the verifier a log of that sum. Alone, the verifier
/// confirms it, and teacher 2 confirms another log, which counts its message.
#[test]
fn two_logs_of_a_server_are_told_apart_by_the_verification() {
    let folder = evaluated();
    let honest = entries_of(&folder);
    sign_verification(&folder, 1, "verification");
    let check = |log: &str| {
        let verification = Some(folder.path("verification"));
        check_log(&LogCheckOptions { verification, ..folder.log_check("2", log) })
    };
    assert_eq!(check("result.log").expect("the verifier's log").teachers_counted, 3);
    // The same entries without a result, and with another result.
    let mut other = honest.clone();
    *other.last_mut().expect("a result") = LogEntry::of_round(LogEvent::Result, Digest::of("another"));
    for entries in [honest[..honest.len() - 1].to_vec(), other] {
        write_log(&folder, &entries);
        says(check("false.log"), "the verifier saw the one with");
    }
    // A log with a received message of a teacher whom it does not count convicts the server.
    let mut silent = honest;
    silent.insert(0, LogEntry::of_message(LogEvent::Received, 3, Digest::of("a message")));
    let report = verified(&folder, &silent);
    assert!(!report.honest && report.log_fault.is_some_and(|fault| fault.contains("from whom one was received")));
}

/// `check` repeats the numbers of a log, so it refuses logs of another form.
#[test]
fn a_server_that_signs_a_log_of_another_form_is_convicted() {
    let folder = evaluated();
    let honest = entries_of(&folder);
    write_log(&folder, &honest);
    assert_eq!(checked(&folder), Ok(3));
    let [zero, one, two, closed, result] = honest[..] else { panic!("{honest:?}") };
    let counted = |teacher, of: &LogEntry| LogEntry::of_message(LogEvent::Counted, teacher, of.digest());
    let unknown = LogEntry::of_round(LogEvent::Counted, Digest::of("unknown"));
    let late = LogEntry::of_message(LogEvent::Received, 3, Digest::of("late"));
    let refused = LogEntry::of_message(LogEvent::Refused, 9, Digest::of("of nobody"));
    let again = LogEntry::of_message(LogEvent::Received, 0, Digest::of("again"));
    let first = LogEntry::of_message(LogEvent::Received, 0, zero.digest());
    let convicting: [(&[LogEntry], usize, &str); 16] = [
        (&[zero, one, two, counted(3, &one), closed, result], 3, "counts a message that is counted for another"),
        (&[zero, one, two, counted(1, &zero), closed, result], 3, "counts a message that is counted for another"),
        (&[zero, one, two, LogEntry::of_message(LogEvent::Counted, 1, Digest::of("x")), closed, result], 3, "second"),
        (&[counted(77, &zero), one, two, closed, result], 0, "no teacher of the round"),
        (&[zero, one, two, unknown, closed, result], 3, "no teacher of the round"),
        (&[zero, refused, one, two, closed, result], 1, "no teacher of the round"),
        (&[zero, one, two, result], 3, "before the sum is closed"),
        (&[zero, one, two, result, closed], 3, "before the sum is closed"),
        (&[result, closed, zero, one, two], 0, "before the sum is closed"),
        (&[zero, one, closed, two, result], 3, "the sum is closed"),
        (&[zero, one, two, closed, closed, result], 4, "a second time"),
        (&[zero, one, two, closed, result, result], 5, "follows the result"),
        (&[zero, one, late, two, closed, result], 2, "after others were counted"),
        (&[first, again, zero, one, two, closed, result], 1, "receives a second message"),
        (&[zero, one, two, LogEntry::of_message(LogEvent::Closed, 0, closed.digest()), result], 3, "names a teacher"),
        (&[zero, one, two], 2, "the sum is not closed"),
    ];
    for (entries, place, words) in convicting {
        let report = verified(&folder, entries);
        let fault = report.log_fault.expect("a false log");
        assert!(!report.honest && report.log_differs, "{words}");
        assert!(fault.contains(&format!("entry {place} ")) && fault.contains(words), "{words}: {fault}");
        // The teacher's message is counted, so only the form is wrong.
        assert!(says(checked(&folder), &fault).to_string().ends_with(&fault), "{words}");
    }
}

/// The digests of these logs are those of the messages; only the teachers are exchanged.
#[test]
fn a_server_that_logs_messages_as_those_of_other_teachers_is_convicted() {
    let folder = evaluated();
    let honest = entries_of(&folder);
    let [zero, one, two, closed, result] = honest[..] else { panic!("{honest:?}") };
    let counted = |teacher, of: &LogEntry| LogEntry::of_message(LogEvent::Counted, teacher, of.digest());
    let report = verified(&folder, &[counted(2, &zero), one, counted(0, &two), closed, result]);
    assert!(!report.honest && report.log_differs && !report.sum_differs, "{report:?}");
    let fault = report.log_fault.expect("a false log");
    assert!(fault.contains("teacher 0 signed as one of teacher 2"), "{fault}");
    // Teacher 3 is missing in the result, and teacher 0 is counted there.
    let report = verified(&folder, &[counted(3, &zero), one, two, closed, result]);
    let fault = report.log_fault.expect("a false log");
    assert!(!report.honest && report.log_differs && fault.contains("about teacher 0"), "{fault}");
    // The log leaves a teacher out.
    let report = verified(&folder, &[one, two, closed, result]);
    let fault = report.log_fault.expect("a false log");
    assert!(!report.honest && report.sum_differs && fault.contains("about teacher 0"), "{fault}");
}

#[test]
fn a_log_with_refused_and_second_and_received_messages_convicts_no_server() {
    let folder = answered("refusals");
    // A message of another round, and a second one of a teacher; the inbox is read in the order of names.
    let other = RoundFolder::new(&real_terms("another round"));
    other.write("votes.csv", "0\n".repeat(QUERIES));
    let options = other.teacher_options(3, &folder.inbox("00"));
    teacher::answer(&TeacherOptions { randomness: REAL, ..options }).expect("valid");
    folder.write("votes.csv", "3\n".repeat(QUERIES));
    let options = folder.teacher_options(0, &folder.inbox("05"));
    let registry = folder.path("second.registry");
    let ledger = speed_round::LedgerOptions { path: folder.path("second.ledger"), ..options.ledger.clone() };
    teacher::answer(&TeacherOptions { randomness: REAL, registry, ledger, ..options }).expect("valid");
    // The message of teacher 2 comes over the network as well.
    let round = server::RoundServer::open(server_options(&folder)).expect("fitting files");
    assert!(receive(&round, 2, folder.bytes("inbox/2")));
    drop(round);
    evaluate(&folder);
    let entries = entries_of(&folder);
    let events: Vec<_> = entries.iter().map(|entry| (entry.event(), entry.teacher())).collect();
    use LogEvent::{Closed, Counted, Duplicate, Received, Refused, Result};
    let expected = [
        (Received, Some(2)),
        (Counted, Some(2)),
        (Counted, Some(0)),
        (Refused, Some(3)),
        (Duplicate, Some(0)),
        (Counted, Some(1)),
        (Closed, None),
        (Result, None),
    ];
    let sorted = |mut events: Vec<(LogEvent, Option<usize>)>| {
        events.sort_by_key(|(event, teacher)| (*event as u8, *teacher));
        events
    };
    assert_eq!(sorted(events), sorted(expected.to_vec()));
    let report = verified(&folder, &entries);
    assert!(report.honest && report.log_fault.is_none(), "{report:?}");
    assert_eq!(checked(&folder), Ok(3));
}

/// The bytes of a log's entries: its file has 48 bytes before them, and signature and checksum after them.
fn entry_bytes(log: &[u8]) -> &[u8] {
    &log[48..log.len() - 80]
}

#[test]
fn a_later_log_of_an_honest_server_begins_with_the_entries_of_an_earlier_one() {
    let folder = answered("growing");
    let round = server::RoundServer::open(server_options(&folder)).expect("fitting files");
    let log = || round.log().expect("a registry").to_bytes();
    let mut logs = vec![log()];
    for teacher in [2, 0] {
        assert!(receive(&round, teacher, folder.bytes(&format!("inbox/{teacher}"))));
        logs.push(log());
        assert_eq!(logs.last(), Some(&log()), "the same file for all hospitals");
    }
    drop(round);
    evaluate(&folder);
    logs.push(folder.bytes("result.log"));
    // After the result it does not grow.
    let round = server::RoundServer::open(server_options(&folder)).expect("fitting files");
    assert!(!receive(&round, 1, folder.bytes("inbox/1")));
    assert_eq!(logs.last(), Some(&round.log().expect("a registry").to_bytes()));
    for (index, later) in logs.iter().enumerate() {
        for earlier in &logs[..index] {
            assert!(later.len() > earlier.len() && entry_bytes(later).starts_with(entry_bytes(earlier)));
            assert!(!later.starts_with(earlier), "the number of entries and the signature differ");
        }
    }
    // A log for another hospital with the first two messages in another order. The server signed both.
    let mut entries = entries_of(&folder);
    entries.swap(0, 1);
    write_log(&folder, &entries);
    assert_eq!(checked(&folder), Ok(3), "alone it is a possible log");
    let other = folder.bytes("false.log");
    for log in &logs[2..] {
        let (one, two) = (entry_bytes(log), entry_bytes(&other));
        assert!(!one.starts_with(two) && !two.starts_with(one));
    }
}
