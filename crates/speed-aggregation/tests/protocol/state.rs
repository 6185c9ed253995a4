//! Interrupting and resuming a server.

use std::sync::Mutex;

use speed_aggregation::error::ServerError;
use speed_aggregation::protocol::TeacherStatus;
use speed_aggregation::{EncryptedAnswer, Round, RoundSpec, Server};
use speed_core::NoisePlacement;

use crate::protocol::common::{SOURCE, answer, protocol, server_of, spec, threads, with_field};

fn round(label: &str) -> Round {
    let terms = RoundSpec { min_teachers: 2, placement: NoisePlacement::Central, ..spec(label, 3, 5, 3, 30) };
    Round::new(terms).expect("valid")
}

/// Returns a server with two of three teachers and the server's noise in its sum.
fn server(round: &Round) -> Server {
    let mut server = server_of(round);
    for teacher in [0, 2] {
        let values: Vec<i64> = (0..15).map(|value| i64::from(value % 3 == (value / 3 + 1) % 3)).collect();
        server.add(&answer(round, teacher, &values)).expect("valid");
    }
    server.note(1, TeacherStatus::WrongRound);
    server.add_noise(&[2, -1, 0, 1, 1, 1, 5, -5, 0, 0, 0, 0, 3, 3, -7]).expect("once");
    server.close(2).expect("enough");
    server
}

#[test]
fn a_resumed_server_gives_the_same_bytes_and_refuses_late_messages() {
    let keys = protocol();
    let round = round("resume");
    let first = server(&round);
    let expected = first.argmax(threads(2), &|_, _| {}).expect("complete");
    let state = first.state().expect("closed");

    let resume = |round: &Round, state: &[u8]| Server::resume(keys.evaluation_key().clone(), round.clone(), state);
    let mut second = resume(&round, &state).expect("intact").with_randomness(SOURCE);
    assert_eq!(second.statuses(), first.statuses());
    assert_eq!(second.state().expect("closed"), state);
    // The remaining queries only, in groups of another size.
    let answers = Mutex::new(Vec::new());
    second
        .answer::<ServerError>(threads(1), &[1, 2, 4], &|group, _| {
            answers.lock().expect("no panic").extend(group);
            Ok(())
        })
        .expect("complete");
    let mut answers = answers.into_inner().expect("no panic");
    answers.sort_by_key(EncryptedAnswer::query);
    assert!(answers == [1, 2, 4].map(|query| expected[query].clone()), "bytes differ");

    assert!(matches!(second.add(&answer(&round, 1, &[0; 15])), Err(ServerError::Late { teacher: 1 })));
    let again = second.add_noise(&[0; 15]).expect_err("refused").to_string();
    assert_eq!(again, "the server's noise is in the sum already");
}

#[test]
fn a_state_of_another_round_or_with_too_few_teachers_is_refused() {
    let keys = protocol();
    let round = round("state");
    let state = server(&round).state().expect("closed");
    let resume = |round: &Round, state: &[u8]| {
        Server::resume(keys.evaluation_key().clone(), round.clone(), state).expect_err("refused")
    };
    let other = self::round("another");
    assert!(resume(&other, &state).to_string().starts_with("state of round "));
    for length in [0, 28, 87, 91, state.len() - 1] {
        assert!(resume(&round, &state[..length]).to_string().starts_with("state of a server: "), "{length}");
    }
    for (offset, value) in [(76, 4), (80, 4), (84, 4), (88, u32::from_le_bytes([0, 0, 99, 0]))] {
        let error = resume(&round, &with_field(&state, offset, value)).to_string();
        assert!(error.starts_with("state of a server: "), "{offset}: {error}");
    }
    // One teacher counted, two missing.
    let alone = with_field(&state, 87, u32::from_le_bytes([state[87], 0, 1, 1]));
    assert!(matches!(resume(&round, &alone), ServerError::Missing { minimum: 2, .. }));
    // An open sum has no state.
    assert!(server_of(&round).state().is_err());
}

#[test]
fn the_first_error_of_the_receiver_stops_the_work() {
    #[derive(Debug)]
    struct Full;
    impl From<ServerError> for Full {
        fn from(_: ServerError) -> Self {
            Self
        }
    }
    let round = round("full disk");
    let groups = Mutex::new(0);
    let result = server(&round).answer(threads(1), &[0, 1, 2, 3, 4], &|_, _| {
        *groups.lock().expect("no panic") += 1;
        Err(Full)
    });
    assert!(result.is_err());
    assert_eq!(groups.into_inner().expect("no panic"), 1);
}
