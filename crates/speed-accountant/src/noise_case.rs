//! Cases of the other teachers' noise that one claim covers.

use speed_mechanism::HonestRatio;

use crate::assumption::{Adversary, Assumptions, Bound, Extent};
use crate::error::AccountError;
use crate::event::PrivacyEvent;

/// The largest number of teachers that are counted one by one.
const MAX_TEACHERS: u64 = 2_000;

/// Noise of the teachers beyond the ratio `tau`, in all queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum OtherNoise {
    /// The noise was not added, or there are no such teachers.
    Missing,
    /// The adversary knows the noise of this ratio of the teachers; the noise of the others is missing.
    Known(HonestRatio),
}

/// The noise that the adversary does not know, and the noise that it knows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NoiseCase {
    pub(crate) event: PrivacyEvent,
    pub(crate) others: OtherNoise,
}

impl NoiseCase {
    /// Returns the query with the known noise counted as unknown, because all noise counts for the probability of
    /// another outcome.
    pub(crate) fn with_all_noise_unknown(&self) -> PrivacyEvent {
        match self.others {
            OtherNoise::Missing => self.event,
            OtherNoise::Known(known) => self.event.with_more_noise(known),
        }
    }

    /// Lists every case that the assumptions allow; the first is the case with all other noise missing, except for the
    /// paper's formulas under collusion.
    pub(crate) fn all(event: PrivacyEvent, given: &Assumptions, teachers: u64) -> Result<Vec<Self>, AccountError> {
        let tau = event.tau();
        let (n, beyond) = (teachers as f64, 1.0 - tau.get());
        // Numbers of teachers beyond the ratio, as ratios.
        let counted = || (1..=teachers).map(|j| j as f64 / n);
        let too_many = || {
            AccountError::Invalid(format!(
                "there are {teachers} teachers: with \"up to\" every number of missing teachers is tried, for at most 2000 teachers"
            ))
        };
        let ratio = |ratio: f64| HonestRatio::new(ratio).map_err(|_| too_many());
        if given.extent == Extent::UpTo && teachers > MAX_TEACHERS {
            return Err(too_many());
        }
        let missing = |event: PrivacyEvent| Self { event, others: OtherNoise::Missing };
        let known = |known: f64| Ok::<_, AccountError>(Self { event, others: OtherNoise::Known(ratio(known)?) });
        let mut cases = vec![missing(event)];
        match (given.adversary, given.extent) {
            _ if tau.get() == 1.0 => {}
            (Adversary::ExternalWithCentral, _) | (Adversary::ExternalWithDropout, Extent::Exactly) => {}
            // The paper's formulas cover only one case.
            (Adversary::Colluding, _) if given.bound == Bound::Paper => cases = vec![known(beyond)?],
            (Adversary::Colluding, Extent::Exactly) => cases.push(known(beyond)?),
            (Adversary::Colluding, Extent::UpTo) => {
                // Secret noise costs no more than if it were known.
                for fewer in counted().filter(|fewer| *fewer < beyond * (1.0 - 1e-12)).chain([beyond]) {
                    cases.push(known(fewer)?);
                }
            }
            (Adversary::ExternalWithDropout, Extent::UpTo) => {
                for more in counted().filter(|more| *more > tau.get() * (1.0 + 1e-12)) {
                    cases.push(missing(event.with_tau(ratio(more)?)));
                }
            }
        }
        Ok(cases)
    }
}
