//! The privacy noise: `[noise]`, and the keys of a row that override it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use speed_accountant::{AccountError, PrivacyEvent};
use speed_aggregation::PrivacyNoise;
use speed_aggregation::error::PrivacyNoiseError;
use speed_core::{NoisePlacement, RandomnessKind};
use speed_mechanism::{BinomialShare, HonestRatio, Mechanism, MechanismKind, NoiseDeviation, NoiseShare};

use super::fault::{Fault, refuse};

/// The noise of rows without their own noise keys: `[noise]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct NoiseConfig {
    pub mechanism: MechanismKind,
    pub gamma: f64,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub sigma: f64,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub coins: u64,
    pub source: RandomnessKind,
}

/// The noise of a row's queries as written: the values of `[noise]`, unless the row overrides them, with the row's placement and
/// threshold. Fingerprints of stages contain it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct WrittenNoise {
    pub(super) mechanism: MechanismKind,
    pub(super) gamma: f64,
    #[serde(skip_serializing_if = "speed_core::is_default")]
    pub(super) sigma: f64,
    #[serde(skip_serializing_if = "speed_core::is_default")]
    pub(super) coins: u64,
    #[serde(skip_serializing_if = "speed_core::is_default")]
    pub(super) placement: NoisePlacement,
    #[serde(skip_serializing_if = "speed_core::is_default")]
    pub(super) threshold: i64,
    pub(super) source: RandomnessKind,
}

/// A row's mechanism as written: a name, or "default" for the section's mechanism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice(pub Option<MechanismKind>);

/// The noise of a query, checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryNoise {
    /// The noise of all teachers together, or of the server.
    pub noise: PrivacyNoise,
    /// The parties that add it.
    pub placement: NoisePlacement,
    /// The minimum of the noisy maximum for an answer, in votes; `None` if every query has an answer.
    pub threshold: Option<i64>,
    /// Whether the query is a check: only whether the noisy maximum reaches the threshold is asked.
    pub is_check: bool,
}

impl NoiseConfig {
    pub(super) fn check(&self, teachers: usize) -> Result<(), Fault> {
        let checked = self.written().query(teachers).map(drop);
        checked.map_err(|Fault { key, message }| Fault::new(format!("noise.{key}"), message))
    }

    pub(super) fn written(&self) -> WrittenNoise {
        let Self { mechanism, gamma, sigma, coins, source } = *self;
        WrittenNoise { mechanism, gamma, sigma, coins, placement: NoisePlacement::default(), threshold: 0, source }
    }
}

impl WrittenNoise {
    /// Checks the noise of a query; faults name the key within the section.
    pub(super) fn query(&self, teachers: usize) -> Result<QueryNoise, Fault> {
        let (key, noise) = self.distribution(teachers)?;
        // This also checks the shares, because very wide noise has none.
        let shared = match noise.mechanism() {
            Mechanism::DiscreteLaplace { gamma } => NoiseShare::new(gamma, teachers).map(|_| ()),
            Mechanism::Binomial { coins } if self.placement == NoisePlacement::Central => {
                BinomialShare::new(coins, 1).map(|_| ())
            }
            _ => Ok(()),
        };
        let has_threshold = self.threshold != 0;
        let is_allowed = if has_threshold { noise.check_threshold(teachers) } else { Ok(()) };
        shared.and(is_allowed).map_err(|error| Fault::new(key, error))?;
        let threshold = has_threshold.then_some(self.threshold);
        let query = QueryNoise { noise, placement: self.placement, threshold, is_check: false };
        query.event(HonestRatio::ALL).map_err(|error| Fault::new("threshold", error))?;
        Ok(query)
    }

    /// Returns the noise of `teachers` teachers together, and the key that sets its width.
    pub(super) fn distribution(&self, teachers: usize) -> Result<(&'static str, PrivacyNoise), Fault> {
        let (kind, sigma, coins) = (self.mechanism, self.sigma, self.coins);
        let with_scale = |scale| PrivacyNoise::new(kind.with_scale(scale)?);
        let (key, noise) = match kind {
            MechanismKind::Laplace | MechanismKind::Gaussian => {
                let expected = PrivacyNoise::DRAWN.join(" or ");
                return refuse("mechanism", format!("found {kind}, expected {expected}"));
            }
            MechanismKind::DiscreteLaplace | MechanismKind::Skellam if coins != 0 => {
                return refuse(
                    "coins",
                    format!("found {coins}, but {kind} noise has no coins: only binomial noise has"),
                );
            }
            MechanismKind::DiscreteLaplace => ("gamma", with_scale(self.gamma)),
            MechanismKind::Skellam => ("sigma", with_scale(sigma)),
            MechanismKind::Binomial if coins != 0 && sigma != 0.0 => {
                return refuse("coins", format!("found {coins} and sigma = {sigma}, expected only one of the two"));
            }
            MechanismKind::Binomial if coins != 0 => ("coins", PrivacyNoise::of_coins(coins, teachers)),
            MechanismKind::Binomial if sigma != 0.0 => ("sigma", self.of_deviation(teachers)),
            MechanismKind::Binomial => {
                let message =
                    "binomial noise needs the coins of one teacher for each class and query, or sigma in votes";
                return refuse("coins", message);
            }
        };
        noise.map(|noise| (key, noise)).map_err(|error| Fault::new(key, error))
    }

    /// Returns binomial noise of the fewest coins whose deviation is at least sigma.
    fn of_deviation(&self, teachers: usize) -> Result<PrivacyNoise, PrivacyNoiseError> {
        PrivacyNoise::of_deviation(NoiseDeviation::new(self.sigma)?, teachers, self.threshold != 0)
    }
}

impl QueryNoise {
    pub(crate) fn mechanism(&self) -> Mechanism {
        self.noise.mechanism()
    }

    /// Returns the query as an event for the accountant, without the sampler's distance. A ratio `tau` of the teachers
    /// contributes present and secret noise; if the server adds the noise, all of it counts.
    pub(crate) fn event(&self, tau: HonestRatio) -> Result<PrivacyEvent, AccountError> {
        let tau = if self.is_central() { HonestRatio::ALL } else { tau };
        #[expect(clippy::cast_precision_loss, reason = "the accountant refuses inexact values")]
        match self.threshold {
            None => Ok(PrivacyEvent::new(self.mechanism(), tau)),
            Some(votes) if self.is_check => PrivacyEvent::check(self.mechanism(), tau, votes as f64),
            Some(votes) => PrivacyEvent::new(self.mechanism(), tau).with_threshold(votes as f64),
        }
    }

    /// Returns the number of values of a query with noise of their own: one for each class, or one for a check.
    pub(crate) fn draws(&self, classes: usize) -> usize {
        if self.is_check { 1 } else { classes }
    }

    pub(crate) fn is_central(&self) -> bool {
        self.placement == NoisePlacement::Central
    }

    /// Returns the noise as written; the parameters of other mechanisms are 0. The coins of binomial noise are those of all
    /// teachers, so that noise of the same width has the same form.
    pub(crate) fn written(&self, source: RandomnessKind) -> WrittenNoise {
        let mut raw = WrittenNoise {
            mechanism: self.mechanism().kind(),
            gamma: 0.0,
            sigma: 0.0,
            coins: 0,
            placement: self.placement,
            threshold: self.threshold.unwrap_or(0),
            source,
        };
        match self.mechanism() {
            Mechanism::Laplace { gamma } | Mechanism::DiscreteLaplace { gamma } => raw.gamma = gamma.get(),
            Mechanism::Gaussian { sigma } | Mechanism::Skellam { sigma } => raw.sigma = sigma.get(),
            Mechanism::Binomial { coins } => raw.coins = coins.get(),
        }
        raw
    }
}

const DEFAULT: &str = "default";

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(mechanism) => mechanism.serialize(serializer),
            None => serializer.serialize_str(DEFAULT),
        }
    }
}

impl<'de> Deserialize<'de> for Choice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == DEFAULT {
            return Ok(Self(None));
        }
        let mechanism = name.parse::<MechanismKind>().map_err(|error| format!("{error}, or {DEFAULT}"));
        mechanism.map(|mechanism| Self(Some(mechanism))).map_err(serde::de::Error::custom)
    }
}
