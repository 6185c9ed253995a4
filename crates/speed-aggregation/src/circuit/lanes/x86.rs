//! Vectors of 512 and of 256 bits.

use std::arch::x86_64::{__m256d, __m512d};

use super::{Eight, LANES, Lanes, V3, V4};

impl Lanes for V4 {
    const PARTS: usize = 1;
    type V = __m512d;
    type Numbers = [f64; 8];

    #[inline(always)]
    fn each(self, number: impl Fn(usize) -> f64) -> Self::V {
        pulp::cast(Eight::each(number).0)
    }

    #[inline(always)]
    fn numbers(self, numbers: Self::V) -> Self::Numbers {
        pulp::cast(numbers)
    }

    #[inline(always)]
    fn load(self, vector: &Eight, _part: usize) -> Self::V {
        pulp::cast(vector.0)
    }

    #[inline(always)]
    fn store(self, numbers: Self::V, vector: &mut Eight, _part: usize) {
        vector.0 = pulp::cast(numbers);
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
    fn load_transposed(self, rows: &[Eight; LANES], _part: usize) -> [Self::V; LANES] {
        let [a, b, c, d, e, f, g, h] = rows;
        transposed(self, pulp::cast([a.0, b.0, c.0, d.0, e.0, f.0, g.0, h.0]))
    }

    #[inline(always)]
    fn store_transposed(self, columns: [Self::V; LANES], rows: &mut [Eight; LANES], _part: usize) {
        for (row, numbers) in rows.iter_mut().zip(transposed(self, columns)) {
            self.store(numbers, row, 0);
        }
    }
}

impl Lanes for V3 {
    const PARTS: usize = 2;
    type V = __m256d;
    type Numbers = [f64; 4];

    #[inline(always)]
    fn each(self, number: impl Fn(usize) -> f64) -> Self::V {
        pulp::cast([number(0), number(1), number(2), number(3)])
    }

    #[inline(always)]
    fn numbers(self, numbers: Self::V) -> Self::Numbers {
        pulp::cast(numbers)
    }

    #[inline(always)]
    fn load(self, vector: &Eight, part: usize) -> Self::V {
        pulp::cast(vector.0.as_chunks::<4>().0[part])
    }

    #[inline(always)]
    fn store(self, numbers: Self::V, vector: &mut Eight, part: usize) {
        vector.0.as_chunks_mut::<4>().0[part] = pulp::cast(numbers);
    }

    #[inline(always)]
    fn splat(self, number: f64) -> Self::V {
        self.avx._mm256_set1_pd(number)
    }

    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        self.avx._mm256_add_pd(a, b)
    }

    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        self.avx._mm256_sub_pd(a, b)
    }

    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        self.avx._mm256_mul_pd(a, b)
    }

    #[inline(always)]
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        self.fma._mm256_fmadd_pd(a, b, c)
    }

    #[inline(always)]
    fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        self.fma._mm256_fmsub_pd(a, b, c)
    }

    #[inline(always)]
    fn neg_mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        self.fma._mm256_fnmadd_pd(a, b, c)
    }

    #[inline(always)]
    fn load_transposed(self, rows: &[Eight; LANES], part: usize) -> [Self::V; LANES] {
        // Four rows become this part of the columns.
        let [r0, r1, r2, r3] = [&rows[4 * part], &rows[4 * part + 1], &rows[4 * part + 2], &rows[4 * part + 3]];
        let [a, b, c, d] = quarter(self, [self.load(r0, 0), self.load(r1, 0), self.load(r2, 0), self.load(r3, 0)]);
        let [e, f, g, h] = quarter(self, [self.load(r0, 1), self.load(r1, 1), self.load(r2, 1), self.load(r3, 1)]);
        [a, b, c, d, e, f, g, h]
    }

    #[inline(always)]
    fn store_transposed(self, columns: [Self::V; LANES], rows: &mut [Eight; LANES], part: usize) {
        let [a, b, c, d, e, f, g, h] = columns;
        for (half, quarter) in [quarter(self, [a, b, c, d]), quarter(self, [e, f, g, h])].into_iter().enumerate() {
            for (row, numbers) in quarter.into_iter().enumerate() {
                self.store(numbers, &mut rows[4 * part + row], half);
            }
        }
    }
}

/// Exchanges rows and columns.
#[inline(always)]
fn transposed(simd: V4, rows: [__m512d; LANES]) -> [__m512d; LANES] {
    let low = [
        simd.avx512f._mm512_unpacklo_pd(rows[0], rows[1]),
        simd.avx512f._mm512_unpacklo_pd(rows[2], rows[3]),
        simd.avx512f._mm512_unpacklo_pd(rows[4], rows[5]),
        simd.avx512f._mm512_unpacklo_pd(rows[6], rows[7]),
    ];
    let high = [
        simd.avx512f._mm512_unpackhi_pd(rows[0], rows[1]),
        simd.avx512f._mm512_unpackhi_pd(rows[2], rows[3]),
        simd.avx512f._mm512_unpackhi_pd(rows[4], rows[5]),
        simd.avx512f._mm512_unpackhi_pd(rows[6], rows[7]),
    ];
    let (l, h) = (quarters(simd, low), quarters(simd, high));
    [l[0], h[0], l[1], h[1], l[2], h[2], l[3], h[3]]
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
fn quarter(simd: V3, [r0, r1, r2, r3]: [__m256d; 4]) -> [__m256d; 4] {
    let simd = simd.avx;
    let (a, b) = (simd._mm256_unpacklo_pd(r0, r1), simd._mm256_unpackhi_pd(r0, r1));
    let (c, d) = (simd._mm256_unpacklo_pd(r2, r3), simd._mm256_unpackhi_pd(r2, r3));
    [
        simd._mm256_permute2f128_pd::<0x20>(a, c),
        simd._mm256_permute2f128_pd::<0x20>(b, d),
        simd._mm256_permute2f128_pd::<0x31>(a, c),
        simd._mm256_permute2f128_pd::<0x31>(b, d),
    ]
}
