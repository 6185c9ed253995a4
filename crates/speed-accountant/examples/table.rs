//! Epsilons at delta 1e-5, rounded up, as Markdown. `table` prints data-independent ones of several kinds of noise. `table
//! FOLDER` with the votes that PATE's authors published prints before them the paper's epsilons beside the tight valid ones
//! (gamma 0.1) and the tight ones of binomial noise. The column "released" is the median of 20 simulations with noise from
//! fixed seeds. It shows the size of a value that may be published, but it is not such a value.

use std::error::Error;
use std::path::Path;

use speed_accountant::{
    Accountant, Adversary, Bound, Delta, Extent, NeighbouringRelation, PrivacyEvent, ReleaseOptions, round_up,
};
use speed_core::Randomness;
use speed_mechanism::{HonestRatio, InverseScale, Mechanism, NoiseCoins, NoiseDeviation, NoiseGenerator};

/// An even number.
const SIMULATIONS: u8 = 20;
/// No vote of PATE's is empty.
const TEACHERS: usize = 250;

const HEAD: &str = "\
| votes | tau | paper, printed | paper | paper, both directions | outcome, dropout | outcome, collusion | tight, dropout | \
up to | tight, collusion | up to | released, collusion (simulation) | any votes |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|";

/// Coins of all teachers: 4 and about 26 for each of 250.
const COINS: [u64; 2] = [1_000, 6_500];

const HEAD_OF_COINS: &str = "\
| votes | coins | tau | coins, dropout | coins, collusion | coins, any votes |
|---|---:|---:|---:|---:|---:|";

const HEAD_OF_ANY_VOTES: &str = "\
| noise | deviation | 10 queries | 20 queries | 100 queries | 500 queries |
|---|---:|---:|---:|---:|---:|";

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(folder) = std::env::args().nth(1) {
        print_known_votes(Path::new(&folder))?;
    }
    print_any_votes()
}

#[expect(clippy::print_stdout, reason = "a program that prints tables")]
fn print_known_votes(folder: &Path) -> Result<(), Box<dyn Error>> {
    let all = histograms(&folder.join("mnist_250_teachers.npy"))?;
    let indices: Vec<i64> = read(&folder.join("mnist_250_teachers_100_indices_used_by_student.npy"))?;
    let mnist: Vec<Vec<u32>> = indices.iter().map(|&index| all[index as usize].clone()).collect();
    let mut svhn = histograms(&folder.join("svhn_250_teachers.npy"))?;
    svhn.truncate(500);
    println!("{HEAD}");
    for (name, counts, printed) in
        [("MNIST, 100", &mnist, [1.41, 1.66, 2.37]), ("SVHN, 500", &svhn, [4.73, 5.59, 8.16])]
    {
        for (tau, printed) in [1.0, 0.9, 0.7].into_iter().zip(printed) {
            let values: Vec<String> =
                epsilons(counts, tau)?.iter().map(|&epsilon| format!("{:.2}", round_up(epsilon, 2))).collect();
            println!("| {name} | {tau} | {printed} | {} |", values.join(" | "));
        }
    }
    println!("\n{HEAD_OF_COINS}");
    for (name, counts) in [("MNIST, 100", &mnist), ("SVHN, 500", &svhn)] {
        for (coins, tau) in COINS.into_iter().flat_map(|coins| [1.0, 0.9, 0.7].map(|tau| (coins, tau))) {
            let values: Vec<String> =
                of_coins(counts, coins, tau)?.iter().map(|&epsilon| format!("{:.2}", round_up(epsilon, 2))).collect();
            println!("| {name} | {coins} | {tau} | {} |", values.join(" | "));
        }
    }
    println!();
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a program that prints tables")]
fn print_any_votes() -> Result<(), Box<dyn Error>> {
    println!("{HEAD_OF_ANY_VOTES}");
    for coins in [560, 720, 800, 6_400, 10_000, 57_600] {
        let coins = NoiseCoins::new(coins)?;
        let epsilons = of_any_votes(Mechanism::binomial(coins))?;
        println!("| {} coins | {:.1} | {epsilons} |", coins.get(), coins.deviation());
    }
    for deviation in [40.0, 50.0, 120.0] {
        let epsilons = of_any_votes(Mechanism::gaussian(NoiseDeviation::new(deviation)?))?;
        println!("| Gaussian, sigma {deviation} | {deviation:.1} | {epsilons} |");
    }
    let epsilons = of_any_votes(Mechanism::discrete_laplace(InverseScale::new(0.1)?))?;
    println!("| discrete Laplace, gamma 0.1 | {:.1} | {epsilons} |", 2f64.sqrt() / 0.1);
    Ok(())
}

fn of_any_votes(noise: Mechanism) -> Result<String, Box<dyn Error>> {
    let accountant = Accountant::new(PrivacyEvent::new(noise, HonestRatio::ALL), Delta::new(1e-5)?);
    let of = |queries: usize| accountant.account_queries(queries).map(|account| round_up(account.epsilon, 3));
    let epsilons = [10, 20, 100, 500].into_iter().map(of).collect::<Result<Vec<f64>, _>>()?;
    Ok(epsilons.iter().map(|epsilon| format!("{epsilon:.3}")).collect::<Vec<_>>().join(" | "))
}

fn of_coins(counts: &[Vec<u32>], coins: u64, tau: f64) -> Result<[f64; 3], Box<dyn Error>> {
    let noise = Mechanism::binomial(NoiseCoins::new(coins)?);
    let accountant = Accountant::new(PrivacyEvent::new(noise, HonestRatio::new(tau)?), Delta::new(1e-5)?);
    let collusion = accountant.with_adversary(Adversary::Colluding);
    Ok([
        accountant.account(counts, TEACHERS)?.epsilon,
        collusion.account(counts, TEACHERS)?.epsilon,
        accountant.account_queries(counts.len())?.epsilon,
    ])
}

fn epsilons(counts: &[Vec<u32>], tau: f64) -> Result<Vec<f64>, Box<dyn Error>> {
    let (gamma, tau, delta) = (InverseScale::new(0.1)?, HonestRatio::new(tau)?, Delta::new(1e-5)?);
    let continuous = PrivacyEvent::new(Mechanism::laplace(gamma), tau);
    let integer = PrivacyEvent::new(Mechanism::discrete_laplace(gamma), tau);
    let paper = Accountant::paper(continuous, delta);
    let outcome = Accountant::new(continuous, delta).with_bound(Bound::Outcome);
    let exact = Accountant::new(integer, delta);
    let collusion = exact.with_adversary(Adversary::Colluding);
    let mut released = Vec::new();
    for seed in 1..=SIMULATIONS {
        let mut generator = NoiseGenerator::new(&Randomness::simulation([seed; 32]))?;
        released.push(collusion.release(counts, TEACHERS, &ReleaseOptions::default(), &mut generator)?.epsilon);
    }
    released.sort_by(f64::total_cmp);
    let middle = released.len() / 2;
    Ok(vec![
        paper.account(counts, TEACHERS)?.epsilon,
        paper.with_relation(NeighbouringRelation::BothWays).account(counts, TEACHERS)?.epsilon,
        outcome.account(counts, TEACHERS)?.epsilon,
        outcome.with_adversary(Adversary::Colluding).account(counts, TEACHERS)?.epsilon,
        exact.account(counts, TEACHERS)?.epsilon,
        exact.with_extent(Extent::UpTo).account(counts, TEACHERS)?.epsilon,
        collusion.account(counts, TEACHERS)?.epsilon,
        collusion.with_extent(Extent::UpTo).account(counts, TEACHERS)?.epsilon,
        0.5 * (released[middle - 1] + released[middle]),
        exact.account_queries(counts.len())?.epsilon,
    ])
}

fn histograms(path: &Path) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    let votes: Vec<f64> = read(path)?;
    Ok(votes.chunks(10).map(|row| row.iter().map(|&count| count as u32).collect()).collect())
}

fn read<T: npyz::Deserialize>(path: &Path) -> Result<Vec<T>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    Ok(npyz::NpyFile::new(&bytes[..])?.into_vec()?)
}
