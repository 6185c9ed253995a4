//! One-hot votes with the teachers' noise shares.

use rand::RngExt;
use rand::seq::SliceRandom;
use speed_aggregation::encoding::VoteRange;
use speed_aggregation::{NoisyVotes, check_values, teacher_values};
use speed_core::{Randomness, Vote};
use speed_mechanism::MechanismError;

use super::question::RowQuestion;
use crate::error::ExperimentError;
use crate::stages::context::Context;
use crate::store::NoiseKey;

/// The number of teachers that add noise, and the key of the noise if it was charged.
pub(super) struct NoisyTeachers {
    pub(super) count: usize,
    pub(super) key: Option<NoiseKey>,
}

impl NoisyTeachers {
    /// Returns one-hot or empty votes with each noisy teacher's own shares, or with the server's noise. In a simulation a
    /// teacher's shares are the same in every row.
    pub(super) fn votes(
        &self,
        context: &Context<'_>,
        question: &RowQuestion<'_>,
    ) -> Result<NoisyVotes, ExperimentError> {
        let RowQuestion { votes, noise: query, .. } = *question;
        let (shape, noise) = (question.shape()?, query.noise);
        let share = noise.share_of(shape.teachers())?;
        let values_of = if query.is_check { check_values::<Vote> } else { teacher_values::<Vote> };

        let mut values = Vec::with_capacity(shape.teachers() * shape.counts());
        for (teacher, is_noisy) in self.choose(context, shape.teachers()).into_iter().enumerate() {
            let all = votes.teacher(teacher);
            let asked: Vec<Vote> = (0..question.len()).map(|query| all[question.place(query)]).collect();
            let streams = ["noise", "noise of checks"];
            let randomness = self.randomness(context, question, streams, teacher as u64, |key| key.of_teacher(teacher));
            let own = (is_noisy && !query.is_central()).then_some((&share, &randomness));
            values.extend_from_slice(&values_of(shape, &asked, own).map_err(MechanismError::from)?);
        }
        let mut votes = NoisyVotes::new(shape, noise.bound(shape)?, values)?;
        if query.is_central() {
            let streams = ["central noise", "central noise of checks"];
            let randomness = self.randomness(context, question, streams, 0, NoiseKey::of_server);
            let draws = shape.queries() * query.draws(shape.classes());
            let drawn = noise.share_of(1)?.draw(draws, &randomness).map_err(MechanismError::from)?;
            // All classes of a check have the same noise.
            let each = shape.counts() / draws;
            let drawn = drawn.iter().flat_map(|&value| std::iter::repeat_n(value, each)).collect();
            votes = votes.with_server_noise(drawn)?;
        }
        let votes = votes.with_parties(context.config.ensemble.teachers_of_parties())?;
        Ok(match query.threshold {
            Some(threshold) if query.is_check => votes.with_check(threshold),
            Some(threshold) => votes.with_threshold(threshold),
            None => votes,
        })
    }

    /// Returns the randomness of the noise of answers or checks, which are independent: in a simulation from their streams.
    fn randomness(
        &self,
        context: &Context<'_>,
        question: &RowQuestion<'_>,
        [answers, checks]: [&str; 2],
        index: u64,
        derived: impl Fn(&NoiseKey) -> Randomness,
    ) -> Randomness {
        let stream = if question.noise.is_check { checks } else { answers };
        match (simulation_seed(context, stream, index), &self.key) {
            (Some(seed), _) => Randomness::simulation(seed),
            (None, Some(key)) => derived(key),
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

/// Returns the range of the noisy counts of a question's queries, as far as they are compared.
pub(super) fn range(question: &RowQuestion<'_>) -> Result<VoteRange, ExperimentError> {
    let (shape, noise) = (question.shape()?, question.noise);
    let (teachers, bound) = (shape.teachers(), noise.noise.bound(shape)?);
    Ok(match noise.threshold {
        Some(threshold) if noise.is_check => VoteRange::of_check(teachers, bound, threshold),
        _ => VoteRange::new(teachers, bound),
    })
}

/// Returns a seed for noise or keys, only if the config is a simulation.
pub(super) fn simulation_seed(context: &Context<'_>, name: &str, index: u64) -> Option<[u8; 32]> {
    context.config.is_simulation().then(|| context.streams.stream(name, index).random())
}
