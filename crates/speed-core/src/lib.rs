//! The vocabulary that all crates of SPEED share, from the command line to the bytes on the wire.
//!
//! Its three main uses:
//! - hold the votes of an ensemble, checked against their shape, and count them ([`Votes`]);
//! - draw reproducible random numbers from a named stream for each purpose ([`random::Streams`]);
//! - read untrusted text, names and arrays ([`decode_text`], [`printable`], [`did_you_mean`], [`npy`]).
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod alike;
mod circuit;
mod classes;
mod digest;
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
pub use digest::{Digest, DigestError};
pub use exit_code::ExitCode;
pub use name::{NameError, did_you_mean, nearest};
pub use placement::NoisePlacement;
pub use printable::{is_legible, moves_the_cursor, printable, printable_path};
pub use randomness::{EntropyError, Randomness, RandomnessKind, derive_key};
pub use regular_file::{open_regular, read_limited, read_regular};
pub use shape::{ShapeError, VoteShape};
pub use system_error::without_path;
pub use text::{TextError, decode_text, without_joined_marks};
pub use votes::{Vote, Votes, VotesError, group_answer, most_frequent};

/// Returns whether a setting has its default value, so it need not be written.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
