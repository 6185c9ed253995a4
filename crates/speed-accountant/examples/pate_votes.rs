//! The epsilon of PATE's votes: `pate_votes [VOTES.npy]` with one row of vote counts of 250 teachers per query and one
//! column per class, as PATE's authors published them (one file, 64-bit floats). Without a file, it uses built-in example
//! counts.

use std::error::Error;
use std::path::Path;

use speed_accountant::{
    Accountant, Adversary, Delta, Extent, HonestRatio, InverseScale, Mechanism, PrivacyEvent, round_up,
};

const TEACHERS: usize = 250;

/// 100 queries to all teachers: most agree, some do not.
fn built_in() -> Vec<Vec<u32>> {
    (0..100).map(|query| vec![240 - query, 5 + query, 3, 2]).collect()
}

fn read(path: &Path) -> Result<Vec<Vec<u32>>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let file = npyz::NpyFile::new(&bytes[..])?;
    let classes = *file.shape().last().ok_or("no columns")? as usize;
    let counts: Vec<f64> = file.into_vec()?;
    Ok(counts.chunks(classes).map(|row| row.iter().map(|&count| count as u32).collect()).collect())
}

#[expect(clippy::print_stdout, reason = "an example that prints its results")]
fn main() -> Result<(), Box<dyn Error>> {
    let counts = match std::env::args().nth(1) {
        Some(path) => read(Path::new(&path))?,
        None => built_in(),
    };

    // Integer noise of inverse scale 0.1; at least nine tenths of the teachers add their share and keep it secret.
    let tau = HonestRatio::new(0.9)?.effective(TEACHERS)?;
    let event = PrivacyEvent::new(Mechanism::discrete_laplace(InverseScale::new(0.1)?), tau);
    let accountant = Accountant::new(event, Delta::new(1e-5)?).with_extent(Extent::UpTo);

    // Data-dependent: small if teachers agree, and as secret as the votes.
    let dropout = accountant.account(&counts, TEACHERS)?;
    println!("data-dependent: epsilon {}\n{}\n", round_up(dropout.epsilon, 3), dropout.claim);
    // The same against teachers who tell the adversary their noise.
    let collusion = accountant.with_adversary(Adversary::Colluding).account(&counts, TEACHERS)?;
    println!("data-dependent, collusion: epsilon {}\n{}\n", round_up(collusion.epsilon, 3), collusion.claim);
    // Data-independent: holds for any votes, and may be published.
    let data_independent = accountant.account_queries(counts.len())?;
    println!("data-independent: epsilon {}\n{}", round_up(data_independent.epsilon, 3), data_independent.claim);
    Ok(())
}
