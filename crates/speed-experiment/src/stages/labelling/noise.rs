//! One-hot votes with the teachers' noise shares.

use rand::RngExt;
use rand::seq::SliceRandom;
use speed_aggregation::encoding::VoteRange;
use speed_aggregation::{NoisyVotes, teacher_values};
use speed_core::{Randomness, VotesError};
use speed_mechanism::MechanismError;

use super::question::RowQuestion;
use crate::error::{ExperimentError, Mismatch};
use crate::stages::context::Context;
use crate::stages::question_round::QuestionRound;
use crate::store::NoiseKey;

/// The number of teachers that add noise, and the key of the noise if it was charged.
pub(super) struct NoisyTeachers {
    pub(super) count: usize,
    pub(super) key: Option<NoiseKey>,
}

impl NoisyTeachers {
    /// Returns one-hot votes with each noisy teacher's own shares, or with the server's noise. In a simulation a
    /// teacher's shares are the same in every row, and different in every round of questions.
    pub(super) fn votes(
        &self,
        context: &Context<'_>,
        question: &RowQuestion<'_>,
    ) -> Result<NoisyVotes, ExperimentError> {
        let RowQuestion { row, votes, queries, round, .. } = *question;
        let shape = votes.shape().with_queries(queries.len()).map_err(VotesError::from)?;
        let noise = row.noise.noise;
        let share = noise.share_of(shape.teachers())?;

        let mut values = Vec::with_capacity(shape.teachers() * shape.counts());
        for (teacher, is_noisy) in self.choose(context, shape.teachers()).into_iter().enumerate() {
            let labels = &votes.teacher(teacher)[..queries.len()];
            let randomness = self.randomness(context, round, teacher);
            let own = (is_noisy && !row.noise.is_central()).then_some((&share, &randomness));
            values.extend_from_slice(&teacher_values(shape, labels, own).map_err(MechanismError::from)?);
        }
        let mut votes = NoisyVotes::new(shape, noise.bound(shape)?, values).map_err(Mismatch::NoisyVotes)?;
        if row.noise.is_central() {
            let drawn = noise
                .share_of(1)?
                .draw(shape.counts(), &self.of_server(context, round))
                .map_err(MechanismError::from)?;
            votes = votes.with_server_noise(drawn.to_vec()).map_err(Mismatch::NoisyVotes)?;
        }
        Ok(row.noise.threshold.into_iter().fold(votes, NoisyVotes::with_threshold))
    }

    /// Returns the randomness of the server's noise.
    fn of_server(&self, context: &Context<'_>, round: QuestionRound) -> Randomness {
        match (simulation_seed(context, round.name("central noise", "central noise again"), 0), &self.key) {
            (Some(seed), _) => Randomness::simulation(seed),
            (None, Some(key)) => key.of_server(),
            (None, None) => Randomness::OperatingSystem,
        }
    }

    fn randomness(&self, context: &Context<'_>, round: QuestionRound, teacher: usize) -> Randomness {
        match (simulation_seed(context, round.name("noise", "noise again"), teacher as u64), &self.key) {
            (Some(seed), _) => Randomness::simulation(seed),
            (None, Some(key)) => key.of_teacher(teacher),
            (None, None) => Randomness::OperatingSystem,
        }
    }

    /// Returns for each teacher whether it adds noise. The first ones of a seeded permutation do, so that the teachers
    /// of a smaller ratio are a subset.
    fn choose(&self, context: &Context<'_>, teachers: usize) -> Vec<bool> {
        let mut order: Vec<usize> = (0..teachers).collect();
        order.shuffle(&mut context.streams.stream("honest teachers", 0));
        let mut is_noisy = vec![false; teachers];
        order.iter().take(self.count).for_each(|&teacher| is_noisy[teacher] = true);
        is_noisy
    }
}

/// Returns the range of the noisy counts of a row's queries.
pub(super) fn range(question: &RowQuestion<'_>) -> Result<VoteRange, ExperimentError> {
    let shape = question.votes.shape().with_queries(question.queries.len()).map_err(VotesError::from)?;
    Ok(VoteRange::new(shape.teachers(), question.row.noise.noise.bound(shape)?))
}

/// Returns a seed for noise or keys, only if the config is a simulation.
pub(super) fn simulation_seed(context: &Context<'_>, name: &str, index: u64) -> Option<[u8; 32]> {
    context.config.is_simulation().then(|| context.streams.stream(name, index).random())
}
