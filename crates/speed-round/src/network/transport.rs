//! HTTP/1.1 between the parties of a round, over mutual TLS 1.3 with the keys of their roster.
//!
//! Every party is identified by an Ed25519 public key. In the handshake both sides prove that they hold theirs, as raw
//! public keys (RFC 7250), without certificates, authorities, host names or expiry dates. A server accepts only the
//! keys of its roster ([`server_config`]); a client connects to one server ([`client_config`]). Resumption and early
//! data are disabled, so every connection proves both keys.
//!
//! [`serve`] runs an [`axum::Router`] within [`ConnectionLimits`] and adds the [`PeerKey`] of the client to each
//! request. [`Client`] sends requests and reports which of the two sides is not the expected one ([`ClientError`]).

mod client;
mod error;
mod limits;
mod listener;
mod proxy;
mod slots;
mod tls;

pub use client::{Client, Reply};
pub use error::ClientError;
pub use hyper::{HeaderMap, Method};
pub use limits::{ConnectionLimits, Counters, Gauge};
pub use listener::serve;
pub(crate) use slots::{Evicted, Place, Strangers};
pub use tls::{PeerKey, client_config, server_config};
