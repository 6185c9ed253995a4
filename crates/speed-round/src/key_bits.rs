//! The bits of a student's secret key that labels may reveal.

use speed_aggregation::Parameters;

use crate::error::Refused;
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;

/// The bits of the secret key that the labels of a round may reveal.
pub(crate) struct KeyBits {
    /// Number of queries of the round.
    queries: usize,
    /// The logarithm of the number of outcomes of a query.
    each: f64,
    /// All bits of the round.
    pub(crate) labels: f64,
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

    /// Checks that the key stays secure after all that the labels of this round and of earlier ones (`before`, in bits) could
    /// reveal ([`Parameters::leakage_bits`]). The student, the teachers and the opener check it, each on its own: a dishonest student could
    /// write a longer round with another program. Keys of simulations are public, so they are not checked.
    pub(crate) fn check(file: &RoundFile, parameters: &Parameters, before: f64) -> Result<(), Refused> {
        let (here, most) = (Self::of(file), parameters.leakage_bits());
        // Not finite is refused as well.
        if file.round().is_simulation() || before + here.labels <= f64::from(most) {
            return Ok(());
        }
        let (queries, labels, serves) = (here.queries, here.labels, here.serves(most));
        Err(Refused::usage(format!(
            "the labels of {queries} queries could tell a lying server {labels:.0} bits of the secret key, and the labels of the key's \
             earlier rounds {before:.0}; if more than {most} bits are known, the key has less than about 112 bits of security. New keys \
             serve {serves} queries with as many outcomes: send fewer queries, or, without a joint opening, divide them among several key sets (`speed student keygen --sets`, and --keys)"
        )))
    }

    /// The same with all rounds of the key that a teacher answered according to its registry. Another round is refused unless `reuse` is
    /// set: a student that was corrupted after the first one would know the trapdoor of the second one's proof key.
    pub(crate) fn check_rounds(
        file: &RoundFile,
        parameters: &Parameters,
        registry: &RoundRegistry,
        reuse: bool,
    ) -> Result<(), Refused> {
        if file.round().is_simulation() {
            return Ok(());
        }
        let before = match registry.other_round(file.key(), file.id())? {
            Some((round, _)) if !reuse => {
                return Err(Refused::usage(format!(
                    "this party already answered round {round} under the same key, and keys are for one round: a student that was corrupted after that round \
                     could use another one to read its votes. Ask the student for new keys; --reuse-keys takes the risk"
                )));
            }
            other => other.map_or(0.0, |(_, bits)| bits),
        };
        Self::check(file, parameters, before)
    }

    /// Returns the number of such queries that unused keys serve.
    fn serves(&self, most: u16) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 333")]
        let queries = (f64::from(most) / self.each) as usize;
        queries
    }
}
