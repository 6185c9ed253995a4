//! The program as a user runs it, and the documents that describe it.

mod cli;
mod docs;
mod snapshots;
