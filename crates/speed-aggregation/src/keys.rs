//! The keys of teachers and server, and the id of the key set that they belong to. The student's secret key exists only
//! with the feature `student`.

mod evaluation;
mod public;
mod seeded;
mod stream;

pub(crate) use evaluation::EvaluationParts;
#[cfg(feature = "student")]
pub(crate) use evaluation::SeededParts;
pub use evaluation::{EvaluationKey, SeededEvaluationKey};
pub use public::PublicKey;
#[cfg(feature = "student")]
pub(crate) use public::mask;
pub(crate) use seeded::{Rounded, Seeded, trace_rotations};
pub(crate) use stream::Stream;

pub use crate::ids::KeyId;
