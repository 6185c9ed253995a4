//! The sampler of one teacher's share of binomial noise.

use rand::CryptoRng;

use crate::parameters::check_teachers;
use crate::{MechanismError, NoiseCoins};

/// One teacher's share of binomial noise: the number of heads of its coins for one class and query, from 0 to
/// [`Self::coins`].
///
/// A fair coin is one random bit, so the sampler is exact and adds nothing to delta. Its time depends only on the number
/// of coins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BinomialShare {
    coins: u32,
}

impl BinomialShare {
    /// The largest number of coins of one teacher.
    pub const MAX_COINS: u32 = 1 << 16;

    /// Creates the share of one of `teachers` teachers, which toss `coins` coins together.
    ///
    /// # Errors
    /// [`MechanismError::Teachers`] for no teacher or more than [`NoiseShare::MAX_TEACHERS`](crate::NoiseShare::MAX_TEACHERS),
    /// [`MechanismError::SharedCoins`] if the teachers cannot share the coins evenly,
    /// [`MechanismError::CoinsOfTeacher`] for more than [`Self::MAX_COINS`] each.
    pub fn new(coins: NoiseCoins, teachers: usize) -> Result<Self, MechanismError> {
        check_teachers(teachers)?;
        let (all, teachers_wide) = (coins.get(), teachers as u64);
        if !all.is_multiple_of(teachers_wide) {
            return Err(MechanismError::SharedCoins { coins: all, teachers });
        }
        match u32::try_from(all / teachers_wide) {
            Ok(coins) if coins <= Self::MAX_COINS => Ok(Self { coins }),
            _ => Err(MechanismError::CoinsOfTeacher { found: all / teachers_wide, max: Self::MAX_COINS }),
        }
    }

    /// Returns the number of coins of one teacher, for each class and query: the largest share.
    pub fn coins(&self) -> u32 {
        self.coins
    }

    /// Tosses the coins of one share and returns the number of heads.
    pub fn sample(&self, rng: &mut impl CryptoRng) -> i64 {
        heads(u64::from(self.coins), rng)
    }

    /// Returns the sum of `sharers` shares: the heads of all their coins.
    pub fn sample_sum(&self, sharers: usize, rng: &mut impl CryptoRng) -> i64 {
        heads(u64::from(self.coins) * sharers as u64, rng)
    }
}

fn heads(coins: u64, rng: &mut impl CryptoRng) -> i64 {
    let complete: u64 = (0..coins / 64).map(|_| u64::from(rng.next_u64().count_ones())).sum();
    let rest = (coins % 64) as u32;
    let rest = if rest == 0 { 0 } else { (rng.next_u64() >> (64 - rest)).count_ones() };
    (complete + u64::from(rest)) as i64
}
