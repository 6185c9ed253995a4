//! Private aggregation (the paper's section on homomorphic aggregation): teachers vote with noise, a server computes
//! sum and argmax on ciphertexts, and only a student sees the winning labels.
//!
//! Its three main uses:
//! - run the complete protocol in one process, on ciphertexts ([`Encrypted`]) or in clear text ([`ClearText`]);
//! - build a party's program from the type of its role ([`Teacher`], [`Server`], [`SecretKey`]);
//! - compute whether the argmax of a round is exact, and at which cost ([`encoding`], [`cost`]).
//!
//! | role | holds | does |
//! |---|---|---|
//! | student | [`SecretKey`] | generates keys, [opens](SecretKey::open) answers |
//! | [`Teacher`] | [`PublicKey`] | encrypts its values for a [`Round`] into one [`Message`] |
//! | [`Server`] | [`EvaluationKey`] | adds messages, computes the argmax, sends [`EncryptedAnswer`]s |
//!
//! The keys have different types, so a secret key cannot be passed to the server. The argmax is exact, with a failure
//! probability below 2^-128 per query ([`Encoding::guarantee`]), if the counts stay in their
//! [`VoteRange`](encoding::VoteRange); a round that cannot meet this bound is refused. Ties go to the lowest class.
//!
//! [`Encrypted`] computes the same labels as the reference [`ClearText`], on ciphertexts:
//!
//! ```no_run
//! use speed_aggregation::{Aggregator, Encrypted, NoisyVotes, Parameters};
//! use speed_core::{Randomness, VoteShape};
//!
//! let votes = NoisyVotes::new(VoteShape::new(2, 1, 3)?, 0, vec![0, 1, 0, 0, 1, 0])?;
//! let threads = std::thread::available_parallelism()?;
//! let encrypted = Encrypted::new(&Parameters::TOURNAMENT_128, Randomness::OperatingSystem, b"run 1", threads)?;
//! let result = encrypted.aggregate(&votes, &|query, time| eprintln!("query {query}: {time:?}"))?;
//! assert_eq!(result.labels(), [Some(1)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! | feature | default | gives |
//! |---|---|---|
//! | `student` | yes | the secret key, key generation, opening, the complete protocol in one process, the paper's circuit |
//! | `proofs` | no | zero-knowledge proofs that a teacher's message is well formed |
//!
//! # Modules
//! The root has the roles, the round and its messages. [`protocol`] has the other values that parties exchange, [`log`]
//! the server's signed log, [`keys`] the transmitted keys, `proofs` the zero-knowledge proofs, and [`error`] all errors.
//!
//! The cryptography is TFHE (<https://eprint.iacr.org/2018/421>) through `tfhe::core_crypto`.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod aggregator;
mod answer;
mod answer_seed;
mod ciphertext_noise;
mod circuit;
mod codec;
pub mod encoding;
#[cfg(feature = "student")]
mod encrypted;
mod exact_circuit;
mod getters;
mod ids;
mod joint;
pub mod keys;
mod layout;
mod message;
mod outcome;
#[cfg(feature = "student")]
pub mod paper;
mod parameters;
mod privacy_noise;
mod processor_time;
#[cfg(feature = "proofs")]
mod proof;
#[cfg(all(test, feature = "student"))]
mod properties;
mod random;
mod range;
mod round;
mod round_log;
mod scales;
mod server;
mod signature;
mod status;
#[cfg(feature = "student")]
mod student;
mod submission;
mod teacher;
mod threads;
mod values;
mod verification;
mod votes;

pub use aggregator::{Aggregated, Aggregator, ClearText};
pub use answer::EncryptedAnswer;
pub use encoding::Encoding;
#[cfg(feature = "student")]
pub use encrypted::{Encrypted, OnOutcomes};
pub use joint::OpenerShare;
#[cfg(feature = "student")]
pub use joint::StudentShare;
pub use keys::{EvaluationKey, PublicKey};
pub use message::Message;
pub use outcome::{Outcome, Outcomes};
pub use parameters::Parameters;
pub use privacy_noise::{PRIVACY_NOISE_RANGE_FAILURE, PrivacyNoise, PrivacyNoiseShare};
pub use round::{Round, RoundKind, RoundSpec};
pub use server::Server;
#[cfg(feature = "student")]
pub use student::{KeySet, SecretKey, generate_keys};
pub use teacher::Teacher;
pub use values::{check_values, party_values, teacher_values};
pub use votes::NoisyVotes;

/// The cost of an argmax: counted operations and the processor's time.
pub mod cost {
    pub use crate::circuit::{Operations, Work};
    pub use crate::processor_time::{Clock, processor_time};
}

/// The errors of all roles.
pub mod error {
    pub use crate::aggregator::AggregationError;
    pub use crate::answer::AnswerListError;
    pub use crate::answer::OpenError;
    pub use crate::codec::DecodeError;
    pub use crate::encoding::EncodingError;
    pub use crate::exact_circuit::InexactCircuit;
    pub use crate::joint::PartError;
    pub use crate::privacy_noise::PrivacyNoiseError;
    #[cfg(feature = "proofs")]
    pub use crate::proof::ProofError;
    pub use crate::range::RangeError;
    pub use crate::round::RoundError;
    pub use crate::server::ServerError;
    pub use crate::teacher::TeacherError;
    pub use crate::threads::ThreadsError;
    pub use crate::votes::VotesError;
}

/// The server's signed log of a round: each message in order of arrival, and the receipts that teachers get.
pub mod log {
    pub use crate::round_log::{LogEntry, LogEvent, LogHead, Receipt, RoundLog};
}

/// Zero-knowledge proofs that a message is well formed (feature `proofs`).
#[cfg(feature = "proofs")]
pub mod proofs {
    pub use crate::proof::{ProofKey, Proofs};
}

/// The values that parties exchange besides a [`Message`] and an [`EncryptedAnswer`], as docs/protocol.md specifies
/// them.
pub mod protocol {
    pub use crate::answer::AnswerList;
    pub use crate::answer_seed::AnswerSeed;
    pub use crate::codec::file_kind;
    pub use crate::exact_circuit::ExactCircuit;
    pub use crate::ids::RoundId;
    pub use crate::joint::OpeningPart;
    pub use crate::signature::Signature;
    pub use crate::status::TeacherStatus;
    pub use crate::submission::{SignedResult, Submission};
    pub use crate::verification::{RevealedSeed, Verification};
}
