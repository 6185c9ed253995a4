//! Connections: accepted within limits, and each known by its party's key.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use speed_roles::PartyKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;

use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::shares::Shares;

/// The party at the other end of a connection, among a request's extensions.
#[derive(Clone, Copy)]
pub(crate) struct Peer(pub(crate) PartyKey);

/// A listener of a round's parties.
pub(crate) struct Listener {
    pub(crate) tls: Arc<ServerConfig>,
    pub(crate) limits: Limits,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) app: Router,
}

impl Listener {
    /// Accepts connections until `stop` is true, then lets running requests end within the grace.
    pub(crate) async fn serve(self, listener: TcpListener, mut stop: watch::Receiver<bool>) {
        let this = Arc::new(self);
        let (all, handshakes) =
            (Arc::new(Semaphore::new(this.limits.connections)), Arc::new(Semaphore::new(this.limits.handshakes)));
        let (per_address, per_party) = (Arc::new(Shares::default()), Arc::new(Shares::default()));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stopped(&mut stop) => break,
                // Those that ended are forgotten as they end.
                Some(_) = connections.join_next() => continue,
            };
            let Ok((stream, address)) = accepted else {
                // Out of file descriptors, for example: others will be closed meanwhile.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let handshake = Shares::take(&per_address, address.ip(), this.limits.handshakes_per_address)
                .zip(handshakes.clone().try_acquire_owned().ok());
            let Some((connection, handshake)) = all.clone().try_acquire_owned().ok().zip(handshake) else {
                this.metrics.busy.add(1);
                continue;
            };
            let (this, per_party, stop) = (this.clone(), per_party.clone(), stop.clone());
            connections.spawn(async move {
                if let Some((stream, peer)) = this.handshake(stream).await {
                    drop(handshake);
                    this.requests(stream, peer, per_party, stop).await;
                }
                drop(connection);
            });
        }
        drop(listener);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        if timeout(this.limits.grace, all_ended).await.is_err() {
            tracing::warn!("requests cut off: they did not end within {:?}", this.limits.grace);
        }
    }

    /// Finds out who is at the other end.
    async fn handshake(&self, stream: TcpStream) -> Option<(TlsStream<TcpStream>, PartyKey)> {
        // Small replies should not wait for more.
        let _ = stream.set_nodelay(true);
        let why = match timeout(self.limits.handshake, TlsAcceptor::from(self.tls.clone()).accept(stream)).await {
            Ok(Ok(stream)) => {
                let peer = crate::tls::peer(stream.get_ref().1)?;
                return Some((stream, peer));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "too slow".to_owned(),
        };
        tracing::debug!(why, "handshake failed");
        self.metrics.failed_handshakes.add(1);
        None
    }

    /// Answers the requests of a connection.
    async fn requests(
        &self,
        stream: TlsStream<TcpStream>,
        peer: PartyKey,
        per_party: Arc<Shares<[u8; 32]>>,
        mut stop: watch::Receiver<bool>,
    ) {
        let Some(_share) = Shares::take(&per_party, *peer.as_bytes(), self.limits.per_party) else {
            return self.metrics.busy.add(1);
        };
        self.metrics.accepted.add(1);
        self.metrics.connections.add(1);
        let app = self.app.clone();
        let service = hyper::service::service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
            let mut request: Request = request.map(axum::body::Body::new);
            request.extensions_mut().insert(Peer(peer));
            let mut app = app.clone();
            async move { tower_service::Service::call(&mut app, request).await }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.limits.header).max_buf_size(16 << 10).max_headers(32);
        let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stopped(&mut stop) => {
                connection.as_mut().graceful_shutdown();
                connection.as_mut().await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%peer, %error, "connection ended");
        }
        self.metrics.connections.subtract(1);
    }
}

/// Waits until the server is told to stop.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}
