//! Server and clients on the loopback interface, with strangers among them.
//!
//! Every wait has a bound that a busy machine does not reach; no test expects that something is fast.

mod handshake;
mod limits;
mod requests;
mod support;
