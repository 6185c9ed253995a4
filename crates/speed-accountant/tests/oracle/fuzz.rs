//! Any parameters and votes give an error or a finite epsilon that is no worse than that of all queries together, never
//! a panic.

use speed_accountant::{
    Account, AccountError, Accountant, Adversary, Bound, Delta, Extent, NeighbouringRelation, PrivacyEvent,
    ReleaseOptions,
};
use speed_core::Randomness;
use speed_mechanism::{HonestRatio, InverseScale, Mechanism, NoiseDeviation, NoiseGenerator};

use crate::oracle::check::{Report, error_name, timed};
use crate::oracle::random::Random;

/// The smallest gamma that is tried: with wider integer noise, an account takes a minute.
const NARROWEST: f64 = 1e-3;
/// The largest sigma of Skellam noise that is tried, for the same reason.
const WIDEST: f64 = 100.0;

/// A question to the accountant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ask {
    Votes,
    AnyVotes,
    Release,
}

/// One hostile question.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    noise: Mechanism,
    tau: HonestRatio,
    threshold: Option<f64>,
    distance: f64,
    delta: Delta,
    assume: Adversary,
    extent: Extent,
    directions: NeighbouringRelation,
    bound: Bound,
    integrals: bool,
    largest_order: Option<f64>,
    runs: Vec<(Vec<u32>, usize)>,
    teachers: usize,
    ask: Ask,
}

impl Question {
    /// Asks the question, and reports faults in the answer.
    pub(crate) fn check(&self, what: &str) -> Report {
        let mut report = Report::default();
        match timed(&mut report, || self.answer()) {
            None => report.failures.push(format!("a panic: {what}")),
            Some(Err(error)) => report.refused.push(error_name(&error)),
            Some(Ok(account)) => {
                if let Some(wrong) = self.wrong(&account) {
                    let by = account.composition;
                    report.failures.push(format!("{wrong}: {what}\n    {by:?}: {}", account.claim));
                }
            }
        }
        report
    }

    fn answer(&self) -> Result<Account, AccountError> {
        let mut event = PrivacyEvent::new(self.noise, self.tau).with_sampling_total_variation(self.distance)?;
        if let Some(threshold) = self.threshold {
            event = event.with_threshold(threshold)?;
        }
        let mut accountant = Accountant::new(event, self.delta)
            .with_adversary(self.assume)
            .with_extent(self.extent)
            .with_relation(self.directions)
            .with_bound(self.bound)
            .with_integrals(self.integrals);
        if let Some(largest) = self.largest_order {
            accountant = accountant.with_max_order(largest);
        }
        let rows: Vec<Vec<u32>> =
            self.runs.iter().flat_map(|(row, times)| std::iter::repeat_n(row.clone(), *times)).collect();
        match self.ask {
            Ask::Votes => accountant.account(&rows, self.teachers),
            Ask::AnyVotes => accountant.account_queries(rows.len()),
            Ask::Release => {
                let mut generator = NoiseGenerator::new(&Randomness::simulation([9; 32])).expect("a generator");
                accountant.release(&rows, self.teachers, &ReleaseOptions::default(), &mut generator)
            }
        }
    }

    fn wrong(&self, account: &Account) -> Option<String> {
        let (epsilon, query) = (account.epsilon, account.per_query_epsilon);
        if !(epsilon.is_finite() && epsilon >= 0.0) {
            return Some(format!("epsilon is {epsilon}"));
        }
        if query.is_nan() || query < 0.0 {
            return Some(format!("epsilon of one query is {query}"));
        }
        let pure = self.noise.gamma().is_some() && self.bound != Bound::Paper && self.ask != Ask::Release;
        let most = account.queries as f64 * query * (1.0 + 1e-6);
        (pure && query.is_finite() && epsilon > most)
            .then(|| format!("epsilon {epsilon} of all is above {most} of each"))
    }

    /// Returns a random question.
    pub(crate) fn random(random: &mut Random) -> Self {
        let noise = noise(random);
        let tau = tau(random);
        let delta = delta(random);
        let threshold = random.chance(0.3).then(|| threshold(random));
        let distance = if random.chance(0.85) { 0.0 } else { random.log_uniform(1e-30, 0.999) };
        let bound = random.choose(&[Bound::Tight, Bound::Tight, Bound::Tight, Bound::Outcome, Bound::Paper]);
        // Tables of Skellam noise are as long as the largest order, and the paper's orders are tried one by one.
        let orders = if bound == Bound::Paper || matches!(noise, Mechanism::Skellam { .. }) { 1e4 } else { 1e9 };
        let largest_order = random.chance(0.15).then(|| {
            let any = random.choose(&[0.0, -1.0, f64::NAN, 1e-3, orders]);
            if random.chance(0.3) { any } else { random.log_uniform(0.1, 1e4) }
        });
        let ask = random.choose(&[Ask::Votes, Ask::Votes, Ask::Votes, Ask::AnyVotes, Ask::Release]);
        // For each row, a release looks at as many neighbours of neighbours as there are votes.
        let extent = random.choose(&[Extent::Exactly, Extent::UpTo]);
        let up_to = extent == Extent::UpTo;
        let most_votes = most_votes(ask, noise, up_to, random);
        let runs = runs(most_votes, if ask == Ask::Release { 300 } else { 100_000 }, random);
        let teachers: u64 = runs.first().map_or(0, |(row, _)| row.iter().copied().map(u64::from).sum());
        // These would be hundreds of accounts that take seconds each; more teachers than the limit are refused at once.
        let extent = if (100..=2_000).contains(&teachers) { Extent::Exactly } else { extent };
        Self {
            noise,
            tau,
            threshold,
            distance,
            delta,
            assume: random.choose(&[
                Adversary::ExternalWithDropout,
                Adversary::ExternalWithDropout,
                Adversary::Colluding,
                Adversary::Colluding,
                Adversary::ExternalWithCentral,
            ]),
            extent,
            directions: random.choose(&[NeighbouringRelation::OneSided, NeighbouringRelation::BothWays]),
            bound,
            integrals: random.chance(0.8),
            largest_order,
            runs,
            ask,
            // Of some, votes are empty.
            teachers: teachers as usize + if random.chance(0.1) { random.within(1, 3) as usize } else { 0 },
        }
    }
}

fn noise(random: &mut Random) -> Mechanism {
    let sigma = match random.within(0, 9) {
        0 => random.choose(&[NoiseDeviation::MIN, NoiseDeviation::MAX]),
        _ => random.log_uniform(NoiseDeviation::MIN, NoiseDeviation::MAX),
    };
    let gamma = match random.within(0, 9) {
        0 => InverseScale::MAX,
        _ => random.log_uniform(NARROWEST, InverseScale::MAX),
    };
    let gamma = InverseScale::new(gamma).expect("a scale");
    let skellam = NoiseDeviation::new(sigma.min(WIDEST)).expect("a deviation");
    let sigma = NoiseDeviation::new(sigma).expect("a deviation");
    random.choose(&[
        Mechanism::laplace(gamma),
        Mechanism::discrete_laplace(gamma),
        Mechanism::discrete_laplace(gamma),
        Mechanism::gaussian(sigma),
        Mechanism::skellam(skellam),
    ])
}

fn tau(random: &mut Random) -> HonestRatio {
    let tau = match random.within(0, 3) {
        0 => 1.0,
        1 => random.log_uniform(1e-9, 1.0),
        _ => 1.0 - random.unit(),
    };
    HonestRatio::new(tau).expect("a ratio")
}

fn delta(random: &mut Random) -> Delta {
    let delta = match random.within(0, 5) {
        0 => random.choose(&[Delta::MIN, 1e-200, 1.0 - f64::EPSILON / 2.0]),
        1 => random.unit().clamp(1e-9, 0.999),
        _ => random.log_uniform(0.5, 2.0 * Delta::MIN),
    };
    Delta::new(delta).expect("a delta")
}

fn threshold(random: &mut Random) -> f64 {
    let large = random.choose(&[-1e15, -1e300, -40.0, 0.0, 7.0, 0.5, 1e9, 1e15, 1e300, f64::MAX]);
    if random.chance(0.3) { large } else { random.within(-50, 400) as f64 }
}

/// Returns the largest number of votes for which the question does not take too long.
fn most_votes(ask: Ask, noise: Mechanism, up_to: bool, random: &mut Random) -> u32 {
    // Each number of teachers needs a separate account. For each row, a release looks at as many neighbours of
    // neighbours as there are votes. Far tails take long for noise other than the integer Laplace noise.
    let skellam = matches!(noise, Mechanism::Skellam { .. });
    match (ask, noise) {
        _ if skellam && up_to => 12,
        _ if up_to && random.chance(0.9) => 40,
        (Ask::Release, _) => {
            if skellam {
                300
            } else {
                2_000
            }
        }
        (_, Mechanism::Skellam { .. }) => 30_000,
        (_, Mechanism::Laplace { .. }) => 1_000_000,
        _ => u32::MAX,
    }
}

/// Returns rows that are mostly valid: all rows have the same number of votes, except for a few rows that must be
/// refused.
fn runs(most_votes: u32, most_rows: i64, random: &mut Random) -> Vec<(Vec<u32>, usize)> {
    let classes = match random.within(0, 19) {
        0 => random.within(0, 1),
        1 => random.within(11, 60),
        2..=4 => random.within(4, 10),
        _ => random.within(2, 3),
    };
    let row: Vec<u32> = (0..classes)
        .map(|_| match random.within(0, 7) {
            0 | 1 => 0,
            2 => random.log_within(1, i64::from(most_votes)) as u32,
            3 => most_votes / random.choose(&[1, 2, 3, 1000]),
            _ => random.log_within(1, 300) as u32,
        })
        .collect();
    let number = random.within(1, 3) as usize;
    let most = most_rows.min(random.choose(&[1, 10, 1_000, 100_000]));
    (0..number)
        .map(|_| {
            let mut row = row.clone();
            if !row.is_empty() {
                let places = row.len();
                row.rotate_left(random.within(0, places as i64 - 1) as usize);
            }
            if let [first, second, ..] = row.as_mut_slice() {
                // Move some votes to another class.
                let moved = random.within(0, i64::from(*first)) as u32;
                if let Some(more) = second.checked_add(moved) {
                    (*first, *second) = (*first - moved, more);
                }
                if random.chance(0.01) {
                    *first = first.wrapping_add(1);
                }
            }
            if random.chance(0.005) {
                row.push(0);
            }
            (row, random.log_within(1, most) as usize)
        })
        .collect()
}
