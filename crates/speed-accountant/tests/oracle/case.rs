//! Cases: parameters, votes, and the settings that a claim must cover. Drawn at random, and those that once failed.

use std::fmt;

use speed_accountant::{AccountError, Accountant, Assume, Bound, Delta, Directions, Extent, Noise, PrivacyEvent};
use speed_mechanism::{HonestRatio, InverseScale};

use crate::random::Random;

/// How many teachers' noise is secret, and how many others' the adversary knows; the rest is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) secret: i64,
    pub(crate) known: i64,
}

/// What is summed up together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Fixed,
    TwoDropout,
    TwoDropoutUpTo,
    TwoCollusion,
    TwoCollusionUpTo,
    ManyDropout,
    ManyDropoutUpTo,
    ManyCollusion,
    Fuzz,
}

/// Queries to account, and what is true of them.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) gamma: f64,
    pub(crate) teachers: i64,
    /// Teachers whose noise is certainly there and secret: `tau` as a fraction of `teachers`.
    pub(crate) noisy: i64,
    /// Rows of votes and how often each is asked.
    pub(crate) runs: Vec<(Vec<u32>, usize)>,
    pub(crate) threshold: Option<i64>,
    pub(crate) delta: f64,
    pub(crate) assume: Assume,
    pub(crate) extent: Extent,
    pub(crate) directions: Directions,
    pub(crate) bound: Bound,
    pub(crate) integrals: bool,
    /// All of these must be covered.
    pub(crate) settings: Vec<Setting>,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: gamma {:?}, tau {}/{}, rows ", self.name, self.gamma, self.noisy, self.teachers)?;
        for (row, times) in &self.runs {
            write!(f, "{row:?} x {times}, ")?;
        }
        if let Some(threshold) = self.threshold {
            write!(f, "threshold {threshold}, ")?;
        }
        write!(f, "delta {:?}, {} {}, {} direction(s), ", self.delta, self.assume, self.extent, self.directions)?;
        write!(f, "bound {}", self.bound)?;
        if !self.integrals {
            write!(f, " without integrals")?;
        }
        write!(f, ", true in (secret, known) ")?;
        for setting in &self.settings {
            write!(f, "({}, {}) ", setting.secret, setting.known)?;
        }
        Ok(())
    }
}

impl Case {
    /// Asks for the claim at these votes.
    pub(crate) fn accountant(&self) -> Result<Accountant, AccountError> {
        let gamma = InverseScale::new(self.gamma).expect("a scale");
        let tau = HonestRatio::new(self.noisy as f64 / self.teachers as f64).expect("a ratio");
        let event = PrivacyEvent::new(Noise::discrete_laplace(gamma), tau);
        let event = match self.threshold {
            Some(threshold) => event.with_threshold(threshold as f64)?,
            None => event,
        };
        Ok(Accountant::new(event, Delta::new(self.delta)?)
            .with_assume(self.assume)
            .with_extent(self.extent)
            .with_directions(self.directions)
            .with_bound(self.bound)
            .with_integrals(self.integrals))
    }

    /// A row for each query.
    pub(crate) fn rows(&self) -> Vec<Vec<u32>> {
        self.runs.iter().flat_map(|(row, times)| std::iter::repeat_n(row.clone(), *times)).collect()
    }

    pub(crate) fn queries(&self) -> usize {
        self.runs.iter().map(|(_, times)| times).sum()
    }

    /// Whether the claim ought to be tight.
    pub(crate) fn is_tight(&self) -> bool {
        self.kind == Kind::TwoDropout && self.bound == Bound::Tight && self.directions == Directions::Both
    }

    /// With the settings that its assumption covers: all if they are few, or the ends and some between.
    fn with_settings(mut self, random: &mut Random) -> Self {
        let (secret, others) = (self.noisy, self.teachers - self.noisy);
        let mut some = vec![0, others];
        if self.extent == Extent::UpTo {
            some.extend((0..if self.assume == Assume::Collusion { 1 } else { 2 }).map(|_| random.within(0, others)));
        }
        some.sort_unstable();
        some.dedup();
        self.settings = match (self.assume, self.extent) {
            (Assume::Collusion, _) => some.iter().map(|&known| Setting { secret, known }).collect(),
            (_, Extent::UpTo) => some.iter().map(|&more| Setting { secret: secret + more, known: 0 }).collect(),
            (_, Extent::Exactly) => vec![Setting { secret, known: 0 }],
        };
        self
    }

    /// A random case of this kind.
    pub(crate) fn random(kind: Kind, name: String, random: &mut Random) -> Self {
        let two = matches!(kind, Kind::TwoDropout | Kind::TwoDropoutUpTo | Kind::TwoCollusion | Kind::TwoCollusionUpTo);
        let collusion = matches!(kind, Kind::TwoCollusion | Kind::TwoCollusionUpTo | Kind::ManyCollusion);
        let up_to = match kind {
            Kind::TwoDropoutUpTo | Kind::TwoCollusionUpTo | Kind::ManyDropoutUpTo => true,
            Kind::ManyCollusion => random.chance(0.4),
            _ => false,
        };
        let gamma = match (two, collusion) {
            (true, false) => random.log_uniform(1e-3, 1e3),
            (true, true) => random.log_uniform(5e-3, 1e3),
            (false, false) => random.log_uniform(0.03, 60.0),
            (false, true) => random.log_uniform(0.8, 60.0),
        };
        let teachers = match (two, collusion) {
            // Each number of teachers takes an account of its own.
            (true, _) => random.log_within(2, if up_to { 200 } else { 2_000 }),
            (false, false) => {
                if random.chance(0.7) {
                    random.within(1, 12)
                } else {
                    random.log_within(2, 300)
                }
            }
            (false, true) => random.within(2, 12),
        };
        let noisy = match random.within(0, 9) {
            0 => 1,
            1 | 2 => teachers,
            3..=5 => random.log_within(1, teachers),
            _ => random.within(1, teachers),
        };
        let delta = if random.chance(0.3) { random.log_uniform(0.5, 1e-9) } else { random.log_uniform(0.5, 1e-60) };
        let (threshold, runs) = if two {
            (None, two_classes(gamma, teachers, collusion, random))
        } else {
            many_classes(gamma, teachers, collusion, random)
        };
        let assume = match collusion {
            true => Assume::Collusion,
            false if noisy == teachers && random.chance(0.1) => Assume::Central,
            false => Assume::Dropout,
        };
        let bound = if random.chance(0.12) { Bound::Outcome } else { Bound::Tight };
        let directions = if random.chance(0.15) { Directions::One } else { Directions::Both };
        let extent = if up_to { Extent::UpTo } else { Extent::Exactly };
        let integrals = !random.chance(0.05);
        let settings = Vec::new();
        Self {
            kind,
            name,
            gamma,
            teachers,
            noisy,
            runs,
            threshold,
            delta,
            assume,
            extent,
            directions,
            bound,
            integrals,
            settings,
        }
        .with_settings(random)
    }

    /// Cases that once failed, or whose claims were too small for the assumption they were asked for.
    pub(crate) fn fixed() -> Vec<Self> {
        let all = [
            fixed("no number in the composition", 1.0, 10, (10, 0), &[5, 5], 10_000),
            fixed("masses that cancel", 0.01, 100, (10, 0), &[50, 50], 10_000),
            fixed("hardly any noise", 376.0, 10, (10, 0), &[5, 5], 1),
            fixed("hardly any noise, a few queries", 700.0, 10, (9, 0), &[6, 4], 20),
            fixed("no noise", 1e3, 4, (1, 0), &[2, 2], 3),
            Self { extent: Extent::UpTo, ..fixed("more noise is worse", 0.1, 250, (225, 0), &[165, 85, 0], 100) },
            Self {
                assume: Assume::Collusion,
                extent: Extent::UpTo,
                ..fixed("some known, some missing", 0.1, 250, (75, 75), &[128, 122], 100)
            },
        ];
        let more = Setting { secret: 250, known: 0 };
        all.into_iter()
            .map(|mut case| {
                if case.assume == Assume::Dropout && case.extent == Extent::UpTo {
                    case.settings.push(more);
                }
                case
            })
            .collect()
    }
}

fn fixed(name: &str, gamma: f64, teachers: i64, (secret, known): (i64, i64), row: &[u32], times: usize) -> Case {
    Case {
        kind: Kind::Fixed,
        name: name.to_owned(),
        gamma,
        teachers,
        noisy: secret,
        runs: vec![(row.to_vec(), times)],
        threshold: None,
        delta: 1e-5,
        assume: Assume::Dropout,
        extent: Extent::Exactly,
        directions: Directions::Both,
        bound: Bound::Tight,
        integrals: true,
        settings: vec![Setting { secret, known }],
    }
}

fn two_classes(gamma: f64, teachers: i64, collusion: bool, random: &mut Random) -> Vec<(Vec<u32>, usize)> {
    let kinds = if random.chance(0.6) { 1 } else { random.within(2, 3) };
    let most = match (kinds, collusion) {
        (1, false) => 10_000,
        (1, true) => 2_000,
        (2, _) => 500,
        _ => 60,
    };
    (0..kinds)
        .map(|_| {
            let half = teachers / 2;
            let first = match random.within(0, 9) {
                // Near ties.
                0..=3 => half + random.within(-2, 2),
                // As far as noise reaches.
                4..=6 => half + ((random.unit() - 0.5) * 60.0 / gamma).clamp(-1e6, 1e6) as i64,
                7 | 8 => random.within(0, teachers),
                _ => random.choose(&[0, teachers]),
            };
            let first = first.clamp(0, teachers);
            (vec![first as u32, (teachers - first) as u32], random.log_within(1, most) as usize)
        })
        .collect()
}

fn many_classes(
    gamma: f64,
    teachers: i64,
    collusion: bool,
    random: &mut Random,
) -> (Option<i64>, Vec<(Vec<u32>, usize)>) {
    let (classes, silent) = match (collusion, random.within(0, 4)) {
        (false, 0) => (2, true),
        (false, 1 | 2) => (3, random.chance(0.3)),
        (false, _) => (4, random.chance(0.2)),
        (true, 0 | 1) => (2, true),
        (true, _) => (3, false),
    };
    let threshold = silent.then(|| match random.within(0, 5) {
        0 => random.within(-30, 0),
        1 => teachers + random.within(0, 40),
        _ => random.within(0, teachers) + ((random.unit() - 0.5) * 10.0 / gamma) as i64,
    });
    let answers = classes + i64::from(silent);
    let most = match (collusion, answers) {
        (true, _) => 100,
        (false, 3) => 300,
        (false, 4) => 40,
        _ => 14,
    };
    let kinds = if !collusion && answers < 5 && random.chance(0.3) { 2 } else { 1 };
    let most = if kinds == 2 { 8 } else { most };
    let runs = (0..kinds)
        .map(|_| {
            let mut row = vec![0u32; classes as usize];
            let sides = random.within(1, classes) as usize;
            match random.within(0, 3) {
                // As even as can be.
                0 => (0..teachers).for_each(|teacher| row[teacher as usize % sides] += 1),
                1 => {
                    let favourite = random.within(0, classes - 1) as usize;
                    (0..teachers).for_each(|_| {
                        let other = random.within(0, classes - 1) as usize;
                        row[if random.chance(0.7) { favourite } else { other }] += 1;
                    });
                }
                _ => (0..teachers).for_each(|_| row[random.within(0, sides as i64 - 1) as usize] += 1),
            }
            let turned = random.within(0, classes - 1) as usize;
            row.rotate_left(turned);
            (row, random.log_within(1, most) as usize)
        })
        .collect();
    (threshold, runs)
}
