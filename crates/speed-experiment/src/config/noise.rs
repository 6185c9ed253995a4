//! The privacy noise: `[noise]`, and the keys of a row that override it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use speed_accountant::{AccountError, PrivacyEvent};
use speed_aggregation::PrivacyNoise;
use speed_aggregation::error::PrivacyNoiseError;
use speed_core::{NoisePlacement, RandomnessKind};
use speed_mechanism::{HonestRatio, Mechanism, MechanismKind, NoiseShare};

use super::fault::{Fault, refuse};

/// `[noise]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawNoise {
    pub mechanism: MechanismKind,
    pub gamma: f64,
    // The default values of the next three keys are not written, so configs that do not set them keep their run ids.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sigma: f64,
    #[serde(default, skip_serializing_if = "is_distributed")]
    pub placement: NoisePlacement,
    #[serde(default, skip_serializing_if = "is_none")]
    pub threshold: i64,
    pub source: RandomnessKind,
}

/// The keys of a row that override `[noise]`, as written; 0 and "default" keep the section's values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RowNoise {
    pub(super) mechanism: Choice<MechanismKind>,
    pub(super) gamma: f64,
    pub(super) sigma: f64,
    pub(super) placement: Choice<NoisePlacement>,
    pub(super) threshold: i64,
}

/// A row's choice as written: a name, or "default" for the section's choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<T>(pub Option<T>);

/// The noise of a query, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryNoise {
    /// The noise of all teachers together, or of the server.
    pub noise: PrivacyNoise,
    /// The parties that add it.
    pub placement: NoisePlacement,
    /// The minimum of the noisy maximum for an answer, in votes; `None` if every query has an answer.
    pub threshold: Option<i64>,
}

/// The privacy noise, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseConfig {
    /// The noise of rows without their own noise keys.
    pub query: QueryNoise,
    /// The origin of noise and keys.
    pub randomness: RandomnessKind,
    written: RawNoise,
}

pub(super) fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

fn is_distributed(placement: &NoisePlacement) -> bool {
    *placement == NoisePlacement::Distributed
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
pub(super) fn is_none(threshold: &i64) -> bool {
    *threshold == 0
}

impl RawNoise {
    /// Checks the section for an ensemble of `teachers`.
    pub(super) fn check(&self, teachers: usize) -> Result<NoiseConfig, Fault> {
        let query =
            self.query(teachers).map_err(|Fault { key, message }| Fault::new(format!("noise.{key}"), message))?;
        Ok(NoiseConfig { query, randomness: self.source, written: self.clone() })
    }

    /// Checks the noise of a query; faults name the key within the section.
    fn query(&self, teachers: usize) -> Result<QueryNoise, Fault> {
        let scale = match self.mechanism {
            MechanismKind::DiscreteLaplace => ("gamma", self.gamma),
            MechanismKind::Skellam => ("sigma", self.sigma),
            MechanismKind::Laplace | MechanismKind::Gaussian => {
                let expected = PrivacyNoise::DRAWN.join(" or ");
                return refuse("mechanism", format!("found {}, expected {expected}", self.mechanism));
            }
        };
        let fault = |error: PrivacyNoiseError| Fault::new(scale.0, error);
        let mechanism = self.mechanism.with_scale(scale.1).map_err(|error| fault(error.into()))?;
        let noise = PrivacyNoise::new(mechanism).map_err(fault)?;
        if let Mechanism::DiscreteLaplace { gamma } = mechanism {
            // This also checks the teachers' shares, because very wide noise has no table of shares.
            NoiseShare::new(gamma, teachers).map_err(|error| fault(error.into()))?;
        }
        if mechanism.kind() == MechanismKind::Skellam && self.source != RandomnessKind::Simulation {
            return refuse(
                "mechanism",
                "\"skellam\" noise cannot be charged to a ledger yet: use noise.source = \"simulation\"",
            );
        }
        let query =
            QueryNoise { noise, placement: self.placement, threshold: Some(self.threshold).filter(|&t| t != 0) };
        query.event(HonestRatio::ALL).map_err(|error| Fault::new("threshold", error))?;
        Ok(query)
    }
}

impl RowNoise {
    /// Checks the noise of a row together with the section; faults name the key within the row.
    pub(super) fn check(&self, section: &NoiseConfig, teachers: usize) -> Result<QueryNoise, Fault> {
        let written = &section.written;
        let or = |own: f64, section: f64| if own == 0.0 { section } else { own };
        let query = RawNoise {
            mechanism: self.mechanism.0.unwrap_or(written.mechanism),
            gamma: or(self.gamma, written.gamma),
            sigma: or(self.sigma, written.sigma),
            placement: self.placement.0.unwrap_or(written.placement),
            threshold: if self.threshold == 0 { written.threshold } else { self.threshold },
            source: written.source,
        };
        query.query(teachers)
    }
}

impl QueryNoise {
    /// Returns the distribution.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        self.noise.mechanism()
    }

    /// Returns the query as an event for the accountant, without the sampler's distance. A ratio `tau` of the teachers
    /// contributes present and secret noise; if the server adds the noise, all of it counts.
    ///
    /// # Errors
    /// If the threshold is out of range.
    pub fn event(&self, tau: HonestRatio) -> Result<PrivacyEvent, AccountError> {
        let event = PrivacyEvent::new(self.mechanism(), if self.is_central() { HonestRatio::ALL } else { tau });
        #[expect(clippy::cast_precision_loss, reason = "the accountant refuses inexact values")]
        self.threshold.map_or(Ok(event), |votes| event.with_threshold(votes as f64))
    }

    /// Returns whether the server adds the noise.
    #[must_use]
    pub fn is_central(&self) -> bool {
        self.placement == NoisePlacement::Central
    }

    /// Returns the noise as written in `[noise]`; the parameter of the other mechanism is 0.
    #[must_use]
    pub fn written(&self, source: RandomnessKind) -> RawNoise {
        let (mechanism, scale) = (self.mechanism().kind(), self.mechanism().scale());
        let [gamma, sigma] = if mechanism.is_inverse() { [scale, 0.0] } else { [0.0, scale] };
        RawNoise { mechanism, gamma, sigma, placement: self.placement, threshold: self.threshold.unwrap_or(0), source }
    }
}

impl From<&NoiseConfig> for RawNoise {
    fn from(noise: &NoiseConfig) -> Self {
        noise.written.clone()
    }
}

impl<T> Choice<T> {
    pub(super) fn is_default(&self) -> bool {
        self.0.is_none()
    }
}

impl<T> Default for Choice<T> {
    fn default() -> Self {
        Self(None)
    }
}

/// The name of the section's choice.
const DEFAULT: &str = "default";

impl<T: Serialize> Serialize for Choice<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(choice) => choice.serialize(serializer),
            None => serializer.serialize_str(DEFAULT),
        }
    }
}

impl<'de, T: std::str::FromStr<Err = speed_core::NameError>> Deserialize<'de> for Choice<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == DEFAULT {
            return Ok(Self(None));
        }
        let choice = name.parse().map_err(|error| format!("{error}, or {DEFAULT}"));
        choice.map(|choice| Self(Some(choice))).map_err(serde::de::Error::custom)
    }
}
