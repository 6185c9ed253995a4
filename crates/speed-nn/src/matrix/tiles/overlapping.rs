//! Products with a left operand whose rows overlap in memory and are read in place.
//!
//! The windows of a convolution are such rows: in maps stored pixel by pixel every row of a window is one run of
//! values, and the next window's run begins a pixel further. A copy of all windows would multiply the size of the maps
//! by the number of pixels in a window. Here every value is split once, and tiles are loaded from overlapping
//! positions.

use std::arch::asm;
use std::arch::x86_64::{_mm512_loadu_ps, _mm512_store_si512};

use super::pack::{PackedStep, RowsAre, Tile, ZERO, pack_step, split, transpose};
use super::{DEPTH, PANEL, SIDE, Tiles, available, multiply_step};
use crate::matrix::{Matrix, View};

/// Tiles of the left operand that are multiplied together.
const GROUP: usize = 4;

/// 32 bfloat16.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u16; DEPTH]);

/// Values split into high and low parts, readable from any position. Reuses its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    high: Vec<Line>,
    low: Vec<Line>,
}

impl Parts {
    /// Stores `front` zeros, then `values`, then zeros up to a total of `length` values.
    ///
    /// # Panics
    /// If `front` is not a multiple of 32, `length` is too small, or the tiles are not [`available`].
    pub(crate) fn write(&mut self, front: usize, values: &[f32], length: usize) {
        assert!(
            available() && front.is_multiple_of(DEPTH) && front + values.len() <= length,
            "complete lines of zeros"
        );
        self.clear(length);
        let (whole, rest) = values.as_chunks::<DEPTH>();
        let mut last = [0.0; DEPTH];
        last[..rest.len()].copy_from_slice(rest);
        let lines = self.high.iter_mut().zip(&mut self.low).skip(front / DEPTH);
        for ((high, low), values) in lines.zip(whole.iter().chain((!rest.is_empty()).then_some(&last))) {
            let (halves, _) = values.as_chunks::<SIDE>();
            // SAFETY: tiles are available, which implies these instructions.
            unsafe { split_line([&halves[0], &halves[1]], high, low) };
        }
    }

    /// Stores the columns of rows of `columns` values one after the other, each padded with zeros to `length` values.
    ///
    /// # Panics
    /// If `columns` is not a multiple of 16, `length` is not a multiple of 32 or too small, or the tiles are not
    /// [`available`].
    pub(crate) fn write_columns(&mut self, rows: &[f32], columns: usize, length: usize) {
        assert!(available() && columns.is_multiple_of(SIDE) && length.is_multiple_of(DEPTH), "complete tiles");
        assert!(rows.len() <= columns * length, "columns longer than `length`");
        self.clear(columns * length);
        let lines = length / DEPTH;
        for (line, rows) in rows.chunks(DEPTH * columns).enumerate() {
            for first in (0..columns).step_by(SIDE) {
                let to = self.high.iter_mut().zip(&mut self.low).skip(first * lines + line).step_by(lines);
                let mut squares = [ZERO; 2];
                for (row, values) in rows.chunks_exact(columns).enumerate() {
                    let to = &mut squares[row / SIDE].0[row % SIDE];
                    to.iter_mut().zip(&values[first..]).for_each(|(to, value)| *to = value.to_bits());
                }
                // SAFETY: tiles are available, which implies these instructions.
                unsafe { split_columns(&squares, to) };
            }
        }
    }

    fn clear(&mut self, length: usize) {
        for part in [&mut self.high, &mut self.low] {
            part.clear();
            part.resize(length.div_ceil(DEPTH), Line([0; DEPTH]));
        }
    }

    /// Returns the number of values.
    fn len(&self) -> usize {
        self.high.len().min(self.low.len()) * DEPTH
    }
}

/// Splits 32 values into high and low parts.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_line([a, b]: [&[f32; SIDE]; 2], high: &mut Line, low: &mut Line) {
    // SAFETY: reads 16 values of 4 bytes from each array, and writes lines of 64 bytes, aligned to 64.
    unsafe {
        let [upper, rest] = split(_mm512_loadu_ps(a.as_ptr()), _mm512_loadu_ps(b.as_ptr()));
        _mm512_store_si512(high.0.as_mut_ptr().cast(), upper);
        _mm512_store_si512(low.0.as_mut_ptr().cast(), rest);
    }
}

/// Splits the 16 columns of 32 rows into high and low parts, one column per line.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_columns<'a>(rows: &[Tile; 2], lines: impl Iterator<Item = (&'a mut Line, &'a mut Line)>) {
    let mut columns = [ZERO; 2];
    let [above, below] = &mut columns;
    transpose(&rows[0], above);
    transpose(&rows[1], below);
    for ((high, low), (above, below)) in lines.zip(above.0.iter().zip(&below.0)) {
        split_line([&above.map(f32::from_bits), &below.map(f32::from_bits)], high, low);
    }
}

/// The packed right operand. Reuses its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Right {
    /// In the order of panels.
    packed: Vec<PackedStep>,
    steps: usize,
    columns: usize,
}

impl Right {
    /// Returns the number of columns.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Packs `columns` columns. Each step packs up to 32 values along the inner dimension of a view `[columns, inner]`,
    /// from the given position on, with zeros beyond its end.
    ///
    /// # Panics
    /// If a view does not have `columns` rows or ends before a step, `columns` is not a multiple of 16, or the tiles
    /// are not [`available`].
    pub(crate) fn pack<'a>(&mut self, columns: usize, steps: impl ExactSizeIterator<Item = (View<'a>, usize)>) {
        assert!(available() && columns.is_multiple_of(SIDE), "complete tiles");
        let panels = columns.div_ceil(PANEL);
        (self.steps, self.columns) = (steps.len(), columns);
        self.packed.resize(panels * self.steps, PackedStep { high: [ZERO; 2], low: [ZERO; 2] });
        for (step, (view, inner_start)) in steps.enumerate() {
            assert!(view.shape[0] == columns && inner_start < view.shape[1], "a step of the right operand");
            for panel in 0..panels {
                let to = &mut self.packed[panel * self.steps + step];
                // SAFETY: tiles are available, which implies these instructions.
                unsafe { pack_step(to, view, [panel * PANEL, inner_start], RowsAre::Pairs) };
            }
        }
    }
}

/// The left operand: the tile that begins at value `b` holds in row `r`, at step `s`, the 32 values from
/// `b + r * stride + offsets[s]` on.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) stride: usize,
    pub(crate) offsets: &'a [usize],
}

/// The treatment of the values already in the place of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    Replaced,
    AddedTo,
}

/// For every `[begin, row]` of `tiles`, computes the product of the tile that begins at value `begin` with the right
/// operand, and writes it to the 16 rows of `out` from `row` on, or adds it there. `out` has the columns of the right
/// operand; no two tiles share a row.
///
/// # Panics
/// If a tile ends beyond the left operand or the rows of `out`, the numbers of steps or columns differ, there are no
/// steps, or the tiles are not [`available`].
pub(crate) fn multiply(
    out: &mut Matrix,
    before: Before,
    left: Rows<'_>,
    right: &Right,
    mut tiles: impl Iterator<Item = [usize; 2]>,
) {
    let Some(last_offset) = left.offsets.iter().max() else { panic!("a product of nothing") };
    assert!(available(), "tiles");
    assert_eq!((left.offsets.len(), out.columns), (right.steps, right.columns), "steps and columns of a product");
    let _tiles = Tiles::configured();
    while let Some(first) = tiles.next() {
        // A group that is not full repeats its last tile, with the same destination.
        let mut group = [first; GROUP];
        let mut count = 1;
        for tile in tiles.by_ref().take(GROUP - 1) {
            group[count..].fill(tile);
            count += 1;
        }
        for [begin, row] in group {
            assert!(
                begin + (SIDE - 1) * left.stride + last_offset + DEPTH <= left.parts.len(),
                "beyond the left operand"
            );
            assert!(row + SIDE <= out.rows, "beyond the rows of the product");
        }
        for (panel, right) in right.packed.chunks_exact(right.steps).enumerate() {
            let places = GroupAddresses {
                high: group.map(|[begin, _]| left.parts.high.as_ptr().cast::<u16>().wrapping_add(begin)),
                low: group.map(|[begin, _]| left.parts.low.as_ptr().cast::<u16>().wrapping_add(begin)),
                to: group.map(|[_, row]| out.values.as_mut_ptr().wrapping_add(row * out.columns + panel * PANEL)),
            };
            let columns = out.columns;
            // SAFETY: the assertions checked all rows of all tiles and of their products; tiles are configured.
            unsafe {
                if columns - panel * PANEL >= PANEL {
                    multiply_by_panel(&places, 0, before, left, right, columns);
                    // A repeated first half would be added twice.
                    if count > GROUP / 2 {
                        multiply_by_panel(&places, 1, before, left, right, columns);
                    }
                } else {
                    multiply_by_half(&places, before, left, right, columns);
                }
            };
        }
    }
}

/// The start addresses of the tiles of a group and of their products.
#[repr(C)]
struct GroupAddresses {
    high: [*const u16; GROUP],
    low: [*const u16; GROUP],
    to: [*mut f32; GROUP],
}

/// The instruction that loads a tile of the left operand, whose address is at the given byte offset in [`GroupAddresses`].
macro_rules! load_left {
    ($tile:literal, $place:literal) => {
        concat!(
            "mov {at}, [{places} + ",
            $place,
            "]\nlea {at}, [{at} + 2 * {offset}]\ntileloadd ",
            $tile,
            ", [{at} + {stride}]",
        )
    };
}

/// The instruction that moves a sum from or to its product, whose address is at the given byte offset in [`GroupAddresses`].
macro_rules! move_sum {
    ($place:literal, $instruction:literal) => {
        concat!("mov {at}, [{places} + ", $place, "]\n", $instruction)
    };
}

/// Sums products step by step in tiles 0 to 3, which it loads before the first step and stores after the last.
macro_rules! add_up {
    (
        load: [$($load:expr),*], step: [$($step:expr),*], store: [$($store:expr),*],
        $places:expr, $before:expr, $left:expr, $right:expr, $columns:expr
    ) => {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "test {add:e}, {add:e}",
            "jz 2f",
            $($load,)*
            "2:",
            "mov {offset}, [{offsets}]",
            $($step,)*
            "add {offsets}, 8",
            "add {right}, 4096",
            "dec {steps}",
            "jnz 2b",
            $($store,)*
            places = in(reg) $places, add = in(reg) u32::from($before == Before::AddedTo),
            offset = out(reg) _, at = out(reg) _,
            offsets = inout(reg) $left.offsets.as_ptr() => _, steps = inout(reg) $right.len() => _,
            right = inout(reg) $right.as_ptr() => _, row = in(reg) 64_usize,
            stride = in(reg) $left.stride * size_of::<u16>(), bytes = in(reg) $columns * size_of::<f32>(),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack))
    };
}

/// Multiplies the first or second half of a group of tiles by a panel.
///
/// # Safety
/// From every address in `places`, 16 rows `left.stride` values apart are readable at all offsets of `left`, and 16
/// rows of 32 values, `columns` values apart, are writable. `right` has a step for each of these offsets; tiles are
/// configured.
unsafe fn multiply_by_panel(
    places: &GroupAddresses,
    half: usize,
    before: Before,
    left: Rows<'_>,
    right: &[PackedStep],
    columns: usize,
) {
    assert!(right.len() == left.offsets.len() && !right.is_empty() && half < 2);
    let places = std::ptr::from_ref(places).cast::<u8>().wrapping_add(half * 16);
    // SAFETY: each iteration reads one offset and one `PackedStep`, 4096 bytes; the caller guarantees the other accesses.
    unsafe {
        add_up!(
            load: [
                move_sum!(64, "tileloadd tmm0, [{at} + {bytes}]"),
                "tileloadd tmm1, [{at} + {bytes} + 64]",
                move_sum!(72, "tileloadd tmm2, [{at} + {bytes}]"),
                "tileloadd tmm3, [{at} + {bytes} + 64]"
            ],
            step: [multiply_step!(
                high: [load_left!("tmm4", 0), load_left!("tmm5", 8)],
                low: [load_left!("tmm4", 32), load_left!("tmm5", 40)]
            )],
            store: [
                move_sum!(64, "tilestored [{at} + {bytes}], tmm0"),
                "tilestored [{at} + {bytes} + 64], tmm1",
                move_sum!(72, "tilestored [{at} + {bytes}], tmm2"),
                "tilestored [{at} + {bytes} + 64], tmm3"
            ],
            places, before, left, right, columns
        );
    }
}

/// Adds high high', high low' and low high' of one tile and the half step in tiles 6 and 7 to `$sum`.
macro_rules! multiply_half_step {
    ($sum:literal, high: $high:literal, low: $low:literal) => {
        concat!(
            load_left!("tmm4", $high),
            "\ntdpbf16ps ",
            $sum,
            ", tmm4, tmm6\ntdpbf16ps ",
            $sum,
            ", tmm4, tmm7\n",
            load_left!("tmm5", $low),
            "\ntdpbf16ps ",
            $sum,
            ", tmm5, tmm6",
        )
    };
}

/// Multiplies a group of tiles by the first half of a panel.
///
/// # Safety
/// As for [`multiply_by_panel`], but with writable rows of 16 values.
unsafe fn multiply_by_half(
    places: &GroupAddresses,
    before: Before,
    left: Rows<'_>,
    right: &[PackedStep],
    columns: usize,
) {
    assert!(right.len() == left.offsets.len() && !right.is_empty());
    // SAFETY: each iteration reads one offset and half of one `PackedStep`, 4096 bytes; the caller guarantees the other
    // accesses.
    unsafe {
        add_up!(
            load: [
                move_sum!(64, "tileloadd tmm0, [{at} + {bytes}]"),
                move_sum!(72, "tileloadd tmm1, [{at} + {bytes}]"),
                move_sum!(80, "tileloadd tmm2, [{at} + {bytes}]"),
                move_sum!(88, "tileloadd tmm3, [{at} + {bytes}]")
            ],
            step: [
                "tileloadd tmm6, [{right} + {row}]",
                "tileloadd tmm7, [{right} + {row} + 2048]",
                multiply_half_step!("tmm0", high: 0, low: 32),
                multiply_half_step!("tmm1", high: 8, low: 40),
                multiply_half_step!("tmm2", high: 16, low: 48),
                multiply_half_step!("tmm3", high: 24, low: 56)
            ],
            store: [
                move_sum!(64, "tilestored [{at} + {bytes}], tmm0"),
                move_sum!(72, "tilestored [{at} + {bytes}], tmm1"),
                move_sum!(80, "tilestored [{at} + {bytes}], tmm2"),
                move_sum!(88, "tilestored [{at} + {bytes}], tmm3")
            ],
            std::ptr::from_ref(places), before, left, right, columns
        );
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use speed_core::random::Streams;

    use super::*;

    /// Compares with the definition in f64: full and partial groups of tiles, full and half panels, from plain values
    /// and from columns of rows.
    #[test]
    #[expect(clippy::print_stderr, reason = "a skipped test reports it")]
    fn products_are_those_of_the_rows_where_they_lie() {
        if !available() {
            eprintln!("skipped: this machine has no tiles");
            return;
        }
        let mut stream = Streams::new(1).stream("overlapping", 0);
        let mut random = |rows, columns| Matrix::from_fn(rows, columns, || stream.random::<f32>() - 0.5);
        let (values, offsets) = (random(40, 16), [0, 3, 70]);
        let transposed = |at: usize| values.values()[at % 40 * 16 + at / 40];
        let (mut plain, mut columns_of_rows, mut right) = (Parts::default(), Parts::default(), Right::default());
        plain.write(32, values.values(), 1000);
        columns_of_rows.write_columns(values.values(), 16, 64);
        let value_of_plain = |at: usize| if (32..672).contains(&at) { values.values()[at - 32] } else { 0.0 };
        let value_of_columns = |at: usize| if at % 64 < 40 { transposed(at / 64 * 40 + at % 64) } else { 0.0 };

        for (count, columns) in [(1, 16), (2, 32), (3, 48), (4, 64), (5, 32), (7, 16)] {
            // The last step has five values.
            let inner = random(69, columns);
            right.pack(columns, (0..3).map(|step| (inner.view().transposed(), 32 * step)));
            for before in [Before::Replaced, Before::AddedTo] {
                let sides: [(&Parts, &dyn Fn(usize) -> f32); 2] =
                    [(&plain, &value_of_plain), (&columns_of_rows, &value_of_columns)];
                for (parts, value) in sides {
                    let mut out = random(count * 16 + 1, columns);
                    let start = out.clone();
                    let left = Rows { parts, stride: 5, offsets: &offsets };
                    multiply(&mut out, before, left, &right, (0..count).map(|tile| [7 * tile, 1 + 16 * tile]));
                    for (row, column) in (0..count * 16).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                        let begin = row / 16 * 7 + row % 16 * 5;
                        let product = |k: usize| {
                            f64::from(value(begin + offsets[k / 32] + k % 32)) * f64::from(inner.row(k)[column])
                        };
                        let there = if before == Before::AddedTo { start.row(1 + row)[column] } else { 0.0 };
                        let expected = f64::from(there) + (0..69).map(product).sum::<f64>();
                        let found = f64::from(out.row(1 + row)[column]);
                        assert!((found - expected).abs() < 3e-5, "{count} {columns} {before:?}: {found}, {expected}");
                    }
                    assert_eq!(out.row(0), start.row(0));
                }
            }
        }
    }
}
