//! The protocol through the public interface.

mod answers;
pub(crate) mod common;
mod empty_votes;
mod exactness;
mod messages;
mod one_teacher;
mod refusals;
mod state;
mod vectors;
