//! A teacher's message: its values for all queries of a round, encrypted and packed.

use tfhe::core_crypto::prelude::{
    CiphertextModulus, LweCiphertextCount, LweCompactCiphertextListOwned, LweDimension,
    lwe_compact_ciphertext_list_size,
};

use crate::codec::{DecodeError, ENVELOPE, Kind, Reader, Writer};
use crate::keys::KeyId;
use crate::parameters::Parameters;
use crate::round::{Round, RoundId};

/// A teacher's encrypted values for all queries of a round.
///
/// Content on the wire (after the envelope of 12 bytes, before the checksum of 16):
///
/// ```text
/// bytes  content
/// 32     key id
/// 32     round id
/// 4      teacher
/// 4      queries
/// 4      classes
/// 8 N c  masks: one ring element of N = 2048 words for every 2048 values begun
/// 8 Q K  bodies: one word a value, queries in order, classes in order within a query
/// ```
/// One query of ten classes takes 16,568 bytes, a hundred queries 24,488.
#[derive(Clone)]
pub struct Message {
    key: KeyId,
    round: RoundId,
    teacher: usize,
    queries: usize,
    classes: usize,
    list: LweCompactCiphertextListOwned<u64>,
}

/// The dimension of messages on the wire. All parameter sets of this format version share it.
const DIMENSION: LweDimension = LweDimension(Parameters::TOURNAMENT_128.polynomial_size);

/// Bytes between the envelope and the masks.
const FIXED: usize = 76;

impl Message {
    pub(crate) fn new(
        key: KeyId,
        round: RoundId,
        teacher: usize,
        queries: usize,
        classes: usize,
        list: LweCompactCiphertextListOwned<u64>,
    ) -> Self {
        Self { key, round, teacher, queries, classes, list }
    }

    /// The key under which it is encrypted.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// The round that the message belongs to.
    #[must_use]
    pub fn round(&self) -> RoundId {
        self.round
    }

    /// The teacher that claims to have sent it. (A claim: messages carry no signature.)
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

    /// The first bytes of every message, as of all files of this crate.
    pub const MAGIC: &[u8; 8] = crate::codec::MAGIC;

    /// Bytes of a message of `queries` queries and `classes` classes.
    #[must_use]
    pub fn size(queries: usize, classes: usize) -> usize {
        let words = lwe_compact_ciphertext_list_size(DIMENSION, LweCiphertextCount(queries * classes));
        ENVELOPE + FIXED + words * size_of::<u64>()
    }

    /// The teacher that the first bytes of a file name, whatever follows: enough to say whose file is refused. Nothing
    /// but the envelope's first bytes is checked.
    #[must_use]
    pub fn claimed_teacher(start: &[u8]) -> Option<usize> {
        let header = Reader::unchecked(start, Kind::Message)?;
        let teacher = u32::from_le_bytes(*header.get(64..)?.first_chunk()?) as usize;
        (teacher < Round::MAX_TEACHERS).then_some(teacher)
    }

    /// The bytes that travel.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = self.list.as_ref();
        let mut writer = Writer::new(Kind::Message, FIXED + size_of_val(words));
        writer.bytes(self.key.as_bytes());
        writer.bytes(self.round.as_bytes());
        for number in [self.teacher, self.queries, self.classes] {
            writer.count(number);
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
        let key = KeyId::from_bytes(reader.array()?);
        let round = RoundId::from_bytes(reader.array()?);
        let teacher = reader.bounded("teacher", 0, Round::MAX_TEACHERS - 1)?;
        let queries = reader.bounded("queries", 1, Round::MAX_QUERIES)?;
        let classes = reader.bounded("classes", 1, Round::MAX_CLASSES)?;
        // At most 2^24 values: no overflow on the way to the comparison with the length at hand.
        let count = LweCiphertextCount(queries * classes);
        let words = reader.words(lwe_compact_ciphertext_list_size(DIMENSION, count))?;
        let list = LweCompactCiphertextListOwned::from_container(
            words,
            DIMENSION.to_lwe_size(),
            count,
            CiphertextModulus::new_native(),
        );
        Ok(Self { key, round, teacher, queries, classes, list })
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
