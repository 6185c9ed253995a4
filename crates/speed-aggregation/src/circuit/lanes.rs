//! Eight numbers at a time, with the same results on every processor: each operation is one rounding of IEEE 754.

#[cfg(target_arch = "x86_64")]
mod x86;

use pulp::NullaryFnOnce;
#[cfg(target_arch = "x86_64")]
use pulp::x86::{V3, V4};

/// Numbers that are computed together.
pub(super) const LANES: usize = 8;

/// [`LANES`] numbers in memory.
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
pub(super) trait Lanes: Copy {
    /// [`LANES`] numbers in registers.
    type V: Copy;

    fn load(self, numbers: &Eight) -> Self::V;
    fn store(self, numbers: Self::V) -> Eight;
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
    /// Exchanges rows and columns.
    fn transpose(self, rows: [Self::V; LANES]) -> [Self::V; LANES];
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
    type V = [f64; LANES];

    #[inline(always)]
    fn load(self, numbers: &Eight) -> Self::V {
        numbers.0
    }

    #[inline(always)]
    fn store(self, numbers: Self::V) -> Eight {
        Eight(numbers)
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
    fn transpose(self, rows: [Self::V; LANES]) -> [Self::V; LANES] {
        std::array::from_fn(|row| std::array::from_fn(|column| rows[column][row]))
    }
}
