//! Errors of specifying or starting a noise mechanism.

/// An error of the parameters or the start of a noise mechanism.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the fields")]
#[non_exhaustive]
pub enum MechanismError {
    /// The inverse scale is not a number in the supported range.
    #[error("inverse scale gamma is {found:?}, but it must be a number from {min} to {max} (per vote)")]
    InverseScale { found: f64, min: f64, max: f64 },
    /// The standard deviation is not a number in the supported range.
    #[error("standard deviation sigma is {found:?}, but it must be a number from {min} to {max} (in votes)")]
    Deviation { found: f64, min: f64, max: f64 },
    /// The number of coins is not an integer in the supported range.
    #[error("number of coins is {found}, but it must be an integer from 1 to {max} (of all teachers, for each class)")]
    Coins { found: f64, max: u64 },
    /// The teachers cannot share the coins evenly.
    #[error("{coins} coins cannot be shared evenly between {teachers} teachers, each of which tosses the same number")]
    SharedCoins { coins: u64, teachers: usize },
    /// Each teacher would toss an odd number of coins, and the round has a threshold.
    #[error(
        "{found} coins for each teacher, class and query, but with a threshold an even number is expected: add one coin, or leave out the threshold"
    )]
    OddCoins { found: u64 },
    /// One teacher would toss too many coins.
    #[error(
        "{found} coins for each teacher, class and query, but at most {max} are supported: ask for less noise, or for more teachers"
    )]
    CoinsOfTeacher { found: u64, max: u32 },
    /// The fraction of the teachers that add noise is not in (0, 1].
    #[error("ratio tau is {found:?}, but it must be greater than 0 and at most 1")]
    HonestRatio { found: f64 },
    /// The ratio leaves no teacher to add noise.
    #[error(
        "ratio tau = {tau} of {teachers} teachers is less than one teacher, so no teacher would add noise: raise one of them"
    )]
    NoNoisyTeacher { tau: f64, teachers: usize },
    /// There are no teachers, or more than the arithmetic of the table covers.
    #[error("number of teachers is {found}, but it must be from 1 to {max}")]
    Teachers { found: usize, max: usize },
    /// The shape of a distribution is out of range.
    #[error("shape is {found:?}, but it must be greater than 0 and at most {max}")]
    Shape { found: f64, max: f64 },
    /// A probability of failure is not in (0, 1).
    #[error("probability of failure is {found:?}, but it must be greater than 0 and less than 1")]
    Failure { found: f64 },
    /// The certified distance between the sampler's table and the exact distribution is too large.
    #[error("total variation distance of the noise table is {found:e}, more than the allowed {max:e}")]
    TotalVariation { found: f64, max: f64 },
    /// A failure of the operating system's generator.
    #[error(transparent)]
    Entropy(#[from] speed_core::EntropyError),
}
