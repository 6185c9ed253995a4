//! Warm running time of the accountant on real votes: `timing VOTES.npy A..B`, whose rows have no empty votes. Wall-clock time on all threads, or on
//! RAYON_NUM_THREADS threads.

use std::error::Error;
use std::time::Instant;

use speed_accountant::{Account, AccountError, Accountant, Adversary, Bound, Delta, PrivacyEvent};
use speed_mechanism::{HonestRatio, InverseScale, Mechanism, MechanismKind, NoiseCoins};

#[expect(clippy::print_stdout, reason = "a program that prints a table")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (votes, rows) = arguments.next().zip(arguments.next()).ok_or("usage: timing VOTES.npy A..B")?;
    let (from, to) = rows.split_once("..").ok_or("expected A..B")?;
    let bytes = std::fs::read(votes)?;
    let file = npyz::NpyFile::new(&bytes[..])?;
    let classes = *file.shape().last().ok_or("no columns")? as usize;
    let all: Vec<f64> = file.into_vec()?;
    let all: Vec<Vec<u32>> = all.chunks(classes).map(|row| row.iter().map(|&count| count as u32).collect()).collect();
    let teachers = all.first().map_or(0, |row| row.iter().sum::<u32>()) as usize;
    let counts = all.get(from.parse()?..to.parse()?).ok_or("rows out of range")?;
    let (gamma, tau, delta) = (InverseScale::new(0.1)?, HonestRatio::new(0.9)?, Delta::new(1e-5)?);
    println!("{} queries, gamma 0.1, tau 0.9, delta 1e-5; the fastest of five", counts.len());
    let binomial = Mechanism::Binomial { coins: NoiseCoins::new(1_000)? };
    let skellam = MechanismKind::Skellam.with_scale(14.1)?;
    for noise in [Mechanism::laplace(gamma), Mechanism::discrete_laplace(gamma), skellam, binomial] {
        let accountant = Accountant::new(PrivacyEvent::new(noise, tau), delta);
        for bound in [Bound::Paper, Bound::Outcome, Bound::Tight] {
            for assume in [Adversary::ExternalWithDropout, Adversary::Colluding] {
                let accountant = accountant.with_bound(bound).with_adversary(assume);
                let (epsilon, best) = fastest(|| accountant.account(counts, teachers))?;
                println!("{noise:<69} {bound:>8} {assume:>10}: {epsilon:.4} in {best:.1} ms");
            }
        }
        let (epsilon, best) = fastest(|| accountant.account_queries(counts.len()))?;
        println!("{noise:<69} {:>19}: {epsilon:.4} in {best:.1} ms", "without votes");
    }
    Ok(())
}

/// Returns the epsilon of an account, and the least time of five in milliseconds.
fn fastest(account: impl Fn() -> Result<Account, AccountError>) -> Result<(f64, f64), AccountError> {
    let (mut epsilon, mut best) = (0.0, f64::INFINITY);
    for _ in 0..5 {
        let start = Instant::now();
        epsilon = account()?.epsilon;
        best = best.min(1e3 * start.elapsed().as_secs_f64());
    }
    Ok((epsilon, best))
}
