//! Data-independent epsilons of binomial and Gaussian noise beside discrete Laplace noise, as Markdown (delta 1e-5, rounded
//! up).

use std::error::Error;

use speed_accountant::{Accountant, Delta, PrivacyEvent, round_up};
use speed_mechanism::{HonestRatio, InverseScale, Mechanism, NoiseCoins, NoiseDeviation};

const QUERIES: [usize; 4] = [10, 20, 100, 500];

#[expect(clippy::print_stdout, reason = "a program that prints a table")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("| noise | deviation | 10 queries | 20 queries | 100 queries | 500 queries |");
    println!("|---|---:|---:|---:|---:|---:|");
    let binomial = |coins: u64| NoiseCoins::new(coins).map(|coins| (coins, Mechanism::binomial(coins)));
    for coins in [560, 720, 800, 6_400, 10_000, 57_600] {
        let (coins, noise) = binomial(coins)?;
        println!("| {} coins | {:.1} | {} |", coins.get(), coins.deviation(), epsilons(noise)?);
    }
    for deviation in [40.0, 50.0, 120.0] {
        let noise = Mechanism::gaussian(NoiseDeviation::new(deviation)?);
        println!("| Gaussian, sigma {deviation} | {deviation:.1} | {} |", epsilons(noise)?);
    }
    let gamma = InverseScale::new(0.1)?;
    let deviation = 2f64.sqrt() / gamma.get();
    println!("| discrete Laplace, gamma 0.1 | {deviation:.1} | {} |", epsilons(Mechanism::discrete_laplace(gamma))?);
    Ok(())
}

/// Returns the cells of a line.
fn epsilons(noise: Mechanism) -> Result<String, Box<dyn Error>> {
    let accountant = Accountant::new(PrivacyEvent::new(noise, HonestRatio::ALL), Delta::new(1e-5)?);
    let cell = |queries: usize| -> Result<String, Box<dyn Error>> {
        Ok(format!("{:.3}", round_up(accountant.account_queries(queries)?.epsilon, 3)))
    };
    Ok(QUERIES.into_iter().map(cell).collect::<Result<Vec<_>, _>>()?.join(" | "))
}
