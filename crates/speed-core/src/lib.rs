//! The vocabulary that all crates of SPEED share, from the command line to the bytes on the wire.
//!
//! Its three main uses:
//! - hold the votes of an ensemble, checked against their shape, and count them ([`Votes`], [`VoteCounts`]);
//! - draw reproducible random numbers from a named stream for each purpose ([`random::Streams`]);
//! - read untrusted text, names and arrays ([`decode_text`], [`printable`], [`did_you_mean`], [`npy`]).
//!
//! | type | concept |
//! |---|---|
//! | [`VoteShape`] | teachers, queries and classes: the shape of everything that is voted on |
//! | [`Classes`] | the names of a round's classes, or the numbers themselves |
//! | [`Votes`], [`VoteCounts`] | one vote per teacher and query, a label or empty; one histogram per query |
//! | [`group_answer`] | the answer to a group of images, from a vote on each |
//! | [`Randomness`] | the origin of keys and noise, and so whether a run is a simulation |
//! | [`random`] | named, seeded streams for all other randomness of an experiment |
//! | [`NoisePlacement`] | noise in shares of the teachers, or all from the server |
//! | [`Circuit`] | the argmax circuit on ciphertexts |
//! | [`Digest`] | a SHA-256 value as bytes and as text |
//! | [`printable`] | untrusted text, escaped for terminal output |
//! | [`read_regular`] | an untrusted file: regular, and of limited length |
//! | [`decode_text`] | a text file without the byte order mark that an editor may add |
//! | [`npy`] | arrays of integers from untrusted `.npy` files |
//! | [`vote_files`] | users' files of votes and lists of queries |
//! | [`alike`] | names that people may take for one another |
//! | [`ExitCode`] | the exit codes of the programs, with their meaning |
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod alike;
mod circuit;
mod classes;
mod counts;
mod digest;
mod error;
mod exit_code;
#[doc(hidden)]
pub mod fixture;
mod getters;
mod name;
pub mod npy;
mod placement;
mod printable;
pub mod random;
mod randomness;
mod regular_file;
mod shape;
mod system_error;
mod text;
pub mod vote_files;
mod votes;

pub use alike::{alike, composed, is_assigned};
pub use circuit::Circuit;
pub use classes::{Classes, ClassesError, class_list};
pub use counts::{VoteCounts, most_frequent};
pub use digest::{Digest, DigestError};
pub use error::VotesError;
pub use exit_code::ExitCode;
pub use name::{NameError, did_you_mean, nearest};
pub use placement::NoisePlacement;
pub use printable::{is_legible, moves_the_cursor, printable, printable_path};
pub use randomness::{EntropyError, Randomness, RandomnessKind, derive_key};
pub use regular_file::{open_regular, read_limited, read_regular};
pub use shape::{ShapeError, VoteShape};
pub use system_error::without_path;
pub use text::{TextError, decode_text, without_joined_marks};
pub use votes::{Vote, Votes, group_answer};
