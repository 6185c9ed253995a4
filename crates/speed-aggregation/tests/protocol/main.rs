//! The protocol through the public interface.

mod answers;
mod common;
mod exactness;
mod messages;
mod refusals;
mod state;
mod vectors;
