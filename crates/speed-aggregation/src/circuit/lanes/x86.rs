//! Vectors of 512 and of 256 bits.

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
        [[a[0], b[0]], [a[1], b[1]], [a[2], b[2]], [a[3], b[3]], [c[0], d[0]], [c[1], d[1]], [c[2], d[2]], [c[3], d[3]]]
    }
}

/// Reorders quarters of vectors: the last two of three steps of a transposition.
#[inline(always)]
fn quarters(simd: V4, pairs: [__m512d; 4]) -> [__m512d; 4] {
    let simd = simd.avx512f;
    let even =
        [simd._mm512_shuffle_f64x2::<0x88>(pairs[0], pairs[1]), simd._mm512_shuffle_f64x2::<0x88>(pairs[2], pairs[3])];
    let odd =
        [simd._mm512_shuffle_f64x2::<0xdd>(pairs[0], pairs[1]), simd._mm512_shuffle_f64x2::<0xdd>(pairs[2], pairs[3])];
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
