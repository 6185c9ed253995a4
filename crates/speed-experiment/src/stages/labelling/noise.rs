//! One-hot votes with the teachers' noise shares.

use rand::RngExt;
use rand::seq::SliceRandom;
use speed_aggregation::NoisyVotes;
use speed_core::Randomness;
use speed_mechanism::{HonestRatio, MechanismError, NoiseGenerator, NoiseShare, sum_support_bound};

use super::question::Question;
use crate::error::{ExperimentError, Mismatch};
use crate::stages::context::Context;
use crate::store::NoiseKey;

/// Probability that the noise of any class of any query leaves the range that the encoding is checked for.
const RANGE_FAILURE: f64 = 1.0 / (1u128 << 64) as f64;

/// The teachers that add noise, and the key of it where it was charged.
pub(super) struct NoisyTeachers {
    pub(super) count: usize,
    pub(super) key: Option<NoiseKey>,
}

impl NoisyTeachers {
    /// Returns one-hot votes with each noisy teacher's own shares. In a simulation a teacher's shares are the same in every row.
    pub(super) fn votes(&self, context: &Context<'_>, question: &Question<'_>) -> Result<NoisyVotes, ExperimentError> {
        let (votes, queries) = (question.votes, question.queries);
        let (teachers, classes) = (votes.shape().teachers(), votes.shape().classes());
        let share = NoiseShare::new(context.config.noise.gamma, teachers)?;
        let bound = noise_bound(context, question)?;
        let is_noisy = self.choose(context, teachers);

        let mut values = vec![0i64; teachers * queries.len() * classes];
        for (teacher, answers) in values.chunks_exact_mut(queries.len() * classes).enumerate() {
            if is_noisy[teacher] {
                let randomness = self.randomness(context, teacher);
                share.fill(&mut NoiseGenerator::new(&randomness).map_err(MechanismError::from)?, answers);
            }
            for (&image, answer) in queries.iter().zip(answers.chunks_exact_mut(classes)) {
                answer[usize::from(votes.label(teacher, image))] += 1;
            }
        }
        let votes = NoisyVotes::new(teachers, queries.len(), classes, bound, values);
        Ok(votes.map_err(Mismatch::NoisyVotes)?)
    }

    fn randomness(&self, context: &Context<'_>, teacher: usize) -> Randomness {
        match (simulation_seed(context, "noise", teacher as u64), &self.key) {
            (Some(seed), _) => Randomness::simulation(seed),
            (None, Some(key)) => key.of_teacher(teacher),
            (None, None) => Randomness::OperatingSystem,
        }
    }

    /// Returns for each teacher whether it adds noise: the first of a seeded permutation do, so that those of a smaller ratio are a
    /// subset.
    fn choose(&self, context: &Context<'_>, teachers: usize) -> Vec<bool> {
        let mut order: Vec<usize> = (0..teachers).collect();
        order.shuffle(&mut context.streams.stream("honest teachers", 0));
        let mut is_noisy = vec![false; teachers];
        order.iter().take(self.count).for_each(|&teacher| is_noisy[teacher] = true);
        is_noisy
    }
}

/// Returns the bound that the noise of any class of any query exceeds with a probability of at most [`RANGE_FAILURE`].
pub(super) fn noise_bound(context: &Context<'_>, question: &Question<'_>) -> Result<u64, ExperimentError> {
    let counts = (question.queries.len() * question.votes.shape().classes()) as u64;
    Ok(sum_support_bound(context.config.noise.gamma, HonestRatio::ALL, counts, RANGE_FAILURE)?)
}

/// Returns a seed for noise or keys, only where the config asks for a simulation.
pub(super) fn simulation_seed(context: &Context<'_>, name: &str, index: u64) -> Option<[u8; 32]> {
    context.config.is_simulation().then(|| context.streams.stream(name, index).random())
}
