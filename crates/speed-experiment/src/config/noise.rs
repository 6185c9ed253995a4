//! The privacy noise: `[noise]`, and the keys of a row that override it.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use speed_accountant::{AccountError, PrivacyEvent};
use speed_aggregation::PrivacyNoise;
use speed_aggregation::error::PrivacyNoiseError;
use speed_core::{NoisePlacement, RandomnessKind};
use speed_mechanism::{BinomialShare, HonestRatio, Mechanism, MechanismKind, NoiseDeviation, NoiseShare};

use super::fault::{Fault, refuse};

/// `[noise]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawNoise {
    pub mechanism: MechanismKind,
    pub gamma: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub sigma: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub coins: u64,
    pub source: RandomnessKind,
}

/// The noise of a row's queries as written: the values of `[noise]`, unless the row overrides them, with the row's placement and
/// threshold. Fingerprints of stages contain it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct WrittenNoise {
    mechanism: MechanismKind,
    gamma: f64,
    #[serde(skip_serializing_if = "is_unset")]
    sigma: f64,
    #[serde(skip_serializing_if = "is_unset")]
    coins: u64,
    #[serde(skip_serializing_if = "is_unset")]
    placement: NoisePlacement,
    #[serde(skip_serializing_if = "is_unset")]
    threshold: i64,
    source: RandomnessKind,
}

/// The noise keys of a row, as written; 0 and "default" keep the section's values. Only rows have a placement and a threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RowNoise {
    pub(super) mechanism: Choice,
    pub(super) gamma: f64,
    pub(super) sigma: f64,
    pub(super) coins: u64,
    pub(super) placement: NoisePlacement,
    pub(super) threshold: i64,
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

/// The queries of a row: their answers, and the checks that come first, if the row has any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RowQueries {
    pub(super) answers: QueryNoise,
    pub(super) check: Option<QueryNoise>,
}

/// The privacy noise, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseConfig {
    /// The noise of rows without their own noise keys.
    pub query: QueryNoise,
    /// The origin of noise and keys.
    pub randomness: RandomnessKind,
    pub(super) written: RawNoise,
}

/// Returns whether a key has the value that has no effect, which is not written to the resolved config.
pub(super) fn is_unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl RawNoise {
    /// Checks the section for an ensemble of `teachers`.
    pub(super) fn check(&self, teachers: usize) -> Result<NoiseConfig, Fault> {
        let query = self
            .written()
            .query(teachers)
            .map_err(|Fault { key, message }| Fault::new(format!("noise.{key}"), message))?;
        Ok(NoiseConfig { query, randomness: self.source, written: self.clone() })
    }

    /// Returns the noise of rows without keys of their own.
    pub(super) fn written(&self) -> WrittenNoise {
        let Self { mechanism, gamma, sigma, coins, source } = *self;
        WrittenNoise { mechanism, gamma, sigma, coins, placement: NoisePlacement::default(), threshold: 0, source }
    }
}

impl WrittenNoise {
    /// Checks the noise of a query; faults name the key within the section.
    fn query(&self, teachers: usize) -> Result<QueryNoise, Fault> {
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

impl RowNoise {
    /// Checks the noise of a row together with the section, and that of its checks; faults name the key within the row.
    pub(super) fn check(&self, width: f64, section: &NoiseConfig, teachers: usize) -> Result<RowQueries, Fault> {
        let merged = self.merged(&section.written);
        if width == 0.0 {
            return Ok(RowQueries { answers: merged.query(teachers)?, check: None });
        }
        if merged.threshold == 0 {
            return refuse("threshold", "found 0, but a check compares with a threshold: expected a number of votes");
        }
        // The answers have no threshold of their own, so their coins may be odd.
        let answers = WrittenNoise { threshold: 0, ..merged.clone() }.query(teachers)?;
        // The width is that of the row's mechanism, which reads only one of these keys.
        let check = WrittenNoise { gamma: width, sigma: width, coins: 0, ..merged };
        let of_check = |Fault { key, message }: Fault| match key.as_str() {
            "gamma" | "sigma" => Fault::new("check_noise", message),
            _ => Fault::new(key, message),
        };
        let check = check.query(teachers).map_err(of_check)?;
        Ok(RowQueries { answers, check: Some(QueryNoise { is_check: true, ..check }) })
    }

    /// Returns the noise of a row with the values of the section that it does not override.
    fn merged(&self, section: &RawNoise) -> WrittenNoise {
        let or = |own: f64, section: f64| if own == 0.0 { section } else { own };
        let mechanism = self.mechanism.0.unwrap_or(section.mechanism);
        // A row's own coins or sigma replace both values of the section, because binomial noise has only one of them.
        let has_own_width = self.coins != 0 || self.sigma != 0.0;
        let inherits_coins = mechanism == MechanismKind::Binomial && !has_own_width;
        WrittenNoise {
            mechanism,
            gamma: or(self.gamma, section.gamma),
            sigma: if has_own_width { self.sigma } else { section.sigma },
            coins: if inherits_coins { section.coins } else { self.coins },
            placement: self.placement,
            threshold: self.threshold,
            source: section.source,
        }
    }
}

impl QueryNoise {
    /// Returns the distribution.
    pub(crate) fn mechanism(&self) -> Mechanism {
        self.noise.mechanism()
    }

    /// Returns the query as an event for the accountant, without the sampler's distance. A ratio `tau` of the teachers
    /// contributes present and secret noise; if the server adds the noise, all of it counts.
    ///
    /// # Errors
    /// If the threshold is out of range.
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

    /// Returns whether the server adds the noise.
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

impl From<&NoiseConfig> for RawNoise {
    fn from(noise: &NoiseConfig) -> Self {
        noise.written.clone()
    }
}

/// The name of the section's mechanism.
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
