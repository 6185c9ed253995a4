//! The server's answer to one query, and a round's result: all answers, and the status of every teacher.

use speed_core::{NoisePlacement, VoteShape};

use crate::codec::{Decode, DecodeError, ENVELOPE, Encode, FixedLength, Flags, Limits, Reader, Writer, in_envelope};
use crate::getters::{debug_as, getters};
use crate::ids::{KeyId, RoundId};
use crate::outcome::Outcomes;
use crate::parameters::Parameters;
use crate::round::Round;
use crate::status::TeacherStatus;

/// The encrypted winner of one query.
///
/// # Contents
/// The phase is the code of the winning class plus an error. The last bootstrap reads the code from a table, so the
/// answer contains neither the winning count nor the losing ones. The server then adds a fresh public-key encryption of
/// zero, so the mask reveals nothing about the bootstrap that made it, and floods the body with noise uniform on
/// `[-2^58, 2^58]`, which hides the error of that bootstrap. Only this error could still reveal counts, because they
/// steer the rotation that produces it. It is flooded three times; docs/homomorphic-argmax.md, section 7, bounds the
/// remaining distance. Ring-LWE hides the mask, with the phase that the student decrypts as a hint.
#[derive(Clone, PartialEq, Eq)]
pub struct EncryptedAnswer {
    pub(crate) key: KeyId,
    pub(crate) round: RoundId,
    pub(crate) query: usize,
    pub(crate) outcomes: Outcomes,
    pub(crate) words: Vec<u64>,
}

/// The reason why the student cannot open an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum OpenError {
    /// The answer was made under another key.
    #[error("answer for key {found}, this is key {expected}")]
    Key { expected: KeyId, found: KeyId },
    /// The opener's part does not have a word for each digit of the answer.
    #[error("the opener's part has no words for query {query}")]
    Part { query: usize },
    /// The answer decrypts to an outcome that the round does not have.
    #[error(
        "query {query} decrypts to outcome {code} of {outcomes}: the answer was damaged or not made by the circuit"
    )]
    Outcome { query: usize, code: usize, outcomes: usize },
}

/// Words of one ciphertext of an answer, the same for all parameter sets of this format version.
pub(crate) const WORDS: usize = Parameters::TOURNAMENT_128.polynomial_size + 1;

/// The bit of the flags of an answer and of a list for [`Outcomes::no_answer`].
const NO_ANSWER: u32 = 1;

/// Bytes before the ciphertexts: key id, round id, query, classes and flags.
const HEADER: usize = KeyId::LENGTH + RoundId::LENGTH + 2 * usize::LENGTH + Flags::LENGTH;

impl Encode for EncryptedAnswer {
    fn encode(&self, writer: &mut Writer) {
        self.key.encode(writer);
        self.round.encode(writer);
        self.query.encode(writer);
        self.outcomes.classes().encode(writer);
        Flags::new([(NO_ANSWER, self.outcomes.no_answer())]).encode(writer);
        self.words.encode(writer);
    }
}

impl Decode for EncryptedAnswer {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let (key, round) = (reader.read()?, reader.read()?);
        let query = reader.read_with(Limits { field: "query", min: 0, max: Round::MAX_QUERIES - 1 })?;
        let classes = reader.read_with(Limits { field: "classes", min: 1, max: Round::MAX_CLASSES })?;
        let flags: Flags = reader.read_with(NO_ANSWER)?;
        let outcomes = Outcomes::checked(classes, flags.has(NO_ANSWER))?;
        let words = reader.read_with(WORDS * outcomes.digits())?;
        Ok(Self { key, round, query, outcomes, words })
    }
}

in_envelope!(EncryptedAnswer, Answer, "answer");

impl EncryptedAnswer {
    /// Makes an answer from `words`, which holds one ciphertext for each digit of the outcome.
    pub(crate) fn new(key: KeyId, round: RoundId, query: usize, outcomes: Outcomes, words: Vec<u64>) -> Self {
        debug_assert_eq!(words.len(), outcomes.digits() * WORDS);
        Self { key, round, query, outcomes, words }
    }

    getters! {
        /// Returns the key under which the answer is encrypted.
        key: KeyId,
        /// Returns the round that the answer belongs to.
        round: RoundId,
        /// Returns the query that it answers.
        query: usize,
        /// Returns the outcomes that it can have.
        outcomes: Outcomes,
    }

    /// Returns the number of bytes of an answer.
    pub fn size(outcomes: Outcomes) -> usize {
        ENVELOPE + HEADER + outcomes.digits() * WORDS * size_of::<u64>()
    }
}

debug_as!(
    EncryptedAnswer,
    this => "EncryptedAnswer(round {}, query {}, {} outcomes, ..)", this.round, this.query, this.outcomes.count()
);

/// The result of a round: the encrypted answers to all its queries, and the status of every teacher. The statuses
/// determine the honest ratio that the accountant must use.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerList {
    key: KeyId,
    round: RoundId,
    shape: VoteShape,
    outcomes: Outcomes,
    is_simulation: bool,
    placement: NoisePlacement,
    statuses: Vec<TeacherStatus>,
    words: Vec<u64>,
}

const SIMULATION: u32 = 2;
const CENTRAL_NOISE: u32 = 4;

/// Bytes before the statuses: key id, round id, teachers, queries, classes and flags.
const LIST_HEADER: usize = KeyId::LENGTH + RoundId::LENGTH + 3 * usize::LENGTH + Flags::LENGTH;

/// The reason why answers do not make a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum AnswerListError {
    /// A query without its answer.
    #[error("the answer to query {query} is missing, out of order, or of another round")]
    Answer { query: usize },
    /// The number of statuses differs from the number of teachers.
    #[error("{found} statuses, the round has {expected} teachers")]
    Statuses { expected: usize, found: usize },
}

impl Encode for AnswerList {
    fn encode(&self, writer: &mut Writer) {
        self.key.encode(writer);
        self.round.encode(writer);
        self.shape.teachers().encode(writer);
        self.shape.queries().encode(writer);
        self.shape.classes().encode(writer);
        let flags = Flags::new([
            (NO_ANSWER, self.outcomes.no_answer()),
            (SIMULATION, self.is_simulation),
            (CENTRAL_NOISE, self.placement == NoisePlacement::Central),
        ]);
        flags.encode(writer);
        self.statuses.encode(writer);
        self.words.encode(writer);
    }
}

impl Decode for AnswerList {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let (key, round) = (reader.read()?, reader.read()?);
        let teachers = reader.read_with(Limits { field: "teachers", min: 1, max: Round::MAX_TEACHERS })?;
        let queries = reader.read_with(Limits { field: "queries", min: 1, max: Round::MAX_QUERIES })?;
        let classes = reader.read_with(Limits { field: "classes", min: 1, max: Round::MAX_CLASSES })?;
        let flags: Flags = reader.read_with(NO_ANSWER | SIMULATION | CENTRAL_NOISE)?;
        let outcomes = Outcomes::checked(classes, flags.has(NO_ANSWER))?;
        let shape = VoteShape::new(teachers, queries, classes).expect("the limits of a round are those of a shape");
        let placement = if flags.has(CENTRAL_NOISE) { NoisePlacement::Central } else { NoisePlacement::Distributed };
        Ok(Self {
            key,
            round,
            shape,
            outcomes,
            is_simulation: flags.has(SIMULATION),
            placement,
            statuses: reader.read_with(teachers)?,
            words: reader.read_with(queries * outcomes.digits() * WORDS)?,
        })
    }
}

in_envelope!(AnswerList, AnswerList, "result");

impl AnswerList {
    /// Combines the answers of `round`, in the order of its queries, and the teachers' statuses.
    ///
    /// # Errors
    /// If the answers are not exactly one for each query of the round, in order, or if there is not one status for each
    /// teacher.
    pub fn new(
        round: &Round,
        key: KeyId,
        statuses: Vec<TeacherStatus>,
        answers: &[EncryptedAnswer],
    ) -> Result<Self, AnswerListError> {
        let (found, expected) = (statuses.len(), round.parties());
        if found != expected {
            return Err(AnswerListError::Statuses { expected, found });
        }
        let (id, outcomes, queries) = (round.id(key), round.outcomes(), round.shape().queries());
        let mut words = Vec::with_capacity(queries * outcomes.digits() * WORDS);
        for query in 0..queries.max(answers.len()) {
            let answer = answers.get(query).filter(|answer| {
                query < queries && answer.query == query && answer.round == id && answer.outcomes == outcomes
            });
            words.extend_from_slice(&answer.ok_or(AnswerListError::Answer { query })?.words);
        }
        let (is_simulation, placement) = (round.is_simulation(), round.placement());
        let shape = shape_of(round);
        Ok(Self { key, round: id, shape, outcomes, is_simulation, placement, statuses, words })
    }

    getters! {
        /// Returns the key under which the answers are encrypted.
        key: KeyId,
        /// Returns the round.
        round: RoundId,
        /// Returns the numbers of parties that send messages, of queries and of classes.
        shape: VoteShape,
        /// Returns the possible outcomes of a query.
        outcomes: Outcomes,
        /// Returns whether the round is a simulation, whose noise gives no privacy.
        is_simulation: bool,
        /// Returns the parties that added the privacy noise.
        placement: NoisePlacement,
        /// Returns the status of every teacher.
        statuses: &[TeacherStatus],
    }

    /// Returns the number of parties whose messages are in the sum.
    pub fn counted(&self) -> usize {
        self.statuses.iter().filter(|&&status| status == TeacherStatus::Counted).count()
    }

    /// Returns whether shape, outcomes, randomness and noise placement are those of `round`.
    pub fn agrees_with(&self, round: &Round) -> bool {
        self.shape == shape_of(round)
            && self.outcomes == round.outcomes()
            && self.is_simulation == round.is_simulation()
            && self.placement == round.placement()
    }

    /// Returns the largest honest ratio (the paper's tau) that an accountant may use if every counted party is honest: the
    /// share of the noise that is in the sum. If the teachers add the noise, this is the number of teachers of the counted
    /// parties over that of all teachers, because each adds one n-th. If the server adds it, the ratio is 1, regardless of
    /// which teachers answer. `round` is the round of this list, which [`Self::agrees_with`] checks.
    pub fn honest_ratio(&self, round: &Round) -> f64 {
        match self.placement {
            NoisePlacement::Distributed => {
                round.teachers_counted(&self.statuses) as f64 / round.shape().teachers() as f64
            }
            NoisePlacement::Central => 1.0,
        }
    }

    /// Returns the ciphertexts of all answers.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Returns the answers, in the order of the queries.
    pub fn answers(&self) -> impl ExactSizeIterator<Item = EncryptedAnswer> + '_ {
        self.words
            .chunks_exact(self.outcomes.digits() * WORDS)
            .enumerate()
            .map(|(query, words)| EncryptedAnswer::new(self.key, self.round, query, self.outcomes, words.to_vec()))
    }

    /// Returns the number of bytes of a round's result.
    pub fn size(round: &Round) -> usize {
        let words = round.shape().queries() * round.outcomes().digits() * WORDS;
        ENVELOPE + LIST_HEADER + round.parties() + words * size_of::<u64>()
    }
}

/// Returns the numbers of parties, queries and classes of a round.
fn shape_of(round: &Round) -> VoteShape {
    let (queries, classes) = (round.shape().queries(), round.shape().classes());
    VoteShape::new(round.parties(), queries, classes).expect("a round has no more parties than teachers")
}

debug_as!(AnswerList, this => "AnswerList(round {}, {}, {} counted, ..)", this.round, this.shape, this.counted());
