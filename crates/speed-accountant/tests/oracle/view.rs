//! The adversary's view of one query (the answer, and the known noise if there is any) and its probability.

use speed_mechanism::MechanismKind;

use crate::oracle::noise::Table;
use crate::oracle::tails::Difference;

/// Noise less likely than `e^-REACH` times the noise that matters is left out of sums.
const REACH: f64 = 45.0;
/// Heads further from half of the coins than this multiple of the square root of their number are left out.
const COINS_REACH: f64 = 15.0;
/// Known noise further out than a tie of the votes by this multiple of `1/gamma` is left out: such views do not count.
const KNOWN_REACH: f64 = 30.0;

/// The noise of a query, as ratios of the noise of all teachers, and the threshold of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub(crate) noise: MechanismKind,
    pub(crate) gamma: f64,
    pub(crate) secret: f64,
    pub(crate) known: f64,
    pub(crate) threshold: Option<i64>,
}

/// Logarithms of the probabilities of all views, for votes near some given votes.
pub(crate) enum View {
    /// Two classes: only the difference of their noise matters.
    Difference(Difference),
    /// Any number of classes.
    Answers(Answers),
    /// Two classes and the known difference of their noise.
    KnownDifference { secret: Table, known: Table },
    /// Three classes, or two and a threshold, and known noise in two dimensions.
    KnownPlane(Plane),
}

impl View {
    /// Prepares for `votes` and their neighbours.
    pub(crate) fn new(law: Law, votes: &[i64]) -> Self {
        let reach = |known: f64| (known / law.gamma) as i64 + 6;
        if votes.len() > 2 || law.threshold.is_some() {
            if law.known == 0.0 {
                return Self::Answers(Answers::new(law, votes, 0));
            }
            return Self::KnownPlane(Plane::new(law, votes, reach(KNOWN_REACH)));
        }
        let spread = (votes[0] - votes[1]).abs() + 3;
        if law.known == 0.0 {
            return Self::Difference(Difference::new(law.noise, law.gamma, law.secret, spread));
        }
        let furthest = spread.min(reach(150.0)) + reach(KNOWN_REACH);
        Self::KnownDifference {
            secret: Table::new(law.gamma, 2.0 * law.secret, spread + furthest + 1),
            known: Table::new(law.gamma, 2.0 * law.known, furthest),
        }
    }

    /// Returns the logarithms of the probabilities of all views in a fixed order. Known noise far out may be left out.
    pub(crate) fn log_probabilities(&self, votes: &[i64]) -> Vec<f64> {
        match self {
            // The second class wins if its noise exceeds the noise of the first by more than the gap.
            Self::Difference(noise) => noise.log_answers(votes[0] - votes[1]).to_vec(),
            Self::Answers(answers) => answers.log_probabilities(votes),
            Self::KnownDifference { secret, known } => (-known.furthest()..=known.furthest())
                .flat_map(|shift| {
                    let gap = votes[0] - votes[1] + shift;
                    let log_p = known.log_pmf(shift);
                    [log_p + secret.log_at_least(-gap), log_p + secret.log_at_least(gap + 1)]
                })
                .collect(),
            Self::KnownPlane(plane) => plane.log_probabilities(votes),
        }
    }
}

/// Distributions of the answer, as sums over the largest noisy count. Ties go to the lowest class.
pub(crate) struct Answers {
    table: Table,
    threshold: Option<i64>,
    reach: i64,
}

impl Answers {
    /// Prepares for votes that differ by at most `moved` from these.
    fn new(law: Law, votes: &[i64], moved: i64) -> Self {
        let reach = match law.noise {
            // Many coins hardly ever end beyond some deviations.
            MechanismKind::Binomial => (law.gamma as i64 / 2).min((COINS_REACH * law.gamma.sqrt()) as i64) + 6,
            _ => (REACH / law.gamma) as i64 + 6,
        };
        let ends = || votes.iter().copied().chain(law.threshold);
        let (low, high) = (ends().min().unwrap_or(0), ends().max().unwrap_or(0));
        let furthest = high - low + 2 * moved + reach + 6;
        let table = match law.noise {
            MechanismKind::Binomial => Table::of_coins((law.secret * law.gamma).round() as usize, furthest),
            _ => Table::new(law.gamma, law.secret, furthest),
        };
        Self { table, threshold: law.threshold, reach }
    }

    /// Returns `ln P` of every class, and of no answer if there is a threshold.
    fn log_probabilities(&self, votes: &[i64]) -> Vec<f64> {
        let (low, high) = (votes.iter().min().unwrap_or(&0), votes.iter().max().unwrap_or(&0));
        let threshold = self.threshold.unwrap_or(i64::MIN);
        let counts = threshold.max(low - self.reach)..=threshold.max(*high) + self.reach;
        let mut all: Vec<f64> = (0..votes.len())
            .map(|class| {
                let terms = counts.clone().map(|count| {
                    let others = (0..votes.len()).filter(|&other| other != class);
                    let below = others.map(|k| self.table.log_at_most(count - votes[k] - i64::from(k < class)));
                    self.table.log_pmf(count - votes[class]) + below.sum::<f64>()
                });
                log_sum(terms)
            })
            .collect();
        if let Some(threshold) = self.threshold {
            all.push(votes.iter().map(|votes| self.table.log_at_most(threshold - 1 - votes)).sum());
        }
        all
    }
}

/// Known noise of two dimensions: the noise of two classes, or the excess of the noise of two classes over the noise of
/// the third. Without a threshold, nothing else matters.
pub(crate) struct Plane {
    furthest: i64,
    origin: (i64, i64),
    /// `ln P` of each place of the known noise.
    known: Vec<f64>,
    /// Logarithms of the answers' probabilities at each place that neighbours can reach.
    answers: Vec<Vec<f64>>,
}

/// Largest distance of a neighbour in each of the two dimensions.
const STEP: i64 = 2;

impl Plane {
    fn new(law: Law, votes: &[i64], reach: i64) -> Self {
        let spread = votes.iter().max().unwrap_or(&0) - votes.iter().min().unwrap_or(&0);
        let furthest = reach + spread.min(reach);
        let answers = Answers::new(law, votes, furthest + STEP);
        let third = votes.get(2).copied();
        let places =
            |furthest: i64| (-furthest..=furthest).flat_map(move |x| (-furthest..=furthest).map(move |y| (x, y)));
        let origin = coordinates(votes);
        let of_place = |(x, y): (i64, i64)| {
            let (a, b) = (origin.0 + x, origin.1 + y);
            answers.log_probabilities(&third.map_or_else(|| vec![a, b], |_| vec![a, b, 0]))
        };
        let noise = Table::new(law.gamma, law.known, 2 * furthest + reach);
        let log_known = |(x, y): (i64, i64)| {
            if third.is_none() {
                return noise.log_pmf(x) + noise.log_pmf(y);
            }
            let beyond = furthest + reach;
            log_sum((-beyond..=beyond).map(|z| noise.log_pmf(z) + noise.log_pmf(z + x) + noise.log_pmf(z + y)))
        };
        Self {
            furthest,
            origin,
            known: places(furthest).map(log_known).collect(),
            answers: places(furthest + STEP).map(of_place).collect(),
        }
    }

    fn log_probabilities(&self, votes: &[i64]) -> Vec<f64> {
        let (x, y) = coordinates(votes);
        let (x, y) = (x - self.origin.0, y - self.origin.1);
        let side = 2 * (self.furthest + STEP) + 1;
        let line = 2 * self.furthest + 1;
        let mut all = Vec::with_capacity(self.known.len() * 3);
        for (place, known) in (0..).zip(&self.known) {
            let (row, column) = (place / line + x + STEP, place % line + y + STEP);
            all.extend(self.answers[(row * side + column) as usize].iter().map(|answer| known + answer));
        }
        all
    }
}

fn coordinates(votes: &[i64]) -> (i64, i64) {
    let third = votes.get(2).copied().unwrap_or(0);
    (votes[0] - third, votes[1] - third)
}

/// Returns `ln sum e^term`.
fn log_sum(terms: impl Iterator<Item = f64>) -> f64 {
    let terms: Vec<f64> = terms.collect();
    let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
}
