//! Prints the time of requests at the limits of their ranges: `limits`. Each time is the wall-clock seconds of one run.

use std::process::ExitCode;
use std::time::Instant;

use MechanismKind::{Binomial, DiscreteLaplace, Gaussian, Laplace, Skellam};
use speed_accountant::audit::{NoisyArgmax, ShareNoise, audit_at};
use speed_accountant::calibrate::{Target, calibrate_noise, calibrate_queries};
use speed_accountant::{Accountant, Adversary, Bound, Budget, Delta, PrivacyEvent, PrivacyFilter, QueryBatch};
use speed_core::Randomness;
use speed_mechanism::{HonestRatio, Mechanism, MechanismKind, NoiseGenerator, NoiseShare, SkellamShare};

type Failure = Box<dyn std::error::Error>;

const MILLION: usize = 1_000_000;

/// Prints the time of a request and its answer.
#[expect(clippy::print_stdout, reason = "a program that prints a table")]
fn timed(name: &str, request: impl FnOnce() -> Result<String, Failure>) {
    let start = Instant::now();
    let answer = request().unwrap_or_else(|error| format!("refused: {error}"));
    println!("| {name} | {:.2} | {answer} |", start.elapsed().as_secs_f64());
}

fn account(kind: MechanismKind, scale: f64, tau: f64, queries: usize, delta: f64) -> Result<String, Failure> {
    let event = PrivacyEvent::new(kind.with_scale(scale)?, HonestRatio::new(tau)?);
    Ok(format!("epsilon {:.6}", Accountant::new(event, Delta::new(delta)?).account_queries(queries)?.epsilon))
}

/// Accounts for 100 queries with votes from agreement to a close vote; 250 teachers for 10 classes.
fn at_votes(
    kind: MechanismKind,
    scale: f64,
    tau: f64,
    classes: usize,
    adversary: Adversary,
) -> Result<String, Failure> {
    let row = |i: u32| [240 - i, 2 + i].into_iter().chain(std::iter::repeat_n(1, classes - 2)).collect();
    let votes: Vec<Vec<u32>> = (0..100).map(row).collect();
    let event = PrivacyEvent::new(kind.with_scale(scale)?, HonestRatio::new(tau)?);
    let accountant = Accountant::new(event, Delta::new(1e-5)?).with_adversary(adversary);
    Ok(format!("epsilon {:.6}", accountant.account(&votes, 240 + classes)?.epsilon))
}

fn target(epsilon: f64, tau: f64) -> Result<Target, Failure> {
    let (adversary, bound) = (Adversary::ExternalWithDropout, Bound::Tight);
    let (delta, tau) = (Delta::new(1e-5)?, HonestRatio::new(tau)?);
    Ok(Target { epsilon, delta, tau, adversary, bound, classes: None, threshold: None, checks: None })
}

fn noise(kind: MechanismKind, queries: usize, epsilon: f64, tau: f64) -> Result<String, Failure> {
    let found = calibrate_noise(kind, queries, &target(epsilon, tau)?)?;
    Ok(format!("scale {:.6}, epsilon {:.6}", found.scale, found.account.epsilon))
}

fn queries(kind: MechanismKind, scale: f64, epsilon: f64) -> Result<String, Failure> {
    let found = calibrate_queries(kind.with_scale(scale)?, &target(epsilon, 0.9)?)?;
    Ok(format!("{} queries, epsilon {:.6}", found.queries, found.account.epsilon))
}

fn audit(noise: ShareNoise, teachers: usize) -> Result<String, Failure> {
    let argmax = NoisyArgmax::new(noise, teachers, HonestRatio::ALL, Some(20))?;
    let mut generator = NoiseGenerator::new(&Randomness::simulation([1; 32]))?;
    let run = |neighbour: bool| argmax.answer(if neighbour { &[19, 21] } else { &[20, 20] }, &mut generator);
    Ok(format!("epsilon of one query at least {:.4}", audit_at(1e-2, 3, 20_000, 0.999, run).lower_bound))
}

fn ledger(kinds: usize, queries: usize) -> Result<String, Failure> {
    let mut filter = PrivacyFilter::new(Budget { epsilon: None, delta: Delta::new(1e-5)? });
    for i in 0..kinds {
        let gamma = MechanismKind::DiscreteLaplace.with_scale(0.011 + 0.01 * i as f64)?;
        filter.compose(&QueryBatch::new(PrivacyEvent::new(gamma, HonestRatio::new(0.9)?), 10, queries));
    }
    Ok(format!("epsilon {:.6}, fixed beforehand {:.6}", filter.spent().epsilon, filter.fixed_epsilon()))
}

#[expect(clippy::print_stdout, reason = "a program that prints a table")]
fn main() -> ExitCode {
    println!("| request | seconds | answer |\n|---|---:|---|");
    time_accounts();
    time_accounts_at_votes();
    time_accounts_of_many_coins();
    time_calibrations();
    time_audits();
    for (kinds, count) in [(2, 500_000), (20, 50_000), (20, 10)] {
        timed(&format!("ledger, {kinds} kinds of {count} queries each"), || ledger(kinds, count));
    }
    ExitCode::SUCCESS
}

fn time_accounts() {
    for (kind, scale, tau) in [
        (Laplace, 0.001, 0.9),
        (Laplace, 0.1, 1.0),
        (DiscreteLaplace, 0.001, 0.9),
        (DiscreteLaplace, 0.001, 1.0),
        (DiscreteLaplace, 0.01, 0.9),
        (DiscreteLaplace, 0.1, 0.9),
        (DiscreteLaplace, 0.1, 0.004),
        (Gaussian, 1e6, 0.9),
        (Skellam, 40.0, 0.9),
        (Skellam, 999.0, 1.0),
        (Skellam, 1e6, 0.9),
    ] {
        for queries in [1, 1_000, MILLION] {
            for delta in [1e-5, 1e-280] {
                let name = format!("account, {kind} {scale}, tau {tau}, {queries} queries, delta {delta:e}");
                timed(&name, || account(kind, scale, tau, queries, delta));
            }
        }
    }
}

fn time_accounts_at_votes() {
    for (kind, scale, tau) in [
        (Laplace, 0.001, 0.9),
        (DiscreteLaplace, 0.001, 0.9),
        (DiscreteLaplace, 0.001, 0.004),
        (DiscreteLaplace, 0.01, 0.9),
        (DiscreteLaplace, 0.05, 0.9),
        (DiscreteLaplace, 0.05, 0.1),
        (DiscreteLaplace, 1e6, 0.9),
        (Gaussian, 1e6, 0.9),
        (Skellam, 0.01, 0.9),
        (Skellam, 40.0, 0.9),
        (Skellam, 999.0, 0.9),
        (Skellam, 1e6, 0.9),
    ] {
        for adversary in [Adversary::ExternalWithDropout, Adversary::Colluding] {
            let name = format!("account of 100 rows of votes, {kind} {scale}, tau {tau}, {adversary}");
            timed(&name, || at_votes(kind, scale, tau, 10, adversary));
        }
    }
}

fn time_accounts_of_many_coins() {
    for coins in [262_144.0, 1_048_576.0] {
        for (queries, delta) in [(1, 1e-5), (100, 1e-5), (MILLION, 1e-5), (100, 1e-60)] {
            let name = format!("account, {coins} coins, tau 1, {queries} queries, delta {delta:e}");
            timed(&name, || account(Binomial, coins, 1.0, queries, delta));
        }
        for classes in [10, 40, 1_000] {
            for (tau, adversary) in [(1.0, Adversary::ExternalWithDropout), (0.9, Adversary::Colluding)] {
                let name =
                    format!("account of 100 rows of votes, {coins} coins, {classes} classes, tau {tau}, {adversary}");
                timed(&name, || at_votes(Binomial, coins, tau, classes, adversary));
            }
        }
    }
}

fn time_calibrations() {
    for (kind, count, epsilon, tau) in [
        (DiscreteLaplace, MILLION, 5.0, 1.0),
        (DiscreteLaplace, MILLION, 20.0, 0.9),
        (DiscreteLaplace, MILLION, 100.0, 0.9),
        (DiscreteLaplace, MILLION, 1e5, 0.5),
        (DiscreteLaplace, 1_000, 1.0, 0.9),
        (DiscreteLaplace, 10_000, 5.0, 0.9),
        (DiscreteLaplace, 100, 5.0, 0.7),
        (Laplace, MILLION, 100.0, 0.9),
        (Gaussian, MILLION, 1.0, 0.9),
        (Skellam, MILLION, 1.0, 0.9),
        (Skellam, 100, 1.0, 0.9),
    ] {
        let name = format!("calibrate the noise, {kind}, {count} queries, epsilon {epsilon}, tau {tau}");
        timed(&name, || noise(kind, count, epsilon, tau));
    }
    for (kind, scale, epsilon) in [
        (DiscreteLaplace, 0.001, 100.0),
        (DiscreteLaplace, 0.01, 100.0),
        (DiscreteLaplace, 0.1, 1000.0),
        (Laplace, 0.001, 100.0),
        (Skellam, 40.0, 100.0),
        (Skellam, 1e6, 0.1),
    ] {
        timed(&format!("calibrate the number of queries, {kind} {scale}, epsilon {epsilon}"), || {
            queries(kind, scale, epsilon)
        });
    }
}

fn time_audits() {
    let skellam = |scale: f64| match Skellam.with_scale(scale)? {
        Mechanism::Skellam { sigma } => audit(ShareNoise::Skellam(SkellamShare::new(sigma, 40)?), 40),
        _ => Ok(String::new()),
    };
    for sigma in [40.0, 300.0, 10_000.0] {
        timed(&format!("audit, skellam {sigma}, 40 teachers, 20000 runs"), || skellam(sigma));
    }
    for gamma in [0.001, 0.1] {
        timed(&format!("audit, discrete-laplace {gamma}, 40 teachers, 20000 runs"), || {
            let gamma = speed_mechanism::InverseScale::new(gamma)?;
            audit(ShareNoise::Exact(Box::new(NoiseShare::new(gamma, 40)?)), 40)
        });
    }
}
