//! The order of checks, and the limits on checks, on lines of the log and on the time of a request.

use std::cell::RefCell;
use std::io::Write;

use super::*;

/// Longer than any request that is answered.
const AGES: Duration = Duration::from_secs(60);

/// Polls a request once, and returns its answer unless it waits for something.
async fn at_once<T>(request: impl Future<Output = T>) -> Option<T> {
    tokio::select! { biased; answer = request => Some(answer), () = std::future::ready(()) => None }
}

/// Returns a second message of north.
fn second_message(office: &Office) -> Vec<u8> {
    office.message_of(Answer { votes: "0\n", registry: "second registry", ..NORTH })
}

#[tokio::test]
async fn one_message_of_a_party_is_checked_at_a_time() {
    let office = Office::open(patient());
    let [north, south] = ["north", "south"].map(|party| office.key(party));
    let [first, other] = ["north", "south"].map(|party| office.message(party));
    let second = second_message(&office);
    // Until this is dropped, checks of proofs wait.
    let no_checks = office.served.checks.clone().acquire_many_owned(2).await.expect("two checks at most");
    let mut checking = Box::pin(office.send(north, &first));
    assert_eq!(at_once(&mut checking).await, None);
    // The keeper answers in order, so the first message is then on its way to the check.
    let from = PartyKey::from_bytes(&south.0).expect("a key");
    let message = office.served.server.check_message(other.clone(), from).expect("south's");
    tokio::task::yield_now().await;
    assert!(office.served.keeper.ask(message).await.expect("a keeper").is_err());
    tokio::task::yield_now().await;
    let busy = (StatusCode::SERVICE_UNAVAILABLE, "a message of this party is being sent or checked".to_owned());
    assert_eq!(at_once(office.send(north, &second)).await.as_ref(), Some(&busy));
    // Also if the client of the first message has gone. Another party is not refused.
    drop(checking);
    assert_eq!(at_once(office.send(north, &second)).await, Some(busy));
    let mut others = Box::pin(office.send(south, &other));
    assert_eq!(at_once(&mut others).await, None);
    drop(no_checks);
    assert_eq!(tokio::time::timeout(AGES, others).await.expect("checked").0, StatusCode::CREATED);
    let mut received = office.served.received.clone();
    tokio::time::timeout(AGES, received.wait_for(|received| *received == 2)).await.expect("kept").expect("a keeper");
}

#[tokio::test]
async fn a_second_message_waits_for_no_check_of_its_proofs() {
    let office = Office::open(patient());
    let (north, first) = (office.key("north"), office.message("north"));
    assert_eq!(office.send(north, &first).await.0, StatusCode::CREATED);
    let _no_checks = office.served.checks.clone().acquire_many_owned(2).await.expect("two checks at most");
    let second = second_message(&office);
    let decided = tokio::time::timeout(AGES, office.send(north, &second)).await;
    let (status, text) = decided.expect("decided without a check");
    assert!(status == StatusCode::UNPROCESSABLE_ENTITY && text.contains("duplicate"), "{text}");
    // The same message again gets its receipt, also without a check.
    let again = tokio::time::timeout(AGES, office.send(north, &first)).await;
    assert_eq!(again.expect("decided without a check").0, StatusCode::CREATED);
}

#[tokio::test]
async fn a_request_is_cut_after_its_time_and_its_bytes_are_kept() {
    assert_eq!(Limits::default().request, Duration::from_secs(120));
    // No other limit ends this request.
    let slowest = MinimumRate { bytes: 0, every: AGES };
    let office = Office::open(Limits { request: Duration::from_millis(50), idle: 60 * AGES, slowest, ..patient() });
    let (north, message) = (office.key("north"), office.message("north"));
    let (digest, stalls) = (Digest::of(&message), Stalls(Some(Bytes::copy_from_slice(&message[..1000]))));
    let put = office.put(north, digest, (message.len(), 0), Body::new(stalls));
    let (status, text) = tokio::time::timeout(AGES, put).await.expect("cut");
    assert_eq!((status, &text[..]), (StatusCode::REQUEST_TIMEOUT, &b"the request took too long"[..]));
    let asked = Request::get(format!("/v3/messages/{}", digest.to_hex()));
    assert_eq!(office.ask(north, asked, Body::empty()).await, (StatusCode::OK, Bytes::from_static(b"1000")));
}

thread_local! {
    /// The program's log of this thread.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of the current thread.
struct OfThread;

impl Write for OfThread {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOG.with_borrow_mut(|log| log.write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns how often the log of this thread has these words.
fn in_log(words: &str) -> usize {
    LOG.with_borrow(|log| String::from_utf8_lossy(log).matches(words).count())
}

#[tokio::test]
async fn refusals_of_a_party_take_eight_lines_and_one_a_minute_and_all_are_counted() {
    // For all threads: a test that writes a line first, on a thread without a subscriber, would turn the line off for all.
    let subscriber = tracing_subscriber::fmt().json().with_writer(|| OfThread).finish();
    tracing::subscriber::set_global_default(subscriber).expect("no other test sets one");
    let office = Office::open(patient());
    let [north, south] = ["north", "south"].map(|party| office.key(party));
    for party in [[north; 20].as_slice(), &[south]].concat() {
        let (status, _) = office.put(party, Digest::of("long"), (1 << 40, 0), Body::empty()).await;
        assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let lines = [north, south].map(|party| {
        in_log(&office.served.server.name_of(crate::network::routes::party(party).expect("a key")).replace('"', "\\\""))
    });
    assert_eq!((lines, in_log("message refused")), ([8, 1], 9));
    let metrics = office.served.metrics.to_text(&state(&office.served), &office.served.connections);
    assert!(metrics.contains("speed_messages_refused_total{reason=\"oversized\"} 21\n"), "{metrics}");
    // A minute later there is one line more.
    let later = Instant::now() + Duration::from_secs(60);
    assert_eq!([(); 2].map(|()| office.served.lines.allow(north.0, later)), [true, false]);
}
