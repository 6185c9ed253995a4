//! Products on a processor's tile unit (Intel AMX), five to six times the multiplications of its vector unit.
//!
//! The unit multiplies bfloat16 numbers, of 8 significant bits, and adds up in `f32`. Every value is therefore split
//! into the nearest bfloat16 and the nearest bfloat16 to the rest, `x = high + low` to 2^-17 relative, and a product is
//! `high high' + high low' + low high'`; what is left out is below 2^-16 of it. Results are so about five times as far
//! from the exact ones as those of a product in `f32`, and far closer than in TensorFloat-32, whose factors keep 11 bits
//! (Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision
//! Computations", 2019).
//!
//! A tile is 16 rows of 64 bytes. `tdpbf16ps c, a, b` adds to `c[m][n]` the products of 32 neighbours along the inner
//! size, which `a` holds as 16 pairs in row `m` and `b` as one pair in column `n` of each of its 16 rows.

use std::arch::asm;
use std::arch::x86_64::*;
use std::cell::RefCell;
use std::sync::OnceLock;

use super::{Matrix, View};

/// Rows of a tile, and pairs of values or sums in a row.
const SIDE: usize = 16;
/// Lanes (rows of the left operand, columns of the right one) in a panel: two tiles side by side.
const PANEL: usize = 2 * SIDE;
/// Values along the inner size in one tile.
const DEPTH: usize = 2 * SIDE;
/// Bytes of the right operand's packed block: with a panel of the left operand it fits the second-level cache.
const BLOCK_BYTES: usize = 5 << 18;
/// Steps of [`DEPTH`] in one pass: two panels of that depth fit the first-level cache.
const PASS: usize = 12;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Tile([[u32; SIDE]; SIDE]);

const ZERO: Tile = Tile([[0; SIDE]; SIDE]);

/// One step along the inner size in one panel: high parts of both tiles, then low parts.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Step {
    high: [Tile; 2],
    low: [Tile; 2],
}

/// What the pairs of values are the rows of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowsAre {
    /// Rows of the left operand.
    Lanes,
    /// Pairs along the inner size, for the right operand.
    Pairs,
}

/// Whether this machine has tiles and the system lets this process use them.
pub(super) fn available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        const BF16_AND_TILE: u32 = 1 << 22 | 1 << 24;
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512bf16")
            && __cpuid(0).eax >= 7
            && __cpuid_count(7, 0).edx & BF16_AND_TILE == BF16_AND_TILE
            && permitted()
    })
}

/// Asks Linux for the tiles' state, which it keeps for processes that ask only. Threads inherit the permission.
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    // SAFETY: this request changes nothing but what the kernel lets the process do.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

/// Whether a product of `rows x inner` and `inner x columns` is faster here than on the vector unit: it must do enough
/// multiplications for each value that it reads, splits or writes.
pub(super) fn pay([rows, inner, columns]: [usize; 3]) -> bool {
    const LEAST: usize = 26;
    let values = rows * inner + inner * columns + rows * columns;
    rows * inner * columns >= LEAST * values
}

thread_local! {
    static PACKED: RefCell<[Vec<Step>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// `out = left right` for operands that fit together, none of them empty; `out` has the size of the product.
///
/// # Panics
/// When the tiles are not [`available`].
pub(super) fn multiply(out: &mut Matrix, left: View<'_>, right: View<'_>) {
    assert!(available(), "tiles");
    // SAFETY: the instructions that these functions are compiled for were just found.
    PACKED.with_borrow_mut(|packed| unsafe { multiply_packed(out, left, right, packed) });
}

#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn multiply_packed(out: &mut Matrix, left: View<'_>, right: View<'_>, [left_panel, right_block]: &mut [Vec<Step>; 2]) {
    let right = right.transposed();
    let ([rows, inner], [columns, _]) = (left.shape, right.shape);
    let steps = inner.div_ceil(DEPTH);
    let passes = steps.div_ceil(PASS);
    left_panel.resize(steps, Step { high: [ZERO; 2], low: [ZERO; 2] });
    let panels = columns.div_ceil(PANEL);
    let blocks = panels.div_ceil((BLOCK_BYTES / size_of::<Step>() / steps).max(1));

    let _tiles = Tiles::configured();
    for block in 0..blocks {
        let right_panels = panels * block / blocks..panels * (block + 1) / blocks;
        right_block.resize(right_panels.len() * steps, left_panel[0]);
        for (panel, packed) in right_panels.clone().zip(right_block.chunks_exact_mut(steps)) {
            pack(packed, right, panel * PANEL, RowsAre::Pairs);
        }
        for row in (0..rows).step_by(PANEL) {
            pack(left_panel, left, row, RowsAre::Lanes);
            for pass in 0..passes {
                let steps_of_pass = steps * pass / passes..steps * (pass + 1) / passes;
                for (panel, packed) in right_panels.clone().zip(right_block.chunks_exact(steps)) {
                    let operands = [&left_panel[steps_of_pass.clone()], &packed[steps_of_pass.clone()]];
                    add_panels(out, [row, panel * PANEL], operands, pass == 0);
                }
            }
        }
    }
}

/// Adds the product of two panels to the part of `out` that begins at `at`, or puts it there if it is the `first`.
fn add_panels(out: &mut Matrix, at: [usize; 2], operands: [&[Step]; 2], first: bool) {
    let [rows, columns] = [out.rows - at[0], out.columns - at[1]].map(|size| size.min(PANEL));
    let (start, stride) = (at[0] * out.columns + at[1], out.columns);
    if rows == PANEL && columns == PANEL {
        let part = &mut out.values[start..start + (PANEL - 1) * stride + PANEL];
        // SAFETY: `part` holds a panel's rows of a panel's columns, `stride` apart, and tiles are configured.
        return unsafe { multiply_panels::<PANEL>(part.as_mut_ptr(), stride, operands, first) };
    }
    let mut whole = [0.0; PANEL * PANEL];
    // SAFETY: `whole` holds a panel's rows of a panel's columns, and tiles are configured.
    unsafe {
        if columns > SIDE {
            multiply_panels::<PANEL>(whole.as_mut_ptr(), PANEL, operands, true);
        } else {
            multiply_panels::<SIDE>(whole.as_mut_ptr(), PANEL, operands, true);
        }
    }
    for (row, from) in whole.chunks_exact(PANEL).take(rows).enumerate() {
        let to = &mut out.values[start + row * stride..][..columns];
        if first {
            to.copy_from_slice(&from[..columns]);
        } else {
            to.iter_mut().zip(from).for_each(|(sum, value)| *sum += value);
        }
    }
}

/// Fills the steps of one panel, the lanes from `first` on, with values of `view` `[lanes, inner]`, zeros beyond it.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn pack(panel: &mut [Step], view: View<'_>, first: usize, rows_are: RowsAre) {
    let [lanes, inner] = view.shape;
    let inner_is_contiguous = view.strides[1] == 1;
    for half in 0..2 {
        let first = first + half * SIDE;
        let lanes = lanes.saturating_sub(first).min(SIDE);
        for (step, inner_start) in panel.iter_mut().zip((0..inner).step_by(DEPTH)) {
            let at = first * view.strides[0] + inner_start * view.strides[1];
            let depth = (inner - inner_start).min(DEPTH);
            let (mut parts, natural) = if lanes == 0 {
                ([[_mm512_setzero_si512(); SIDE]; 2], rows_are)
            } else if inner_is_contiguous {
                (rows_of_lanes(&view.values[at..], view.strides[0], lanes, depth), RowsAre::Lanes)
            } else {
                (rows_of_pairs(&view.values[at..], view.strides[1], lanes, depth), RowsAre::Pairs)
            };
            if natural != rows_are {
                parts = parts.map(|part| transposed(part));
            }
            for (tile, part) in [&mut step.high[half], &mut step.low[half]].into_iter().zip(parts) {
                for (row, values) in tile.0.iter_mut().zip(part) {
                    // SAFETY: a row is 64 bytes, aligned to 64.
                    unsafe { _mm512_store_si512(row.as_mut_ptr().cast(), values) };
                }
            }
        }
    }
}

/// High and low parts, one row a lane, of values that are neighbours along the inner size.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn rows_of_lanes(values: &[f32], stride: usize, lanes: usize, depth: usize) -> [[__m512i; SIDE]; 2] {
    let [mut high, mut low] = [[_mm512_setzero_si512(); SIDE]; 2];
    for lane in 0..lanes {
        let values = &values[lane * stride..lane * stride + depth];
        let (first, second) = values.split_at(depth.min(SIDE));
        [high[lane], low[lane]] = split(load(first), load(second));
    }
    [high, low]
}

/// High and low parts, one row a pair along the inner size, of values that are neighbours along the lanes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn rows_of_pairs(values: &[f32], stride: usize, lanes: usize, depth: usize) -> [[__m512i; SIDE]; 2] {
    const INTERLEAVE: [u16; 32] = {
        let mut order = [0; 32];
        let mut i = 0;
        while i < 16 {
            (order[2 * i], order[2 * i + 1]) = (i as u16, 16 + i as u16);
            i += 1;
        }
        order
    };
    // SAFETY: 64 bytes are read of an array of 64.
    let interleave = unsafe { _mm512_loadu_si512(INTERLEAVE.as_ptr().cast()) };
    let [mut high, mut low] = [[_mm512_setzero_si512(); SIDE]; 2];
    for pair in 0..depth.div_ceil(2) {
        let even = 2 * pair * stride;
        let odd = if 2 * pair + 1 < depth { even + stride..even + stride + lanes } else { 0..0 };
        let parts = split(load(&values[even..even + lanes]), load(&values[odd]));
        [high[pair], low[pair]] = parts.map(|part| _mm512_permutexvar_epi16(interleave, part));
    }
    [high, low]
}

/// Up to 16 values and zeros behind them.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(values: &[f32]) -> __m512 {
    let mask = if values.len() >= SIDE { u16::MAX } else { (1 << values.len()) - 1 };
    // SAFETY: the mask lets only values of the slice be read.
    unsafe { _mm512_maskz_loadu_ps(mask, values.as_ptr()) }
}

/// The nearest bfloat16 of 32 values, those of `a` first, and of what this leaves of them.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split(a: __m512, b: __m512) -> [__m512i; 2] {
    let nearest = |a, b| {
        // SAFETY: both types are 64 bytes of plain numbers.
        unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(b, a)) }
    };
    let widened = |half| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half)));
    let high = nearest(a, b);
    let rest_a = _mm512_sub_ps(a, widened(_mm512_castsi512_si256(high)));
    let rest_b = _mm512_sub_ps(b, widened(_mm512_extracti64x4_epi64::<1>(high)));
    [high, nearest(rest_a, rest_b)]
}

/// The transposed 16 x 16 square of 32-bit values: pairs of rows, fours, then 128-bit quarters are exchanged.
#[inline]
#[target_feature(enable = "avx512f")]
fn transposed(rows: [__m512i; SIDE]) -> [__m512i; SIDE] {
    let (mut a, mut b) = (rows, rows);
    for i in (0..SIDE).step_by(2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for i in (0..SIDE).step_by(4) {
        a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
        a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
        a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
        a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
    }
    const EVEN: i32 = 0b10_00_10_00;
    const ODD: i32 = 0b11_01_11_01;
    for i in [0, 1, 2, 3, 8, 9, 10, 11] {
        b[i] = _mm512_shuffle_i32x4::<EVEN>(a[i], a[i + 4]);
        b[i + 4] = _mm512_shuffle_i32x4::<ODD>(a[i], a[i + 4]);
    }
    for i in 0..SIDE / 2 {
        a[i] = _mm512_shuffle_i32x4::<EVEN>(b[i], b[i + 8]);
        a[i + 8] = _mm512_shuffle_i32x4::<ODD>(b[i], b[i + 8]);
    }
    a
}

/// The unit's configuration, eight whole tiles, in force while this lives.
struct Tiles;

impl Tiles {
    fn configured() -> Self {
        #[repr(C, align(64))]
        struct Configuration {
            palette: u8,
            start_row: u8,
            reserved: [u8; 14],
            row_bytes: [u16; 16],
            rows: [u8; 16],
        }
        let eight = |i: usize| i < 8;
        let configuration = Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: std::array::from_fn(|i| if eight(i) { 64 } else { 0 }),
            rows: std::array::from_fn(|i| if eight(i) { 16 } else { 0 }),
        };
        // SAFETY: `multiply` has checked that there are tiles; the instruction reads 64 bytes.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &configuration, options(nostack, readonly)) };
        Self
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: gives the tiles back; nobody else holds values in them.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// Multiplies two panels of the same depth: 32 rows by the first `COLUMNS` of 32 columns. Small products are added up
/// with large ones, step by step, in tiles 0 to 3.
///
/// # Safety
/// `to` is the first of 32 rows of `COLUMNS` values, `stride` apart, that may be written; tiles are configured.
#[inline(always)]
unsafe fn multiply_panels<const COLUMNS: usize>(to: *mut f32, stride: usize, [left, right]: [&[Step]; 2], first: bool) {
    const { assert!(COLUMNS == SIDE || COLUMNS == PANEL) };
    assert!(left.len() == right.len() && !left.is_empty());
    let lower = to.wrapping_add(SIDE * stride);
    let bytes = stride * size_of::<f32>();
    // SAFETY: the loop reads one `Step`, 4096 bytes, of each operand a round; what else is read and written is the
    // caller's promise.
    unsafe {
        if first {
            asm!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, options(nostack, nomem));
        } else {
            asm!("tileloadd tmm0, [{upper} + {bytes}]", "tileloadd tmm1, [{upper} + {bytes} + 64]",
                "tileloadd tmm2, [{lower} + {bytes}]", "tileloadd tmm3, [{lower} + {bytes} + 64]",
                upper = in(reg) to, lower = in(reg) lower, bytes = in(reg) bytes,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _, options(nostack, readonly));
        }
        if COLUMNS == PANEL {
            asm!(
                "2:",
                // high low': tiles 4 and 5 hold the left operand, 6 and 7 the right one.
                "tileloadd tmm4, [{left} + {row}]",
                "tileloadd tmm6, [{right} + {row} + 2048]",
                "tileloadd tmm7, [{right} + {row} + 3072]",
                "tileloadd tmm5, [{left} + {row} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // high high'
                "tileloadd tmm6, [{right} + {row}]",
                "tileloadd tmm7, [{right} + {row} + 1024]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                // low high'
                "tileloadd tmm4, [{left} + {row} + 2048]",
                "tileloadd tmm5, [{left} + {row} + 3072]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {left}, 4096",
                "add {right}, 4096",
                "dec {steps}",
                "jnz 2b",
                "tilestored [{upper} + {bytes}], tmm0",
                "tilestored [{upper} + {bytes} + 64], tmm1",
                "tilestored [{lower} + {bytes}], tmm2",
                "tilestored [{lower} + {bytes} + 64], tmm3",
                left = inout(reg) left.as_ptr() => _, right = inout(reg) right.as_ptr() => _,
                steps = inout(reg) left.len() => _, row = in(reg) 64_usize,
                upper = in(reg) to, lower = in(reg) lower, bytes = in(reg) bytes,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack));
        } else {
            asm!(
                "2:",
                "tileloadd tmm4, [{left} + {row}]",
                "tileloadd tmm5, [{left} + {row} + 1024]",
                "tileloadd tmm6, [{right} + {row}]",
                "tileloadd tmm7, [{right} + {row} + 2048]",
                "tdpbf16ps tmm0, tmm4, tmm7",
                "tdpbf16ps tmm2, tmm5, tmm7",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tileloadd tmm1, [{left} + {row} + 2048]",
                "tileloadd tmm3, [{left} + {row} + 3072]",
                "tdpbf16ps tmm0, tmm1, tmm6",
                "tdpbf16ps tmm2, tmm3, tmm6",
                "add {left}, 4096",
                "add {right}, 4096",
                "dec {steps}",
                "jnz 2b",
                "tilestored [{upper} + {bytes}], tmm0",
                "tilestored [{lower} + {bytes}], tmm2",
                left = inout(reg) left.as_ptr() => _, right = inout(reg) right.as_ptr() => _,
                steps = inout(reg) left.len() => _, row = in(reg) 64_usize,
                upper = in(reg) to, lower = in(reg) lower, bytes = in(reg) bytes,
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack));
        }
    }
}
