//! Delta shared between a claim of exact noise and the imperfection of the sampler.

use crate::delta::Delta;
use crate::epsilon_bound::EpsilonBound;
use crate::error::AccountError;
use crate::event::PrivacyEvent;

/// The part of delta that is set aside for the sampler, if it is enough.
const SET_ASIDE: f64 = 1e-6;

/// Delta of a claim, and the total variation distance of the sampler from the exact noise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedDelta {
    delta: f64,
    distance: f64,
}

/// Delta that is left for exact noise, and the largest epsilon for which the rest covers the sampler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Remainder {
    pub(crate) delta: f64,
    pub(crate) max_epsilon: f64,
}

impl SharedDelta {
    pub(crate) fn new(event: &PrivacyEvent, delta: Delta) -> Self {
        Self { delta: delta.get(), distance: event.sampling_total_variation() }
    }

    pub(crate) fn with(self, event: &PrivacyEvent) -> Self {
        Self { distance: (self.distance + event.sampling_total_variation()) * (1.0 + 2.0 * f64::EPSILON), ..self }
    }

    /// Returns the part of delta that a sampler within a total variation distance of `d` costs: a mechanism within `d`
    /// of an (epsilon, delta')-private one is (epsilon, delta' + (1 + e^epsilon) d)-private.
    fn charge(&self, epsilon: f64) -> f64 {
        match self.distance {
            0.0 => 0.0,
            distance => (1.0 + epsilon.exp()) * distance * (1.0 + 4.0 * f64::EPSILON),
        }
    }

    pub(crate) fn used_up(&self, epsilon: f64) -> AccountError {
        AccountError::DeltaUsedUp { charge: self.charge(epsilon), delta: self.delta, epsilon }
    }

    pub(crate) fn with_little_set_aside(&self) -> Result<Remainder, AccountError> {
        if self.distance == 0.0 {
            return Ok(Remainder { delta: self.delta, max_epsilon: f64::INFINITY });
        }
        let aside = self.delta * SET_ASIDE;
        let max_epsilon = (aside / self.distance * (1.0 - 1e-12) - 1.0).ln();
        if max_epsilon > 0.0 {
            Ok(Remainder { delta: (self.delta - aside).next_down(), max_epsilon })
        } else {
            Err(self.used_up(0.0))
        }
    }

    /// Finds the least epsilon at which delta also covers the sampler; `least` computes the least epsilon of exact
    /// noise at a given delta.
    pub(crate) fn least(
        &self,
        least: impl Fn(f64) -> Result<EpsilonBound, AccountError>,
    ) -> Result<EpsilonBound, AccountError> {
        if let Ok(remainder) = self.with_little_set_aside() {
            let bound = least(remainder.delta)?;
            if bound.best.epsilon <= remainder.max_epsilon {
                return Ok(bound);
            }
        }
        // Sets a larger part aside: the charge at an epsilon of one more than without a sampler.
        let max_epsilon = least(self.delta)?.best.epsilon + 1.0;
        let left = (self.delta - self.charge(max_epsilon)).next_down();
        if left.is_nan() || left <= 0.0 {
            return Err(self.used_up(max_epsilon));
        }
        let bound = least(left)?;
        if bound.best.epsilon <= max_epsilon { Ok(bound) } else { Err(self.used_up(bound.best.epsilon)) }
    }
}
