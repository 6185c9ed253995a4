//! The event that is accounted for: the noise of one query.

use speed_core::getters;
use speed_mechanism::{HonestRatio, Mechanism};

use crate::error::AccountError;

/// One query of the noisy argmax, or one check, which is repeated for every row of votes.
///
/// Neighbours are two ensembles that differ in one teacher's vote, or in the votes of all teachers of one party
/// ([`Self::of_party`]). A vote may be empty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacyEvent {
    mechanism: Mechanism,
    tau: HonestRatio,
    threshold: Option<f64>,
    is_check: bool,
    sampling_total_variation: f64,
    /// Number of teachers whose votes differ between neighbours.
    moved: u32,
}

impl PrivacyEvent {
    /// Creates a query whose noise is present and secret for a ratio `tau` of the teachers: the actual ratio of the
    /// run, [`HonestRatio::effective`].
    pub fn new(mechanism: Mechanism, tau: HonestRatio) -> Self {
        Self { mechanism, tau, threshold: None, is_check: false, sampling_total_variation: 0.0, moved: 1 }
    }

    /// Returns the same query for neighbours that differ in the votes of a party of `teachers` teachers: each of its votes
    /// may move from any class to any other, or be empty. With one teacher it is the same event. Such an event has claims for any votes
    /// only, and for at most 256 classes (docs/privacy.md, "A party of several teachers").
    ///
    /// # Errors
    /// [`AccountError::Invalid`] if `teachers` is 0 or more than [`Self::MAX_PARTY`].
    pub fn of_party(self, teachers: usize) -> Result<Self, AccountError> {
        match u32::try_from(teachers) {
            Ok(moved) if (1..=Self::MAX_PARTY).contains(&moved) => Ok(Self { moved, ..self }),
            _ => {
                let max = Self::MAX_PARTY;
                Err(AccountError::Invalid(format!("a party has {teachers} teachers, expected 1 to {max}")))
            }
        }
    }

    /// The largest number of teachers of a party.
    pub const MAX_PARTY: u32 = 1 << 20;

    /// The largest number of classes of a query whose neighbours differ in several teachers.
    pub const MAX_PARTY_CLASSES: usize = 256;

    getters! {
        /// Returns the number of teachers whose votes differ between neighbours.
        party_teachers: u32 = moved,
        /// Returns the noise of all teachers together.
        mechanism: Mechanism,
        /// Returns the ratio of the teachers whose noise is present and secret.
        tau: HonestRatio,
        /// Returns whether the query is a check, whose outcome is not a class.
        is_check: bool,
        /// Returns the number of noisy votes that an answer, or a check, needs.
        threshold: Option<f64>,
        /// Returns the total variation distance of all draws of the run from the exact noise.
        pub(crate) sampling_total_variation: f64,
    }

    pub(crate) fn of_one_teacher(self) -> Self {
        Self { moved: 1, ..self }
    }

    pub(crate) fn is_of_party(&self) -> bool {
        self.moved > 1
    }

    /// Creates a check: whether the largest count plus noise is at least `threshold` votes. All classes have the same
    /// noise, so the outcome depends on one number, the largest count, which a neighbour moves by at most one vote
    /// (docs/privacy.md, "Check"). The class with the largest count is not an outcome. Binomial noise is counted as for
    /// [`Self::with_threshold`].
    ///
    /// # Errors
    /// The errors of [`Self::with_threshold`].
    pub fn check(mechanism: Mechanism, tau: HonestRatio, threshold: f64) -> Result<Self, AccountError> {
        let event = Self::new(mechanism, tau).with_threshold(threshold)?;
        Ok(Self { is_check: true, ..event })
    }

    /// Sets a threshold: the answer is a class only if the largest noisy count is at least `threshold` votes, and "no
    /// answer" otherwise. The check uses the noise of the argmax and draws none of its own. The query is therefore an
    /// argmax with one more candidate, a constant without noise (docs/privacy.md, "Threshold"). Binomial noise is counted
    /// from half of its coins, so every teacher must count its share from half of its own even number of coins.
    ///
    /// # Errors
    /// [`AccountError::Threshold`] if `threshold` is beyond 10^15 votes, or if it is not an integer and the noise is.
    pub fn with_threshold(self, threshold: f64) -> Result<Self, AccountError> {
        let whole = threshold.fract() == 0.0;
        if threshold.abs() <= 1e15 && (whole || !self.mechanism.is_integer()) {
            Ok(Self { threshold: Some(threshold), ..self })
        } else {
            Err(AccountError::Threshold { found: threshold })
        }
    }

    /// Charges the imperfection of the sampler to delta: `distance` bounds the total variation distance of **all**
    /// draws of the run together from the exact noise
    /// ([`NoiseShare::total_variation_of_draws`](speed_mechanism::NoiseShare::total_variation_of_draws)).
    ///
    /// # Errors
    /// [`AccountError::TotalVariation`] if `distance` is not in [0, 1).
    pub fn with_sampling_total_variation(self, distance: f64) -> Result<Self, AccountError> {
        if (0.0..1.0).contains(&distance) {
            Ok(Self { sampling_total_variation: distance, ..self })
        } else {
            Err(AccountError::TotalVariation { found: distance })
        }
    }

    /// Charges the sampler of this noise to delta, like [`Self::with_sampling_total_variation`]. The noise is divided
    /// between `sharers` parties, and `drawing` of them draw a share for each of `values` noisy counts: the number of
    /// queries times the number of classes. Continuous noise has no sampler, so the event is unchanged.
    ///
    /// # Errors
    /// [`AccountError::Mechanism`] if no sampler draws these shares, [`AccountError::TotalVariation`] if there are too
    /// many draws for any claim to hold.
    pub fn with_sampler(self, sharers: usize, drawing: usize, values: usize) -> Result<Self, AccountError> {
        let draws = drawing.saturating_mul(values) as u64;
        match self.mechanism.total_variation_of_shares(sharers, draws)? {
            Some(distance) => self.with_sampling_total_variation(distance),
            None => Ok(self),
        }
    }

    /// Returns numbers that identify the noise of one class, whether the query is a check, and the neighbours: kind, scale,
    /// ratio and moved votes.
    pub(crate) fn noise_key(&self) -> [f64; 4] {
        let kind = f64::from(self.mechanism.kind() as u8);
        [if self.is_check { -1.0 - kind } else { kind }, self.mechanism.scale(), self.tau.get(), f64::from(self.moved)]
    }

    /// Returns the query without its sampler, and without its threshold, on which no bound for any votes depends.
    pub(crate) fn for_any_votes(self) -> Self {
        Self { threshold: None, sampling_total_variation: 0.0, ..self }
    }

    /// Returns the divergence of the noisy counts that a neighbour moves by one vote each, as a part of that of two counts:
    /// a check depends on the largest count only.
    pub(crate) fn part_of_two_counts(&self) -> f64 {
        if self.is_check { 0.5 } else { 1.0 }
    }

    /// Returns whether an answer between `classes` classes depends on a single difference of noise: there are two
    /// classes and no threshold, which would be one more candidate.
    pub(crate) fn is_one_difference(&self, classes: usize) -> bool {
        classes == 2 && self.threshold.is_none() && !self.is_check
    }

    /// Returns whether delta includes the samplers of this noise, either through their distance or because they are
    /// exact.
    pub(crate) fn names_sampler(&self) -> bool {
        self.sampling_total_variation > 0.0 || self.mechanism.has_exact_sampler()
    }

    /// Returns the same query with the noise of a further ratio of the teachers; the total is at most 1.
    pub(crate) fn with_more_noise(self, known: HonestRatio) -> Self {
        let all = (self.tau.get() + known.get()).min(1.0);
        Self { tau: HonestRatio::new(all).unwrap_or(HonestRatio::ALL), ..self }
    }

    pub(crate) fn with_tau(self, tau: HonestRatio) -> Self {
        Self { tau, ..self }
    }
}
