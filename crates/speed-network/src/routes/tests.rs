//! The front of a server, as its requests see it: behind TLS, before anything is believed.

use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::http::Method;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Frame;
use speed_accountant::Delta;
use speed_aggregation::{LogEvent, Parameters, PrivacyNoise};
use speed_core::{Circuit, NoisePlacement, RandomnessKind};
use speed_roles::server::{Progress, Refusal, ServerOptions};
use speed_roles::teacher::TeacherOptions;
use speed_roles::{
    Identity, LedgerOptions, Party, Role, RolesError, Roster, RoundFile, RoundRandomness, Terms, generate_identity,
    student,
};
use tempfile::TempDir;
use tower_service::Service as _;

use super::*;
use crate::keeper::Keeper;

const RANDOMNESS: RoundRandomness = RoundRandomness::simulation(3);

/// A desk of a round of two teachers, and the files of all parties.
struct Office {
    folder: TempDir,
    desk: Arc<Desk>,
    app: Router,
}

impl Office {
    fn open(limits: Limits) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| folder.path().join(name);
        let party = |role, name: &str| {
            generate_identity(role, name, &path(&format!("{name}.key"))).expect("an empty folder");
            Party::new(name, Identity::read(&path(&format!("{name}.key"))).expect("a key").key()).expect("a name")
        };
        let roster = Roster::new(
            party(Role::Student, "student"),
            party(Role::Server, "server"),
            vec![party(Role::Teacher, "north"), party(Role::Teacher, "south")],
        );
        let terms = terms(roster.expect("four parties"));
        student::keygen(folder.path(), &Parameters::TOURNAMENT_128, RANDOMNESS).expect("an empty folder");
        let options = student::RoundOptions {
            public_key: path("public.key"),
            proof_key: None,
            reuse_keys: false,
            out: path("round.toml"),
            randomness: RANDOMNESS,
        };
        student::round(&terms, &options).expect("valid");
        let server = RoundServer::open(ServerOptions {
            signing_key: path("server.key"),
            evaluation_key: path("evaluation.key"),
            proof_key: None,
            round: path("round.toml"),
            min_teachers: None,
            registry: path("server.registry"),
            ledger: ledger(&folder),
            circuit: Circuit::Tournament,
            threads: NonZeroUsize::MIN,
            randomness: RANDOMNESS,
        });
        let server = Arc::new(server.expect("fitting files"));
        let keeper = Keeper::start(server.clone());
        let desk = Arc::new(Desk {
            keeper: keeper.handle(),
            received: keeper.received.clone(),
            server,
            stage: watch::channel(Stage::Open).1,
            fetched: watch::channel(false).0,
            uploads: Uploads::new(1 << 20),
            rates: Rates::new(limits.burst, limits.rate),
            limits,
            checks: Arc::new(Semaphore::new(2)),
            checking: Mutex::default(),
            metrics: Arc::default(),
            connections: Arc::default(),
        });
        Self { folder, app: parties(desk.clone()), desk }
    }

    fn key(&self, party: &str) -> PeerKey {
        let path = self.folder.path().join(format!("{party}.key"));
        PeerKey(*Identity::read(&path).expect("a key").key().as_bytes())
    }

    /// A teacher's message to the round.
    fn message(&self, party: &str) -> Vec<u8> {
        self.message_to("round.toml", party)
    }

    fn message_to(&self, round: &str, party: &str) -> Vec<u8> {
        let path = |name: &str| self.folder.path().join(name);
        std::fs::write(path("votes.csv"), "1\n").expect("votes");
        speed_roles::teacher::answer(&TeacherOptions {
            signing_key: path(&format!("{party}.key")),
            public_key: path("public.key"),
            proof_key: None,
            round: path(round),
            votes: path("votes.csv"),
            out: path(&format!("{party} to {round}")),
            query_list: None,
            mechanism: None,
            registry: path(&format!("{party}.registry")),
            ledger: ledger(&self.folder),
            randomness: RANDOMNESS,
        })
        .expect("valid");
        std::fs::read(path(&format!("{party} to {round}"))).expect("a message")
    }

    /// The answer to a request.
    async fn ask(&self, peer: PeerKey, request: hyper::http::request::Builder, body: Body) -> (StatusCode, Bytes) {
        let mut request = request.body(body).expect("a request");
        request.extensions_mut().insert(peer);
        let response = self.app.clone().call(request).await.expect("an answer");
        let status = response.status();
        (status, response.into_body().collect().await.expect("whole").to_bytes())
    }

    async fn put(
        &self,
        peer: PeerKey,
        digest: Digest,
        (length, offset): (usize, usize),
        body: Body,
    ) -> (StatusCode, Bytes) {
        let request = Request::put(format!("/v3/messages/{}", digest.to_hex()));
        self.ask(peer, request.header(LENGTH, length).header(OFFSET, offset), body).await
    }
}

/// Shows nothing.
struct Silent;

impl Progress for Silent {
    fn refused(&self, _: &Refusal) {}
    fn begin(&self, _: usize, _: usize) {}
    fn advance(&self, _: usize) {}
}

/// A simulated round of one query.
fn terms(roster: Roster) -> Terms {
    Terms {
        name: "front".into(),
        roster,
        queries: 1,
        classes: 2,
        query_list: None,
        min_teachers: 2,
        noise: PrivacyNoise::named("discrete-laplace", 5.0).expect("valid"),
        placement: NoisePlacement::Distributed,
        threshold: None,
        proofs: None,
        randomness: RandomnessKind::Simulation,
    }
}

fn ledger(folder: &TempDir) -> LedgerOptions {
    LedgerOptions { path: folder.path().join("ledger"), delta: Delta::new(1e-5).expect("valid") }
}

fn patient() -> Limits {
    Limits { burst: 1e9, rate: 1e9, ..Limits::default() }
}

/// A body that sends some bytes and then nothing, for ever.
struct Stalls(Option<Bytes>);

impl hyper::body::Body for Stalls {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.take().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
    }
}

#[tokio::test]
async fn an_upload_that_stalls_is_cut_and_goes_on_where_it_was() {
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
    // Again, in one piece: the same receipt, and it counts once.
    let (status, again) = office.put(north, digest, (length, 0), message.into()).await;
    assert_eq!((status, again), (StatusCode::CREATED, receipt));
    assert_eq!(*office.desk.received.borrow(), 1);
}

#[tokio::test]
async fn a_party_does_what_is_its_own() {
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
    // The result is the student's, and is not there.
    assert_eq!(office.ask(north, Request::get("/v3/result"), Body::empty()).await.0, StatusCode::FORBIDDEN);
    assert_eq!(office.ask(student, Request::get("/v3/result"), Body::empty()).await.0, StatusCode::ACCEPTED);
    assert_eq!(office.ask(student, Request::put("/v3/fetched"), Body::empty()).await.0, StatusCode::FORBIDDEN);
    assert_eq!(*office.desk.received.borrow(), 0);
}

#[tokio::test]
async fn a_refused_message_is_in_the_log_and_in_the_statuses() {
    let office = Office::open(patient());
    let path = |name: &str| office.folder.path().join(name);
    let roster = RoundFile::read(&path("round.toml")).expect("a round").roster().clone();
    let other = student::RoundOptions {
        public_key: path("public.key"),
        proof_key: None,
        reuse_keys: true,
        out: path("other.toml"),
        randomness: RANDOMNESS,
    };
    student::round(&Terms { name: "another".into(), ..terms(roster) }, &other).expect("valid");
    let [north, south] = ["north", "south"].map(|party| office.key(party));
    // South's message to another round of the same parties, again and again.
    let (message, replayed) = (office.message("north"), office.message_to("other.toml", "south"));
    for _ in 0..20 {
        let (status, body) =
            office.put(south, Digest::of(&replayed), (replayed.len(), 0), replayed.clone().into()).await;
        let text = String::from_utf8_lossy(&body);
        assert!(
            status == StatusCode::UNPROCESSABLE_ENTITY && text.starts_with("teacher 1 refused as wrong-round"),
            "{text}"
        );
    }
    let (status, _) = office.put(north, Digest::of(&message), (message.len(), 0), message.clone().into()).await;
    assert_eq!(status, StatusCode::CREATED);
    let log = office.desk.server.log().expect("a log");
    let of = |event| log.entries().iter().filter(move |entry| entry.event() == event);
    assert!(of(LogEvent::Refused).all(|entry| (entry.teacher(), entry.digest()) == (Some(1), Digest::of(&replayed))));
    assert_eq!((of(LogEvent::Refused).count(), of(LogEvent::Received).count()), (8, 1));
    match office.desk.server.evaluate_received(&Silent) {
        Err(RolesError::TooFew { counted: 1, refused, .. }) => {
            let reasons: Vec<_> = refused.iter().map(|refusal| (refusal.teacher, refusal.reason)).collect();
            assert_eq!(reasons, [(Some(1), "wrong-round")]);
        }
        other => panic!("{other:?}"),
    }
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

/// Requests made of good ones by a generator with a fixed seed: none may panic, fail on the server's side, or be kept. `SPEED_FUZZ_SECONDS` says how long.
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
    while start.elapsed().as_secs_f64() < seconds {
        let mut body = message[..below(message.len() + 1)].to_vec();
        if !body.is_empty() {
            let place = below(body.len());
            body[place] ^= 1 << below(8);
        }
        // Half of them are what they say that they are, and get as far as a message's own checks.
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
    assert_eq!(*office.desk.received.borrow(), 0);
    // What the attacks left is no obstacle to the teacher's message: it goes on from where the server says.
    let (whole, mut at, mut status) = (Digest::of(&message), 0, StatusCode::CONFLICT);
    for _ in 0..4 {
        let (found, body) = office.put(north, whole, (message.len(), at), message[at..].to_vec().into()).await;
        (status, at) = (found, std::str::from_utf8(&body).ok().and_then(|text| text.parse().ok()).unwrap_or(0));
    }
    assert_eq!(status, StatusCode::CREATED);
}
