//! The binary as a user runs it.

mod bad_input;
mod common;
mod privacy;
mod resume;
