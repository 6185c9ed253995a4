//! Joint opening: the secret key is the sum of a student's and an opener's share, and both are needed to open an answer.

mod part;
mod share;

pub use part::{OpeningPart, PartError};
pub use share::OpenerShare;
#[cfg(feature = "student")]
pub use share::StudentShare;

#[cfg(all(test, feature = "student"))]
mod tests;
