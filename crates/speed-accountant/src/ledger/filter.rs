//! What charges add up to, also where the next charge was chosen after looking at answers.
//!
//! A claim for a number of queries that is fixed beforehand does not hold where answers decide which query comes next, or
//! whether one does (Rogers, Roth, Ullman and Vadhan 2016). Three rules do, each for every way in which charges can be chosen:
//!
//! 1. Pure epsilons add up.
//! 2. As long as all charges are of one kind, they are the first queries of as many as the budget allows, whose composition
//!    does not depend on the answers: stopping early is post-processing. Of delta, [`ONE_KIND`].
//! 3. Of several kinds, moments of **one** order add up, which the budget alone fixes (Feldman and Zrnic 2021, Theorem 4.3). Of
//!    delta, what the second rule leaves.
//!
//! Together they hold as well: answers that end within the first rule never lose more than epsilon; those that end with one
//! kind exceed it with the second rule's part of delta, all others with the third's.

use super::{Budget, Charge};
use crate::PrivacyEvent;
use crate::composition::improved_epsilon;
use crate::memo::Memo;
use crate::moments::pure_moment;
use crate::orders::best_real;
use crate::sound::larger;
use crate::three_answers::ThreeAnswers;
use crate::without_votes::{Kind, least_epsilon_of_kinds, merged};

/// The part of delta for charges of one kind; the rest is for those of several.
const ONE_KIND: f64 = 0.9;
/// The part of delta that is set aside for samplers.
const SAMPLERS: f64 = 1e-3;
/// Where the search for a budget that allows charges of several kinds begins.
const NOMINAL: f64 = 10.0;
/// How often it is raised before the plain sum is taken, which always does.
const RAISES: usize = 12;
/// What rounding may have cost, relative to it.
const ROUNDING: f64 = 1e-9;

/// What charges cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spent {
    /// What of the budget they spend. Without a budget: one that would have allowed them, however they were chosen, the least that is
    /// found.
    pub(super) adaptive: f64,
    /// Whether delta covers the samplers' distance from the exact noise.
    pub(super) samplers_included: bool,
}

impl Spent {
    /// What is held against a budget: nothing is within it where delta does not cover the samplers.
    pub(super) fn with_samplers(self) -> f64 {
        if self.samplers_included { self.adaptive } else { f64::INFINITY }
    }
}

/// Adds up charges at a budget's delta, in the way that the budget's epsilon asks for.
pub(super) fn spent(budget: &Budget, charges: &[Charge]) -> Spent {
    let kinds = merged(&charges.iter().map(Charge::kind).collect::<Vec<_>>());
    let sum: f64 = kinds.iter().map(|kind| kind.epsilon * kind.queries as f64).sum::<f64>() * (1.0 + 1e-12);
    let distance: f64 = charges.iter().map(|charge| charge.sampling_distance).sum();
    let all = budget.delta.get();
    // Whether any sampler needs its part or not: answers must not decide by which rules charges are added up.
    let delta = (all * (1.0 - SAMPLERS)).next_down();
    let adaptive = if kinds.len() <= 1 {
        least_epsilon_of_kinds(&kinds, ONE_KIND * delta)
    } else {
        let delta = (1.0 - ONE_KIND) * delta;
        let of_budget = |epsilon: f64| {
            let order = order(epsilon, delta);
            improved_epsilon(kinds.iter().map(|kind| kind.queries as f64 * moment(kind, order)).sum(), order, delta)
        };
        budget.epsilon.map_or_else(|| least_that_allows(of_budget), of_budget)
    };
    let round = |epsilon: f64| if epsilon <= sum { epsilon * (1.0 + ROUNDING) } else { sum };
    let adaptive = round(adaptive);
    // A mechanism within a total variation of `d` of an (epsilon, delta')-private one is (epsilon, delta' + (1 + e^epsilon)
    // d)-private.
    // At the epsilon that is claimed: a budget's own, since answers decide how much of it is spent.
    let claimed = larger(adaptive, budget.epsilon.unwrap_or(0.0));
    let samplers_included = distance == 0.0 || (1.0 + claimed.exp()) * distance * (1.0 + 1e-12) <= SAMPLERS * all;
    Spent { adaptive, samplers_included }
}

/// A budget that is no less than what it says of the charges itself: the order of moments is the budget's.
fn least_that_allows(of_budget: impl Fn(f64) -> f64) -> f64 {
    let mut budget = of_budget(NOMINAL);
    for _ in 0..RAISES {
        let found = of_budget(budget);
        if found <= budget {
            return budget;
        }
        budget = found * (1.0 + ROUNDING);
    }
    // The plain sum is less.
    f64::INFINITY
}

/// Epsilon of charges that were all fixed before the first answer, at a budget's delta.
pub(super) fn fixed(budget: &Budget, charges: &[Charge], adaptive: f64) -> f64 {
    let kinds: Vec<Kind> = charges.iter().map(Charge::kind).collect();
    let delta = (budget.delta.get() * (1.0 - SAMPLERS)).next_down();
    (least_epsilon_of_kinds(&kinds, delta) * (1.0 + ROUNDING)).min(adaptive)
}

/// The order at which a budget allows the most queries of small loss, whose moments grow like `l (l + 1)`.
fn order(epsilon: f64, delta: f64) -> f64 {
    // The sum of moments that costs `epsilon`, from `improved_epsilon`.
    let allowed = |l: f64| l * (epsilon + (1.0 / l).ln_1p()) + delta.ln() + l.ln_1p();
    let queries = |l: f64| allowed(l) / (l * (l + 1.0));
    best_real(1e4, |l| -queries(l)).map_or(1.0, |best| best.order)
}

/// The moment of one query whatever the votes are.
fn moment(kind: &Kind, l: f64) -> f64 {
    static KNOWN: Memo<4, f64> = Memo::new();
    let pure = pure_moment(kind.epsilon, l);
    let three = ThreeAnswers::new(&kind.event, kind.epsilon).zip(kind.event.noise().gamma()).map(|(three, gamma)| {
        let arguments = [gamma.get(), kind.event.tau().get(), kind.epsilon, l];
        KNOWN.get_or(arguments, || three.envelope(l).most().ln_1p())
    });
    three.filter(|moment| *moment <= pure).unwrap_or(pure)
}

impl Charge {
    /// What is composed. The pure epsilon is computed anew, whatever an older version wrote.
    fn kind(&self) -> Kind {
        // A threshold is one candidate more.
        let classes = self.classes.filter(|_| self.threshold.is_none()).unwrap_or(usize::MAX);
        Kind::new(PrivacyEvent::new(self.noise, self.tau), classes, self.queries)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use speed_mechanism::{HonestRatio, InverseScale};

    use super::*;
    use crate::{Delta, Noise};

    fn charge(gamma: f64, queries: usize) -> Charge {
        let gamma = InverseScale::new(gamma).expect("a scale");
        Charge {
            label: String::new(),
            queries,
            noise: Noise::discrete_laplace(gamma),
            tau: HonestRatio::ALL,
            classes: Some(10),
            threshold: None,
            sampling_distance: 0.0,
            per_query_epsilon: 2.0 * gamma.get(),
            question: String::new(),
            noise_digest: String::new(),
        }
    }

    fn budget(epsilon: f64, delta: f64) -> Budget {
        Budget { epsilon: Some(epsilon), delta: Delta::new(delta).expect("a delta") }
    }

    #[test]
    fn a_charge_never_makes_the_spent_epsilon_fall() {
        for delta in [1e-5, 1e-60] {
            let budget = budget(10.0, delta);
            for (first, second) in [(0.1, 0.05), (0.1, 0.3), (0.02, 0.1)] {
                let of = |charges: &[Charge]| {
                    let adaptive = spent(&budget, charges).adaptive;
                    let fixed = fixed(&budget, charges, f64::INFINITY);
                    assert!(adaptive >= fixed, "{first} {second} {delta}: {adaptive} below {fixed}");
                    fixed
                };
                let one = of(&[charge(first, 2_000)]);
                let two = of(&[charge(first, 2_000), charge(second, 1)]);
                assert!(two >= one * (1.0 - 1e-6), "{first} {second} {delta}: {two} after {one}");
            }
        }
    }

    #[test]
    fn what_a_ledger_without_budget_says_is_a_budget_that_allows_it() {
        let charges =
            |kinds: &[(f64, usize)]| kinds.iter().map(|&(gamma, queries)| charge(gamma, queries)).collect::<Vec<_>>();
        for kinds in [
            &[(0.1, 2_000), (0.05, 300)][..],
            &[(0.5, 4), (0.6, 4), (0.7, 4)],
            &[(1e-3, 100_000), (2.0, 3)],
            &[(0.1, 100), (0.11, 100), (0.12, 100), (0.13, 100), (0.14, 100)],
            &[(30.0, 10), (1e-3, 1)],
        ] {
            for delta in [1e-2, 1e-5, 1e-60] {
                let open = Budget { epsilon: None, delta: Delta::new(delta).expect("a delta") };
                let needed = spent(&open, &charges(kinds)).adaptive;
                for part in 1..=kinds.len() {
                    let of_it = spent(&budget(needed, delta), &charges(&kinds[..part])).adaptive;
                    assert!(of_it <= needed, "{kinds:?} {delta} {part}: {of_it} of {needed}");
                }
            }
        }
    }

    #[test]
    fn it_is_never_more_than_the_plain_sum() {
        for (gamma, queries) in [(0.5, 3), (3.0, 40), (50.0, 96), (1e-4, 7)] {
            let (budget, charges) = (budget(1.0, 1e-9), [charge(gamma, queries), charge(gamma / 2.0, 1)]);
            let found = spent(&budget, &charges);
            let sum = 2.0 * gamma * queries as f64 + gamma;
            let fixed = fixed(&budget, &charges, found.adaptive);
            assert!(found.adaptive <= sum * (1.0 + 1e-9) && fixed <= found.adaptive, "{gamma}: {found:?} {fixed}");
        }
    }

    /// An adversary who sees each answer before the next charge: randomised response of two kinds.
    struct Adversary<'a> {
        kinds: [f64; 2],
        epsilon: f64,
        allowed: &'a mut dyn FnMut([usize; 2]) -> bool,
        /// By how many of each kind were charged, and how many of them lost privacy.
        known: HashMap<([usize; 2], [usize; 2]), f64>,
    }

    impl Adversary<'_> {
        /// The most that `P - e^epsilon P'` can add up to on all paths from here, whatever is chosen after each answer.
        fn overdraft(&mut self, charged: [usize; 2], lost: [usize; 2]) -> f64 {
            if let Some(&known) = self.known.get(&(charged, lost)) {
                return known;
            }
            let (mut log_p, mut log_there) = (0.0, 0.0);
            for kind in [0, 1] {
                let (likely, unlikely) = (-(-self.kinds[kind]).exp().ln_1p(), -self.kinds[kind].exp().ln_1p());
                let (lost, kept) = (lost[kind] as f64, (charged[kind] - lost[kind]) as f64);
                log_p += lost * likely + kept * unlikely;
                log_there += lost * unlikely + kept * likely;
            }
            let mut worst = (log_p.exp() - (self.epsilon + log_there).exp()).max(0.0);
            for kind in [0, 1] {
                let (mut next, mut loses) = (charged, lost);
                next[kind] += 1;
                loses[kind] += 1;
                if (self.allowed)(next) {
                    worst = worst.max(self.overdraft(next, loses) + self.overdraft(next, lost));
                }
            }
            self.known.insert((charged, lost), worst);
            worst
        }
    }

    #[test]
    fn no_choice_of_charges_overdraws_the_filter() {
        // Of this noise nothing is known but a pure epsilon, so randomised response is the worst query.
        let (scales, epsilon, delta) = ([0.28, 0.14], 2.0f64, 1e-2);
        let one = |gamma: f64, queries: usize| Charge {
            noise: Noise::laplace(InverseScale::new(gamma).expect("a scale")),
            tau: HonestRatio::new(0.9).expect("a ratio"),
            ..charge(gamma, queries)
        };
        let kinds = scales.map(|gamma| one(gamma, 1).kind().epsilon);
        let charges = |counts: [usize; 2]| -> Vec<Charge> {
            let all = counts.into_iter().zip(scales).map(|(count, gamma)| one(gamma, count));
            all.filter(|charge| charge.queries > 0).collect()
        };
        let budget = budget(epsilon, delta);
        let overdraft = |epsilon_of: &dyn Fn(&[Charge]) -> f64| {
            let mut known: HashMap<[usize; 2], bool> = HashMap::new();
            let mut allowed =
                |counts: [usize; 2]| *known.entry(counts).or_insert_with(|| epsilon_of(&charges(counts)) <= epsilon);
            Adversary { kinds, epsilon, allowed: &mut allowed, known: HashMap::new() }.overdraft([0, 0], [0, 0])
        };
        let found = overdraft(&|charges| spent(&budget, charges).adaptive);
        assert!(found > 0.0 && found <= delta, "{found}");
        // Who may go on as if charges were fixed beforehand loses more.
        let loose = overdraft(&|charges| fixed(&budget, charges, f64::INFINITY));
        assert!(loose > 1.5 * found, "{loose} against {found}");
    }
}
