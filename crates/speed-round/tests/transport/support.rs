//! A running server, and its clients.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension};
use axum::http::StatusCode;
use axum::routing::{get, post};
use bytes::Bytes;
use ed25519_dalek::pkcs8::EncodePrivateKey as _;
use ed25519_dalek::pkcs8::spki::EncodePublicKey as _;
use ed25519_dalek::{SigningKey, VerifyingKey};
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::crypto::ring::sign::any_eddsa_type;
use rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ServerConfig};
use speed_round::network::transport::{
    Client, ClientError, ConnectionLimits, Counters, Method, PeerKey, Reply, client_config, serve, server_config,
};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Longer than any operation that terminates.
pub(crate) const AGES: Duration = Duration::from_secs(60);

/// The number of bytes of a reply from `/long`.
pub(crate) const LONG: usize = 1 << 20;

pub(crate) const SERVER: u8 = 1;
pub(crate) const TEACHER: u8 = 2;
pub(crate) const OTHER_TEACHER: u8 = 3;
pub(crate) const STRANGER: u8 = 4;

/// Returns limits whose times are out of reach even on a busy machine.
pub(crate) fn patient() -> ConnectionLimits {
    ConnectionLimits { handshake_timeout: AGES, header_timeout: AGES, age: 2 * AGES, grace: AGES, ..Default::default() }
}

/// Returns a party's signing key.
pub(crate) fn key(party: u8) -> SigningKey {
    SigningKey::from_bytes(&[party; 32])
}

pub(crate) fn public(party: u8) -> [u8; 32] {
    key(party).verifying_key().to_bytes()
}

/// Returns the TLS configuration of a client that expects the server.
pub(crate) fn tls(party: u8) -> Arc<ClientConfig> {
    Arc::new(client_config(&key(party), public(SERVER)).expect("a configuration"))
}

/// A server with two teachers on its roster.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) counters: Arc<Counters>,
    pub(crate) stop: watch::Sender<bool>,
    pub(crate) running: JoinHandle<()>,
    /// Notified when a request of `/slow` is running.
    pub(crate) started: Arc<Notify>,
    /// Lets a request of `/slow` finish.
    pub(crate) release: Arc<Notify>,
}

impl Server {
    pub(crate) async fn start(limits: ConnectionLimits) -> Self {
        let (started, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let slow = {
            let (started, release) = (Arc::clone(&started), Arc::clone(&release));
            async move || {
                started.notify_one();
                release.notified().await;
                "done"
            }
        };
        let app = Router::new()
            .route("/key", get(async |Extension(PeerKey(key)): Extension<PeerKey>| key.to_vec()))
            .route("/long", get(async || vec![7_u8; LONG]))
            .route("/length", post(async |body: Bytes| body.len().to_string()))
            .route(
                "/panic",
                get(async || {
                    if true {
                        panic!("as a handler should not")
                    }
                }),
            )
            .route("/refuse", post(async || (StatusCode::PAYLOAD_TOO_LARGE, "too long")))
            .route("/slow", get(slow))
            .layer(DefaultBodyLimit::disable());
        let clients = HashSet::from([public(TEACHER), public(OTHER_TEACHER)]);
        let tls = server_config(&key(SERVER), &clients).expect("a configuration");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = watch::channel(false);
        let counters = Arc::new(Counters::default());
        let running = tokio::spawn(serve(listener, Arc::new(tls), limits, app, stopped, Arc::clone(&counters)));
        Self { address, counters, stop, running, started, release }
    }

    pub(crate) async fn connect(&self, party: u8) -> Result<Client, ClientError> {
        Client::connect(&self.address.to_string(), tls(party), AGES).await
    }

    /// Returns the reply to a request on a separate connection.
    pub(crate) async fn get(&self, party: u8, path: &str) -> Result<Reply, ClientError> {
        fetch(&mut self.connect(party).await?, path).await
    }

    /// Returns a connection without HTTP on top.
    pub(crate) async fn connect_tls(&self, party: u8) -> TlsStream<TcpStream> {
        let name = ServerName::from(self.address.ip());
        TlsConnector::from(tls(party)).connect(name, self.connect_tcp().await).await.expect("a handshake")
    }

    pub(crate) async fn connect_tcp(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("a connection")
    }

    /// Checks that a teacher is served.
    pub(crate) async fn expect_service(&self) {
        let reply = self.get(OTHER_TEACHER, "/key").await.expect("a reply");
        assert_eq!((reply.status, reply.body), (200, public(OTHER_TEACHER).to_vec()));
    }

    /// Waits until a condition on the counters holds.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Counters) -> bool) {
        let wait = async {
            while !holds(&self.counters) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        assert!(tokio::time::timeout(AGES, wait).await.is_ok(), "never {what}: {:?}", self.counters);
    }
}

pub(crate) async fn fetch(client: &mut Client, path: &str) -> Result<Reply, ClientError> {
    client.request(Method::GET, path, &[], Bytes::new(), LONG).await
}

/// Returns the bytes that the other side sends until it closes or resets the connection.
pub(crate) async fn read_to_end(mut stream: impl AsyncReadExt + Unpin) -> Vec<u8> {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(AGES, stream.read_to_end(&mut bytes)).await;
    assert!(read.is_ok(), "the connection stays open");
    bytes
}

/// Returns the TLS configuration of a server that presents the key `shown` but signs with another.
pub(crate) fn impostor(signer: &SigningKey, shown: [u8; 32]) -> ServerConfig {
    let mut config = server_config(signer, &HashSet::from([public(TEACHER)])).expect("a configuration");
    config.cert_resolver = Arc::new(AlwaysResolvesServerRawPublicKeys::new(mismatched(signer, shown)));
    config
}

/// Returns the TLS configuration of a client that presents the key `shown` but signs with another.
pub(crate) fn impostor_client(signer: &SigningKey, shown: [u8; 32], server: [u8; 32]) -> ClientConfig {
    let mut config = client_config(signer, server).expect("a configuration");
    config.client_auth_cert_resolver = Arc::new(AlwaysResolvesClientRawPublicKeys::new(mismatched(signer, shown)));
    config
}

fn mismatched(signer: &SigningKey, shown: [u8; 32]) -> Arc<CertifiedKey> {
    let shown = VerifyingKey::from_bytes(&shown).expect("a key").to_public_key_der().expect("a form");
    let document = signer.to_pkcs8_der().expect("a form");
    let signer = any_eddsa_type(&PrivatePkcs8KeyDer::from(document.as_bytes())).expect("a key");
    Arc::new(CertifiedKey::new(vec![shown.into_vec().into()], signer))
}
