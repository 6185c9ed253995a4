//! Cases: parameters, votes, and the settings that a claim must cover. Cases that failed once are listed here; others
//! are drawn.

use speed_accountant::{AccountError, Accountant, Adversary, Bound, Extent, NeighbouringRelation, PrivacyEvent};
use speed_mechanism::MechanismKind;

use crate::given;
use crate::oracle::random::Random;

/// Number of teachers whose noise is secret, and number of others whose noise the adversary knows. The noise of the
/// rest is missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Setting {
    pub(crate) secret: i64,
    pub(crate) known: i64,
}

/// Kinds of cases; each kind is summarised separately.
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
    /// Two classes and a threshold near their votes: here queries cost the most.
    NearThreshold,
    /// Two classes, continuous Laplace, Gaussian or Skellam noise.
    OtherNoise,
    /// Binomial noise and two classes or more, with and without a threshold.
    Coins,
}

/// Queries to account for, and the actual settings of their noise.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) noise: MechanismKind,
    /// Inverse scale, per vote; for Gaussian and Skellam noise the standard deviation, in votes; for binomial noise the
    /// number of coins of all teachers.
    pub(crate) gamma: f64,
    pub(crate) teachers: i64,
    /// Teachers whose noise is certainly present and secret: `tau` as a fraction of `teachers`.
    pub(crate) noisy: i64,
    /// Rows of votes, each with the number of its queries. The votes that a row lacks are empty.
    pub(crate) runs: Vec<(Vec<u32>, usize)>,
    pub(crate) threshold: Option<i64>,
    pub(crate) delta: f64,
    pub(crate) assume: Adversary,
    pub(crate) extent: Extent,
    pub(crate) directions: NeighbouringRelation,
    pub(crate) bound: Bound,
    pub(crate) integrals: bool,
    /// The claim must cover all of these.
    pub(crate) settings: Vec<Setting>,
}

impl Case {
    /// Returns one query.
    pub(crate) fn event(&self) -> Result<PrivacyEvent, AccountError> {
        let event = given::event(self.noise, self.gamma, self.noisy as f64 / self.teachers as f64);
        self.threshold.map_or(Ok(event), |threshold| event.with_threshold(threshold as f64))
    }

    /// Creates the accountant for the claim at these votes.
    pub(crate) fn accountant(&self) -> Result<Accountant, AccountError> {
        Ok(Accountant::new(self.event()?, given::delta(self.delta))
            .with_adversary(self.assume)
            .with_extent(self.extent)
            .with_relation(self.directions)
            .with_bound(self.bound)
            .with_integrals(self.integrals))
    }

    /// Returns one row for each query.
    pub(crate) fn rows(&self) -> Vec<Vec<u32>> {
        self.runs.iter().flat_map(|(row, times)| std::iter::repeat_n(row.clone(), *times)).collect()
    }

    pub(crate) fn queries(&self) -> usize {
        self.runs.iter().map(|(_, times)| times).sum()
    }

    pub(crate) fn classes(&self) -> usize {
        self.runs.first().map_or(0, |(row, _)| row.len())
    }

    /// Returns whether the claim is expected to be tight.
    pub(crate) fn is_tight(&self) -> bool {
        self.kind == Kind::TwoDropout && self.bound == Bound::Tight && self.directions == NeighbouringRelation::BothWays
    }

    /// Adds the settings that the assumption covers: all of them if they are few, otherwise the ends and some between.
    pub(crate) fn with_settings(mut self, random: &mut Random) -> Self {
        let (secret, others) = (self.noisy, self.teachers - self.noisy);
        let mut some = vec![0, others];
        if self.extent == Extent::UpTo {
            some.extend((0..if self.assume == Adversary::Colluding { 1 } else { 2 }).map(|_| random.within(0, others)));
        }
        some.sort_unstable();
        some.dedup();
        self.settings = match (self.assume, self.extent) {
            // The oracle knows the integer Laplace noise only.
            (Adversary::Colluding, _) if self.noise != MechanismKind::DiscreteLaplace => {
                vec![Setting { secret, known: 0 }]
            }
            (Adversary::Colluding, _) => some.iter().map(|&known| Setting { secret, known }).collect(),
            (_, Extent::UpTo) => some.iter().map(|&more| Setting { secret: secret + more, known: 0 }).collect(),
            (_, Extent::Exactly) => vec![Setting { secret, known: 0 }],
        };
        self
    }

    /// Returns cases that once failed, or whose claims were too small for the requested assumption.
    pub(crate) fn fixed() -> Vec<Self> {
        vec![
            fixed("no number in the composition", 1.0, 10, (10, 0), &[5, 5], 10_000),
            fixed("masses that cancel", 0.01, 100, (10, 0), &[50, 50], 10_000),
            fixed("hardly any noise", 376.0, 10, (10, 0), &[5, 5], 1),
            fixed("hardly any noise, a few queries", 700.0, 10, (9, 0), &[6, 4], 20),
            fixed("no noise", 1e3, 4, (1, 0), &[2, 2], 3),
            Self {
                delta: 0.24,
                directions: NeighbouringRelation::OneSided,
                ..fixed("q e^epsilon close to 1", 21.564_942_209_140_835, 2, (1, 0), &[0, 2], 1_751)
            },
            Self {
                extent: Extent::UpTo,
                settings: [225, 250].map(|secret| Setting { secret, known: 0 }).into(),
                ..fixed("more noise is worse", 0.1, 250, (225, 0), &[165, 85, 0], 100)
            },
            Self {
                assume: Adversary::Colluding,
                extent: Extent::UpTo,
                ..fixed("some known, some missing", 0.1, 50, (15, 15), &[28, 22], 100)
            },
        ]
    }
}

/// Returns queries at these votes with discrete Laplace noise and without a threshold, at delta 1e-5.
pub(crate) fn fixed(
    name: &str,
    gamma: f64,
    teachers: i64,
    (secret, known): (i64, i64),
    row: &[u32],
    times: usize,
) -> Case {
    Case {
        kind: Kind::Fixed,
        name: name.to_owned(),
        noise: MechanismKind::DiscreteLaplace,
        gamma,
        teachers,
        noisy: secret,
        runs: vec![(row.to_vec(), times)],
        threshold: None,
        delta: 1e-5,
        assume: Adversary::ExternalWithDropout,
        extent: Extent::Exactly,
        directions: NeighbouringRelation::BothWays,
        bound: Bound::Tight,
        integrals: true,
        settings: vec![Setting { secret, known }],
    }
}
