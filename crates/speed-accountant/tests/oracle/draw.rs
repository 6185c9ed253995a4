//! Random cases.

use speed_accountant::{Adversary, Bound, Extent, NeighbouringRelation};
use speed_mechanism::MechanismKind;

use crate::oracle::case::{Case, Kind};
use crate::oracle::random::Random;

/// Draws a random case of this kind.
pub(crate) fn draw(kind: Kind, name: String, random: &mut Random) -> Case {
    let noise = match kind {
        Kind::OtherNoise => random.choose(&[MechanismKind::Laplace, MechanismKind::Gaussian, MechanismKind::Skellam]),
        Kind::Coins => MechanismKind::Binomial,
        _ => MechanismKind::DiscreteLaplace,
    };
    let other_collusion = kind == Kind::OtherNoise && random.chance(0.2);
    let collusion =
        other_collusion || matches!(kind, Kind::TwoCollusion | Kind::TwoCollusionUpTo | Kind::ManyCollusion);
    let up_to = match kind {
        Kind::TwoDropoutUpTo | Kind::TwoCollusionUpTo | Kind::ManyDropoutUpTo => true,
        Kind::ManyCollusion => random.chance(0.4),
        Kind::NearThreshold => random.chance(0.2),
        Kind::OtherNoise | Kind::Coins => random.chance(0.1),
        _ => false,
    };
    let gamma = scale(kind, noise, random);
    let teachers = number_of_teachers(kind, up_to, random);
    // Every teacher tosses the same number of coins.
    let gamma = if noise == MechanismKind::Binomial { (gamma.ceil() as i64 * teachers) as f64 } else { gamma };
    let noisy = match random.within(0, 9) {
        0 => 1,
        1 | 2 => teachers,
        3..=5 => random.log_within(1, teachers),
        _ => random.within(1, teachers),
    };
    let (threshold, runs) = match kind {
        Kind::NearThreshold => near_threshold(gamma, teachers, random),
        Kind::ManyDropout | Kind::ManyDropoutUpTo | Kind::ManyCollusion => {
            many_classes(gamma, teachers, collusion, random)
        }
        Kind::Coins => match random.within(0, 5) {
            0 => near_threshold(6.0 / gamma.sqrt(), teachers, random),
            1 => many_classes(6.0 / gamma.sqrt(), teachers, false, random),
            _ => (None, two_classes(6.0 / gamma.sqrt(), teachers, false, random)),
        },
        // In units of a standard deviation.
        Kind::OtherNoise if noise != MechanismKind::Laplace => {
            (None, two_classes(3.0 / gamma, teachers, collusion, random))
        }
        _ => (None, two_classes(gamma, teachers, collusion, random)),
    };
    let assume = match collusion {
        true => Adversary::Colluding,
        false if noisy == teachers && random.chance(0.1) => Adversary::ExternalWithCentral,
        false => Adversary::ExternalWithDropout,
    };
    let case = Case {
        kind,
        name,
        noise,
        gamma,
        teachers,
        noisy,
        runs,
        threshold,
        delta: if random.chance(0.3) { random.log_uniform(0.5, 1e-9) } else { random.log_uniform(0.5, 1e-60) },
        assume,
        extent: if up_to { Extent::UpTo } else { Extent::Exactly },
        directions: if random.chance(0.15) { NeighbouringRelation::OneSided } else { NeighbouringRelation::BothWays },
        bound: if random.chance(0.12) { Bound::Outcome } else { Bound::Tight },
        integrals: !random.chance(0.05),
        settings: Vec::new(),
    };
    case.with_settings(random)
}

/// Draws a case of three answers or more and so many coins that sums over all their noise take long.
pub(crate) fn many_coins(name: String, random: &mut Random) -> Case {
    let case = draw(Kind::Coins, name, random);
    let teachers = random.log_within(200, 1_000);
    let coins = random.log_within((1 << 18) / teachers, (1 << 20) / teachers) * teachers;
    let (threshold, runs) = match random.within(0, 2) {
        0 => near_threshold(6.0 / (coins as f64).sqrt(), teachers, random),
        _ => many_classes(6.0 / (coins as f64).sqrt(), teachers, false, random),
    };
    let noisy = random.within(teachers / 2, teachers);
    let case = Case {
        gamma: coins as f64,
        teachers,
        noisy,
        threshold,
        runs,
        extent: Extent::Exactly,
        assume: Adversary::ExternalWithDropout,
        // Smaller ones take long.
        delta: random.log_uniform(0.1, 1e-9),
        ..case
    };
    case.with_settings(random)
}

/// Draws votes of a case that are empty: none, one, all those for a class, all, or any.
pub(crate) fn with_empty_votes(mut case: Case, random: &mut Random) -> Case {
    for (row, _) in &mut case.runs {
        let votes = row.iter().map(|&count| i64::from(count)).sum();
        let mut left = match random.within(0, 5) {
            0 => 0,
            1 => 1,
            2 => votes,
            3 => {
                let class = random.within(0, row.len() as i64 - 1) as usize;
                row[class] = 0;
                0
            }
            _ => random.within(0, votes),
        };
        while left > 0 {
            let class = random.within(0, row.len() as i64 - 1) as usize;
            let most = left.min(i64::from(row[class]));
            let removed = random.within(0, most);
            row[class] -= removed as u32;
            left -= removed;
        }
    }
    case
}

/// Draws the inverse scale of Laplace noise, or the deviation of other noise.
fn scale(kind: Kind, noise: MechanismKind, random: &mut Random) -> f64 {
    match kind {
        Kind::OtherNoise if noise == MechanismKind::Laplace => random.log_uniform(1e-2, 30.0),
        Kind::OtherNoise => random.log_uniform(0.3, 60.0),
        Kind::Coins => random.log_uniform(1.0, 60.0),
        Kind::TwoCollusion | Kind::TwoCollusionUpTo => random.log_uniform(5e-3, 1e3),
        Kind::ManyCollusion => random.log_uniform(0.8, 60.0),
        Kind::ManyDropout | Kind::ManyDropoutUpTo | Kind::NearThreshold => random.log_uniform(0.01, 200.0),
        _ => random.log_uniform(1e-3, 1e3),
    }
}

fn number_of_teachers(kind: Kind, up_to: bool, random: &mut Random) -> i64 {
    match kind {
        Kind::ManyCollusion => random.within(2, 12),
        Kind::ManyDropout | Kind::ManyDropoutUpTo if random.chance(0.7) => random.within(1, 12),
        Kind::OtherNoise | Kind::Coins => random.log_within(2, if up_to { 12 } else { 300 }),
        // Each number of teachers needs a separate account.
        _ if up_to && random.chance(0.9) => random.log_within(2, 40),
        _ if up_to => random.log_within(2, 200),
        Kind::ManyDropout | Kind::NearThreshold => random.log_within(2, 300),
        _ => random.log_within(2, 2_000),
    }
}

/// Draws a value on either side of 0: next to it, or as far away as noise reaches.
fn offset(gamma: f64, random: &mut Random) -> i64 {
    match random.within(0, 1) {
        0 => random.within(-2, 2),
        _ => ((random.unit() - 0.5) * random.choose(&[2.0, 8.0, 60.0]) / gamma).clamp(-1e6, 1e6) as i64,
    }
}

fn two_classes(gamma: f64, teachers: i64, collusion: bool, random: &mut Random) -> Vec<(Vec<u32>, usize)> {
    let number = if random.chance(0.6) { 1 } else { random.within(2, 3) };
    let most = match (number, collusion) {
        (1, false) => 10_000,
        (1, true) => 2_000,
        (2, _) => 500,
        _ => 60,
    };
    let run = |random: &mut Random| {
        let first = match random.within(0, 9) {
            0..=6 => teachers / 2 + offset(gamma, random),
            7 | 8 => random.within(0, teachers),
            _ => random.choose(&[0, teachers]),
        };
        (row_of(first, teachers), random.log_within(1, most) as usize)
    };
    (0..number).map(|_| run(random)).collect()
}

/// Draws two classes and a threshold near their votes.
fn near_threshold(gamma: f64, teachers: i64, random: &mut Random) -> (Option<i64>, Vec<(Vec<u32>, usize)>) {
    let number = if random.chance(0.7) { 1 } else { 2 };
    let most = if number == 1 { 300 } else { 22 };
    let runs: Vec<(Vec<u32>, usize)> = (0..number)
        .map(|_| (row_of(teachers / 2 + offset(gamma, random), teachers), random.log_within(1, most) as usize))
        .collect();
    let largest = runs.iter().flat_map(|(row, _)| row).max().copied().map_or(0, i64::from);
    (Some(largest + offset(gamma, random)), runs)
}

fn row_of(first: i64, teachers: i64) -> Vec<u32> {
    let first = first.clamp(0, teachers);
    vec![first as u32, (teachers - first) as u32]
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
        _ => random.within(0, teachers) + offset(gamma, random),
    });
    let answers = classes + i64::from(silent);
    let number = if !collusion && answers < 5 && random.chance(0.3) { 2 } else { 1 };
    let most = match (collusion, answers, number) {
        (true, _, _) => 100,
        (false, 3, 1) => 300,
        (false, 3, _) => 22,
        (false, 4, 1) => 40,
        (false, 4, _) => 8,
        _ => 14,
    };
    let runs = (0..number).map(|_| (row(classes, teachers, random), random.log_within(1, most) as usize)).collect();
    (threshold, runs)
}

/// Draws votes for some classes: as even as possible, mostly for one class, or arbitrary.
fn row(classes: i64, teachers: i64, random: &mut Random) -> Vec<u32> {
    let mut row = vec![0u32; classes as usize];
    let sides = random.within(1, classes);
    let (shape, favourite) = (random.within(0, 3), random.within(0, sides - 1));
    for teacher in 0..teachers {
        let any = random.within(0, sides - 1);
        let class = match shape {
            0 => teacher % sides,
            1 if random.chance(0.7) => favourite,
            _ => any,
        };
        row[class as usize] += 1;
    }
    let turned = random.within(0, classes - 1) as usize;
    row.rotate_left(turned);
    row
}
