//! The keys of a run, used for all its rows.

use std::cell::{OnceCell, RefCell};
use std::time::{Duration, Instant};

use speed_aggregation::Encrypted;
use speed_aggregation::encoding::{Encoding, VoteRange};
use speed_aggregation::error::AggregationError;
use speed_aggregation::paper::PaperArgmax;
use speed_core::Randomness;

use super::noise::simulation_seed;
use crate::stages::context::Context;

/// The keys of a run, generated when the first encrypted row needs them.
#[derive(Default)]
pub(crate) struct RunKeys {
    encrypted: RefCell<Option<Encrypted>>,
    paper: OnceCell<(PaperArgmax, Duration)>,
}

impl RunKeys {
    /// Returns keys of the fastest parameter set for the range of these votes, or the last keys if they are suitable.
    pub(super) fn encrypted(
        &self,
        context: &Context<'_>,
        candidates: usize,
        range: VoteRange,
    ) -> Result<Encrypted, AggregationError> {
        let serves = |keys: &Encrypted| Encoding::new(keys.public_key().parameters(), candidates, range).is_ok();
        let mut last = self.encrypted.borrow_mut();
        if let Some(keys) = last.as_ref().filter(|keys| serves(keys)) {
            return Ok(keys.clone());
        }
        let parameters = Encoding::choose_parameters(candidates, range)?;
        let keys = Encrypted::new(&parameters, randomness(context), b"", context.threads)?;
        Ok(last.insert(keys).clone())
    }

    /// Returns the keys of the paper's circuit and the time of their generation.
    pub(super) fn paper(&self, context: &Context<'_>) -> Result<&(PaperArgmax, Duration), AggregationError> {
        if let Some(keys) = self.paper.get() {
            return Ok(keys);
        }
        let start = Instant::now();
        let keys = PaperArgmax::new(randomness(context), context.config.ensemble.teachers)?;
        Ok(self.paper.get_or_init(|| (keys, start.elapsed())))
    }
}

fn randomness(context: &Context<'_>) -> Randomness {
    simulation_seed(context, "keys", 0).map_or(Randomness::OperatingSystem, Randomness::simulation)
}
