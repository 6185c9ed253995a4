//! A round's result as it travels: all answers, and what became of every teacher.

use crate::answer::{EncryptedAnswer, NO_ANSWER, WORDS};
use crate::codec::{DecodeError, ENVELOPE, Kind, Reader, Writer};
use crate::keys::KeyId;
use crate::outcome::Outcomes;
use crate::round::{NoisePlace, Round, RoundId};
use crate::status::TeacherStatus;

/// The result of a round: the encrypted answers to all its queries, and the status of every teacher, from which the
/// honest ratio follows that the accountant must use.
///
/// Content on the wire (after the envelope of 12 bytes, before the checksum of 16):
///
/// ```text
/// bytes     content
/// 32        key id
/// 32        round id
/// 4         teachers n
/// 4         queries Q
/// 4         classes
/// 4         flags: bit 0 "no answer" is possible, bit 1 simulation, bit 2 the server added the noise
/// n         one status a teacher
/// 8 Q d W   answers in the order of queries: d digits of W = 2049 words each
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerList {
    key: KeyId,
    round: RoundId,
    outcomes: Outcomes,
    simulation: bool,
    noise: NoisePlace,
    statuses: Vec<TeacherStatus>,
    queries: usize,
    words: Vec<u64>,
}

const SIMULATION: u32 = 2;
const SERVER_NOISE: u32 = 4;
const FIXED: usize = 80;

/// Answers that do not make a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer to query {query} is missing, out of order, or of another round")]
pub struct AnswerListError {
    /// The first query without its answer.
    pub query: usize,
}

impl AnswerList {
    /// Puts the answers of `round`, in the order of its queries, and the teachers' statuses together.
    ///
    /// # Errors
    /// If the answers are not exactly those to the round's queries in order.
    pub fn new(
        round: &Round,
        key: KeyId,
        statuses: Vec<TeacherStatus>,
        answers: &[EncryptedAnswer],
    ) -> Result<Self, AnswerListError> {
        let (id, outcomes) = (round.id(key), round.outcomes());
        let mut words = Vec::with_capacity(round.queries() * outcomes.digits() * WORDS);
        for query in 0..round.queries().max(answers.len()) {
            match answers.get(query) {
                Some(answer)
                    if query < round.queries()
                        && answer.query == query
                        && answer.round == id
                        && answer.outcomes == outcomes =>
                {
                    words.extend_from_slice(&answer.words);
                }
                _ => return Err(AnswerListError { query }),
            }
        }
        let (simulation, noise, queries) = (round.is_simulation(), round.noise_place(), round.queries());
        Ok(Self { key, round: id, outcomes, simulation, noise, statuses, queries, words })
    }

    /// The key under which the answers are encrypted.
    #[must_use]
    pub fn key(&self) -> KeyId {
        self.key
    }

    /// The round.
    #[must_use]
    pub fn round(&self) -> RoundId {
        self.round
    }

    /// The outcomes that answers can have.
    #[must_use]
    pub fn outcomes(&self) -> Outcomes {
        self.outcomes
    }

    /// Whether the round is a simulation, whose noise protects nobody.
    #[must_use]
    pub fn is_simulation(&self) -> bool {
        self.simulation
    }

    /// Who added the noise.
    #[must_use]
    pub fn noise_place(&self) -> NoisePlace {
        self.noise
    }

    /// The status of every teacher.
    #[must_use]
    pub fn statuses(&self) -> &[TeacherStatus] {
        &self.statuses
    }

    /// Number of teachers whose messages are in the sum.
    #[must_use]
    pub fn counted(&self) -> usize {
        self.statuses.iter().filter(|&&status| status == TeacherStatus::Counted).count()
    }

    /// The largest honest ratio (the paper's tau) that an accountant may use, if every counted teacher is honest: the
    /// share of the noise that is in the sum. Without the server's noise it is counted teachers to all teachers, since
    /// each adds one n-th; the noise of a server is whole whoever answers.
    #[must_use]
    pub fn honest_ratio(&self) -> f64 {
        match self.noise {
            NoisePlace::Teachers => self.counted() as f64 / self.statuses.len() as f64,
            NoisePlace::Server => 1.0,
        }
    }

    /// The answers, in the order of the queries.
    pub fn answers(&self) -> impl ExactSizeIterator<Item = EncryptedAnswer> + '_ {
        self.words
            .chunks_exact(self.outcomes.digits() * WORDS)
            .enumerate()
            .map(|(query, words)| EncryptedAnswer::new(self.key, self.round, query, self.outcomes, words.to_vec()))
    }

    /// Bytes of a round's result.
    #[must_use]
    pub fn size(round: &Round) -> usize {
        ENVELOPE + FIXED + round.teachers() + round.queries() * round.outcomes().digits() * WORDS * size_of::<u64>()
    }

    /// Bytes of the largest result of any round.
    pub const MAX_BYTES: usize =
        ENVELOPE + FIXED + Round::MAX_TEACHERS + Round::MAX_QUERIES * 2 * WORDS * size_of::<u64>();

    /// The bytes that travel.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let size = FIXED + self.statuses.len() + size_of_val(self.words.as_slice());
        let mut writer = Writer::new(Kind::AnswerList, size);
        writer.bytes(self.key.as_bytes());
        writer.bytes(self.round.as_bytes());
        writer.count(self.statuses.len());
        writer.count(self.queries);
        writer.count(self.outcomes.classes());
        let flag = |set, flag| if set { flag } else { 0 };
        let server = self.noise == NoisePlace::Server;
        writer.u32(
            flag(self.outcomes.no_answer(), NO_ANSWER) | flag(self.simulation, SIMULATION) | flag(server, SERVER_NOISE),
        );
        for &status in &self.statuses {
            writer.bytes(&[status as u8]);
        }
        writer.words(&self.words);
        writer.finish()
    }

    /// Reads a result. Memory is bounded by the length of `bytes`.
    ///
    /// # Errors
    /// If the bytes are not exactly one well-formed result of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Kind::AnswerList)?;
        let key = KeyId::from_bytes(reader.array()?);
        let round = RoundId::from_bytes(reader.array()?);
        let teachers = reader.bounded("teachers", 1, Round::MAX_TEACHERS)?;
        let queries = reader.bounded("queries", 1, Round::MAX_QUERIES)?;
        let classes = reader.bounded("classes", 2, Round::MAX_CLASSES)?;
        let flags = reader.flags("flags", NO_ANSWER | SIMULATION | SERVER_NOISE)?;
        let outcomes = Outcomes::checked(classes, flags & NO_ANSWER != 0)?;
        let statuses = TeacherStatus::read_all(reader.take(teachers)?)?;
        let words = reader.words(queries * outcomes.digits() * WORDS)?;
        let noise = if flags & SERVER_NOISE == 0 { NoisePlace::Teachers } else { NoisePlace::Server };
        Ok(Self { key, round, outcomes, simulation: flags & SIMULATION != 0, noise, statuses, queries, words })
    }
}

impl std::fmt::Debug for AnswerList {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (counted, teachers) = (self.counted(), self.statuses.len());
        write!(f, "AnswerList(round {}, {} queries, {counted} of {teachers} teachers, ..)", self.round, self.queries)
    }
}
