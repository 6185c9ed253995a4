//! Queries of one kind, whatever the votes are: their moments, and the distributions that dominate each of them.

use speed_mechanism::Mechanism;

use crate::composition::{
    PrivacyLossDistribution, PrivacyProfile, composed, laplace_excess, optimal_epsilon, pure_excess,
};
use crate::epsilon_bound::CompositionMethod;
use crate::event::PrivacyEvent;
use crate::memo::Memo;
use crate::moments::pure_moment;
use crate::per_query::tight_per_query_epsilon;
use crate::renyi::{SkellamCurve, gaussian_rdp};
use crate::three_answers::{LargestMoment, ThreeAnswers, TwoCounts};

/// Grid steps from 0 to the largest loss of one noisy count.
const STEPS_OF_A_COUNT: usize = 128;
/// Above this loss, the numbers of a profile are too large.
const LARGEST_LOSS_OF_A_COUNT: f64 = 300.0;

pub(crate) type Moments = Box<dyn Fn(f64) -> f64>;

/// Queries of one kind: the same noise and pure epsilon, all of them checks or none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueryGroup {
    pub(crate) event: PrivacyEvent,
    /// Pure epsilon of one query; infinite for noise other than Laplace noise.
    pub(crate) epsilon: f64,
    /// Whether the answer depends on one difference of noise. Laplace noise counts as false, because its epsilon tells
    /// all.
    pub(crate) one_difference: bool,
    pub(crate) queries: usize,
}

impl QueryGroup {
    /// Creates a group of `queries` queries between `classes` classes. The threshold enters only through the epsilon of
    /// one query, so groups that differ in the threshold alone are merged.
    pub(crate) fn new(event: PrivacyEvent, classes: usize, queries: usize) -> Self {
        let epsilon = tight_per_query_epsilon(&event, classes);
        let one_difference = event.mechanism().gamma().is_none() && event.is_one_difference(classes);
        Self { event: event.for_any_votes(), epsilon, one_difference, queries }
    }

    pub(crate) fn is_pure(&self) -> bool {
        self.event.mechanism().gamma().is_some()
    }

    /// Returns the number of classes that stands for the kind of query: the bounds know two classes and more.
    pub(crate) fn classes(&self) -> usize {
        if self.one_difference { 2 } else { usize::MAX }
    }

    /// Returns the data-independent moments of one query as a function of the order. Answers less likely than `left_out`
    /// may be left out; the caller charges `2 left_out` to delta for each query.
    pub(crate) fn moments(&self, left_out: f64) -> Moments {
        self.bounded_by(left_out, LargestMoment::excess_of)
    }

    /// Returns estimates of [`Self::moments`], which are cheaper and only guide the search for an order.
    pub(crate) fn estimates(&self, left_out: f64) -> Moments {
        self.bounded_by(left_out, LargestMoment::estimate_of)
    }

    /// Returns the moments, given a function that bounds the excess of the largest moment.
    fn bounded_by(&self, left_out: f64, excess: fn(&LargestMoment, bool, f64) -> f64) -> Moments {
        let (event, epsilon, one_difference) = (self.event, self.epsilon, self.one_difference);
        let largest = |query: Option<std::sync::Arc<LargestMoment>>| {
            move |l: f64| query.as_ref().map_or(f64::INFINITY, |query| excess(query, one_difference, l).ln_1p())
        };
        match event.mechanism() {
            Mechanism::Laplace { .. } | Mechanism::DiscreteLaplace { .. } => {
                let losses = self.three_answers();
                if event.is_of_party() {
                    let moments = self.of_party(left_out, excess);
                    return Box::new(move |l| pure_moment(epsilon, l).min(moments(l)));
                }
                Box::new(move |l| {
                    let three = losses.as_ref().map_or(f64::INFINITY, |losses| losses.moment(l));
                    pure_moment(epsilon, l).min(three)
                })
            }
            Mechanism::Gaussian { sigma } => {
                let largest = largest(LargestMoment::of_event(&event, left_out));
                let votes = f64::from(event.party_teachers()).powi(2);
                Box::new(move |l| {
                    let counts = votes * l * event.part_of_two_counts() * gaussian_rdp(sigma, event.tau(), l + 1.0);
                    counts.min(largest(l))
                })
            }
            Mechanism::Skellam { .. } | Mechanism::Binomial { .. } if event.is_of_party() => {
                self.of_party(left_out, excess)
            }
            Mechanism::Skellam { sigma } => {
                let curve = SkellamCurve::new(sigma, event.tau());
                let largest = largest(LargestMoment::of_event(&event, left_out));
                Box::new(move |l| (l * event.part_of_two_counts() * curve.rdp(l + 1.0)).min(largest(l)))
            }
            Mechanism::Binomial { .. } => Box::new(largest(LargestMoment::of_event(&event, left_out))),
        }
    }

    /// Returns moments for neighbours that differ in several teachers and noise on the integers: the smaller of those of the
    /// answer and of two counts. Laplace noise of a part of the teachers has none.
    fn of_party(&self, left_out: f64, excess: fn(&LargestMoment, bool, f64) -> f64) -> Moments {
        let one_difference = self.one_difference;
        let largest = LargestMoment::of_event(&self.event, left_out);
        let counts = TwoCounts::of_event(&self.event, left_out);
        Box::new(move |l| {
            let largest = largest.as_ref().map_or(f64::INFINITY, |query| excess(query, one_difference, l).ln_1p());
            largest.min(counts.as_ref().map_or(f64::INFINITY, |counts| counts.moment(l)))
        })
    }

    /// Returns whether the noise ends where it is not negligible, so that leaving out more may help a party.
    pub(crate) fn ends_early(&self, left_out: f64) -> bool {
        LargestMoment::of_event(&self.event, left_out).is_some_and(|query| query.ends_early())
            || TwoCounts::of_event(&self.event, left_out).is_some_and(|counts| counts.ends_early())
    }

    /// Returns the data-independent moment of order `l` of one query; `left_out` as in [`Self::moments`].
    pub(crate) fn moment(&self, l: f64, left_out: f64) -> f64 {
        self.moments(left_out)(l)
    }

    /// Returns gamma if an observer of both noisy counts between which a vote moves sees the sum of two independent
    /// losses of one count each.
    fn each_of_two_counts(&self) -> Option<f64> {
        let event = self.event;
        let has_two = event.tau().get() == 1.0 && !event.is_check() && !event.is_of_party();
        event.mechanism().gamma().filter(|_| has_two).map(|gamma| gamma.get())
    }

    /// Computes the excess of the privacy profile of one noisy count. A loss of integer noise is always `gamma` or
    /// `-gamma`.
    fn excess_of_a_count(&self, gamma: f64, at: f64) -> f64 {
        if self.event.mechanism().is_integer() { pure_excess(gamma, at) } else { laplace_excess(gamma, at) }
    }

    /// Finds the least epsilon of two noisy counts for each query, and the order by which losses were tilted.
    fn of_two_counts(&self, gamma: f64, delta: f64) -> (f64, CompositionMethod, f64) {
        let counts = self.queries.saturating_mul(2);
        let optimal = (optimal_epsilon(gamma, counts, delta), CompositionMethod::Optimal, 0.0);
        let is_integer = self.event.mechanism().is_integer();
        if is_integer || gamma > LARGEST_LOSS_OF_A_COUNT {
            return optimal;
        }
        let step = gamma / STEPS_OF_A_COUNT as f64;
        let losses = PrivacyProfile::new(step, STEPS_OF_A_COUNT, |at| laplace_excess(gamma, at)).connect();
        let composed = u32::try_from(counts).ok().and_then(|counts| composed(&[(losses, counts)], delta));
        composed.filter(|composed| composed.0 < optimal.0).unwrap_or(optimal)
    }

    /// Computes the distributions that dominate one query, on a grid of `step`, each with its multiplicity.
    pub(crate) fn losses(&self, step: f64) -> Option<Vec<(PrivacyLossDistribution, u32)>> {
        static KNOWN: Memo<4, PrivacyLossDistribution> = Memo::new();
        let times = u32::try_from(self.queries).ok()?;
        let half = |epsilon: f64| ((epsilon / step * (1.0 + 1e-12)).ceil() as usize).max(1);
        if let (Some(three), Some(gamma)) =
            (ThreeAnswers::new(&self.event, self.epsilon), self.event.mechanism().gamma())
        {
            let arguments = [gamma.get(), self.event.tau().get(), self.epsilon, step];
            let losses = KNOWN.get_or(arguments, || three.profile(step, half(self.epsilon)).connect());
            return Some(vec![(losses, times)]);
        }
        if let Some(gamma) = self.each_of_two_counts() {
            let profile = PrivacyProfile::new(step, half(gamma), |at| self.excess_of_a_count(gamma, at));
            return Some(vec![(profile.connect(), times.checked_mul(2)?)]);
        }
        let profile = PrivacyProfile::new(step, half(self.epsilon), |at| pure_excess(self.epsilon, at));
        Some(vec![(profile.connect(), times)])
    }

    /// Finds the least epsilon of Laplace noise known here, the method that gave it, and the order by which losses were
    /// tilted.
    pub(crate) fn least_epsilon_of_pure(&self, delta: f64) -> (f64, CompositionMethod, f64) {
        let pure = (optimal_epsilon(self.epsilon, self.queries, delta), CompositionMethod::Optimal, 0.0);
        let two_counts = self.each_of_two_counts().map(|gamma| self.of_two_counts(gamma, delta));
        let closed = two_counts.filter(|two_counts| two_counts.0 < pure.0).unwrap_or(pure);
        let part = self.three_answers().zip(u32::try_from(self.queries).ok());
        let convolved = part.and_then(|part| composed(&[part], delta));
        convolved.filter(|convolved| convolved.0 < closed.0).unwrap_or(closed)
    }

    /// Returns the distribution that dominates one query, from three answers, which a check does not have. It depends
    /// neither on votes nor on a threshold.
    fn three_answers(&self) -> Option<PrivacyLossDistribution> {
        static KNOWN: Memo<3, PrivacyLossDistribution> = Memo::new();
        let gamma = self.event.mechanism().gamma()?;
        let three = ThreeAnswers::new(&self.event, self.epsilon)?;
        Some(KNOWN.get_or([gamma.get(), self.event.tau().get(), self.epsilon], || three.losses()))
    }
}
