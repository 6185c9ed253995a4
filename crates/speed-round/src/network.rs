//! Labelling rounds over HTTP and mutual TLS 1.3.
//!
//! Its three main uses:
//! - run the server of one round, from the first message to the result ([`serve`]);
//! - upload a teacher's message, and get a signed receipt ([`send`]);
//! - download the student's result ([`fetch`]) or, as any party, the signed log ([`fetch_log`]).
//!
//! Both sides of a connection ([`transport`]) present their Ed25519 keys as raw public keys (RFC 7250) and check
//! them against the round's roster. There is no certificate authority, and host names are not verified. Files are the
//! other transport, with the same checks: [`crate::server::aggregate`].
//!
//! docs/protocol.md describes every request, and docs/threat-models.md the protection against each kind of adversary.

mod client;
mod error;
mod keeper;
mod limits;
mod metrics;
mod monitoring;
mod refused;
mod routes;
mod serve;
mod served_round;
mod stage;
pub mod transport;
mod uploads;

pub use client::{ClientOptions, FetchReport, SendReport, connect, fetch, fetch_log, send};
pub use limits::{Limits, MinimumRate};
pub use serve::{ServeOptions, ServeProgress, ServeReport, ends_by_itself, serve};
