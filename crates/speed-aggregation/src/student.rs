//! The student's side: the secret key, the generation of all keys, and the opening of answers.
//!
//! Only this module contains the type of the secret key, and it exists only with the feature `student`: a teacher or a
//! server built without the feature has neither the type nor any code that could use a secret key.

mod generate;
mod secret_key;

#[cfg(test)]
pub(crate) use generate::small_key;
pub use generate::{KeySet, generate_keys};
pub use secret_key::SecretKey;
