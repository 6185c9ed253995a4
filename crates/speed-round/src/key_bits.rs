//! The bits of a student's secret key that labels may reveal.

use speed_aggregation::Parameters;

use crate::error::{OptionsFault, RolesError};
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;

/// The bits of the secret key that the labels of a round may reveal.
pub(crate) struct KeyBits {
    /// Number of queries of the round.
    queries: usize,
    /// The logarithm of the number of outcomes of a query.
    each: f64,
    /// All bits of the round.
    labels: f64,
}

impl KeyBits {
    /// A label reveals at most the logarithm of the number of outcomes, whatever the server or a teacher sent.
    /// `student::open` refuses a result with an answer that is not one of the outcomes, so a
    /// published label has no further value.
    pub(crate) fn of(file: &RoundFile) -> Self {
        let round = file.round();
        let (queries, each) = (round.shape().queries(), (round.outcomes().count() as f64).log2());
        Self { queries, each, labels: queries as f64 * each }
    }

    /// Returns all bits of the round.
    pub(crate) fn labels(&self) -> f64 {
        self.labels
    }

    /// Checks that the key stays secure after all that the labels of this round and of earlier ones (`before`, in bits) could
    /// reveal ([`Parameters::leakage_bits`]). The student, the teachers and the opener check it, each on its own: a dishonest student could
    /// write a longer round with another program. Keys of simulations are public, so they are not checked.
    pub(crate) fn check(file: &RoundFile, parameters: &Parameters, before: f64) -> Result<(), OptionsFault> {
        let (here, most) = (Self::of(file), parameters.leakage_bits());
        // Not finite is refused as well.
        if file.round().is_simulation() || before + here.labels <= f64::from(most) {
            return Ok(());
        }
        let (queries, serves) = (here.queries, here.serves(most));
        Err(OptionsFault::KeyWornOut { queries, here: here.labels, before, most, serves })
    }

    /// The same with all rounds of the key that a teacher answered according to its registry. Another round is refused unless `reuse` is
    /// set: a student that was corrupted after the first one would know the trapdoor of the second one's proof key.
    pub(crate) fn check_rounds(
        file: &RoundFile,
        parameters: &Parameters,
        registry: &RoundRegistry,
        reuse: bool,
    ) -> Result<(), RolesError> {
        if file.round().is_simulation() {
            return Ok(());
        }
        let before = match registry.other_round(file.key(), file.id())? {
            Some((round, _)) if !reuse => return Err(OptionsFault::KeyAnswered { round }.into()),
            other => other.map_or(0.0, |(_, bits)| bits),
        };
        Ok(Self::check(file, parameters, before)?)
    }

    /// Returns the number of such queries that unused keys serve.
    fn serves(&self, most: u16) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 333")]
        let queries = (f64::from(most) / self.each) as usize;
        queries
    }
}
