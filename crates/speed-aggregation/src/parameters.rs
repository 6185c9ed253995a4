//! Named cryptographic parameter sets.

use tfhe::core_crypto::commons::math::random::DynamicDistribution;
use tfhe::core_crypto::prelude::{DecompositionBaseLog, DecompositionLevelCount, LweDimension, PolynomialSize};

use crate::circuit::Circuit;
use crate::noise::{FailureBound, NoiseModel};

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
}

/// A complete, named set of parameters for keys, encoding and circuits. There is no public constructor: security and
/// exactness hold for the named constants only ([`Parameters::TOURNAMENT_128`]).
///
/// The torus is `Z / 2^64`. A bootstrap sees the phase in *buckets*: `2N = 4096` of them, `2^52` torus units each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    pub(crate) name: &'static str,
    /// Dimension `n` of the small key, over which bootstraps read their input.
    pub(crate) lwe_dimension: usize,
    /// Degree `N` of the ring; with one mask polynomial (`k = 1`) also the dimension of the big key.
    pub(crate) polynomial_size: usize,
    /// Noise of the small key: TUniform on `[-2^b, 2^b]`.
    pub(crate) lwe_noise_log: u32,
    /// Noise of the big key and of the public key: TUniform on `[-2^b, 2^b]`.
    pub(crate) glwe_noise_log: u32,
    pub(crate) bootstrap: Decomposition,
    pub(crate) select: Decomposition,
    pub(crate) key_switch: Decomposition,
    pub(crate) packing: Decomposition,
    /// One vote is `2^unit_log` on the torus.
    pub(crate) unit_log: u32,
    /// One step of the class index is `2^index_log` on the torus.
    pub(crate) index_log: u32,
    /// Multipliers of the three scales of a comparison, finest first, each times `2^(64 - index_log)` so that the index
    /// vanishes modulo `2^64`.
    pub(crate) scales: [u64; 3],
    /// Half-width in buckets of the zone around zero in which the two coarser scales answer "don't know".
    pub(crate) dead_zone: usize,
    /// Largest `|difference|` of two noisy counts for which a comparison is right.
    pub(crate) range: u64,
    /// Flooding noise of an answer: TUniform on `[-2^b, 2^b]`.
    pub(crate) flooding_log: u32,
}

impl Parameters {
    /// Exact argmax of 2 to 16 classes at 128-bit security.
    ///
    /// | | |
    /// |---|---|
    /// | security | 128 bits: dimension, noise and ring are those of tfhe-rs 1.8 `PARAM_MESSAGE_2_CARRY_2_KS_PBS_TUNIFORM_2M128` (n = 918, N = 2048, k = 1, binary keys) |
    /// | range | two noisy counts of one query differ by at most 2544 ([`Parameters::range`]) |
    /// | failure | ten classes, 250 teachers, by [`Parameters::failure`]: tournament 2^-140 a comparison and 2^-137 a query, all pairs 2^-134 and 2^-131; 16 classes and 2544 teachers: 2^-136 and 2^-130 a query. Below 2^-128, tfhe's own condition for publishing decryptions (IND-CPA^D) |
    /// | cost, ten classes | tournament: 37 bootstraps (10 of them with the finer key), 37 key switches, 9 packings a query; all pairs: 190 (10) and 85 |
    /// | memory | evaluation key about 0.5 GB, public key 33 kB |
    ///
    /// # Encoding
    /// A class with index `i` and noisy count `v` travels as `v * 2^46 + i * 2^60` (modulo 2^64). A comparison
    /// multiplies the difference of two such values by `16 * 584`, `16 * 40` and `16 * 3`: the index part becomes a
    /// multiple of 2^64 and vanishes, so that it costs no precision, and one vote becomes 146, 10 and 0.75 buckets.
    ///
    /// # Margins
    /// Write `D = |d - 1/2|` for the difference `d` of the later minus the earlier class. In buckets of 4096:
    /// - finest scale (sign): `D = 1/2` lies 73 from the wrong answer, and `D <= 13.5` at least 73 from the wrap-around
    ///   at 2048.
    /// - middle scale (sign, but 0 within 70 of zero and of 2048): 75 or more from the wrong sign; from `D = 14.5` on,
    ///   75 from "don't know".
    /// - coarsest scale (same table): 70 from the wrong sign; around `D = 190` it takes over from the middle one: for
    ///   every `D` one of the two is 72 or more from "don't know"; at `D = 2544.5` it is 69.6 from giving up.
    /// - sum of the three answers with weights 1, 2, 4: 128 buckets to the next value.
    ///
    /// The noise has a standard deviation of about 4.8 buckets in the first round and 5.3 in the fourth (finest
    /// scale). No bound assumes that the errors of two scales are independent.
    pub const TOURNAMENT_128: Self = Self {
        name: "TOURNAMENT_128",
        lwe_dimension: 918,
        polynomial_size: 2048,
        lwe_noise_log: 45,
        glwe_noise_log: 17,
        bootstrap: Decomposition { base_log: 23, levels: 1 },
        select: Decomposition { base_log: 12, levels: 3 },
        key_switch: Decomposition { base_log: 4, levels: 4 },
        packing: Decomposition { base_log: 12, levels: 3 },
        unit_log: 46,
        index_log: 60,
        scales: [584 << 4, 40 << 4, 3 << 4],
        dead_zone: 70,
        range: 2544,
        flooding_log: 58,
    };

    /// The constant's name, as written into messages, tables and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Largest `|difference|` of two noisy counts of one query for which the comparison is exact.
    #[must_use]
    pub fn range(&self) -> u64 {
        self.range
    }

    /// Largest number of classes: the steps of the index that fit on the torus.
    #[must_use]
    pub fn max_classes(&self) -> usize {
        1 << (u64::BITS - self.index_log)
    }

    /// Upper bounds on the failure probability of a comparison and of a query with `classes` classes, for sums of
    /// `teachers` public-key encryptions. See [`FailureBound`] for the formulas.
    #[must_use]
    pub fn failure(&self, circuit: Circuit, classes: usize, teachers: usize) -> FailureBound {
        NoiseModel::new(self).failure(circuit, classes, teachers)
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

    pub(crate) fn lwe_noise(&self) -> DynamicDistribution<u64> {
        DynamicDistribution::new_t_uniform(self.lwe_noise_log)
    }

    pub(crate) fn glwe_noise(&self) -> DynamicDistribution<u64> {
        DynamicDistribution::new_t_uniform(self.glwe_noise_log)
    }

    pub(crate) fn flooding_noise(&self) -> DynamicDistribution<u64> {
        DynamicDistribution::new_t_uniform(self.flooding_log)
    }

    /// Number of buckets that a bootstrap distinguishes, as a power of two.
    pub(crate) fn bucket_count_log(&self) -> usize {
        self.polynomial_size.trailing_zeros() as usize + 1
    }
}
