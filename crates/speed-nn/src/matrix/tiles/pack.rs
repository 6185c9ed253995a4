//! Values split into two bfloat16 each and laid out in tiles.

use std::arch::x86_64::*;

use crate::matrix::{self, View};

/// Rows of a tile, and pairs of values, or sums, in a row.
pub(crate) const SIDE: usize = 16;
/// Lanes (rows of the left operand, columns of the right one) in a panel: two tiles side by side.
pub(crate) const PANEL: usize = matrix::PANEL;
/// Values along the inner size in one tile.
pub(crate) const DEPTH: usize = 2 * SIDE;
/// The number of steps by which memory is prefetched before packing.
const AHEAD: usize = 2;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Tile(pub(super) [[u32; SIDE]; SIDE]);

pub(super) const ZERO: Tile = Tile([[0; SIDE]; SIDE]);

/// One step along the inner dimension in one panel: the high parts of both tiles, then the low parts.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct PackedStep {
    pub(super) high: [Tile; 2],
    pub(super) low: [Tile; 2],
}

/// The meaning of the rows of a tile of pairs of values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RowsAre {
    /// Rows of the left operand.
    Lanes,
    /// Pairs along the inner dimension, for the right operand.
    Pairs,
}

/// Packs `panels` panels of `view` `[lanes, inner]`, starting from lane `first`, with zeros beyond its end, into the
/// beginning of `packed`. Adds the sum of squares of every lane to `squares` if lanes are neighbours in memory.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) fn pack<'a>(
    packed: &'a mut Vec<PackedStep>,
    view: View<'_>,
    first: usize,
    panels: usize,
    rows_are: RowsAre,
    mut squares: Option<&mut [f32]>,
) -> &'a [PackedStep] {
    let steps = view.shape[1].div_ceil(DEPTH);
    if packed.len() < panels * steps {
        packed.resize(panels * steps, PackedStep { high: [ZERO; 2], low: [ZERO; 2] });
    }
    let packed = &mut packed[..panels * steps];
    let mut pack_at = |panel, step| {
        let lane = first + panel * PANEL;
        let sums = pack_step(&mut packed[panel * steps + step], view, [lane, step * DEPTH], rows_are);
        if let Some(squares) = &mut squares {
            for (half, sums) in squares[lane..lane + PANEL].chunks_exact_mut(SIDE).zip(sums) {
                // SAFETY: half a panel is 16 values.
                unsafe { _mm512_storeu_ps(half.as_mut_ptr(), _mm512_add_ps(_mm512_loadu_ps(half.as_ptr()), sums)) };
            }
        }
    };
    // In memory order.
    if view.strides[1] == 1 {
        (0..panels).for_each(|panel| (0..steps).for_each(|step| pack_at(panel, step)));
    } else {
        (0..steps).for_each(|step| (0..panels).for_each(|panel| pack_at(panel, step)));
    }
    packed
}

/// Packs the values of `view` `[lanes, inner]` from `[first, inner_start]` on. Returns the sums of squares of the lanes
/// if these are neighbours in memory, otherwise zeros.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) fn pack_step(
    step: &mut PackedStep,
    view: View<'_>,
    [first, inner_start]: [usize; 2],
    rows_are: RowsAre,
) -> [__m512; 2] {
    let mut squares = [_mm512_setzero_ps(); 2];
    let ([lanes, inner], [across, along]) = (view.shape, view.strides);
    let natural = if along == 1 { RowsAre::Lanes } else { RowsAre::Pairs };
    let depth = (inner - inner_start).min(DEPTH);
    for (half, squares) in squares.iter_mut().enumerate() {
        let first = first + half * SIDE;
        let lanes = lanes.saturating_sub(first).min(SIDE);
        let values = if lanes == 0 { &[] } else { &view.values[first * across + inner_start * along..] };
        let mut split = |to: [&mut Tile; 2]| match natural {
            RowsAre::Lanes => split_lanes(to, values, across, lanes, depth),
            RowsAre::Pairs => *squares = split_pairs(to, values, along, lanes, depth),
        };
        let (high, low) = (&mut step.high[half], &mut step.low[half]);
        if natural == rows_are {
            split([high, low]);
        } else {
            let [mut turned_high, mut turned_low] = [ZERO; 2];
            split([&mut turned_high, &mut turned_low]);
            transpose(&turned_high, high);
            transpose(&turned_low, low);
        }
    }
    squares
}

/// Splits values that are neighbours along the inner dimension into high and low parts, one row per lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_lanes([high, low]: [&mut Tile; 2], values: &[f32], stride: usize, lanes: usize, depth: usize) {
    assert!(lanes == 0 || (lanes - 1) * stride + depth <= values.len());
    let within = [mask(depth), mask(depth.saturating_sub(SIDE))];
    for lane in 0..SIDE {
        let masks = if lane < lanes { within } else { [0; 2] };
        let at = values.as_ptr().wrapping_add(lane * stride);
        let ahead = at.wrapping_add(AHEAD * DEPTH);
        prefetch(ahead);
        prefetch(ahead.wrapping_add(SIDE));
        // SAFETY: the masks restrict the read to values of this lane, which the assertion found in the slice.
        let [a, b] =
            unsafe { [_mm512_maskz_loadu_ps(masks[0], at), _mm512_maskz_loadu_ps(masks[1], at.wrapping_add(SIDE))] };
        store([high, low], lane, split(a, b));
    }
}

/// Splits values that are neighbours along the lanes into high and low parts, one row per pair along the inner
/// dimension. Returns the sum of squares of every lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_pairs([high, low]: [&mut Tile; 2], values: &[f32], stride: usize, lanes: usize, depth: usize) -> __m512 {
    const INTERLEAVE: [u16; 32] = {
        let mut order = [0; 32];
        let mut i = 0;
        while i < 16 {
            (order[2 * i], order[2 * i + 1]) = (i as u16, 16 + i as u16);
            i += 1;
        }
        order
    };
    assert!(lanes == 0 || (depth - 1) * stride + lanes <= values.len());
    let mut squares = [_mm512_setzero_ps(); 2];
    // SAFETY: reads 64 bytes of a 64-byte array.
    let interleave = unsafe { _mm512_loadu_si512(INTERLEAVE.as_ptr().cast()) };
    let within = mask(lanes);
    for pair in 0..SIDE {
        let masks = [0, 1].map(|odd| if 2 * pair + odd < depth { within } else { 0 });
        let at = values.as_ptr().wrapping_add(2 * pair * stride);
        let ahead = at.wrapping_add(AHEAD * DEPTH * stride);
        prefetch(ahead);
        prefetch(ahead.wrapping_add(stride));
        // SAFETY: the masks restrict the read to lanes of rows within the depth, which the assertion found in the
        // slice.
        let [a, b] =
            unsafe { [_mm512_maskz_loadu_ps(masks[0], at), _mm512_maskz_loadu_ps(masks[1], at.wrapping_add(stride))] };
        squares = [_mm512_fmadd_ps(a, a, squares[0]), _mm512_fmadd_ps(b, b, squares[1])];
        let [a, b] = split(a, b);
        let parts = [_mm512_permutexvar_epi16(interleave, a), _mm512_permutexvar_epi16(interleave, b)];
        store([high, low], pair, parts);
    }
    _mm512_add_ps(squares[0], squares[1])
}

/// Writes one row of each tile.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(tiles: [&mut Tile; 2], row: usize, parts: [__m512i; 2]) {
    for (tile, part) in tiles.into_iter().zip(parts) {
        // SAFETY: a row is 64 bytes, aligned to 64.
        unsafe { _mm512_store_si512(tile.0[row].as_mut_ptr().cast(), part) };
    }
}

/// Returns a mask of the first `count` of 16 lanes.
#[inline]
fn mask(count: usize) -> u16 {
    if count >= SIDE { u16::MAX } else { (1 << count) - 1 }
}

/// Prefetches the memory at `at`, which need not exist.
#[inline]
fn prefetch(at: *const f32) {
    // SAFETY: a prefetch neither reads nor faults.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
}

/// Returns the nearest bfloat16 of 32 values, those of `a` first, and the nearest bfloat16 of the remainders.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
pub(super) fn split(a: __m512, b: __m512) -> [__m512i; 2] {
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

/// Transposes a square of 32-bit values: gathers a quarter of every fourth row, then transposes squares of 4 x 4.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn transpose(from: &Tile, to: &mut Tile) {
    for (quarter, to) in to.0.chunks_exact_mut(4).enumerate() {
        let [a, b] = [every_fourth_row(from, 0, quarter), every_fourth_row(from, 1, quarter)];
        let [c, d] = [every_fourth_row(from, 2, quarter), every_fourth_row(from, 3, quarter)];
        let [ab_low, ab_high] = [_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b)];
        let [cd_low, cd_high] = [_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d)];
        let columns = [
            _mm512_unpacklo_epi64(ab_low, cd_low),
            _mm512_unpackhi_epi64(ab_low, cd_low),
            _mm512_unpacklo_epi64(ab_high, cd_high),
            _mm512_unpackhi_epi64(ab_high, cd_high),
        ];
        for (row, column) in to.iter_mut().zip(columns) {
            // SAFETY: a row is 64 bytes, aligned to 64.
            unsafe { _mm512_store_si512(row.as_mut_ptr().cast(), column) };
        }
    }
}

/// Returns the quarters of the rows `first`, `first + 4`, `first + 8` and `first + 12`.
#[inline]
#[target_feature(enable = "avx512f")]
fn every_fourth_row(tile: &Tile, first: usize, quarter: usize) -> __m512i {
    assert!(first < 4 && quarter < 4);
    let at = tile.0.as_ptr().cast::<u32>();
    // SAFETY: a quarter of a row is 16 bytes, aligned to 16, and `first + 12` is a row of the tile.
    unsafe {
        let of = |row: usize| _mm_load_si128(at.add((first + row) * SIDE + 4 * quarter).cast());
        let rows = _mm512_castsi128_si512(of(0));
        let rows = _mm512_mask_broadcast_i32x4(rows, 0x00f0, of(4));
        let rows = _mm512_mask_broadcast_i32x4(rows, 0x0f00, of(8));
        _mm512_mask_broadcast_i32x4(rows, 0xf000, of(12))
    }
}
