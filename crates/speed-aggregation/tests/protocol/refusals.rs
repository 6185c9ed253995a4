//! Refusals of server, teacher and aggregator.

use speed_aggregation::error::{RangeError, ServerError};
use speed_aggregation::protocol::TeacherStatus;
use speed_aggregation::{Aggregator, Message, NoisyVotes, Outcome, Round, RoundSpec, Server, Teacher};

use crate::protocol::common::{
    SOURCE, answer, message, outcomes, protocol, round, sealed, server_of, shape, spec, threads, with_field,
};

#[test]
fn the_server_refuses_and_names_the_teacher_and_keeps_its_sum() {
    let mut server = server_of(&round("refusals"));
    let good = message("refusals", 0);
    server.add(&good).expect("valid");
    assert!(matches!(server.add(&good), Err(ServerError::Duplicate { teacher: 0 })));
    let stranger = Message::from_bytes(&with_field(&good.to_bytes(), 76, 3)).expect("well-formed");
    assert!(matches!(server.add(&stranger), Err(ServerError::UnknownTeacher { teacher: 3, teachers: 3 })));
    let other = message("another round", 1);
    assert!(matches!(server.add(&other), Err(ServerError::WrongRound { teacher: 1, .. })));
    assert_eq!(server.received(), 1);
    let error = server.argmax(threads(1), &|_, _| {}).expect_err("incomplete");
    assert!(matches!(&error, ServerError::Missing { missing, teachers: 3, minimum: 3 } if *missing == [1, 2]));
    assert_eq!(error.to_string(), "2 of 3 teachers have not answered, the first of them teacher 1; at least 3 must");

    // A header with another shape of the same length for the same round.
    let forged = with_field(&with_field(&message("refusals", 1).to_bytes(), 80, 3), 84, 2);
    let forged = Message::from_bytes(&forged).expect("well-formed");
    assert!(matches!(server.add(&forged), Err(ServerError::Shape { teacher: 1, expected: (2, 3), found: (3, 2) })));
    // Another key, stated openly.
    let mut forged = message("refusals", 1).to_bytes();
    forged[12] ^= 1;
    let forged = Message::from_bytes(&sealed(forged)).expect("well-formed");
    assert!(matches!(server.add(&forged), Err(ServerError::WrongKey { teacher: 1, .. })));
    // The refused teacher may still send a valid answer.
    server.add(&message("refusals", 1)).expect("valid");
}

#[test]
fn a_teacher_refuses_what_it_cannot_encrypt() {
    let round = round("teacher");
    let refused = |teacher, round: &Round, values: &[i64]| {
        let answer = Teacher::new(teacher).answer(protocol().public_key(), round, values, &SOURCE);
        answer.expect_err("refused").to_string()
    };
    assert_eq!(refused(3, &round, &[0; 6]), "teacher 3 in a round of 3 teachers (counted from 0)");
    assert_eq!(refused(0, &round, &[0; 5]), "5 values, expected 2 queries x 3 classes");
    assert!(refused(0, &round, &[0, 0, 0, 0, i64::MIN, 0]).starts_with("a value is not from -8192 to 8192 votes"));
    let wide = Round::new(spec("wide", 300, 1, 2, 1123)).expect("a round, but not for these parameters");
    let expected = RangeError { needed: 2546, supported: 2544 }.to_string();
    assert_eq!(refused(0, &wide, &[0; 2]), expected);
    // So do server and aggregator.
    assert_eq!(Server::new(protocol().evaluation_key().clone(), wide).expect_err("refused").to_string(), expected);
    let votes = NoisyVotes::new(shape(300, 1, 2), 1123, vec![0; 600]).expect("valid");
    let error = protocol().aggregate(&votes, &|_, _| {}).expect_err("out of range");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn noise_beyond_its_bound_is_an_error_and_not_a_wrong_label() {
    let votes = NoisyVotes::new(shape(1, 2, 3), 5, vec![0, 1, 0, 1500, -1045, 0]).expect("valid");
    let error = protocol().aggregate(&votes, &|_, _| {}).expect_err("too noisy");
    let range = RangeError { needed: 2545, supported: 2544 };
    assert_eq!(error.to_string(), format!("query 1: the noise exceeded its bound: {range}"));
}

#[test]
fn a_round_continues_without_some_teachers_and_refuses_them_later() {
    let round = Round::new(RoundSpec { min_teachers: 2, ..spec("quorum", 3, 2, 3, 100) }).expect("two of three");
    let mut server = server_of(&round);
    server.add(&answer(&round, 2, &[1, 0, 0, 0, 0, 1])).expect("valid");
    assert!(matches!(server.close(1), Err(ServerError::Missing { minimum: 2, .. })));
    server.note(1, TeacherStatus::WrongShape);
    server.note(2, TeacherStatus::WrongShape);
    server.add(&answer(&round, 0, &[1, 0, 0, 0, 0, 1])).expect("valid");
    assert!(matches!(server.close(3), Err(ServerError::Missing { minimum: 3, .. })));
    server.close(2).expect("two of three");
    server.note(1, TeacherStatus::WrongRound);
    assert_eq!(server.statuses(), [TeacherStatus::Counted, TeacherStatus::WrongShape, TeacherStatus::Counted]);
    assert!(matches!(server.add(&answer(&round, 1, &[0, 9, 0, 0, 9, 0])), Err(ServerError::Late { teacher: 1 })));
    assert!(matches!(server.add(&answer(&round, 0, &[0, 9, 0, 0, 9, 0])), Err(ServerError::Duplicate { teacher: 0 })));
    assert_eq!(outcomes(&server), [Outcome::Label(0), Outcome::Label(2)]);
}
