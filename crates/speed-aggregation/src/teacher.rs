//! The teacher's role: encryption.

use speed_core::{EntropyError, Randomness};
use tfhe::core_crypto::commons::generators::NoiseRandomGenerator;
use tfhe::core_crypto::commons::math::random::DefaultRandomGenerator;
use tfhe::core_crypto::prelude::*;
use zeroize::Zeroizing;

use crate::encoding::{Encoding, EncodingError};
use crate::getters::messages_of;
use crate::keys::PublicKey;
use crate::message::Message;
use crate::random::seeder;
use crate::round::Round;

/// One teacher of a round, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Teacher {
    pub(crate) index: usize,
}

/// The reason why a teacher cannot answer: values that do not fit the round, a round without an exact encoding, or no
/// randomness. It names neither a value nor its query and class, because they are secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TeacherError(String);

messages_of!(TeacherError, TeacherError: EncodingError, EntropyError);

impl Teacher {
    /// Creates the teacher with this index, from 0.
    pub fn new(index: usize) -> Self {
        Self { index }
    }

    /// Encrypts `values` (queries x classes, row major: vote plus share of privacy noise, in votes) for the round. All values are
    /// packed into one message, 2048 values to a mask.
    ///
    /// # Errors
    /// If the teacher is not in the round, the shape is wrong, a value does not fit, the round has no exact encoding
    /// (the server could not compare its counts), or the operating system provides no randomness.
    pub fn answer(
        &self,
        key: &PublicKey,
        round: &Round,
        values: &[i64],
        randomness: &Randomness,
    ) -> Result<Message, TeacherError> {
        let encoding = Encoding::of_round(&key.parameters, round)?;
        let max = encoding.layout().max_share().cast_signed();
        self.check(round, values, (-max, max))?;
        let id = round.id(key.id());
        let mut seeder = seeder(randomness, "answer", self.index as u64, id.as_bytes())?;
        let mut generator = NoiseRandomGenerator::<DefaultRandomGenerator>::new(&mut seeder);
        // The container is wiped when it goes out of scope, because votes and noise are the teacher's secret.
        let encoded = Zeroizing::new(values.iter().map(|&value| encoding.layout().value(value)).collect::<Vec<u64>>());
        let mut list = LweCompactCiphertextList::new(
            0,
            key.parameters.big_dimension().to_lwe_size(),
            LweCiphertextCount(values.len()),
            CiphertextModulus::new_native(),
        );
        encrypt_lwe_compact_ciphertext_list_with_compact_public_key(
            &key.key,
            &mut list,
            &PlaintextList::from_container(encoded.as_slice()),
            key.parameters.glwe_noise(),
            key.parameters.glwe_noise(),
            &mut generator,
        );
        Ok(Message::new(key.id(), round, self.index, list))
    }

    /// Checks that the teacher is in the round and has a value for each query and class, all from `least` to
    /// `most`.
    pub(crate) fn check(&self, round: &Round, values: &[i64], (least, most): (i64, i64)) -> Result<(), TeacherError> {
        let (teachers, queries, classes) = (round.parties(), round.shape().queries(), round.shape().classes());
        if self.index >= teachers {
            let text = format!("teacher {} in a round of {teachers} teachers (counted from 0)", self.index);
            return Err(TeacherError(text));
        }
        if values.len() != round.values() {
            let text = format!("{} values, expected {queries} queries x {classes} classes", values.len());
            return Err(TeacherError(text));
        }
        if values.iter().any(|value| !(least..=most).contains(value)) {
            return Err(TeacherError(format!(
                "a value is not from {least} to {most} votes, the range of this round: its noise does not fit the round"
            )));
        }
        Ok(())
    }
}
