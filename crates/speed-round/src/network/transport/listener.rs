//! The server's side: connections from start to end.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::server::Acceptor;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tower_service::Service as _;

use crate::network::transport::limits::{ConnectionLimits, Counters};
use crate::network::transport::proxy::client_address;
use crate::network::transport::slots::{Evicted, Slot, Slots};
use crate::network::transport::tls::{PeerKey, peer_key};

/// The pause after a failure to accept a connection. A longer pause would delay clients; a shorter one would waste
/// processor time while the process has no free file descriptor.
const PAUSE: Duration = Duration::from_millis(50);

/// The smallest buffer that hyper takes.
const MIN_HEADER_BUFFER: usize = 8 << 10;

/// The time that a client has to read the last reply and close the connection before it is reset.
const LINGER: Duration = Duration::from_secs(5);

/// The maximum time for a head: hyper adds it to the current time, which must not overflow.
const MAX_HEADER_TIMEOUT: Duration = Duration::from_hours(24);

/// The state that a connection needs from its server.
#[derive(Clone)]
struct Context {
    tls: Arc<ServerConfig>,
    limits: Arc<ConnectionLimits>,
    counters: Arc<Counters>,
    app: Router,
    shutdown: watch::Receiver<bool>,
}

/// Serves `app` until `shutdown` holds `true` or its sender is dropped.
///
/// Each request has the client's [`PeerKey`] among its extensions; clients that are not on the server's roster cannot
/// send requests. When the server stops, it accepts no more connections, drops those in their handshake, and gives
/// running requests the limits' `grace` to end. Dropping the future drops all connections.
///
/// A failing `accept`, for example without free file descriptors, is retried after 50 ms. Bodies are not limited here;
/// `app` must limit their length.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    limits: ConnectionLimits,
    app: Router,
    mut shutdown: watch::Receiver<bool>,
    counters: Arc<Counters>,
) {
    let slots = Slots::new(limits.clone(), Arc::clone(&counters));
    let grace = limits.grace;
    let context = Context { tls, limits: Arc::new(limits), counters, app, shutdown: shutdown.clone() };
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stopped(&mut shutdown) => break,
            Some(ended) = connections.join_next() => note_panic(ended),
            (stream, address) = accept(&listener) => {
                context.counters.accepted.add(1);
                let (slot, evicted) = slots.admit(address.ip());
                connections.spawn(run_connection(stream, address, slot, evicted, context.clone()));
            }
        }
    }
    drop(listener);
    tracing::info!(open = connections.len(), "stopping: no longer accepting connections");
    // Connections enforce the grace themselves; this waits a second longer.
    let all_ended = async {
        while let Some(ended) = connections.join_next().await {
            note_panic(ended)
        }
    };
    if timeout(grace.saturating_add(Duration::from_secs(1)), all_ended).await.is_err() {
        tracing::warn!("stopped with open connections");
    }
}

fn note_panic(ended: Result<(), tokio::task::JoinError>) {
    if ended.is_err_and(|error| error.is_panic()) {
        tracing::error!("a request's handler panicked: its connection is closed");
    }
}

/// Returns when the server must stop.
async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    // An error means that the sender was dropped, so the server could not be stopped later.
    drop(shutdown.wait_for(|stop| *stop).await);
}

/// Returns the next connection, retrying after failures.
async fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    let mut failures = 0_u64;
    loop {
        match listener.accept().await {
            Ok(connection) => return connection,
            Err(error) => {
                // Twenty lines a second would flood the log.
                if failures.is_multiple_of(200) {
                    tracing::warn!(%error, failures, "cannot accept connections");
                }
                failures += 1;
                sleep(PAUSE).await;
            }
        }
    }
}

/// Runs one connection in its slot, from its handshake to its end.
async fn run_connection(stream: TcpStream, address: SocketAddr, mut slot: Slot, evicted: Evicted, context: Context) {
    // Otherwise a small answer waits for the acknowledgement of the previous one (RFC 896).
    let _ = stream.set_nodelay(true);
    let mut shutdown = context.shutdown.clone();
    let handshake = timeout(context.limits.handshake_timeout, shake_hands(stream, address, &slot, &context));
    let shaken = tokio::select! {
        () = stopped(&mut shutdown) => return,
        shaken = handshake => shaken,
        _ = evicted => {
            tracing::debug!(%address, "dropped a connection: its handshake was not done, and a newer one needed its place");
            return;
        }
    };
    let Ok(shaken) = shaken else {
        context.counters.refused_handshake.add(1);
        tracing::debug!(%address, "dropped a connection: its handshake took too long");
        return;
    };
    let Some((stream, peer)) = shaken else { return };
    if !slot.authenticate(peer) {
        tracing::debug!(%address, %peer, "dropped a connection: its peer or all peers have too many, or a newer one needed its place");
        return;
    }
    tracing::debug!(%address, %peer, "connected");
    serve_requests(stream, peer, context).await;
    tracing::debug!(%address, %peer, "disconnected");
}

/// Returns the encrypted stream and its peer, or `None` if the handshake failed, which is counted.
async fn shake_hands(
    mut stream: TcpStream,
    address: SocketAddr,
    slot: &Slot,
    context: &Context,
) -> Option<(TlsStream<TcpStream>, PeerKey)> {
    let refused = |error: &dyn std::fmt::Display| {
        context.counters.refused_handshake.add(1);
        tracing::debug!(%address, %error, "dropped a connection: its handshake failed");
    };
    if context.limits.is_proxy(address.ip()) {
        match client_address(&mut stream).await {
            Ok(Some(client)) => slot.move_to(client),
            // A connection of the proxy's own.
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%address, %error, "the proxy did not say whose connection this is");
                context.counters.refused_handshake.add(1);
                return None;
            }
        }
    }
    let mut greeting = pin!(LazyConfigAcceptor::new(Acceptor::default(), stream));
    let greeted = match greeting.as_mut().await {
        Ok(greeted) => greeted,
        Err(error) => {
            refused(&error);
            if let Some(stream) = greeting.take_io() {
                linger(stream).await;
            }
            return None;
        }
    };
    slot.greet();
    match greeted.into_stream(Arc::clone(&context.tls)).into_fallible().await {
        Ok(stream) => match peer_key(stream.get_ref().1) {
            Some(key) => Some((stream, PeerKey(key))),
            None => {
                context.counters.refused_handshake.add(1);
                None
            }
        },
        Err((error, stream)) => {
            refused(&error);
            linger(stream).await;
            None
        }
    }
}

/// Reads until the client closes the connection. Closing a socket with unread bytes resets the connection, and the
/// client may lose the alert or the reply with the reason for a refusal (RFC 9112, section 9.6).
async fn linger(mut stream: TcpStream) {
    let mut unread = [0; 4096];
    if stream.shutdown().await.is_ok() {
        while matches!(stream.read(&mut unread).await, Ok(1..)) {}
    }
}

/// Answers the requests of one peer, and ends the connection.
async fn serve_requests(stream: TlsStream<TcpStream>, peer: PeerKey, context: Context) {
    let Context { limits, app, mut shutdown, .. } = context;
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        Box::pin(app.clone().call(request))
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout.min(MAX_HEADER_TIMEOUT))
        .max_headers(limits.headers)
        .max_buf_size(limits.header_buffer.max(MIN_HEADER_BUFFER))
        .serve_connection(TokioIo::new(stream), service);
    let ended = tokio::select! {
        ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => Some(ended),
        () = stopped(&mut shutdown) => None,
        () = sleep(limits.age) => None,
    };
    let ended = match ended {
        Some(ended) => Ok(ended),
        None => {
            Pin::new(&mut connection).graceful_shutdown();
            timeout(limits.grace, poll_fn(|cx| connection.poll_without_shutdown(cx))).await
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a connection broke off"),
        Err(_) => {
            tracing::debug!(%peer, "cut a connection: its request did not end in time");
            return;
        }
    }
    let stream = connection.into_parts().io.into_inner();
    // An error means that the client is slower than that, or gone.
    let _ = timeout(LINGER, hang_up(stream)).await;
}

/// Sends TLS's alert "close_notify" (RFC 8446, section 6.1) to tell the client that nothing follows, and waits until
/// the client has closed the connection too.
async fn hang_up(mut stream: TlsStream<TcpStream>) {
    if stream.shutdown().await.is_ok() {
        linger(stream.into_inner().0).await;
    }
}
