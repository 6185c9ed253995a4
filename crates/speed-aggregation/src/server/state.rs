//! The state of a server whose sum is closed, from which it can resume.

use super::Server;
use super::error::ServerError;
use crate::codec::{Content, Decode, DecodeError, Kind, Limits, Reader, encode_in_order, open};
use crate::ids::{KeyId, RoundId};
use crate::keys::EvaluationKey;
use crate::message::list_words;
use crate::round::Round;
use crate::status::TeacherStatus;

/// The part of a state before its statuses.
struct Header {
    key: KeyId,
    round: RoundId,
    teachers: usize,
    queries: usize,
    classes: usize,
}

encode_in_order!(Header: key, round, teachers, queries, classes);

/// A closed sum in its encoded form.
struct ClosedSum<'a> {
    header: Header,
    statuses: &'a Vec<TeacherStatus>,
    words: &'a [u64],
}

encode_in_order!(ClosedSum<'_>: header, statuses, words);

impl Content for ClosedSum<'_> {
    const KIND: Kind = Kind::ServerState;
}

/// The part of a state whose size depends on the round's shape: statuses, and the words of the sum.
struct SumParts {
    statuses: Vec<TeacherStatus>,
    words: Vec<u64>,
}

/// The parameter is the round whose state is expected.
impl Decode<&Round> for SumParts {
    fn decode(reader: &mut Reader<'_>, round: &Round) -> Result<Self, DecodeError> {
        let shape = round.shape();
        let sides = [("teachers", round.parties()), ("queries", shape.queries()), ("classes", shape.classes())];
        for (field, value) in sides {
            reader.read_with::<_, usize>(Limits::exactly(field, value))?;
        }
        Ok(Self { statuses: reader.read_with(round.parties())?, words: reader.read_with(list_words(round.values()))? })
    }
}

impl Server {
    /// Returns the closed sum and the teachers' statuses, from which [`Self::resume`] continues. The sum is encrypted.
    /// It includes central noise, so a resumed server does not draw it again.
    ///
    /// # Errors
    /// If the sum is not closed.
    pub fn state(&self) -> Result<Vec<u8>, ServerError> {
        self.check_complete(self.round.min_teachers())?;
        let shape = self.round.shape();
        let header = Header {
            key: self.key.id(),
            round: self.id,
            teachers: self.round.parties(),
            queries: shape.queries(),
            classes: shape.classes(),
        };
        Ok(ClosedSum { header, statuses: &self.statuses, words: self.sum.as_ref() }.seal())
    }

    /// Restores the server of a round whose sum was closed. Memory is bounded by the length of `state` and the round.
    ///
    /// # Errors
    /// The errors of [`Self::new`], and if the bytes are not exactly one well-formed state of this round, with enough
    /// teachers.
    pub fn resume(key: EvaluationKey, round: Round, state: &[u8]) -> Result<Self, ServerError> {
        let mut server = Self::new(key, round)?;
        let mut reader = open(state, ClosedSum::KIND)?;
        let (key, found): (KeyId, RoundId) = (reader.read()?, reader.read()?);
        if key != server.key.id() || found != server.id {
            return Err(ServerError::Other(format!("state of round {found}, this is round {}", server.id)));
        }
        let SumParts { statuses, words } = reader.read_with(&server.round)?;
        reader.end()?;
        server.statuses = statuses;
        server.sum.as_mut().copy_from_slice(&words);
        // A state is saved after the noise was added.
        server.noise_added = true;
        server.close(server.round.min_teachers())?;
        Ok(server)
    }
}
