//! A client of a server that answers with a receipt of another message.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use axum::routing::MethodRouter;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;
use crate::Refused;
use crate::network::client::{ClientOptions, SendReport, send};
use crate::network::transport::{ConnectionLimits, serve, server_config};

/// Serves a round whose server answers uploads in its own way, and returns its address. It runs as long as the sender exists.
async fn serving(office: &Office, uploads: MethodRouter<Arc<ServedRound>>) -> (String, watch::Sender<bool>) {
    let app = Router::new()
        .route("/v3/round", get(round))
        .route("/v3/messages/{sha256}", uploads.get(async || at(StatusCode::OK, 0)))
        .with_state(office.served.clone());
    let from = HashSet::from([office.key("north").0]);
    let tls = server_config(office.served.server.identity.signing_key(), &from).expect("a configuration");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(serve(listener, Arc::new(tls), ConnectionLimits::default(), app, stopped, Arc::default()));
    (address, stop)
}

/// Sends north's message of a registry.
async fn sent(office: &Office, server: &str, registry: &str) -> Result<SendReport, Refused> {
    let path = |name: &str| office.folder.path().join(name);
    let (signing_key, round) = (path("north.key"), path("round.toml"));
    let options = ClientOptions { signing_key, round, server: server.to_owned(), patience: Duration::from_secs(60) };
    let (message, out) = (path(&format!("north to round.toml by {registry}")), path("receipt"));
    tokio::task::spawn_blocking(move || send(&options, &message, &out)).await.expect("no panic")
}

#[tokio::test]
async fn a_client_refuses_and_does_not_write_a_receipt_of_another_message() {
    let office = Office::open(patient());
    let (north, first) = (office.key("north"), office.message("north"));
    office.message_of(Answer { votes: "0\n", registry: "second", ..NORTH });
    let (status, receipt) = office.put(north, Digest::of(&first), (first.len(), 0), first.into()).await;
    assert_eq!(status, StatusCode::CREATED);
    let of_first = receipt.clone();
    let (server, _running) = serving(&office, put(async move |_: Bytes| (StatusCode::CREATED, of_first))).await;
    let error = sent(&office, &server, "second").await.expect_err("a receipt of the first message");
    assert!(error.exit_code().code() == 3 && error.to_string().contains("belongs to another message"), "{error}");
    let out = office.folder.path().join("receipt");
    assert!(!out.exists());
    sent(&office, &server, "registry").await.expect("its receipt");
    assert_eq!(std::fs::read(out).expect("a receipt"), receipt);
}

#[tokio::test]
async fn a_server_that_counts_the_same_bytes_again_holds_no_client() {
    let office = Office::open(patient());
    office.message("north");
    let turns = Arc::new(AtomicUsize::new(0));
    let count = turns.clone();
    let up_and_down = async move |_: Bytes| at(StatusCode::CONFLICT, [5, 10][count.fetch_add(1, Relaxed) % 2]);
    let (server, _running) = serving(&office, put(up_and_down)).await;
    let error = sent(&office, &server, "registry").await.expect_err("no progress").to_string();
    assert!(error.contains("returns an invalid progress"), "{error}");
    assert!(turns.load(Relaxed) < 20);
}
