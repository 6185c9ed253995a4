//! A teacher's message: its values for all queries of a round, encrypted and packed.

use tfhe::core_crypto::prelude::{
    CiphertextModulus, LweCiphertextCount, LweCompactCiphertextListOwned, LweDimension,
    lwe_compact_ciphertext_list_size,
};

use crate::codec::{
    Decode, DecodeError, ENVELOPE, Encode, FixedLength, Limits, MAGIC, Reader, Writer, in_envelope, in_order,
};
use crate::getters::{debug_as, getters};
use crate::ids::{KeyId, RoundId};
use crate::parameters::Parameters;
use crate::round::Round;
use crate::server::ServerError;

/// A teacher's encrypted values for all queries of a round: 16,568 bytes for one query of ten classes, 24,488 for a hundred.
#[derive(Clone)]
pub struct Message {
    header: Header,
    list: LweCompactCiphertextListOwned<u64>,
}

/// The part of a message before its ciphertexts.
#[derive(Clone, Copy)]
struct Header {
    key: KeyId,
    round: RoundId,
    teacher: usize,
    queries: usize,
    classes: usize,
}

in_order!(Header:
    key,
    round,
    teacher = Limits { field: "teacher", min: 0, max: Round::MAX_TEACHERS - 1 },
    queries = Limits { field: "queries", min: 1, max: Round::MAX_QUERIES },
    classes = Limits { field: "classes", min: 1, max: Round::MAX_CLASSES },
);

impl FixedLength for Header {
    const LENGTH: usize = KeyId::LENGTH + RoundId::LENGTH + 3 * usize::LENGTH;
}

/// The dimension of messages on the wire, the same for all parameter sets of this format version.
const DIMENSION: LweDimension = LweDimension(Parameters::TOURNAMENT_128.polynomial_size);

/// Returns the number of words of a list of `values` values.
pub(crate) fn list_words(values: usize) -> usize {
    lwe_compact_ciphertext_list_size(DIMENSION, LweCiphertextCount(values))
}

impl Encode for Message {
    fn encode(&self, writer: &mut Writer) {
        self.header.encode(writer);
        self.list.as_ref().encode(writer);
    }
}

impl Decode for Message {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let header: Header = reader.read()?;
        // At most 2^24 values, so nothing overflows before the comparison with the available length.
        let count = header.queries * header.classes;
        let words = reader.read_with(list_words(count))?;
        let (size, modulus) = (DIMENSION.to_lwe_size(), CiphertextModulus::new_native());
        let list = LweCompactCiphertextListOwned::from_container(words, size, LweCiphertextCount(count), modulus);
        Ok(Self { header, list })
    }
}

in_envelope!(Message, Message, "message");

impl Message {
    /// The number of values that share a mask and a proof.
    pub(crate) const VALUES_PER_MASK: usize = DIMENSION.0;
    /// The first bytes of every message, and of all files of this crate.
    pub const MAGIC: &[u8; 8] = MAGIC;

    pub(crate) fn new(key: KeyId, round: &Round, teacher: usize, list: LweCompactCiphertextListOwned<u64>) -> Self {
        let (queries, classes) = (round.shape().queries(), round.shape().classes());
        Self { header: Header { key, round: round.id(key), teacher, queries, classes }, list }
    }

    getters! {
        /// Returns the key under which the message is encrypted.
        key: KeyId = header.key,
        /// Returns the round that the message belongs to.
        round: RoundId = header.round,
        /// Returns the teacher that claims to have sent the message. (Messages carry no signature.)
        teacher: usize = header.teacher,
        /// Returns the number of queries.
        queries: usize = header.queries,
        /// Returns the number of classes.
        classes: usize = header.classes,
    }

    /// Checks that the message is for a key and a round, of which `ids` are the identifiers.
    ///
    /// # Errors
    /// [`ServerError`], if it was made for another key, round or shape.
    pub fn check_terms(&self, ids: (KeyId, RoundId), round: &Round) -> Result<(), ServerError> {
        let Header { key, round: of, teacher, queries, classes } = self.header;
        let (expected, found) = ((round.shape().queries(), round.shape().classes()), (queries, classes));
        if key != ids.0 {
            return Err(ServerError::WrongKey { teacher, expected: ids.0, found: key });
        }
        if of != ids.1 {
            return Err(ServerError::WrongRound { teacher, expected: ids.1, found: of });
        }
        if expected != found {
            return Err(ServerError::Shape { teacher, expected, found });
        }
        Ok(())
    }

    pub(crate) fn list(&self) -> &LweCompactCiphertextListOwned<u64> {
        &self.list
    }

    /// Returns the number of bytes of a message of `queries` queries and `classes` classes.
    pub fn size(queries: usize, classes: usize) -> usize {
        ENVELOPE + Header::LENGTH + list_words(queries * classes) * size_of::<u64>()
    }
}

debug_as!(
    Message,
    this => "Message(round {}, teacher {}, {} queries, {} classes, ..)", this.round(), this.teacher(), this.queries(), this.classes()
);
