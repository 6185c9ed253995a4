//! Tests with too many, too slow and too old connections.

use std::time::Duration;

use rustls::pki_types::ServerName;
use speed_round::network::transport::{ClientError, ConnectionLimits};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::support::{OTHER_TEACHER, Server, TEACHER, fetch, patient, read_to_end, tls};

/// A short time, long enough that only events that depend on it are expected after it.
const SOON: Duration = Duration::from_millis(300);

#[tokio::test]
async fn half_a_client_hello_is_cut() {
    let server = Server::start(ConnectionLimits { handshake_timeout: SOON, ..patient() }).await;
    let silent = server.connect_tcp().await;
    let mut half = server.connect_tcp().await;
    // The start of a record of 512 bytes with a ClientHello (RFC 8446, sections 4 and 5.1).
    half.write_all(&[22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]).await.expect("written");
    assert_eq!(read_to_end(half).await, b"");
    assert_eq!(read_to_end(silent).await, b"");
    server.until("refused", |counters| counters.refused_handshake.get() == 2 && counters.open.get() == 0).await;
    assert_eq!(server.counters.refused_busy.get(), 0);
}

#[tokio::test]
async fn half_a_head_is_cut_and_so_is_silence() {
    let server = Server::start(ConnectionLimits { header_timeout: SOON, ..patient() }).await;
    let silent = server.connect_tls(TEACHER).await;
    let mut half = server.connect_tls(TEACHER).await;
    half.write_all(b"GET /key HTTP/1.1\r\nHost: ").await.expect("written");
    let mut kept = loop {
        let mut client = server.connect(TEACHER).await.expect("a connection");
        // On a busy machine the request may be too late.
        if fetch(&mut client, "/key").await.is_ok() {
            break client;
        }
    };
    assert_eq!(read_to_end(half).await, b"");
    assert_eq!(read_to_end(silent).await, b"");
    server.until("closed", |counters| counters.open.get() == 0).await;
    let late = fetch(&mut kept, "/key").await;
    assert!(matches!(late, Err(ClientError::BrokenOff { .. })), "{late:?}");
}

#[tokio::test]
async fn a_head_with_too_much_in_it_is_refused() {
    let server = Server::start(patient()).await;
    let many: String = (0..65).map(|header| format!("x{header}: y\r\n")).collect();
    let long = format!("x: {}\r\n", "y".repeat(20 << 10));
    for headers in [many, long] {
        let mut stream = server.connect_tls(TEACHER).await;
        stream.write_all(format!("GET /key HTTP/1.1\r\nHost: x\r\n{headers}\r\n").as_bytes()).await.expect("written");
        let answer = String::from_utf8(read_to_end(stream).await).expect("text");
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
}

#[tokio::test]
async fn one_peer_has_so_many_connections_and_others_get_through() {
    let server = Server::start(ConnectionLimits { connections_per_peer: 2, ..patient() }).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut client = server.connect(TEACHER).await.expect("a connection");
        fetch(&mut client, "/key").await.expect("a reply");
        held.push(client);
    }
    let refused = server.get(TEACHER, "/key").await;
    assert!(matches!(refused, Err(ClientError::BrokenOff { .. })), "{refused:?}");
    assert_eq!(server.counters.refused_busy.get(), 1);
    server.expect_service().await;
    held.pop();
    server.until("closed", |counters| counters.open.get() <= 1).await;
    server.get(TEACHER, "/key").await.expect("a reply");
}

#[tokio::test]
async fn strangers_hold_no_more_than_the_handshakes() {
    let server = Server::start(ConnectionLimits { handshakes: 3, ..patient() }).await;
    let mut peer = server.connect(TEACHER).await.expect("a connection");
    fetch(&mut peer, "/key").await.expect("a reply");
    let mut strangers = Vec::new();
    for _ in 0..3 {
        strangers.push(server.connect_tcp().await);
    }
    server.until("admitted", |counters| counters.open.get() == 4).await;
    // One of them goes for a newer one.
    let newest = server.connect_tcp().await;
    server.until("dropped", |counters| counters.refused_busy.get() == 1).await;
    let mut gone = 0;
    for stranger in &mut strangers {
        // The end without a byte.
        let end = timeout(Duration::from_millis(200), stranger.read_u8()).await;
        assert!(!matches!(end, Ok(Ok(_))), "{end:?}");
        gone += usize::from(end.is_ok());
    }
    assert_eq!((gone, server.counters.open.get()), (1, 4));
    fetch(&mut peer, "/key").await.expect("a reply: who is through is not concerned");
    drop(newest);
    server.until("closed", |counters| counters.open.get() == 3).await;
    server.expect_service().await;
}

#[tokio::test]
async fn a_proxy_says_whose_connection_it_is() {
    let limits = ConnectionLimits { proxy: Some([127, 0, 0, 1].into()), ..patient() };
    let server = Server::start(limits).await;
    let from = async |last: u8, party: u8| {
        let mut stream = server.connect_tcp().await;
        let header = [b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".as_slice(), &[192, 0, 2, last, 192, 0, 2, 1, 0, 1, 0, 2]];
        stream.write_all(&header.concat()).await.expect("sent");
        TlsConnector::from(tls(party)).connect(ServerName::from(server.address.ip()), stream).await
    };
    from(7, TEACHER).await.expect("a handshake");
    // A connection without the header is refused before its handshake.
    let refused = server.connect(TEACHER).await;
    assert!(refused.is_err());
    assert_eq!(server.counters.refused_handshake.get(), 1);
    from(8, OTHER_TEACHER).await.expect("a handshake");
}

#[tokio::test]
async fn the_total_of_all_peers_holds() {
    let server = Server::start(ConnectionLimits { connections: 1, ..patient() }).await;
    let mut peer = server.connect(TEACHER).await.expect("a connection");
    fetch(&mut peer, "/key").await.expect("a reply");
    let refused = server.get(OTHER_TEACHER, "/key").await;
    assert!(matches!(refused, Err(ClientError::BrokenOff { .. })), "{refused:?}");
    assert_eq!((server.counters.accepted.get(), server.counters.refused_busy.get()), (2, 1));
    drop(peer);
    server.until("closed", |counters| counters.open.get() == 0).await;
    server.expect_service().await;
}

#[tokio::test]
async fn an_old_connection_takes_no_further_request() {
    let server = Server::start(ConnectionLimits { age: SOON, ..patient() }).await;
    let slow = loop {
        let mut client = server.connect(TEACHER).await.expect("a connection");
        let mut slow = tokio::spawn(async move { (fetch(&mut client, "/slow").await, client) });
        tokio::select! {
            () = server.started.notified() => break slow,
            // On a busy machine the request may be too late.
            _ = &mut slow => {}
        }
    };
    tokio::time::sleep(2 * SOON).await;
    server.release.notify_one();
    let (reply, mut client) = slow.await.expect("a client");
    assert_eq!(reply.expect("the running request ends").body, b"done");
    server.until("closed", |counters| counters.open.get() == 0).await;
    let late = fetch(&mut client, "/key").await;
    assert!(matches!(late, Err(ClientError::BrokenOff { .. })), "{late:?}");
}

#[tokio::test]
async fn an_old_connection_is_cut_after_the_grace() {
    let server = Server::start(ConnectionLimits { age: SOON, grace: SOON, ..patient() }).await;
    // On a busy machine the request may be too late; one of a hundred is not.
    let mut cut = server.get(TEACHER, "/slow").await;
    for _ in 0..100 {
        if matches!(cut, Err(ClientError::BrokenOff { .. })) {
            break;
        }
        cut = server.get(TEACHER, "/slow").await;
    }
    assert!(matches!(cut, Err(ClientError::BrokenOff { .. })), "{cut:?}");
    server.until("closed", |counters| counters.open.get() == 0).await;
}
