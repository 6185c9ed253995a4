//! The exact distributions of rows of votes.

use super::rows::DistinctRow;
use crate::assumption::Bound;
use crate::collusion::{KnownNoise, KnownRow};
use crate::neighbour_losses::{ExactDifference, ExactNoise, NeighbourLosses, Unlikely};
use crate::noise_case::{NoiseCase, OtherNoise};
use crate::votes::CheckedCounts;

/// Answers less likely than this part of a query's share of delta count with the worst ratio.
const HARDLY_SHOWS: f64 = 1e-7;
/// The number of neighbours grows with the square of the number of classes. Beyond this number, the bounds from `q` are
/// used.
const MAX_CLASSES: usize = 40;

/// The exact computation that noise and votes allow.
pub(super) enum ExactMethod {
    /// No exact method: the bounds from `q` are used.
    None,
    /// The answers at the votes and at every neighbour, for rows that are worth it.
    Neighbours(ExactNoise),
    /// The same for two classes, for all rows.
    Difference(ExactDifference),
    /// Known noise averaged, for rows that are worth it.
    KnownNoise(KnownNoise),
}

#[derive(Default)]
pub(super) struct ExactRow {
    pub(super) neighbours: Option<NeighbourLosses>,
    pub(super) known: Option<KnownRow>,
}

impl ExactMethod {
    /// Chooses the method of a case; `unlikely` is for one query, `delta` for all queries.
    pub(super) fn choose(
        case: &NoiseCase,
        bound: Bound,
        unlikely: Unlikely,
        delta: f64,
        votes: &CheckedCounts<'_>,
    ) -> Self {
        let few_classes = votes.gaps.iter().all(|gaps| gaps.classes() <= MAX_CLASSES);
        if bound != Bound::Tight || !few_classes {
            return Self::None;
        }
        let event = &case.event;
        match case.others {
            OtherNoise::Missing => {
                let rows = votes.counts.iter().map(Vec::as_slice);
                let share = delta / votes.queries() as f64;
                let exact = || match unlikely {
                    Unlikely::Bounded(epsilon) => ExactNoise::new(event, epsilon, HARDLY_SHOWS * share),
                    Unlikely::LeftOut(probability) => ExactNoise::leaving_out(event, probability),
                };
                ExactDifference::new(event, unlikely, rows)
                    .map(Self::Difference)
                    .or_else(|| exact().map(Self::Neighbours))
            }
            OtherNoise::Known(known) => KnownNoise::new(event, known, unlikely).map(Self::KnownNoise),
        }
        .unwrap_or(Self::None)
    }

    /// Says whether the order of the classes matters: it does if ties are resolved.
    pub(super) fn resolves_ties(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Says whether the method is applied only to rows that are worth its time. Without a pure epsilon no other bound
    /// uses the votes.
    pub(super) fn is_selective(&self) -> bool {
        match self {
            Self::Neighbours(exact) => exact.has_pure_epsilon(),
            Self::KnownNoise(known) => known.has_pure_epsilon(),
            Self::None | Self::Difference(_) => false,
        }
    }

    /// Computes the losses of one row; empty for a row that is not worth it.
    pub(super) fn row(&self, row: &DistinctRow<'_>, worth: bool) -> ExactRow {
        let (counts, has_empty_vote) = (&row.counts, row.has_empty_vote);
        let neighbours = |losses: NeighbourLosses| ExactRow { neighbours: Some(losses), known: None };
        match self {
            Self::Neighbours(exact) if worth => neighbours(exact.losses(counts, has_empty_vote)),
            Self::Difference(exact) if worth => neighbours(exact.losses(counts, has_empty_vote)),
            Self::KnownNoise(known) if worth => {
                ExactRow { neighbours: None, known: Some(KnownRow::new(known, counts, has_empty_vote)) }
            }
            Self::None | Self::Neighbours(_) | Self::Difference(_) | Self::KnownNoise(_) => ExactRow::default(),
        }
    }

    pub(super) fn known_noise(self) -> Option<KnownNoise> {
        match self {
            Self::KnownNoise(known) => Some(known),
            Self::None | Self::Neighbours(_) | Self::Difference(_) => None,
        }
    }
}
