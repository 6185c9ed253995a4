//! Tests of requests, replies and the server's shutdown.

use std::time::Duration;

use bytes::Bytes;
use speed_round::network::transport::{Client, ClientError, ConnectionLimits, Method};

use crate::support::{AGES, LONG, Server, TEACHER, fetch, patient, tls};

#[tokio::test]
async fn a_long_body_arrives_whole() {
    let server = Server::start(patient()).await;
    let mut client = server.connect(TEACHER).await.expect("a connection");
    let length = 5 << 20;
    let reply = client.request(Method::POST, "/length", &[], vec![1; length].into(), 100).await.expect("a reply");
    assert_eq!(reply.body, length.to_string().as_bytes());
    let reply = fetch(&mut client, "/long").await.expect("a reply");
    assert!(reply.body == [7; LONG]);
    assert_eq!(reply.headers["content-length"], LONG.to_string());
    assert_eq!(fetch(&mut client, "/nowhere").await.expect("a reply").status, 404);
}

// On separate threads, client and server run concurrently, as on two machines.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_of_a_long_body_arrives_before_the_body_is_read() {
    let server = Server::start(patient()).await;
    let mut client = server.connect(TEACHER).await.expect("a connection");
    let body = Bytes::from(vec![1; 32 << 20]);
    let reply = client.request(Method::POST, "/refuse", &[], body, 100).await.expect("a reply");
    assert_eq!((reply.status, reply.body), (413, b"too long".to_vec()));
    server.expect_service().await;
}

#[tokio::test]
async fn a_longer_reply_than_expected_is_refused() {
    let server = Server::start(patient()).await;
    let mut client = server.connect(TEACHER).await.expect("a connection");
    let refused = client.request(Method::GET, "/long", &[], Bytes::new(), LONG - 1).await;
    assert!(matches!(refused, Err(ClientError::ReplyTooLong { max, .. }) if max == LONG - 1), "{refused:?}");
    let after = fetch(&mut client, "/key").await;
    assert!(matches!(after, Err(ClientError::BrokenOff { .. })), "the rest is not taken for a reply: {after:?}");
    server.expect_service().await;
}

#[tokio::test]
async fn an_invalid_request_is_not_sent() {
    let server = Server::start(patient()).await;
    let mut client = server.connect(TEACHER).await.expect("a connection");
    for (path, header) in
        [("key", ("x", "y")), ("/a b", ("x", "y")), ("/key", ("x y", "z")), ("/key", ("x", "y\r\nz: 1"))]
    {
        let headers = [(header.0, header.1.to_owned())];
        let refused = client.request(Method::GET, path, &headers, Bytes::new(), 100).await;
        assert!(matches!(refused, Err(ClientError::Request { .. })), "{path} {header:?}: {refused:?}");
    }
    fetch(&mut client, "/key").await.expect("the connection is as it was");
}

#[tokio::test]
async fn a_client_does_not_wait_for_ever() {
    let server = Server::start(patient()).await;
    let soon = Duration::from_millis(500);
    let address = server.address.to_string();
    let mut client = loop {
        // On a busy machine the handshake alone may take longer.
        match Client::connect(&address, tls(TEACHER), soon).await {
            Err(ClientError::Timeout { .. }) => {}
            connected => break connected.expect("a connection"),
        }
    };
    let late = fetch(&mut client, "/slow").await;
    assert!(matches!(late, Err(ClientError::Timeout { awaited: "reply", .. })), "{late:?}");
    drop(client);
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = silent.local_addr().expect("an address").to_string();
    let late = Client::connect(&address, tls(TEACHER), soon).await;
    assert!(matches!(late, Err(ClientError::Timeout { awaited: "connection", .. })), "{late:?}");
}

#[tokio::test]
async fn a_name_with_several_addresses_is_tried_to_the_end() {
    let server = Server::start(patient()).await;
    // On most machines `localhost` is also ::1, where no server listens.
    let address = format!("localhost:{}", server.address.port());
    let mut client = Client::connect(&address, tls(TEACHER), AGES).await.expect("a connection");
    fetch(&mut client, "/key").await.expect("a reply");
}

#[tokio::test]
async fn a_panicking_handler_takes_only_its_connection_along() {
    let server = Server::start(patient()).await;
    let broken = server.get(TEACHER, "/panic").await;
    assert!(matches!(broken, Err(ClientError::BrokenOff { .. })), "{broken:?}");
    server.until("closed", |counters| counters.open.get() == 0).await;
    server.expect_service().await;
}

#[tokio::test]
async fn a_stopping_server_lets_a_running_request_end() {
    let mut server = Server::start(patient()).await;
    let mut idle = server.connect(TEACHER).await.expect("a connection");
    fetch(&mut idle, "/key").await.expect("a reply");
    let stranger = server.connect_tcp().await;
    let mut client = server.connect(TEACHER).await.expect("a connection");
    let slow = tokio::spawn(async move { fetch(&mut client, "/slow").await });
    server.started.notified().await;
    server.stop.send(true).expect("a running server");
    server.until("down to the running request", |counters| counters.open.get() == 1).await;
    assert!(!server.running.is_finished());
    let refused = server.connect(TEACHER).await;
    assert!(matches!(refused, Err(ClientError::Connect { .. } | ClientError::BrokenOff { .. })), "{refused:?}");
    server.release.notify_one();
    assert_eq!(slow.await.expect("a client").expect("a reply").body, b"done");
    tokio::time::timeout(AGES, &mut server.running).await.expect("the server ends").expect("without a panic");
    assert_eq!(server.counters.open.get(), 0);
    drop(stranger);
}

#[tokio::test]
async fn a_stopping_server_waits_no_longer_than_the_grace() {
    let server = Server::start(ConnectionLimits { grace: Duration::from_millis(100), ..patient() }).await;
    let mut client = server.connect(TEACHER).await.expect("a connection");
    let slow = tokio::spawn(async move { fetch(&mut client, "/slow").await });
    server.started.notified().await;
    drop(server.stop);
    let cut = slow.await.expect("a client");
    assert!(matches!(cut, Err(ClientError::BrokenOff { .. })), "{cut:?}");
    tokio::time::timeout(AGES, server.running).await.expect("the server ends").expect("without a panic");
}
