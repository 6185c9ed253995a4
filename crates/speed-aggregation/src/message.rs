//! A teacher's message: its values for all queries of a round, encrypted and packed.

use tfhe::core_crypto::prelude::{
    CiphertextModulus, LweCiphertextCount, LweCompactCiphertextListOwned, LweDimension,
    lwe_compact_ciphertext_list_size,
};

use crate::codec::{DecodeError, Kind, Reader, Writer};
use crate::parameters::Parameters;
use crate::round::{Round, RoundId};

/// A teacher's encrypted values for all queries of a round.
///
/// Content on the wire (after the envelope of 12 bytes, before the checksum of 16):
///
/// ```text
/// bytes  content
/// 32     round id
/// 4      teacher
/// 4      queries
/// 4      classes
/// 8 N c  masks: one ring element of N = 2048 words for every 2048 values begun
/// 8 Q K  bodies: one word a value, queries in order, classes in order within a query
/// ```
/// One query of ten classes takes 16,536 bytes, a hundred queries 24,456.
#[derive(Clone)]
pub struct Message {
    round: RoundId,
    teacher: usize,
    queries: usize,
    classes: usize,
    list: LweCompactCiphertextListOwned<u64>,
}

/// The dimension of messages on the wire. All parameter sets of format version 1 share it.
const DIMENSION: LweDimension = LweDimension(Parameters::TOURNAMENT_128.polynomial_size);

impl Message {
    pub(crate) fn new(
        round: RoundId,
        teacher: usize,
        queries: usize,
        classes: usize,
        list: LweCompactCiphertextListOwned<u64>,
    ) -> Self {
        Self { round, teacher, queries, classes, list }
    }

    /// The round that the message belongs to.
    #[must_use]
    pub fn round(&self) -> RoundId {
        self.round
    }

    /// The teacher that claims to have sent it. (A claim: version 1 carries no signature.)
    #[must_use]
    pub fn teacher(&self) -> usize {
        self.teacher
    }

    /// Number of queries.
    #[must_use]
    pub fn queries(&self) -> usize {
        self.queries
    }

    /// Number of classes.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.classes
    }

    pub(crate) fn list(&self) -> &LweCompactCiphertextListOwned<u64> {
        &self.list
    }

    /// The bytes that travel.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = self.list.as_ref();
        let mut writer = Writer::new(Kind::Message, 44 + size_of_val(words));
        writer.bytes(self.round.as_bytes());
        for number in [self.teacher, self.queries, self.classes] {
            writer.u32(u32::try_from(number).expect("the limits of Round are below 2^32"));
        }
        writer.words(words);
        writer.finish()
    }

    /// Reads a message. Memory is bounded by the length of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed message of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Kind::Message)?;
        let round = RoundId::from_bytes(reader.array()?);
        let teacher = reader.bounded("teacher", 0, Round::MAX_TEACHERS - 1)?;
        let queries = reader.bounded("queries", 1, Round::MAX_VALUES)?;
        let classes = reader.bounded("classes", 1, Round::MAX_CLASSES)?;
        // At most 2^28 values: no overflow on the way to the comparison with the length at hand.
        let count = LweCiphertextCount(queries * classes);
        let words = reader.words(lwe_compact_ciphertext_list_size(DIMENSION, count))?;
        let list = LweCompactCiphertextListOwned::from_container(
            words,
            DIMENSION.to_lwe_size(),
            count,
            CiphertextModulus::new_native(),
        );
        Ok(Self { round, teacher, queries, classes, list })
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Message(round {}, teacher {}, {} queries, {} classes, ..)",
            self.round, self.teacher, self.queries, self.classes
        )
    }
}
