//! Tests of the handshake: accepted and refused peers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore};
use speed_round::network::transport::{Client, ClientError, Method, client_config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use crate::support::{AGES, SERVER, STRANGER, Server, TEACHER, fetch, key, patient, public, read_to_end, tls};

// On separate threads, client and server run concurrently, as on two machines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_client_hears_that_it_is_not_on_the_roster() {
    let server = Server::start(patient()).await;
    let refused = server.get(STRANGER, "/key").await;
    assert!(matches!(refused, Err(ClientError::NotOnRoster)), "{refused:?}");
    // Also if it is told while it writes more than the buffers between the two hold.
    let mut client = server.connect(STRANGER).await.expect("the client's part of the handshake");
    let upload = client.request(Method::POST, "/length", &[], vec![0; 32 << 20].into(), 100).await;
    assert!(matches!(upload, Err(ClientError::NotOnRoster)), "{upload:?}");
    // And if it was told long before its first request.
    let mut client = server.connect(STRANGER).await.expect("the client's part of the handshake");
    server.until("refused", |counters| counters.refused_handshake.get() == 3).await;
    let late = fetch(&mut client, "/key").await;
    assert!(matches!(late, Err(ClientError::NotOnRoster)), "{late:?}");
    let again = fetch(&mut client, "/key").await;
    assert!(matches!(again, Err(ClientError::BrokenOff { .. })), "{again:?}");
    server.expect_service().await;
}

#[tokio::test]
async fn a_refused_client_can_write_until_it_has_read_why() {
    let server = Server::start(patient()).await;
    let mut stream = server.connect_tls(STRANGER).await;
    server.until("refused", |counters| counters.refused_handshake.get() == 1).await;
    // If the server had closed its socket, the first write would cause a reset, and one of the others would fail.
    for _ in 0..20 {
        stream.write_all(&[0; 1000]).await.expect("the server reads on");
        stream.flush().await.expect("the server reads on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let refused = stream.read(&mut [0]).await.expect_err("an alert").to_string();
    assert!(refused.contains("AccessDenied"), "{refused}");
}

#[tokio::test]
async fn a_client_refuses_another_server_and_says_which() {
    let server = Server::start(patient()).await;
    let tls = client_config(&key(TEACHER), public(STRANGER)).expect("a configuration");
    let refused = Client::connect(&server.address.to_string(), Arc::new(tls), AGES).await;
    let Err(ClientError::WrongServer { reason }) = refused else { panic!("{refused:?}") };
    assert_eq!(reason, "expected the key ca93ac1705187071, found 8a88e3dd7409f195");
    server.until("refused", |counters| counters.refused_handshake.get() == 1).await;
    server.expect_service().await;
}

#[tokio::test]
async fn an_unreachable_address_and_another_service_are_distinguished() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let plain = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.expect("written");
        read_to_end(stream).await
    });
    let refused = Client::connect(&address, tls(TEACHER), AGES).await;
    assert!(matches!(refused, Err(ClientError::Handshake { .. })), "{refused:?}");
    plain.await.expect("a listener");
    // Bound, so that no other test gets the port, but not listening.
    let reserved = TcpSocket::new_v4().expect("a socket");
    reserved.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
    let address = reserved.local_addr().expect("an address").to_string();
    let refused = Client::connect(&address, tls(TEACHER), AGES).await;
    assert!(matches!(refused, Err(ClientError::Connect { .. })), "{refused:?}");
    let refused = Client::connect("no port", tls(TEACHER), AGES).await;
    assert!(matches!(refused, Err(ClientError::Connect { .. })), "{refused:?}");
}

#[tokio::test]
async fn plain_text_and_garbage_do_not_hurt() {
    let server = Server::start(patient()).await;
    let texts: [&[u8]; 4] =
        [b"GET /key HTTP/1.1\r\nHost: x\r\n\r\n", &[0; 5000], &[0xff; 5000], &[22, 3, 1, 0xff, 0xff]];
    for text in texts {
        let mut stream = server.connect_tcp().await;
        stream.write_all(text).await.expect("written");
        stream.shutdown().await.expect("closed");
        let answer = read_to_end(stream).await;
        assert!(answer.len() <= 7, "no more than an alert: {answer:?}");
    }
    server.until("refused", |counters| counters.refused_handshake.get() == 4).await;
    server.expect_service().await;
}

#[tokio::test]
async fn a_client_of_tls_1_2_is_refused() {
    // With ECDHE-ECDSA-AES128-GCM-SHA256 and the necessary extensions.
    let extensions: [&[u8]; 4] = [
        &[0, 10, 0, 4, 0, 2, 0, 29],      // supported_groups: x25519
        &[0, 11, 0, 2, 1, 0],             // ec_point_formats: uncompressed
        &[0, 13, 0, 6, 0, 4, 8, 7, 4, 3], // signature_algorithms: ed25519, ecdsa_secp256r1_sha256
        &[0, 23, 0, 0],                   // extended_master_secret
    ];
    let record = client_hello([0xc0, 0x2b], &extensions);
    let server = Server::start(patient()).await;
    let mut stream = server.connect_tcp().await;
    stream.write_all(&record).await.expect("written");
    let mut answer = [0; 7];
    stream.read_exact(&mut answer).await.expect("an alert");
    // A fatal alert "protocol_version" (RFC 8446, section 6.2).
    assert_eq!(answer, [21, 3, 3, 0, 2, 2, 70]);
}

/// Returns a ClientHello (RFC 5246, section 7.4.1.2; RFC 8446, section 4.1.2) with one cipher suite.
fn client_hello(suite: [u8; 2], extensions: &[&[u8]]) -> Vec<u8> {
    let byte = |length: usize| u8::try_from(length).expect("a short message");
    let extensions = extensions.concat();
    let start = [[3, 3].as_slice(), &[9; 32], &[0], &[0, 2], &suite, &[1, 0]].concat();
    let body = [start, vec![0, byte(extensions.len())], extensions].concat();
    let message = [vec![1, 0, 0, byte(body.len())], body].concat();
    [vec![22, 3, 1, 0, byte(message.len())], message].concat()
}

#[tokio::test]
async fn a_client_with_certificates_is_refused() {
    let server = Server::start(patient()).await;
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("a version")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let refused = Client::connect(&server.address.to_string(), Arc::new(tls), AGES).await;
    assert!(matches!(refused, Err(ClientError::Handshake { .. })), "{refused:?}");
    server.until("refused", |counters| counters.refused_handshake.get() == 1).await;
}

#[tokio::test]
async fn a_server_proves_its_key_and_does_not_only_name_it() {
    // The handshake of a server that presents the expected key but signs with another.
    let impostor = ed25519_dalek::SigningKey::from_bytes(&[9; 32]);
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(crate::support::impostor(&impostor, public(SERVER))));
    let running = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.expect("a connection");
        acceptor.accept(stream).await.err().map(|error| error.to_string())
    });
    let refused = Client::connect(&address, tls(TEACHER), AGES).await;
    assert!(matches!(refused, Err(ClientError::WrongServer { .. })), "{refused:?}");
    assert!(running.await.expect("a server").is_some_and(|error| error.contains("DecryptError")));
}

#[tokio::test]
async fn a_client_proves_its_key_and_does_not_only_name_it() {
    let server = Server::start(patient()).await;
    let tls = crate::support::impostor_client(&key(STRANGER), public(TEACHER), public(SERVER));
    let connected = Client::connect(&server.address.to_string(), Arc::new(tls), AGES).await;
    let mut client = connected.expect("the client's part of the handshake");
    let refused = client.request(Method::GET, "/key", &[], Bytes::new(), 100).await;
    assert!(matches!(refused, Err(ClientError::Handshake { .. })), "{refused:?}");
    server.until("refused", |counters| counters.refused_handshake.get() == 1).await;
}

/// A ClientHello of version 1.3 that supports one group of key exchange and sends no share yet.
fn hello_with_group(group: u16) -> Vec<u8> {
    let [high, low] = group.to_be_bytes();
    let extensions: [&[u8]; 6] = [
        &[0, 10, 0, 4, 0, 2, high, low], // supported_groups
        &[0, 13, 0, 4, 0, 2, 8, 7],      // signature_algorithms: ed25519
        &[0, 43, 0, 3, 2, 3, 4],         // supported_versions: 1.3
        &[0, 51, 0, 2, 0, 0],            // key_share: none
        &[0, 19, 0, 2, 1, 2],            // client_certificate_type: raw public key
        &[0, 20, 0, 2, 1, 2],            // server_certificate_type: raw public key
    ];
    client_hello([0x13, 0x01], &extensions)
}

#[tokio::test]
async fn only_x25519_is_accepted_for_the_key_exchange() {
    let server = Server::start(patient()).await;
    let answer = async |group| {
        let mut stream = server.connect_tcp().await;
        stream.write_all(&hello_with_group(group)).await.expect("written");
        let mut answer = [0; 7];
        stream.read_exact(&mut answer).await.expect("an answer");
        answer
    };
    // X25519: a handshake message, which asks for the share.
    assert_eq!(answer(29).await[0], 22);
    // P-256, P-384, P-521, X448, X25519 with ML-KEM-768: a fatal alert "handshake_failure" (RFC 8446, section 6.2).
    for group in [23, 24, 25, 30, 4588] {
        assert_eq!(answer(group).await, [21, 3, 3, 0, 2, 2, 40], "group {group}");
    }
    // The client offers no other group either.
    let tls = tls(TEACHER);
    let groups: Vec<_> = tls.crypto_provider().kx_groups.iter().map(|group| group.name()).collect();
    assert_eq!(groups, [rustls::NamedGroup::X25519]);
}
