//! The keys of teachers and server. The student's secret key is in [`crate::student`], behind a separate feature.

mod evaluation;
mod public;
mod seeded;

pub(crate) use evaluation::EvaluationParts;
#[cfg(feature = "student")]
pub(crate) use evaluation::SeededParts;
pub use evaluation::{EvaluationKey, SeededEvaluationKey};
pub use public::PublicKey;
#[cfg(feature = "student")]
pub(crate) use public::mask;
pub(crate) use seeded::{Seeded, trace_rotations};
