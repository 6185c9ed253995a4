//! The requests of a round's parties, and their answers.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use http_body_util::BodyExt as _;
use serde::Serialize;
use speed_core::Digest;
use tokio::time::timeout;

use crate::PartyKey;
use crate::network::keeper::Decision;
use crate::network::limits::RateCheck;
use crate::network::served_round::{ServedRound, Turn};
use crate::network::stage::{RoundState, Stage};
use crate::network::transport::PeerKey;
use crate::network::uploads::{NotNow, Whole};
use crate::server::Admitted;

/// The header with the offset in the file at which the request's bytes start.
pub(crate) const OFFSET: &str = "upload-offset";
/// The header with the total number of bytes of a file.
pub(crate) const LENGTH: &str = "upload-length";

pub(crate) fn parties(served: Arc<ServedRound>) -> Router {
    Router::new()
        .route("/v3/round", get(round))
        .route("/v3/messages/{sha256}", put(upload).get(uploaded))
        .route("/v3/log", get(log))
        .route("/v3/result", get(result))
        .route("/v3/fetched", put(fetched))
        .layer(from_fn_with_state(served.clone(), limited))
        .with_state(served)
}

/// Returns the routes for monitoring, which answer anyone who can reach their address.
pub(crate) fn watchers(served: Arc<ServedRound>) -> Router {
    let metrics = |State(served): State<Arc<ServedRound>>| async move {
        served.metrics.to_text(&state(&served), &served.connections)
    };
    let health = |State(served): State<Arc<ServedRound>>| async move { axum_json(&state(&served)) };
    Router::new().route("/health", get(health)).route("/metrics", get(metrics)).with_state(served)
}

/// Refuses requests beyond their party's rate, and ends those that take too long.
async fn limited(
    State(served): State<Arc<ServedRound>>,
    Extension(peer): Extension<PeerKey>,
    request: Request,
    next: Next,
) -> Response {
    if !served.rates.allow(peer.0, Instant::now()) {
        served.metrics.limited.add(1);
        return reply(StatusCode::TOO_MANY_REQUESTS, "more requests than this party may make");
    }
    match timeout(served.limits.request, next.run(request)).await {
        Ok(response) => response,
        Err(_) => reply(StatusCode::REQUEST_TIMEOUT, "the request took too long"),
    }
}

fn state(served: &ServedRound) -> RoundState {
    let file = &served.server.file;
    RoundState {
        round: file.id().to_hex(),
        stage: served.stage.borrow().name().to_owned(),
        received: *served.received.borrow(),
        teachers: file.round().shape().teachers(),
        minimum: served.server.minimum,
    }
}

async fn round(State(served): State<Arc<ServedRound>>) -> Response {
    axum_json(&state(&served))
}

/// Returns how many bytes of a file have arrived.
async fn uploaded(
    State(served): State<Arc<ServedRound>>,
    Extension(peer): Extension<PeerKey>,
    Path(sha256): Path<String>,
) -> Response {
    match sha256.parse() {
        Ok(digest) => match served.refused.find(peer.0, digest) {
            Some(found) => reply(StatusCode::UNPROCESSABLE_ENTITY, &found.words),
            None => at(StatusCode::OK, served.uploads.offset(peer.0, digest)),
        },
        Err(_) => reply(StatusCode::BAD_REQUEST, "expected the SHA-256 of the message in the address"),
    }
}

/// Receives bytes of a message. After the last byte, the message is checked and kept, and the answer is a receipt.
async fn upload(
    State(served): State<Arc<ServedRound>>,
    Extension(peer): Extension<PeerKey>,
    Path(sha256): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let number = |name: &str| headers.get(name)?.to_str().ok()?.parse::<usize>().ok();
    let (Ok(digest), Some(length), Some(offset)) = (sha256.parse::<Digest>(), number(LENGTH), number(OFFSET)) else {
        return reply(
            StatusCode::BAD_REQUEST,
            "expected the message's SHA-256 in the address, Upload-Length and Upload-Offset",
        );
    };
    let most = served.server.max_message();
    if length > most {
        let why = format!("{length} bytes, a message of this round has at most {most}");
        return refuse_with(StatusCode::PAYLOAD_TOO_LARGE, &served, peer, "oversized", &why);
    }
    if party(peer).and_then(|key| served.server.file.roster().teacher(key)).is_none() {
        return reply(StatusCode::FORBIDDEN, "only teachers send messages");
    }
    if let Some(found) = served.refused.find(peer.0, digest) {
        return refuse(&served, peer, found.reason, &found.words);
    }
    if served.refused.is_tiresome(peer.0) {
        let why = "too many messages of this party were not proved to be well formed: further ones are refused until the server restarts";
        return refuse(&served, peer, "ignored", why);
    }
    // Before the body, so that the client does not send it in vain.
    let Some(turn) = Turn::take(&served, peer) else {
        return reply(StatusCode::SERVICE_UNAVAILABLE, "a message of this party is being sent or checked");
    };
    match receive(&served, peer, digest, (length, offset), body).await {
        Ok(whole) if Digest::of(&whole.bytes) == digest => {
            // If the client disconnects, the message is kept anyway, and a repeated upload gets the same receipt.
            let accepting = tokio::spawn(async move {
                let _turn = turn;
                accept(&served, peer, digest, whole).await
            });
            accepting.await.unwrap_or_else(|_| reply(StatusCode::SERVICE_UNAVAILABLE, "the message could not be kept"))
        }
        Ok(_) => refuse(&served, peer, "damaged", "the bytes have another SHA-256"),
        Err(response) => response,
    }
}

/// Reads a body into the party's upload, and returns the file once it is complete.
async fn receive(
    served: &ServedRound,
    peer: PeerKey,
    digest: Digest,
    (length, offset): (usize, usize),
    mut body: Body,
) -> Result<Whole, Response> {
    let not_now = |not_now| match not_now {
        NotNow::At(found) => at(StatusCode::CONFLICT, found),
        NotNow::InUse => reply(StatusCode::SERVICE_UNAVAILABLE, "another connection of this party sends this message"),
        NotNow::Waiting => reply(StatusCode::SERVICE_UNAVAILABLE, "too many messages wait for their check"),
        NotNow::Full => reply(StatusCode::SERVICE_UNAVAILABLE, "too many uploads at once for the slowest of them"),
        NotNow::TooMany => {
            let why = "more bytes than Upload-Length";
            refuse_with(StatusCode::PAYLOAD_TOO_LARGE, served, peer, "oversized", why)
        }
    };
    let writer = served.uploads.open(peer.0, digest, (length, offset), Instant::now()).map_err(not_now)?;
    let mut check = RateCheck::new(served.limits.slowest, Instant::now());
    while let Some(frame) = timeout(served.limits.idle, body.frame()).await.unwrap_or(None) {
        // Bytes received before the connection broke are kept, so the party can resume.
        let Ok(frame) = frame else { break };
        let (bytes, now) = (frame.into_data().unwrap_or_default(), Instant::now());
        writer.append(&bytes, now).map_err(not_now)?;
        if !check.allows(bytes.len(), now) {
            break;
        }
    }
    writer.finish().map_err(|fault| match fault {
        NotNow::At(found) => at(StatusCode::ACCEPTED, found),
        fault => not_now(fault),
    })
}

/// Checks a complete message and keeps it.
async fn accept(served: &Arc<ServedRound>, peer: PeerKey, digest: Digest, whole: Whole) -> Response {
    // The message counts towards the memory limit until it is kept or refused.
    let Whole { bytes, held: _held } = whole;
    let Some(from) = party(peer) else { return reply(StatusCode::FORBIDDEN, "only teachers send messages") };
    let kept = match served.server.check_message(bytes, from) {
        Err(refusal) => served.keeper.note(digest, refusal).await.map(Err),
        // Earlier decisions first, because a proof takes time to check.
        Ok(message) => match served.keeper.ask(message).await {
            Some(Err(message)) => check_and_keep(served, digest, message).await,
            decided => decided.and_then(Result::ok),
        },
    };
    match kept {
        Some(Ok(receipt)) => (StatusCode::CREATED, receipt.to_bytes()).into_response(),
        Some(Err(refusal)) => {
            served.refused.keep(peer.0, digest, refusal.reason, refusal.to_string());
            refuse(served, peer, refusal.reason, &refusal.to_string())
        }
        None => reply(StatusCode::SERVICE_UNAVAILABLE, "the message could not be kept"),
    }
}

/// Checks the proofs of a message, with at most one check per thread, and keeps the message.
async fn check_and_keep(served: &Arc<ServedRound>, digest: Digest, message: Admitted) -> Option<Decision> {
    let permit = served.checks.clone().acquire_owned().await.ok()?;
    let server = served.server.clone();
    let check = move || {
        // Bound to the check, not to the request that waits for it.
        let _permit = permit;
        server.check_proofs(&message).map(|()| message)
    };
    match tokio::task::spawn_blocking(check).await {
        Ok(Ok(message)) => served.keeper.keep(message).await,
        Ok(Err(refusal)) => served.keeper.note(digest, refusal).await.map(Err),
        Err(_) => None,
    }
}

/// Refuses a message, and writes a rate-limited line to the program's log.
fn refuse(served: &ServedRound, peer: PeerKey, reason: &'static str, message: &str) -> Response {
    refuse_with(StatusCode::UNPROCESSABLE_ENTITY, served, peer, reason, message)
}

fn refuse_with(status: StatusCode, served: &ServedRound, peer: PeerKey, reason: &'static str, why: &str) -> Response {
    served.metrics.refused(reason);
    if served.lines.allow(peer.0, Instant::now()) {
        let by = party(peer).map_or_else(String::new, |key| served.server.name_of(key));
        tracing::info!(reason, by, why, "message refused");
    }
    reply(status, why)
}

/// Gives the log to any party. It is read and signed once for all requests until it changes.
async fn log(State(served): State<Arc<ServedRound>>) -> Response {
    let mut log = served.log.lock().await;
    // Read the number first: an entry written while the log is read then leads to a new read.
    let changes = served.server.registry.changes();
    if log.as_ref().is_none_or(|(of, _)| *of != changes) {
        let server = served.server.clone();
        match tokio::task::spawn_blocking(move || server.log()).await {
            Ok(Ok(read)) => *log = Some((changes, read.to_bytes().into())),
            _ => return reply(StatusCode::SERVICE_UNAVAILABLE, "the log cannot be read"),
        }
    }
    log.as_ref().map(|(_, bytes)| bytes.clone()).unwrap_or_default().into_response()
}

/// Gives the result to the student, and a refusal to all others.
async fn result(State(served): State<Arc<ServedRound>>, Extension(peer): Extension<PeerKey>) -> Response {
    if !is_student(&served, peer) {
        return reply(StatusCode::FORBIDDEN, "the result is the student's");
    }
    let server = served.server.clone();
    match tokio::task::spawn_blocking(move || server.result()).await {
        Ok(Ok(Some(bytes))) => bytes.into_response(),
        Ok(Ok(None)) => (StatusCode::ACCEPTED, axum_json(&state(&served))).into_response(),
        _ => reply(StatusCode::SERVICE_UNAVAILABLE, "the result cannot be read"),
    }
}

/// Records that the student has written the result.
async fn fetched(State(served): State<Arc<ServedRound>>, Extension(peer): Extension<PeerKey>) -> Response {
    if !is_student(&served, peer) || *served.stage.borrow() != Stage::Done {
        return reply(StatusCode::FORBIDDEN, "there is nothing to fetch");
    }
    if *served.fetched.borrow() {
        return StatusCode::NO_CONTENT.into_response();
    }
    let server = served.server.clone();
    match tokio::task::spawn_blocking(move || server.registry.keep_fetched(server.file.id())).await {
        Ok(Ok(())) => {
            served.fetched.send_replace(true);
            StatusCode::NO_CONTENT.into_response()
        }
        _ => reply(StatusCode::SERVICE_UNAVAILABLE, "the confirmation could not be stored"),
    }
}

/// Returns the key of a party. TLS accepted it, so it is on the roster.
fn party(peer: PeerKey) -> Option<PartyKey> {
    PartyKey::from_bytes(&peer.0)
}

fn is_student(served: &ServedRound, peer: PeerKey) -> bool {
    *served.server.file.roster().student().key().as_bytes() == peer.0
}

fn at(status: StatusCode, offset: usize) -> Response {
    (status, [(OFFSET, offset.to_string())], offset.to_string()).into_response()
}

fn reply(status: StatusCode, message: &str) -> Response {
    (status, message.to_owned()).into_response()
}

fn axum_json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => ([("content-type", "application/json")], text).into_response(),
        Err(_) => reply(StatusCode::INTERNAL_SERVER_ERROR, "no JSON"),
    }
}

#[cfg(all(test, feature = "student"))]
mod tests;
