//! Comparison of calibrated noise with the range of noisy counts that encryption keys support.

use serde::Serialize;
use speed_accountant::calibrate::Calibration;
use speed_aggregation::encoding::VoteRange;
use speed_aggregation::{Parameters, PrivacyNoise, Round};
use speed_core::VoteShape;
use speed_mechanism::MechanismKind;

/// The assumed number of classes of a round if it is unknown. More classes need a slightly larger range.
const CLASSES: usize = 10;

/// The keys that an encrypted round needs for its noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct KeyRange {
    teachers: usize,
    /// The largest difference of two noisy counts, in votes.
    difference: u64,
    /// Name of the first parameter set that compares such counts; `None` if no set does.
    parameters: Option<&'static str>,
}

impl KeyRange {
    /// Returns the keys for a round of `teachers` teachers, or `None` if a round is impossible for another reason: noise
    /// that is not drawn in shares, or more teachers than a round allows.
    pub(super) fn for_round(kind: MechanismKind, found: &Calibration, teachers: usize) -> Option<Self> {
        let noise = PrivacyNoise::new(kind.with_scale(found.scale).ok()?).ok()?;
        let shape = VoteShape::new(teachers, found.queries.min(Round::MAX_QUERIES), CLASSES).ok()?;
        let difference = VoteRange::new(teachers, noise.bound(shape).ok()?).difference();
        let parameters = Parameters::ALL.iter().find(|parameters| difference <= parameters.range());
        Some(Self { teachers, difference, parameters: parameters.map(Parameters::name) })
    }

    /// Returns a line for terminals if the fastest keys are insufficient.
    pub(super) fn note(&self) -> Option<String> {
        let Self { teachers, difference, parameters } = self;
        let [fastest, widest] = Parameters::ALL;
        match parameters {
            Some(name) if *name == fastest.name() => None,
            Some(name) => {
                Some(format!("An encrypted round of {teachers} teachers needs {name} keys for this noise.\n"))
            }
            None => Some(format!(
                "No encrypted round of {teachers} teachers takes this noise: counts can differ by {difference} votes, and {} keys \
                 compare up to {}. It can be used in clear; for a round ask for a larger epsilon or fewer queries.\n",
                widest.name(),
                widest.range()
            )),
        }
    }
}
