//! Prints the wall-clock seconds of requests at the limits of their ranges, as a Markdown table.

use std::error::Error;
use std::time::Instant;

use MechanismKind::{Binomial, DiscreteLaplace, Skellam};
use speed_accountant::audit::{NoisyArgmax, ShareNoise, audit_at};
use speed_accountant::calibrate::{Target, calibrate_noise, calibrate_queries};
use speed_accountant::{Accountant, Adversary, Bound, Delta, PrivacyEvent};
use speed_core::Randomness;
use speed_mechanism::{HonestRatio, Mechanism, MechanismKind, NoiseGenerator, SkellamShare};

type Answer = Result<String, Box<dyn Error>>;

const MILLION: usize = 1_000_000;

#[expect(clippy::print_stdout, reason = "a program that prints a table")]
fn timed(request: &str, answer: impl FnOnce() -> Answer) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let answer = answer()?;
    println!("| {request} | {:.2} | {answer} |", start.elapsed().as_secs_f64());
    Ok(())
}

fn accountant(kind: MechanismKind, scale: f64, tau: f64) -> Result<Accountant, Box<dyn Error>> {
    let event = PrivacyEvent::new(kind.with_scale(scale)?, HonestRatio::new(tau)?);
    Ok(Accountant::new(event, Delta::new(1e-5)?))
}

fn account(kind: MechanismKind, scale: f64, tau: f64) -> Answer {
    Ok(format!("epsilon {:.6}", accountant(kind, scale, tau)?.account_queries(MILLION)?.epsilon))
}

/// Accounts for votes from agreement to a close vote.
fn at_votes(coins: f64, rows: u32, classes: usize, adversary: Adversary) -> Answer {
    let row = |i: u32| [240 - i, 2 + i].into_iter().chain(std::iter::repeat_n(1, classes - 2)).collect();
    let votes: Vec<Vec<u32>> = (0..rows).map(row).collect();
    let tau = if adversary == Adversary::Colluding { 0.9 } else { 1.0 };
    let accountant = accountant(Binomial, coins, tau)?.with_adversary(adversary);
    Ok(format!("epsilon {:.6}", accountant.account(&votes, 240 + classes)?.epsilon))
}

fn target(epsilon: f64, tau: f64) -> Result<Target, Box<dyn Error>> {
    let (adversary, bound) = (Adversary::ExternalWithDropout, Bound::Tight);
    let (delta, tau) = (Delta::new(1e-5)?, HonestRatio::new(tau)?);
    Ok(Target { epsilon, delta, tau, adversary, bound, classes: None, threshold: None, checks: None })
}

fn audit(noise: ShareNoise) -> Answer {
    let argmax = NoisyArgmax::new(noise, 40, HonestRatio::ALL, Some(20))?;
    let mut generator = NoiseGenerator::new(&Randomness::simulation([1; 32]))?;
    let run = |neighbour: bool| argmax.answer(if neighbour { &[19, 21] } else { &[20, 20] }, &mut generator);
    Ok(format!("epsilon of one query at least {:.4}", audit_at(1e-2, 3, 20_000, 0.999, run).lower_bound))
}

#[expect(clippy::print_stdout, reason = "a program that prints a table")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("| request, delta 1e-5 | seconds | answer |\n|---|---:|---|");
    timed("account without votes, gamma 0.1, tau 0.9, 1,000,000 queries", || account(DiscreteLaplace, 0.1, 0.9))?;
    timed("account without votes, Skellam, sigma 1,000,000, tau 0.9, 1,000,000 queries", || {
        account(Skellam, 1e6, 0.9)
    })?;
    let (all, colluding) = (Adversary::ExternalWithDropout, Adversary::Colluding);
    for (coins, rows, classes, adversary, words) in [
        (57_600.0, 1, 10, all, "57,600 coins, 1 row of votes, 10 classes"),
        (300_000.0, 1, 10, all, "300,000 coins, 1 row of votes, 10 classes"),
        (1_048_576.0, 1, 10, all, "1,048,576 coins, 1 row of votes, 10 classes"),
        (1_048_576.0, 1, 1_000, all, "1,048,576 coins, 1 row of votes, 1,000 classes"),
        (1_048_576.0, 100, 1_000, all, "1,048,576 coins, 100 rows of votes, 1,000 classes"),
        (1_048_576.0, 100, 1_000, colluding, "1,048,576 coins, 100 rows of votes, 1,000 classes, collusion at tau 0.9"),
    ] {
        timed(&format!("account, {words}"), || at_votes(coins, rows, classes, adversary))?;
    }
    for (epsilon, tau, words) in [(20.0, 0.9, "epsilon 20, tau 0.9"), (1e5, 0.5, "epsilon 100,000, tau 0.5")] {
        timed(&format!("calibrate gamma, 1,000,000 queries, {words}"), || {
            Ok(format!("gamma {:.6}", calibrate_noise(DiscreteLaplace, MILLION, &target(epsilon, tau)?)?.scale))
        })?;
    }
    for gamma in [0.001, 0.01] {
        timed(&format!("calibrate the number of queries, gamma {gamma}, epsilon 100, tau 0.9"), || {
            let found = calibrate_queries(DiscreteLaplace.with_scale(gamma)?, &target(100.0, 0.9)?)?;
            Ok(format!("{} queries", found.queries))
        })?;
    }
    let Mechanism::Skellam { sigma } = Skellam.with_scale(300.0)? else { unreachable!("Skellam noise") };
    timed("audit, Skellam, sigma 300, 40 teachers, 20,000 runs", || {
        audit(ShareNoise::Skellam(SkellamShare::new(sigma, 40)?))
    })
}
