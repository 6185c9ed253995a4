//! Server and clients on the loopback interface, with strangers among them.
//!
//! Every wait has a bound that even a busy machine does not reach; no test depends on speed.

mod handshake;
mod limits;
mod requests;
mod support;
