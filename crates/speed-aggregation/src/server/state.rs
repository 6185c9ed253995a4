//! The state of a server whose sum is closed, so that it can be interrupted.

use tfhe::core_crypto::prelude::*;

use super::{Server, ServerError};
use crate::codec::{ENVELOPE, Kind, Reader, Writer};
use crate::keys::{EvaluationKey, KeyId};
use crate::round::{Round, RoundId};
use crate::status::TeacherStatus;

/// Bytes between the envelope and the statuses.
const FIXED: usize = 76;

impl Server {
    /// The closed sum and the teachers' statuses, with which [`Self::resume`] goes on. The sum is encrypted; with central
    /// noise the noise is in it, so that a resumed server does not draw it again.
    ///
    /// Content (after the envelope of 12 bytes, before the checksum of 16):
    ///
    /// ```text
    /// bytes  content
    /// 32     key id
    /// 32     round id
    /// 4      teachers n
    /// 4      queries
    /// 4      classes
    /// n      one status a teacher
    /// ..     masks and bodies of the sum, as in a message
    /// ```
    ///
    /// # Errors
    /// If the sum is not closed.
    pub fn state(&self) -> Result<Vec<u8>, ServerError> {
        self.check_complete(self.round.min_teachers())?;
        let words = self.sum.as_ref();
        let mut writer = Writer::new(Kind::ServerState, FIXED + self.statuses.len() + size_of_val(words));
        writer.bytes(self.key.id().as_bytes());
        writer.bytes(self.id.as_bytes());
        writer.count(self.statuses.len());
        writer.count(self.round.queries());
        writer.count(self.round.classes());
        for &status in &self.statuses {
            writer.bytes(&[status as u8]);
        }
        writer.words(words);
        Ok(writer.finish())
    }

    /// Bytes of the state of a round's server.
    #[must_use]
    pub fn state_size(round: &Round, key: &EvaluationKey) -> usize {
        let words =
            lwe_compact_ciphertext_list_size(key.parameters().big_dimension(), LweCiphertextCount(round.values()));
        ENVELOPE + FIXED + round.teachers() + words * size_of::<u64>()
    }

    /// The server of a round whose sum was closed. Memory is bounded by the length of `state` and the round.
    ///
    /// # Errors
    /// Those of [`Self::new`], and if the bytes are not exactly one well-formed state of this round, with enough teachers.
    pub fn resume(key: EvaluationKey, round: Round, state: &[u8]) -> Result<Self, ServerError> {
        let mut server = Self::new(key, round)?;
        let mut reader = Reader::new(state, Kind::ServerState)?;
        let key = KeyId::from_bytes(reader.array()?);
        let found = RoundId::from_bytes(reader.array()?);
        if key != server.key.id() || found != server.id {
            return Err(ServerError::StateOfRound { expected: server.id, found });
        }
        let (teachers, queries) = (server.round.teachers(), server.round.queries());
        reader.bounded("teachers", teachers, teachers)?;
        reader.bounded("queries", queries, queries)?;
        reader.bounded("classes", server.round.classes(), server.round.classes())?;
        server.statuses = TeacherStatus::read_all(reader.take(teachers)?)?;
        let words = reader.words(server.sum.as_ref().len())?;
        server.sum.as_mut().copy_from_slice(&words);
        // A state is made after the noise was added.
        server.noise_added = true;
        server.close(server.round.min_teachers())?;
        Ok(server)
    }
}
