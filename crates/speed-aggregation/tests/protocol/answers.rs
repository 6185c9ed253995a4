//! Answers and results on the wire, and their opening.

use speed_aggregation::error::{AnswerListError, DecodeError, OpenError};
use speed_aggregation::protocol::{AnswerList, TeacherStatus};
use speed_aggregation::{EncryptedAnswer, Outcome, Round, RoundSpec, Server, Teacher};
use speed_core::{NoisePlacement, RandomnessKind};

use crate::protocol::common::{SOURCE, protocol, sealed, spec, threads, with_field};

#[test]
fn an_answer_survives_the_wire_and_opens_with_its_key_only() {
    let keys = protocol();
    let round = Round::new(spec("answer", 1, 1, 3, 0)).expect("valid");
    let mut server = Server::new(keys.evaluation_key().clone(), round.clone()).expect("valid");
    server.add(&Teacher::new(0).answer(keys.public_key(), &round, &[0, 0, 1], &SOURCE).expect("valid")).expect("valid");
    let answer = server.argmax(threads(1), &|_, _| {}).expect("complete").remove(0);
    let bytes = answer.to_bytes();
    let read = EncryptedAnswer::from_bytes(&bytes).expect("intact");
    assert_eq!(read, answer);
    assert_eq!((read.query(), read.round()), (0, server.round_id()));
    assert_eq!(keys.secret_key().open(&read), Ok(Outcome::Label(2)));
    assert!(EncryptedAnswer::from_bytes(&bytes[..bytes.len() - 1]).is_err());

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
fn a_result_round_trips_with_the_statuses_of_the_teachers() {
    let keys = protocol();
    let round = Round::new(RoundSpec {
        min_teachers: 1,
        threshold: Some(1),
        randomness: RandomnessKind::Simulation,
        ..spec("result", 4, 2, 3, 10)
    })
    .expect("valid");
    let mut server = Server::new(keys.evaluation_key().clone(), round.clone()).expect("valid").with_randomness(SOURCE);
    let message = Teacher::new(2).answer(keys.public_key(), &round, &[0, 1, 0, 0, 0, 0], &SOURCE).expect("valid");
    server.add(&message).expect("valid");
    server.note(0, TeacherStatus::WrongKey);
    let answers = server.argmax(threads(2), &|_, _| {}).expect("enough");
    let statuses = server.statuses().to_vec();
    let list = AnswerList::new(&round, server.key().id(), statuses.clone(), &answers).expect("complete");
    let bytes = list.to_bytes();
    assert_eq!(bytes.len(), AnswerList::size(&round));
    let read = AnswerList::from_bytes(&bytes).expect("intact");
    assert_eq!(read, list);
    assert_eq!(read.statuses(), statuses);
    assert_eq!((read.counted(), read.honest_ratio(&round), read.placement()), (1, 0.25, NoisePlacement::Distributed));
    assert!(read.is_simulation() && read.outcomes().no_answer() && read.round() == round.id(server.key().id()));
    let outcomes: Vec<_> = read.answers().map(|answer| keys.secret_key().open(&answer)).collect();
    assert_eq!(outcomes, [Ok(Outcome::Label(1)), Ok(Outcome::NoAnswer)]);

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
    for length in [0, 28, 91, 92, 96, bytes.len() - 1] {
        assert!(AnswerList::from_bytes(&bytes[..length]).is_err(), "{length}");
    }
}

/// A student could add a lead to a query that decides its answer whatever the teachers vote, and compare the answer.
/// But the threshold of this very circuit separates such queries from the others under encryption: a lying server would
/// put a probe of the key in the place of "no answer", and lie in the others only. So known answers are real pictures
/// (docs/threat-models.md, "A lying server").
#[test]
fn a_lead_that_decides_an_answer_is_recognised_under_encryption() {
    let keys = protocol();
    // Counts of three votes with noise of at most 10 do not exceed 13; the range has room for a lead of 27.
    let round = Round::new(RoundSpec { threshold: Some(14), ..spec("lead", 3, 2, 3, 60) }).expect("valid");
    let mut server = Server::new(keys.evaluation_key().clone(), round.clone()).expect("valid").with_randomness(SOURCE);
    let natural = [7, -4, 2];
    let with_lead = [7, -4, 2 + 27];
    for (teacher, values) in [(0, [natural, with_lead].concat()), (1, vec![0; 6]), (2, vec![0; 6])] {
        let message = Teacher::new(teacher).answer(keys.public_key(), &round, &values, &SOURCE).expect("valid");
        server.add(&message).expect("valid");
    }
    let answers = server.argmax(threads(2), &|_, _| {}).expect("complete");
    let outcomes: Vec<_> = answers.iter().map(|answer| keys.secret_key().open(answer)).collect();
    assert_eq!(outcomes, [Ok(Outcome::NoAnswer), Ok(Outcome::Label(2))]);
}
