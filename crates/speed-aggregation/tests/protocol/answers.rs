//! Answers and results on the wire, and their opening.

use speed_aggregation::error::{AnswerListError, DecodeError, OpenError};
use speed_aggregation::protocol::{AnswerList, TeacherStatus};
use speed_aggregation::{EncryptedAnswer, Outcome, Round, RoundSpec};
use speed_core::{NoisePlacement, RandomnessKind};

use crate::protocol::common::{answer, outcomes, protocol, sealed, server_of, spec, threads, with_field};

#[test]
fn an_answer_opens_with_its_key_only() {
    let keys = protocol();
    let round = Round::new(spec("answer", 1, 1, 3, 0)).expect("valid");
    let mut server = server_of(&round);
    server.add(&answer(&round, 0, &[0, 0, 1])).expect("valid");
    let first = server.argmax(threads(1), &|_, _| {}).expect("complete").remove(0);
    assert_eq!((first.query(), first.round()), (0, round.id(server.key().id())));
    assert_eq!(keys.secret_key().open(&first), Ok(Outcome::Label(2)));
    let bytes = first.to_bytes();
    let forge = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut forged = bytes.clone();
        change(&mut forged);
        keys.secret_key().open(&EncryptedAnswer::from_bytes(&sealed(forged)).expect("well-formed"))
    };
    assert!(matches!(forge(&|b| b[12] ^= 1), Err(OpenError::Key { .. })));
    // The last body byte before the checksum: adds half a turn.
    let body = bytes.len() - 17;
    assert_eq!(
        forge(&|b| b[body] = b[body].wrapping_add(0x10)),
        Err(OpenError::Outcome { query: 0, code: 3, outcomes: 3 })
    );
}

#[test]
fn a_result_has_the_statuses_of_the_teachers() {
    let keys = protocol();
    let round = Round::new(RoundSpec {
        min_teachers: 1,
        threshold: Some(1),
        randomness: RandomnessKind::Simulation,
        ..spec("result", 4, 2, 3, 10)
    })
    .expect("valid");
    let mut server = server_of(&round);
    server.add(&answer(&round, 2, &[0, 1, 0, 0, 0, 0])).expect("valid");
    server.note(0, TeacherStatus::WrongKey);
    let answers = server.argmax(threads(2), &|_, _| {}).expect("enough");
    let statuses = server.statuses().to_vec();
    let list = AnswerList::new(&round, server.key().id(), statuses.clone(), &answers).expect("complete");
    let bytes = list.to_bytes();
    let read = AnswerList::from_bytes(&bytes).expect("intact");
    assert_eq!(read.statuses(), statuses);
    assert_eq!((read.counted(), read.honest_ratio(&round), read.placement()), (1, 0.25, NoisePlacement::Distributed));
    assert!(read.is_simulation() && read.outcomes().no_answer() && read.round() == round.id(server.key().id()));
    let opened: Vec<_> = read.answers().map(|answer| keys.secret_key().open(&answer)).collect();
    assert_eq!(opened, [Ok(Outcome::Label(1)), Ok(Outcome::NoAnswer)]);

    // Answers that are incomplete or out of order.
    let fails = |answers: &[EncryptedAnswer]| AnswerList::new(&round, server.key().id(), statuses.clone(), answers);
    assert_eq!(fails(&answers[..1]), Err(AnswerListError::Answer { query: 1 }));
    assert_eq!(fails(&[answers[1].clone(), answers[0].clone()]), Err(AnswerListError::Answer { query: 0 }));
    assert_eq!(fails(&[answers.clone(), answers.clone()].concat()), Err(AnswerListError::Answer { query: 2 }));

    let few = AnswerList::new(&round, server.key().id(), statuses[1..].to_vec(), &answers);
    assert_eq!(few, Err(AnswerListError::Statuses { expected: 4, found: 3 }));

    // False fields, with a correct checksum.
    for (offset, value) in
        [(76, 0), (76, 3), (76, 5), (76, 1 << 21), (80, 0), (80, 3), (84, 0), (84, 257), (88, 9), (88, 16)]
    {
        let error = AnswerList::from_bytes(&with_field(&bytes, offset, value)).expect_err("forged");
        assert!(!matches!(error, DecodeError::Checksum), "{offset} {value}: {error}");
    }
    // One class and "no answer" are the outcomes of a check, which this round is not.
    let check = AnswerList::from_bytes(&with_field(&bytes, 84, 1)).expect("a list of checks");
    assert!(!check.agrees_with(&round), "{check:?}");
    let mut unknown = bytes.clone();
    unknown[92] = 11;
    assert!(matches!(AnswerList::from_bytes(&sealed(unknown)), Err(DecodeError::Field { field: "status", .. })));
}

/// A student could add a lead to a query that decides its answer whatever the teachers vote, and compare the answer.
/// But the threshold of this very circuit separates such queries from the others under encryption: a lying server would
/// put a probe of the key in the place of "no answer", and lie in the others only. So known answers are real pictures
/// (docs/threat-models.md, "A lying server").
#[test]
fn a_lead_that_decides_an_answer_is_recognised_under_encryption() {
    // Counts of three votes with noise of at most 10 do not exceed 13; the range has room for a lead of 27.
    let round = Round::new(RoundSpec { threshold: Some(14), ..spec("lead", 3, 2, 3, 60) }).expect("valid");
    let mut server = server_of(&round);
    let natural = [7, -4, 2];
    let with_lead = [7, -4, 2 + 27];
    for (teacher, values) in [(0, [natural, with_lead].concat()), (1, vec![0; 6]), (2, vec![0; 6])] {
        server.add(&answer(&round, teacher, &values)).expect("valid");
    }
    assert_eq!(outcomes(&server), [Outcome::NoAnswer, Outcome::Label(2)]);
}
