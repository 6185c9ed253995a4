//! Products on a processor's tile unit (Intel AMX), which does five to six times the multiplications of its vector
//! unit.
//!
//! The unit multiplies bfloat16 numbers, which have 8 significant bits, and sums in `f32`. Every value is therefore
//! split into the nearest bfloat16 and the nearest bfloat16 to the remainder, `x = high + low` to 2^-17 relative. A
//! product is `high high' + high low' + low high'`; the omitted term is below 2^-16 of it. The error is about five
//! times that of a product in `f32`, and far below that of TensorFloat-32, whose factors keep 11 bits (Henry, Tang and
//! Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", 2019).
//!
//! A tile is 16 rows of 64 bytes. `tdpbf16ps c, a, b` adds to `c[m][n]` the products of 32 neighbours along the inner
//! dimension: `a` holds them as 16 pairs in row `m`, and `b` as one pair in column `n` of each of its 16 rows.

pub(crate) mod overlapping;
mod pack;

use std::arch::asm;
use std::arch::x86_64::*;
use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

pub(crate) use pack::{DEPTH, PANEL, SIDE};
use pack::{PackedStep, RowsAre, pack};

use super::extra::Extra;
use super::{Matrix, View};

/// Bytes of the packed block of the right operand; together with panels of the left operand it fits the second-level
/// cache.
const BLOCK_BYTES: usize = 5 << 18;
/// Panels packed together if their lanes are neighbours in memory, so that memory is read in longer runs.
const NEIGHBOURS: usize = 4;

/// Returns whether this machine has tiles and the system lets this process use them.
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

/// Asks Linux for the tiles' state, which it provides only to processes that ask. Threads inherit the permission.
fn permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_ulong = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_ulong = 18;
    // SAFETY: this request changes only the permissions of the process.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

/// Returns whether a product of `rows x inner` and `inner x columns` is faster here than on the vector unit. It must do
/// enough multiplications for each value that it reads, splits or writes.
pub(super) fn are_faster([rows, inner, columns]: [usize; 3]) -> bool {
    const MIN_PRODUCTS: usize = 26;
    let values = rows * inner + inner * columns + rows * columns;
    rows * inner * columns >= MIN_PRODUCTS * values
}

thread_local! {
    static PACKED: RefCell<[Vec<PackedStep>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// Memory for a product or for some of its rows. It is written and never read, so it need not be initialised.
pub(super) struct Target {
    at: *mut f32,
    shape: [usize; 2],
}

impl Target {
    /// Wraps memory for `[rows, columns]` values.
    ///
    /// # Panics
    /// If it is too small.
    pub(super) fn new(memory: &mut [MaybeUninit<f32>], shape: [usize; 2]) -> Self {
        assert!(memory.len() >= shape[0] * shape[1], "memory of a product");
        Self { at: memory.as_mut_ptr().cast(), shape }
    }

    fn from_matrix(matrix: &mut Matrix) -> Self {
        let shape = [matrix.rows, matrix.columns];
        Self { at: matrix.values_mut().as_mut_ptr(), shape }
    }
}

/// Computes `out = left right` for non-empty operands of matching sizes; `out` has the size of the product.
///
/// # Panics
/// If the tiles are not [`available`].
pub(super) fn multiply(out: &mut Matrix, left: View<'_>, right: View<'_>) {
    multiply_with_extra(Target::from_matrix(out), left, right, Extra::default());
}

/// Computes the product into memory of its size, and does the work requested by `extra`.
///
/// # Panics
/// If the tiles are not [`available`], or if the callback that finishes rows multiplies on them.
pub(super) fn multiply_with_extra(out: Target, left: View<'_>, right: View<'_>, extra: Extra<'_>) {
    assert!(available(), "tiles");
    assert_eq!(out.shape, [left.shape[0], right.shape[1]], "size of a product");
    // SAFETY: `available` has just checked the instructions that this function is compiled for.
    PACKED.with_borrow_mut(|packed| unsafe {
        match extra.finish {
            None if left_stays(left, right) => multiply_small_left(packed, &out, left, right, extra.squares),
            _ => multiply_by_blocks(packed, &out, left, right, extra),
        }
    });
}

/// Returns the number of rows of the left operand that are packed together.
fn rows_of_block(left: View<'_>) -> usize {
    PANEL * if left.strides[1] == 1 { 1 } else { NEIGHBOURS }
}

/// Returns whether the left operand is the smaller one and fits the cache. It is then packed once, and the other
/// operand is streamed past it.
fn left_stays(left: View<'_>, right: View<'_>) -> bool {
    let ([rows, inner], [_, columns]) = (left.shape, right.shape);
    rows < columns && rows.div_ceil(PANEL) * inner.div_ceil(DEPTH) * size_of::<PackedStep>() <= BLOCK_BYTES
}

#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn multiply_small_left(
    [left_block, right_block]: &mut [Vec<PackedStep>; 2],
    out: &Target,
    left: View<'_>,
    right: View<'_>,
    mut squares: Option<&mut [f32]>,
) {
    let right = right.transposed();
    let ([rows, inner], [columns, _]) = (left.shape, right.shape);
    let (steps, panels) = (inner.div_ceil(DEPTH), columns.div_ceil(PANEL));
    let together = if right.strides[1] == 1 { 1 } else { 2 * NEIGHBOURS };
    let _tiles = Tiles::configured();
    let left_block = pack(left_block, left, 0, rows.div_ceil(PANEL), RowsAre::Lanes, None);
    for first in (0..panels).step_by(together) {
        let count = (panels - first).min(together);
        let right_block = pack(right_block, right, first * PANEL, count, RowsAre::Pairs, squares.as_deref_mut());
        for (row, left) in (0..).step_by(PANEL).zip(left_block.chunks_exact(steps)) {
            for (panel, right) in (first..).zip(right_block.chunks_exact(steps)) {
                put_product(out, [row, panel * PANEL], [left, right]);
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn multiply_by_blocks(
    [left_block, right_block]: &mut [Vec<PackedStep>; 2],
    out: &Target,
    left: View<'_>,
    right: View<'_>,
    Extra { mut finish, mut squares }: Extra<'_>,
) {
    let right = right.transposed();
    let ([rows, inner], [columns, _]) = (left.shape, right.shape);
    let steps = inner.div_ceil(DEPTH);
    let panels = columns.div_ceil(PANEL);
    // Rows can be finished only after all their columns are computed.
    let panels_of_block =
        if finish.is_some() { panels } else { (BLOCK_BYTES / size_of::<PackedStep>() / steps).max(1) };
    let blocks = panels.div_ceil(panels_of_block);

    let _tiles = Tiles::configured();
    for block in 0..blocks {
        let right_panels = panels * block / blocks..panels * (block + 1) / blocks;
        let (first, count) = (right_panels.start * PANEL, right_panels.len());
        let right_block = pack(right_block, right, first, count, RowsAre::Pairs, squares.as_deref_mut());
        for first_row in (0..rows).step_by(rows_of_block(left)) {
            let block_rows = (rows - first_row).min(rows_of_block(left));
            let left_block = pack(left_block, left, first_row, block_rows.div_ceil(PANEL), RowsAre::Lanes, None);
            for (row, left) in (first_row..).step_by(PANEL).zip(left_block.chunks_exact(steps)) {
                for (panel, right) in right_panels.clone().zip(right_block.chunks_exact(steps)) {
                    put_product(out, [row, panel * PANEL], [left, right]);
                }
            }
            if let Some(finish) = &mut finish {
                // SAFETY: these rows lie within the target, and all their columns were just written.
                let done =
                    unsafe { std::slice::from_raw_parts_mut(out.at.add(first_row * columns), block_rows * columns) };
                finish(first_row, done);
            }
        }
    }
}

/// Writes the product of two panels to the part of `out` that begins at `from`.
fn put_product(out: &Target, from: [usize; 2], operands: [&[PackedStep]; 2]) {
    let stride = out.shape[1];
    assert!(from[0] < out.shape[0] && from[1] < stride, "a panel within the product");
    let [rows, columns] = [0, 1].map(|side| (out.shape[side] - from[side]).min(PANEL));
    // SAFETY: the assertion has just checked that the position lies within the target, whose memory has the size of its
    // shape.
    let at = unsafe { out.at.add(from[0] * stride + from[1]) };
    if rows == PANEL && columns == PANEL {
        for row in 0..PANEL {
            // A prefetch now makes the memory available when the product is done.
            let row = at.wrapping_add(row * stride);
            prefetch_to_write(row);
            prefetch_to_write(row.wrapping_add(SIDE));
        }
        // SAFETY: from `at` on there are PANEL rows of PANEL columns, `stride` apart, and tiles are configured.
        return unsafe { multiply_whole_panels(at, stride, operands) };
    }
    if rows == SIDE && columns == PANEL {
        // SAFETY: from `at` on there are 16 rows of PANEL columns, `stride` apart, and tiles are configured.
        return unsafe { multiply_upper_half(at, stride, operands) };
    }
    let mut whole = [0.0; PANEL * PANEL];
    // SAFETY: `whole` holds PANEL rows of PANEL columns, and tiles are configured.
    unsafe {
        if rows <= SIDE {
            multiply_upper_half(whole.as_mut_ptr(), PANEL, operands);
        } else if columns > SIDE {
            multiply_whole_panels(whole.as_mut_ptr(), PANEL, operands);
        } else {
            multiply_half_panels(whole.as_mut_ptr(), PANEL, operands);
        }
    }
    for (row, from) in whole.chunks_exact(PANEL).take(rows).enumerate() {
        // SAFETY: this row of the panel lies within the target, which does not overlap `whole`.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), at.add(row * stride), columns) };
    }
}

/// Prefetches the memory at `at` for writing.
#[inline]
fn prefetch_to_write(at: *const f32) {
    // SAFETY: a prefetch neither writes nor faults.
    unsafe { asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly)) };
}

/// The unit's configuration of eight full tiles, in force during the lifetime of this value.
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
        // SAFETY: releases the tiles; no other code holds values in them.
        unsafe { asm!("tilerelease", options(nostack, nomem)) };
    }
}

/// One step of a product of two panels, added to the sums in tiles 0 to 3. `$high` and `$low` load both tiles of the
/// left operand into tiles 4 and 5; the right operand's tiles are at `{right}`. Small products are added before large
/// ones.
macro_rules! multiply_step {
    (high: [$high_above:expr, $high_below:expr], low: [$low_above:expr, $low_below:expr]) => {
        concat!(
            // high low'
            $high_above,
            "\ntileloadd tmm6, [{right} + {row} + 2048]\ntileloadd tmm7, [{right} + {row} + 3072]\n",
            $high_below,
            $crate::matrix::tiles::add_products!(),
            // high high'
            "\ntileloadd tmm6, [{right} + {row}]\ntileloadd tmm7, [{right} + {row} + 1024]",
            $crate::matrix::tiles::add_products!(),
            // low high'
            "\n",
            $low_above,
            "\n",
            $low_below,
            $crate::matrix::tiles::add_products!(),
        )
    };
}
use multiply_step;

/// Adds the products of tiles 4 and 5 with 6 and 7 to tiles 0 to 3.
macro_rules! add_products {
    () => {
        "\ntdpbf16ps tmm0, tmm4, tmm6\ntdpbf16ps tmm1, tmm4, tmm7\ntdpbf16ps tmm2, tmm5, tmm6\ntdpbf16ps tmm3, tmm5, tmm7"
    };
}
use add_products;

/// Multiplies two panels of the same depth: 32 rows by 32 columns, with sums in tiles 0 to 3.
///
/// # Safety
/// `to` is the first of 32 writable rows of 32 values, `stride` apart; tiles are configured.
#[inline(always)]
unsafe fn multiply_whole_panels(to: *mut f32, stride: usize, [left, right]: [&[PackedStep]; 2]) {
    assert!(left.len() == right.len() && !left.is_empty());
    let lower = to.wrapping_add(SIDE * stride);
    let bytes = stride * size_of::<f32>();
    // SAFETY: each iteration reads one `PackedStep`, 4096 bytes, of each operand; the caller guarantees the other accesses.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "2:",
            multiply_step!(
                high: ["tileloadd tmm4, [{left} + {row}]", "tileloadd tmm5, [{left} + {row} + 1024]"],
                low: ["tileloadd tmm4, [{left} + {row} + 2048]", "tileloadd tmm5, [{left} + {row} + 3072]"]
            ),
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
    }
}

/// Multiplies the upper 16 rows of a left panel by a right panel of the same depth, with sums in tiles 0 and 1.
///
/// # Safety
/// `to` is the first of 16 writable rows of 32 values, `stride` apart; tiles are configured.
#[inline(always)]
unsafe fn multiply_upper_half(to: *mut f32, stride: usize, [left, right]: [&[PackedStep]; 2]) {
    assert!(left.len() == right.len() && !left.is_empty());
    let bytes = stride * size_of::<f32>();
    // SAFETY: each iteration reads one `PackedStep`, 4096 bytes, of each operand; the caller guarantees the other accesses.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "2:",
            "tileloadd tmm4, [{left} + {row}]",
            "tileloadd tmm2, [{right} + {row} + 2048]",
            "tileloadd tmm3, [{right} + {row} + 3072]",
            "tileloadd tmm6, [{right} + {row}]",
            "tileloadd tmm7, [{right} + {row} + 1024]",
            "tileloadd tmm5, [{left} + {row} + 2048]",
            "tdpbf16ps tmm0, tmm4, tmm2",
            "tdpbf16ps tmm1, tmm4, tmm3",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "tdpbf16ps tmm0, tmm5, tmm6",
            "tdpbf16ps tmm1, tmm5, tmm7",
            "add {left}, 4096",
            "add {right}, 4096",
            "dec {steps}",
            "jnz 2b",
            "tilestored [{to} + {bytes}], tmm0",
            "tilestored [{to} + {bytes} + 64], tmm1",
            left = inout(reg) left.as_ptr() => _, right = inout(reg) right.as_ptr() => _,
            steps = inout(reg) left.len() => _, row = in(reg) 64_usize,
            to = in(reg) to, bytes = in(reg) bytes,
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack));
    }
}

/// Multiplies two panels of the same depth: 32 rows by the first 16 of 32 columns, with sums in tiles 0 and 2.
///
/// # Safety
/// `to` is the first of 32 writable rows of 16 values, `stride` apart; tiles are configured.
#[inline(always)]
unsafe fn multiply_half_panels(to: *mut f32, stride: usize, [left, right]: [&[PackedStep]; 2]) {
    assert!(left.len() == right.len() && !left.is_empty());
    let lower = to.wrapping_add(SIDE * stride);
    let bytes = stride * size_of::<f32>();
    // SAFETY: each iteration reads one `PackedStep`, 4096 bytes, of each operand; the caller guarantees the other accesses.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm2",
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
