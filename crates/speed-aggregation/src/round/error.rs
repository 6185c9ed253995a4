//! Errors in a round's terms.

use speed_core::ShapeError;
use speed_mechanism::MechanismError;

use crate::getters::messages_of;

/// The reason why terms do not define a round, with the found and the expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RoundError(pub(super) String);

messages_of!(RoundError, RoundError: ShapeError = "a round of ", MechanismError);
