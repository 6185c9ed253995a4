//! A client of a server that answers with a receipt of another message.

use std::collections::HashSet;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;
use crate::network::client::{ClientOptions, send};
use crate::network::transport::{ConnectionLimits, serve, server_config};

/// Starts a server that answers every message with this receipt, and returns its address. It runs as long as the sender exists.
async fn answering(office: &Office, receipt: Bytes) -> (String, watch::Sender<bool>) {
    let (whole, from) = (async move |_: Bytes| (StatusCode::CREATED, receipt), HashSet::from([office.key("north").0]));
    let app = Router::new()
        .route("/v3/round", get(round))
        .route("/v3/messages/{sha256}", put(whole).get(async || at(StatusCode::OK, 0)))
        .with_state(office.served.clone());
    serving(office, &from, app).await
}

/// Serves these routes to the keys `from`, and returns the address.
async fn serving(office: &Office, from: &HashSet<[u8; 32]>, app: Router) -> (String, watch::Sender<bool>) {
    let tls = server_config(office.served.server.identity().signing_key(), from).expect("a configuration");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(serve(listener, Arc::new(tls), ConnectionLimits::default(), app, stopped, Arc::default()));
    (address, stop)
}

#[tokio::test]
async fn a_client_refuses_and_does_not_write_a_receipt_of_another_message() {
    let office = Office::open(patient());
    let (north, first) = (office.key("north"), office.message("north"));
    office.message_of(Answer { votes: "0\n", registry: "second", ..NORTH });
    let (status, receipt) = office.put(north, Digest::of(&first), (first.len(), 0), first.into()).await;
    assert_eq!(status, StatusCode::CREATED);
    let (server, _running) = answering(&office, receipt.clone()).await;
    let path = |name: &str| office.folder.path().join(name);
    let sent = async |registry: &str| {
        let patience = Duration::from_secs(60);
        let (signing_key, round) = (path("north.key"), path("round.toml"));
        let options = ClientOptions { signing_key, round, server: server.clone(), patience };
        let message = path(&format!("north to round.toml by {registry}"));
        let out = path("receipt");
        tokio::task::spawn_blocking(move || send(&options, &message, &out)).await.expect("no panic")
    };
    let error = sent("second").await.expect_err("a receipt of the first message");
    assert!(error.exit_code().code() == 3 && error.to_string().contains("belongs to another message"), "{error}");
    assert!(!path("receipt").exists());
    sent("registry").await.expect("its receipt");
    assert_eq!(std::fs::read(path("receipt")).expect("a receipt"), receipt);
}

/// On commit b3db769 a client talked for ever to a server whose offsets went up and down.
#[tokio::test]
async fn a_server_that_counts_the_same_bytes_again_holds_no_client() {
    let office = Office::open(patient());
    let from = HashSet::from([office.key("north").0]);
    office.message("north");
    let turns = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = turns.clone();
    let up_and_down = async move |_: Bytes| {
        let turn = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        at(StatusCode::CONFLICT, [5, 10][turn % 2])
    };
    let app = Router::new()
        .route("/v3/round", get(round))
        .route("/v3/messages/{sha256}", put(up_and_down).get(async || at(StatusCode::OK, 0)))
        .with_state(office.served.clone());
    let (server, _running) = serving(&office, &from, app).await;
    let path = |name: &str| office.folder.path().join(name);
    let options = ClientOptions {
        signing_key: path("north.key"),
        round: path("round.toml"),
        server,
        patience: Duration::from_secs(60),
    };
    let (message, out) = (path("north to round.toml by registry"), path("receipt"));
    let sent = tokio::task::spawn_blocking(move || send(&options, &message, &out)).await.expect("no panic");
    let error = sent.expect_err("no progress").to_string();
    assert!(error.contains("returns an invalid progress"), "{error}");
    assert!(turns.load(std::sync::atomic::Ordering::Relaxed) < 20);
}
