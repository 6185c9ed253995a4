//! HTTP/1.1 between the parties of a round, over mutual TLS 1.3 with the keys of their roster.
//!
//! Every party is identified by an Ed25519 public key. In the handshake both sides prove that they hold theirs, as raw
//! public keys (RFC 7250), without certificates, authorities, host names or expiry dates. A server accepts only the
//! keys of its roster ([`server_config`]); a client connects to one server ([`client_config`]). Resumption and early
//! data are disabled, so every connection proves both keys.
//!
//! [`serve`] runs an [`axum::Router`] within [`ConnectionLimits`] and adds the [`PeerKey`] of the client to each
//! request. [`Client`] sends requests and reports which of the two sides is not the expected one ([`ClientError`]).
//!
//! ```
//! use std::collections::HashSet;
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use axum::{Extension, Router, routing::get};
//! use ed25519_dalek::SigningKey;
//! use speed_round::network::transport::{Client, ConnectionLimits, Counters, Method, PeerKey, client_config, serve, server_config};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let (server, teacher) = (SigningKey::from_bytes(&[1; 32]), SigningKey::from_bytes(&[2; 32]));
//! let app = Router::new().route("/who", get(async |Extension(peer): Extension<PeerKey>| peer.to_string()));
//! let tls = server_config(&server, &HashSet::from([teacher.verifying_key().to_bytes()]))?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let address = listener.local_addr()?.to_string();
//! let (stop, stopped) = tokio::sync::watch::channel(false);
//! let counters = Arc::new(Counters::default());
//! let running = tokio::spawn(serve(listener, tls.into(), ConnectionLimits::default(), app, stopped, counters));
//!
//! let tls = client_config(&teacher, server.verifying_key().to_bytes())?;
//! let mut client = Client::connect(&address, tls.into(), Duration::from_secs(30)).await?;
//! let reply = client.request(Method::GET, "/who", &[], Default::default(), 100).await?;
//! assert_eq!(reply.body, b"8139770ea87d175f");
//!
//! stop.send(true)?;
//! running.await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod client;
mod error;
mod key;
mod limits;
mod listener;
mod proxy;
mod slots;
mod strangers;
mod tls;
mod verifier;

pub use client::{Client, Reply};
pub use error::ClientError;
pub use hyper::{HeaderMap, Method};
pub use key::{PeerKey, peer_key};
pub use limits::{ConnectionLimits, Counters};
pub use listener::serve;
pub(crate) use strangers::{Evicted, Place, Strangers};
pub use tls::{TlsError, client_config, server_config};
