//! The HTTP interface of a server, as seen behind TLS, before any message is verified.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::server::{Progress, Refusal};
use crate::{RoundRandomness, student};
use axum::http::Method;
use bytes::Bytes;
use hyper::body::Frame;
use speed_aggregation::Parameters;
use speed_aggregation::log::{LogEvent, RoundLog};

use super::*;
use crate::network::limits::{Limits, MinimumRate};
use office::{Answer, NORTH, Office};

mod checks;
mod false_receipt;
mod office;

/// The refusals of a progress display: teacher and reason.
#[derive(Default)]
struct Shown(std::sync::Mutex<Vec<(Option<usize>, &'static str)>>);

impl Progress for Shown {
    fn refused(&self, refusal: &Refusal) {
        self.0.lock().expect("no panic").push((refusal.teacher, refusal.reason));
    }
    fn begin(&self, _: usize, _: usize) {}
    fn advance(&self, _: usize) {}
}

fn patient() -> Limits {
    Limits { burst: 1e9, rate: 1e9, ..Limits::default() }
}

/// A body that sends some bytes and then stalls forever.
struct Stalls(Option<Bytes>);

impl hyper::body::Body for Stalls {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.take().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
    }
}

/// An endless body with one byte every ten milliseconds.
struct Trickles(Pin<Box<tokio::time::Sleep>>);

impl hyper::body::Body for Trickles {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        std::task::ready!(self.0.as_mut().poll(context));
        self.0.as_mut().reset(tokio::time::Instant::now() + Duration::from_millis(10));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"S")))))
    }
}

#[tokio::test]
async fn a_stalled_upload_is_cut_and_resumes() {
    let office = Office::open(Limits { idle: Duration::from_millis(50), ..patient() });
    let (north, message) = (office.key("north"), office.message("north"));
    let (digest, length) = (Digest::of(&message), message.len());
    let stalls = Body::new(Stalls(Some(Bytes::copy_from_slice(&message[..1000]))));
    let (status, body) = office.put(north, digest, (length, 0), stalls).await;
    assert_eq!((status, &body[..]), (StatusCode::ACCEPTED, &b"1000"[..]));
    let (status, body) = office.put(north, digest, (length, 0), message.clone().into()).await;
    assert_eq!((status, &body[..]), (StatusCode::CONFLICT, &b"1000"[..]));
    let (status, receipt) = office.put(north, digest, (length, 1000), message[1000..].to_vec().into()).await;
    assert_eq!(status, StatusCode::CREATED);
    // Sent again, in one piece: the same receipt, and the message counts once.
    let (status, again) = office.put(north, digest, (length, 0), message.into()).await;
    assert_eq!((status, again), (StatusCode::CREATED, receipt));
    assert_eq!(*office.served.received.borrow(), 1);
}

#[tokio::test]
async fn a_party_is_limited_to_its_own_requests() {
    let office = Office::open(patient());
    let [north, south, student] = ["north", "south", "student"].map(|party| office.key(party));
    let message = office.message("north");
    let (digest, length) = (Digest::of(&message), message.len());
    // Another teacher's message, a student's, a longer one, one of other bytes.
    let (status, body) = office.put(south, digest, (length, 0), message.clone().into()).await;
    assert!(
        status == StatusCode::UNPROCESSABLE_ENTITY && body.starts_with(b"unknown sender refused as forged"),
        "{body:?}"
    );
    assert_eq!(office.put(student, digest, (length, 0), message.clone().into()).await.0, StatusCode::FORBIDDEN);
    assert_eq!(office.put(north, digest, (1 << 40, 0), message.clone().into()).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(office.put(north, digest, (10, 0), message.clone().into()).await.0, StatusCode::PAYLOAD_TOO_LARGE);
    let (status, _) = office.put(north, Digest::of("other"), (length, 0), message.clone().into()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    // Only the student may get the result, and it does not exist yet.
    assert_eq!(office.ask(north, Request::get("/v3/result"), Body::empty()).await.0, StatusCode::FORBIDDEN);
    assert_eq!(office.ask(student, Request::get("/v3/result"), Body::empty()).await.0, StatusCode::ACCEPTED);
    assert_eq!(office.ask(student, Request::put("/v3/fetched"), Body::empty()).await.0, StatusCode::FORBIDDEN);
    assert_eq!(*office.served.received.borrow(), 0);
}

#[tokio::test]
async fn a_refused_message_is_in_the_log_and_in_the_statuses() {
    let office = Office::open(patient());
    let [north, south] = ["north", "south"].map(|party| office.key(party));
    // South's messages to ten other rounds of the same parties, each sent twice; then one for another key, which is a
    // lesser fault.
    let mut replayed = Vec::new();
    for index in 0..10 {
        let name = format!("other-{index}.toml");
        office.other_round(&name, "public.key");
        replayed.push(office.message_to(&name, "south"));
    }
    let second = office.folder.path().join("second");
    std::fs::create_dir(&second).expect("a folder");
    student::keygen(&second, &Parameters::TOURNAMENT_128, RoundRandomness::simulation(4)).expect("an empty folder");
    office.other_round("second/round.toml", "second/public.key");
    let of_key = office.message_of(Answer {
        party: "south",
        round: "second/round.toml",
        public_key: "second/public.key",
        ..NORTH
    });
    for (messages, reason) in [(&replayed[..], "wrong-round"), (&[of_key], "wrong-key")] {
        for message in messages.iter().chain(messages) {
            let (status, text) = office.send(south, message).await;
            let begin = format!("teacher 1 refused as {reason}");
            assert!(status == StatusCode::UNPROCESSABLE_ENTITY && text.starts_with(&begin), "{text}");
        }
    }
    // A request for the offset of a refused file gets the refusal.
    let asked = Request::get(format!("/v3/messages/{}", Digest::of(&replayed[9]).to_hex()));
    assert_eq!(office.ask(south, asked, Body::empty()).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(office.send(north, &office.message("north")).await.0, StatusCode::CREATED);
    let log = office.served.server.log().expect("a log");
    let of = |event| log.entries().iter().filter(move |entry| entry.event() == event);
    let noted: Vec<_> = of(LogEvent::Refused).map(|entry| (entry.teacher(), entry.digest())).collect();
    let expected: Vec<_> = replayed[..8].iter().map(|message| (Some(1), Digest::of(message))).collect();
    assert_eq!((noted, of(LogEvent::Received).count()), (expected, 1));
    let shown = Shown::default();
    let error = office.served.server.evaluate_received(&shown).expect_err("too few").to_string();
    assert!(error.starts_with("1 of 2 teachers"), "{error}");
    assert_eq!(shown.0.into_inner().expect("no panic"), [(Some(1), "wrong-round")], "the worse of both");
}

#[tokio::test]
async fn a_second_message_is_noted_whatever_was_refused_before() {
    let office = Office::open(patient());
    let north = office.key("north");
    for index in 0..9 {
        let name = format!("other-{index}.toml");
        office.other_round(&name, "public.key");
        let (status, _) = office.send(north, &office.message_to(&name, "north")).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let kept = office.message("north");
    // A second message, as from a teacher that lost its registry or whose key was stolen.
    let second = office.message_of(Answer { votes: "0\n", registry: "second registry", ..NORTH });
    assert_eq!(office.send(north, &kept).await.0, StatusCode::CREATED);
    let (status, text) = office.send(north, &second).await;
    assert!(status == StatusCode::UNPROCESSABLE_ENTITY && text.contains("duplicate"), "{text}");
    let log = office.served.server.log().expect("a log");
    let last = log.entries().last().map(|entry| (entry.event(), entry.teacher(), entry.digest()));
    assert_eq!(last, Some((LogEvent::Duplicate, Some(0), Digest::of(&second))));
}

#[tokio::test]
async fn a_log_is_read_again_when_it_has_grown() {
    let office = Office::open(patient());
    let north = office.key("north");
    let mut logs = Vec::new();
    for message in [None, Some(office.message("north")), None] {
        if let Some(message) = message {
            assert_eq!(office.send(north, &message).await.0, StatusCode::CREATED);
        }
        let (_, log) = office.ask(north, Request::get("/v3/log"), Body::empty()).await;
        logs.push(RoundLog::from_bytes(&log).expect("a log").entries().len());
    }
    assert_eq!(logs, [0, 1, 1]);
}

#[tokio::test]
async fn a_slow_body_is_cut_and_keeps_its_progress() {
    let every = Duration::from_millis(40);
    let office = Office::open(Limits { slowest: MinimumRate { bytes: 1000, every }, ..patient() });
    let (north, message) = (office.key("north"), office.message("north"));
    let trickles = Body::new(Trickles(Box::pin(tokio::time::sleep(Duration::ZERO))));
    let (status, text) = office.put(north, Digest::of(&message), (message.len(), 0), trickles).await;
    let sent: usize = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).expect("an offset");
    assert!(status == StatusCode::ACCEPTED && (1..=5).contains(&sent), "{status}: {text:?}");
}

#[tokio::test]
async fn requests_beyond_the_rate_are_refused() {
    let office = Office::open(Limits { burst: 3.0, rate: 1e-9, ..Limits::default() });
    let mut found = Vec::new();
    for party in ["north", "north", "north", "north", "south"] {
        found.push(office.ask(office.key(party), Request::get("/v3/round"), Body::empty()).await.0);
    }
    assert_eq!(found[..3], [StatusCode::OK; 3]);
    assert_eq!(found[3..], [StatusCode::TOO_MANY_REQUESTS, StatusCode::OK]);
}

/// Sends requests derived from valid ones by a generator with a fixed seed: none may panic, cause a server error, or be
/// kept. `SPEED_FUZZ_SECONDS` sets the duration.
#[tokio::test]
async fn no_request_makes_the_server_fail() {
    let seconds = std::env::var("SPEED_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let office = Office::open(Limits { idle: Duration::from_millis(1), ..patient() });
    let (north, message) = (office.key("north"), office.message("north"));
    let digest = Digest::of(&message).to_hex();
    let mut state = 7_u64;
    let mut below = move |bound: usize| {
        // splitmix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((z ^ (z >> 27)) % bound as u64) as usize
    };
    let (start, mut asked, mut good) = (Instant::now(), 0_u64, 0_u64);
    while start.elapsed().as_secs_f64() < seconds || asked < 10_000 && (asked <= 100 || good <= 10) {
        let mut body = message[..below(message.len() + 1)].to_vec();
        if !body.is_empty() {
            let place = below(body.len());
            body[place] ^= 1 << below(8);
        }
        // Half of them are consistent, and so reach the checks of a message.
        let whole = below(2) == 0;
        let digest = if whole { Digest::of(&body).to_hex() } else { digest.clone() };
        let method = [Method::GET, Method::PUT, Method::POST, Method::DELETE, Method::HEAD][below(5)].clone();
        let mut path = ["/v3/round", "/v3/log", "/v3/result", "/v3/fetched", "/v3/messages/"][below(5)].to_owned();
        if path.ends_with('/') {
            path.push_str(&digest);
        }
        if below(4) == 0 {
            let place = below(path.len() - 1) + 1;
            path.replace_range(place..=place, ["x", "/", "%00", "%ff", "..", ""][below(6)]);
        }
        let number = |pick: usize| {
            ["0", "1", "-1", "18446744073709551615", "99999999999999999999", "x", "", "1000"][pick].to_owned()
        };
        let mut request = Request::builder().method(method).uri(path);
        if below(8) > 0 {
            let length = if whole { body.len() } else { message.len() };
            request = request.header(LENGTH, if below(2) == 0 { length.to_string() } else { number(below(8)) });
        }
        if below(8) > 0 {
            request = request.header(OFFSET, if below(2) == 0 { "0".to_owned() } else { number(below(8)) });
        }
        let body = if below(8) == 0 { Body::new(Stalls(Some(body.into()))) } else { body.into() };
        if request.uri_ref().is_none() {
            continue;
        }
        let (status, _) = office.ask(north, request, body).await;
        assert!(!status.is_server_error() || status == StatusCode::SERVICE_UNAVAILABLE, "request {asked}: {status}");
        assert_ne!(status, StatusCode::CREATED, "request {asked}");
        (asked, good) = (asked + 1, good + u64::from(status.is_success()));
    }
    assert!(asked > 100 && good > 10, "{asked} requests, {good} of them good");
    assert_eq!(*office.served.received.borrow(), 0);
    // The state left by the attacks does not prevent the teacher's message: it resumes at the offset that the server
    // reports.
    let (whole, mut at, mut status) = (Digest::of(&message), 0, StatusCode::CONFLICT);
    for _ in 0..4 {
        let (found, body) = office.put(north, whole, (message.len(), at), message[at..].to_vec().into()).await;
        (status, at) = (found, std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok()).unwrap_or(0));
    }
    assert_eq!(status, StatusCode::CREATED);
}
