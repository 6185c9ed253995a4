//! Named cryptographic parameter sets.

use tfhe::core_crypto::commons::math::random::DynamicDistribution;
use tfhe::core_crypto::prelude::{DecompositionBaseLog, DecompositionLevelCount, LweDimension, PolynomialSize};

use crate::codec::{Decode, DecodeError, Encode, Limits, Reader, Writer};

/// A gadget decomposition: `levels` digits of `base_log` bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decomposition {
    pub(crate) base_log: usize,
    pub(crate) levels: usize,
}

impl Decomposition {
    pub(crate) fn base(self) -> DecompositionBaseLog {
        DecompositionBaseLog(self.base_log)
    }

    pub(crate) fn level_count(self) -> DecompositionLevelCount {
        DecompositionLevelCount(self.levels)
    }

    /// Returns the place of the lowest bit of a level in a word. Level 0 is the least significant one.
    pub(crate) fn lowest_bit(self, level: usize) -> usize {
        64 - self.base_log * (self.levels - level)
    }

    /// Returns the weight of one unit of a level.
    pub(crate) fn weight(self, level: usize) -> u64 {
        1 << self.lowest_bit(level)
    }
}

/// A complete, named set of cryptographic parameters. There is no public constructor, because security and exactness
/// hold for the named constants only. The positions of counts on the torus are not part of it; [`crate::Encoding`]
/// computes them for each round.
///
/// The torus is `Z / 2^64`. A bootstrap sees the phase in *buckets*: `2N = 4096` of them, `2^52` torus units each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub(crate) name: &'static str,
    /// Number of the set in files.
    pub(crate) code: usize,
    /// Dimension `n` of the small key, under which bootstraps read their input.
    pub(crate) lwe_dimension: usize,
    /// Degree `N` of the ring; with one mask polynomial (`k = 1`) also the dimension of the big key.
    pub(crate) polynomial_size: usize,
    /// Ciphertext noise of the small key: TUniform on `[-2^b, 2^b]`.
    pub(crate) lwe_noise_log: u32,
    /// Ciphertext noise of the big key and of the public key: TUniform on `[-2^b, 2^b]`.
    pub(crate) glwe_noise_log: u32,
    pub(crate) bootstrap: Decomposition,
    pub(crate) select: Decomposition,
    pub(crate) key_switch: Decomposition,
    pub(crate) trace: Decomposition,
    /// The largest number of scales at which a comparison reads a difference.
    pub(crate) scales: usize,
    /// Flooding noise before each read-out: TUniform on `[-2^b, 2^b]`.
    pub(crate) read_out_flooding_log: u32,
    /// Flooding noise of an answer: TUniform on `[-2^b, 2^b]`.
    pub(crate) flooding_log: u32,
    /// Flooding noise of an opener's part: uniform on `[-2^b, 2^b)`.
    pub(crate) part_flooding_log: u32,
    /// Bits of the ring key that may be known.
    pub(crate) leakage_bits: u16,
}

impl Parameters {
    /// Exact argmax of noisy counts that differ by at most 2544 votes, at 128-bit security: for hundreds of teachers.
    ///
    /// | | |
    /// |---|---|
    /// | security | 128 bits: dimension, noise and ring are those of tfhe-rs 1.8 `PARAM_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128` (n = 918, N = 2048, k = 1, binary keys); its noise curves aim at 132 |
    /// | failure | below 2^-128 per query, tfhe's own condition for publishing decryptions (IND-CPA^D); a round that would not reach it is refused |
    /// | cost, ten classes | tournament: 38 bootstraps (11 of them with the finer key), 38 key switches, 9 packings per query; all pairs: 192 (12) and 87 |
    /// | memory | evaluation key 103 MB on disk, 320 MB in use; public key 16 kB |
    pub const TOURNAMENT_128: Self = Self {
        name: "TOURNAMENT_128",
        code: 1,
        lwe_dimension: 918,
        polynomial_size: 2048,
        lwe_noise_log: 45,
        glwe_noise_log: 17,
        bootstrap: Decomposition { base_log: 23, levels: 1 },
        select: Decomposition { base_log: 15, levels: 2 },
        key_switch: Decomposition { base_log: 3, levels: 6 },
        trace: Decomposition { base_log: 8, levels: 5 },
        scales: 3,
        read_out_flooding_log: 57,
        flooding_log: 58,
        part_flooding_log: 57,
        leakage_bits: 333,
    };

    /// Like [`Parameters::TOURNAMENT_128`], but for differences of up to 30,000 votes: thousands of teachers. A match
    /// with four scales takes four coarse bootstraps and two with a key of three levels, instead of three coarse ones
    /// and one with a key of two levels.
    pub const WIDE_128: Self = Self {
        name: "WIDE_128",
        code: 2,
        select: Decomposition { base_log: 12, levels: 3 },
        trace: Decomposition { base_log: 7, levels: 6 },
        scales: 4,
        ..Self::TOURNAMENT_128
    };

    /// All named sets, the fastest first.
    pub const ALL: [Self; 2] = [Self::TOURNAMENT_128, Self::WIDE_128];

    /// Returns the constant's name, as used in tables and logs.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the largest `|difference|` of two noisy counts of one query for which a comparison is exact.
    pub fn range(&self) -> u64 {
        crate::scales::reach(self.scales)
    }

    /// Returns how many bits of the secret key may become known while the rest still has about 112 bits of security: 333. The
    /// best attack of the lattice estimator on the ring key (MATZOV's dual attack and cost model) then takes 2^112.5 operations.
    /// docs/threat-models.md ("Bits of the key in labels") has the model.
    pub fn leakage_bits(&self) -> u16 {
        self.leakage_bits
    }

    pub(crate) fn small_dimension(&self) -> LweDimension {
        LweDimension(self.lwe_dimension)
    }

    pub(crate) fn big_dimension(&self) -> LweDimension {
        LweDimension(self.polynomial_size)
    }

    pub(crate) fn ring(&self) -> PolynomialSize {
        PolynomialSize(self.polynomial_size)
    }

    pub(crate) fn glwe_noise(&self) -> DynamicDistribution<u64> {
        DynamicDistribution::new_t_uniform(self.glwe_noise_log)
    }

    /// Returns the binary logarithm of the number of buckets that a bootstrap distinguishes.
    pub(crate) fn bucket_count_log(&self) -> usize {
        self.polynomial_size.trailing_zeros() as usize + 1
    }

    /// Returns one bucket in torus units.
    pub(crate) fn bucket(&self) -> u64 {
        1 << (u64::BITS as usize - self.bucket_count_log())
    }
}

/// A parameter set is encoded as its number.
impl Encode for Parameters {
    fn encode(&self, writer: &mut Writer) {
        self.code.encode(writer);
    }
}

impl Decode for Parameters {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let code: usize = reader.read_with(Limits { field: "parameter set", min: 1, max: Self::ALL.len() })?;
        Ok(Self::ALL[code - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_found_by_its_number_and_has_the_noise_that_its_dimension_needs() {
        use tfhe::core_crypto::commons::noise_formulas::secure_noise::minimal_lwe_bound_for_132_bits_security_tuniform;
        let least = |dimension| minimal_lwe_bound_for_132_bits_security_tuniform(dimension, 2_f64.powi(64));
        for (position, p) in Parameters::ALL.iter().enumerate() {
            assert_eq!(p.code, position + 1);
            assert!(p.lwe_noise_log >= least(p.small_dimension()), "{}: small key", p.name);
            assert!(p.glwe_noise_log >= least(p.big_dimension()), "{}: ring key", p.name);
            // A hundred labels of ten classes. The line through the estimator's figures leaves 112 bits.
            assert!(100.0 * 10_f64.log2() <= f64::from(p.leakage_bits()), "{}", p.name);
            let line = |bits: f64| 121.0 + (bits - 200.0) * (110.3 - 121.0) / (364.0 - 200.0);
            assert!(line(f64::from(p.leakage_bits())) >= 112.0, "{}", p.name);
        }
    }
}
