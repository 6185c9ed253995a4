//! The three roles of a labelling round as programs that exchange files, by courier or over a [`network`].
//!
//! Each party uses the module of its role: the student announces a round and decrypts its labels, a teacher answers
//! with one encrypted message, and the server computes the winners.
//!
//! | role | reads | writes |
//! |---|---|---|
//! | [`student`](mod@student) | results, with its secret key | keys, the round's file, labels |
//! | [`teacher`] | public key, round, its own votes | one message |
//! | [`server`] | evaluation key, round, a directory of messages | the result |
//! | [`opener`], a teacher in a joint opening | its share of the secret key, the result | its part of the result |
//!
//! All parties agree on a [`RoundFile`]; its id binds every message to it. docs/protocol.md specifies the files byte by
//! byte, and docs/threat-models.md describes the protection of each command and against whom it holds.
//!
//! # Features
//! | feature | default | gives |
//! |---|---|---|
//! | `student` | yes | the student's program and the secret key's type |
//!
//! Without the feature `student`, the type of a secret key does not exist in this crate or in `speed-aggregation`, so a
//! teacher or a server that is built without it cannot name the type.
//!
//! The same line compiles with the feature and fails to compile without it:
#![cfg_attr(feature = "student", doc = "```\nuse speed_aggregation::SecretKey;\n```")]
#![cfg_attr(not(feature = "student"), doc = "```compile_fail,E0432\nuse speed_aggregation::SecretKey;\n```")]

#[cfg(feature = "student")]
pub mod bundle;
mod checks;
mod error;
mod file_kind;
mod files;
mod identity;
mod key_bits;
#[cfg(feature = "student")]
mod key_use;
#[cfg(feature = "student")]
mod known_answers;
mod log_check;
mod log_form;
pub mod network;
pub mod opener;
mod party_key;
mod price;
mod proofs;
mod randomness;
mod refusal;
mod registry;
mod roster;
mod round_file;
pub mod server;
mod simulated_keys;
#[cfg(feature = "student")]
pub mod student;
pub mod teacher;
mod terms;

pub use error::Refused;
pub use files::{hash_file, hash_query_list, write_once};
pub use identity::{Identity, IdentityReport, generate_party};
pub use log_check::{LogCheckOptions, LogCheckReport, check_log};
pub use party_key::PartyKey;
pub use price::{LedgerOptions, RoundAccounts, RoundPrice, default_ledger};
pub use proofs::Influence;
pub use randomness::RoundRandomness;
pub use registry::{RoundRegistry, default_registry};
pub use roster::{Party, Role, Roster};
pub use round_file::RoundFile;
pub use terms::Terms;
