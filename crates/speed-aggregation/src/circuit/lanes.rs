//! Eight numbers at a time, with the same results on every processor: each operation is one rounding of IEEE 754.

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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256d, __m512d};

    use super::{Eight, LANES, Lanes, V3, V4};

    impl Lanes for V4 {
        type V = __m512d;

        #[inline(always)]
        fn load(self, numbers: &Eight) -> Self::V {
            pulp::cast(numbers.0)
        }

        #[inline(always)]
        fn store(self, numbers: Self::V) -> Eight {
            Eight(pulp::cast(numbers))
        }

        #[inline(always)]
        fn splat(self, number: f64) -> Self::V {
            self.avx512f._mm512_set1_pd(number)
        }

        #[inline(always)]
        fn add(self, a: Self::V, b: Self::V) -> Self::V {
            self.avx512f._mm512_add_pd(a, b)
        }

        #[inline(always)]
        fn sub(self, a: Self::V, b: Self::V) -> Self::V {
            self.avx512f._mm512_sub_pd(a, b)
        }

        #[inline(always)]
        fn mul(self, a: Self::V, b: Self::V) -> Self::V {
            self.avx512f._mm512_mul_pd(a, b)
        }

        #[inline(always)]
        fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            self.avx512f._mm512_fmadd_pd(a, b, c)
        }

        #[inline(always)]
        fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            self.avx512f._mm512_fmsub_pd(a, b, c)
        }

        #[inline(always)]
        fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            self.avx512f._mm512_fnmadd_pd(a, b, c)
        }

        #[inline(always)]
        fn transpose(self, rows: [Self::V; LANES]) -> [Self::V; LANES] {
            let simd = self.avx512f;
            let low = [
                simd._mm512_unpacklo_pd(rows[0], rows[1]),
                simd._mm512_unpacklo_pd(rows[2], rows[3]),
                simd._mm512_unpacklo_pd(rows[4], rows[5]),
                simd._mm512_unpacklo_pd(rows[6], rows[7]),
            ];
            let high = [
                simd._mm512_unpackhi_pd(rows[0], rows[1]),
                simd._mm512_unpackhi_pd(rows[2], rows[3]),
                simd._mm512_unpackhi_pd(rows[4], rows[5]),
                simd._mm512_unpackhi_pd(rows[6], rows[7]),
            ];
            let (l, h) = (quarters(self, low), quarters(self, high));
            [l[0], h[0], l[1], h[1], l[2], h[2], l[3], h[3]]
        }
    }

    impl Lanes for V3 {
        type V = [__m256d; 2];

        #[inline(always)]
        fn load(self, numbers: &Eight) -> Self::V {
            pulp::cast(numbers.0)
        }

        #[inline(always)]
        fn store(self, numbers: Self::V) -> Eight {
            Eight(pulp::cast(numbers))
        }

        #[inline(always)]
        fn splat(self, number: f64) -> Self::V {
            [self.avx._mm256_set1_pd(number); 2]
        }

        #[inline(always)]
        fn add(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_add_pd(a[0], b[0]), self.avx._mm256_add_pd(a[1], b[1])]
        }

        #[inline(always)]
        fn sub(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_sub_pd(a[0], b[0]), self.avx._mm256_sub_pd(a[1], b[1])]
        }

        #[inline(always)]
        fn mul(self, a: Self::V, b: Self::V) -> Self::V {
            [self.avx._mm256_mul_pd(a[0], b[0]), self.avx._mm256_mul_pd(a[1], b[1])]
        }

        #[inline(always)]
        fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            [self.fma._mm256_fmadd_pd(a[0], b[0], c[0]), self.fma._mm256_fmadd_pd(a[1], b[1], c[1])]
        }

        #[inline(always)]
        fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            [self.fma._mm256_fmsub_pd(a[0], b[0], c[0]), self.fma._mm256_fmsub_pd(a[1], b[1], c[1])]
        }

        #[inline(always)]
        fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
            [self.fma._mm256_fnmadd_pd(a[0], b[0], c[0]), self.fma._mm256_fnmadd_pd(a[1], b[1], c[1])]
        }

        #[inline(always)]
        fn transpose(self, rows: [Self::V; LANES]) -> [Self::V; LANES] {
            let [a, b] = [quarter(self, &rows, [0, 0]), quarter(self, &rows, [4, 0])];
            let [c, d] = [quarter(self, &rows, [0, 1]), quarter(self, &rows, [4, 1])];
            [
                [a[0], b[0]],
                [a[1], b[1]],
                [a[2], b[2]],
                [a[3], b[3]],
                [c[0], d[0]],
                [c[1], d[1]],
                [c[2], d[2]],
                [c[3], d[3]],
            ]
        }
    }

    /// Reorders quarters of vectors: the last two of three steps of a transposition.
    #[inline(always)]
    fn quarters(simd: V4, pairs: [__m512d; 4]) -> [__m512d; 4] {
        let simd = simd.avx512f;
        let even = [
            simd._mm512_shuffle_f64x2::<0x88>(pairs[0], pairs[1]),
            simd._mm512_shuffle_f64x2::<0x88>(pairs[2], pairs[3]),
        ];
        let odd = [
            simd._mm512_shuffle_f64x2::<0xdd>(pairs[0], pairs[1]),
            simd._mm512_shuffle_f64x2::<0xdd>(pairs[2], pairs[3]),
        ];
        [
            simd._mm512_shuffle_f64x2::<0x88>(even[0], even[1]),
            simd._mm512_shuffle_f64x2::<0x88>(odd[0], odd[1]),
            simd._mm512_shuffle_f64x2::<0xdd>(even[0], even[1]),
            simd._mm512_shuffle_f64x2::<0xdd>(odd[0], odd[1]),
        ]
    }

    /// Transposes 4 x 4 numbers.
    #[inline(always)]
    fn quarter(simd: V3, rows: &[[__m256d; 2]; LANES], [row, half]: [usize; 2]) -> [__m256d; 4] {
        let simd = simd.avx;
        let [r0, r1, r2, r3] = [rows[row][half], rows[row + 1][half], rows[row + 2][half], rows[row + 3][half]];
        let (a, b) = (simd._mm256_unpacklo_pd(r0, r1), simd._mm256_unpackhi_pd(r0, r1));
        let (c, d) = (simd._mm256_unpacklo_pd(r2, r3), simd._mm256_unpackhi_pd(r2, r3));
        [
            simd._mm256_permute2f128_pd::<0x20>(a, c),
            simd._mm256_permute2f128_pd::<0x20>(b, d),
            simd._mm256_permute2f128_pd::<0x31>(a, c),
            simd._mm256_permute2f128_pd::<0x31>(b, d),
        ]
    }
}
