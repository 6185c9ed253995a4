//! Eight numbers at a time, with the same results on every processor: each operation is one rounding of IEEE 754.

#[cfg(target_arch = "x86_64")]
mod x86;

use pulp::NullaryFnOnce;
#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};

/// Numbers of a vector in memory.
pub(super) const LANES: usize = 8;

/// A vector of [`LANES`] numbers in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
pub(super) struct Eight(pub(super) [f64; LANES]);

impl Eight {
    pub(super) const ZERO: Self = Self([0.0; LANES]);

    /// Computes each number. Functions of arrays like `map` are not always inlined, and would then lack the processor's instructions.
    #[inline(always)]
    pub(super) fn each(number: impl Fn(usize) -> f64) -> Self {
        Self([number(0), number(1), number(2), number(3), number(4), number(5), number(6), number(7)])
    }
}

/// The vector instructions of a processor, as a proof that it has them.
///
/// A vector in memory has as many parts as it fills registers, and each part is computed on its own: a butterfly of eight complex numbers
/// fits into the registers of every processor only with one register for each of its numbers.
pub(super) trait Lanes: Copy {
    /// Registers that a vector fills.
    const PARTS: usize;
    /// One of the [`Self::PARTS`] parts of a vector, in a register.
    type V: Copy;
    /// Its numbers.
    type Numbers: AsRef<[f64]>;

    /// Computes each number of a part.
    fn each(self, number: impl Fn(usize) -> f64) -> Self::V;
    fn numbers(self, numbers: Self::V) -> Self::Numbers;
    fn load(self, vector: &Eight, part: usize) -> Self::V;
    fn store(self, numbers: Self::V, vector: &mut Eight, part: usize);
    fn splat(self, number: f64) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a b + c`, rounded once.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `a b - c`, rounded once.
    fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// `c - a b`, rounded once.
    fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// Loads a part of each column of a matrix.
    fn load_transposed(self, rows: &[Eight; LANES], part: usize) -> [Self::V; LANES];
    /// Stores a part of each column of a matrix.
    fn store_transposed(self, columns: [Self::V; LANES], rows: &mut [Eight; LANES], part: usize);
}

/// Returns the places in a vector of the numbers of a part.
#[inline(always)]
pub(super) fn lanes_of<L: Lanes>(part: usize) -> std::ops::Range<usize> {
    let each = LANES / L::PARTS;
    part * each..(part + 1) * each
}

/// Work that is compiled for the instructions of each kind of processor.
pub(super) trait Vectorised {
    type Output;

    /// Does the work. Everything that it calls must be inlined, because a separate function would be compiled without these instructions.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Does the work with the widest vectors of this processor.
pub(super) fn dispatch<W: Vectorised>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if let Some(lanes) = V4::try_new() {
            return pulp::Simd::vectorize(lanes, With { lanes, work });
        }
        if let Some(lanes) = V3::try_new() {
            return pulp::Simd::vectorize(lanes, With { lanes, work });
        }
    }
    work.run(Plain)
}

/// The work and the instructions for it.
pub(super) struct With<L, W> {
    pub(super) lanes: L,
    pub(super) work: W,
}

impl<L: Lanes, W: Vectorised> NullaryFnOnce for With<L, W> {
    type Output = W::Output;

    #[inline(always)]
    fn call(self) -> W::Output {
        self.work.run(self.lanes)
    }
}

/// Every processor: numbers one by one.
#[derive(Clone, Copy)]
pub(super) struct Plain;

#[inline(always)]
fn each(number: impl Fn(usize) -> f64) -> [f64; LANES] {
    Eight::each(number).0
}

impl Lanes for Plain {
    const PARTS: usize = 1;
    type V = [f64; LANES];
    type Numbers = [f64; LANES];

    #[inline(always)]
    fn each(self, number: impl Fn(usize) -> f64) -> Self::V {
        each(number)
    }

    #[inline(always)]
    fn numbers(self, numbers: Self::V) -> Self::Numbers {
        numbers
    }

    #[inline(always)]
    fn load(self, vector: &Eight, _part: usize) -> Self::V {
        vector.0
    }

    #[inline(always)]
    fn store(self, numbers: Self::V, vector: &mut Eight, _part: usize) {
        vector.0 = numbers;
    }

    #[inline(always)]
    fn splat(self, number: f64) -> Self::V {
        [number; LANES]
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        each(|k| a[k] + b[k])
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        each(|k| a[k] - b[k])
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        each(|k| a[k] * b[k])
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        each(|k| a[k].mul_add(b[k], c[k]))
    }

    #[inline(always)]
    fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        each(|k| a[k].mul_add(b[k], -c[k]))
    }

    #[inline(always)]
    fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        each(|k| (-a[k]).mul_add(b[k], c[k]))
    }

    #[inline(always)]
    fn load_transposed(self, rows: &[Eight; LANES], _part: usize) -> [Self::V; LANES] {
        std::array::from_fn(|column| std::array::from_fn(|row| rows[row].0[column]))
    }

    #[inline(always)]
    fn store_transposed(self, columns: [Self::V; LANES], rows: &mut [Eight; LANES], _part: usize) {
        *rows = std::array::from_fn(|row| Eight(std::array::from_fn(|column| columns[column][row])));
    }
}
