//! Products with a left operand whose rows overlap in memory, read where they lie.
//!
//! The windows of a convolution are such rows: in maps stored pixel by pixel every row of a window is one run of values,
//! and the next window's begins a pixel further. Copied out they would be as many times the maps as a window has pixels;
//! here every value is split once and tiles are loaded from places that overlap.

use std::arch::asm;
use std::arch::x86_64::{_mm512_loadu_ps, _mm512_store_si512};

use super::{DEPTH, PANEL, RowsAre, SIDE, Step, Tile, Tiles, ZERO, available, pack_step, split, transpose};
use crate::matrix::{Matrix, View};

/// Tiles of the left operand that are multiplied together.
const GROUP: usize = 4;

/// 32 bfloat16.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u16; DEPTH]);

/// Values split into high and low parts, to be read from any place. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    high: Vec<Line>,
    low: Vec<Line>,
}

impl Parts {
    /// Takes `values` behind `front` zeros and before zeros, `length` values in all.
    ///
    /// # Panics
    /// When `front` is not a multiple of 32, `length` too small, or the tiles are not [`available`].
    pub(crate) fn write(&mut self, front: usize, values: &[f32], length: usize) {
        assert!(available() && front.is_multiple_of(DEPTH) && front + values.len() <= length, "whole lines of zeros");
        self.clear(length);
        let (whole, rest) = values.as_chunks::<DEPTH>();
        let mut last = [0.0; DEPTH];
        last[..rest.len()].copy_from_slice(rest);
        let lines = self.high.iter_mut().zip(&mut self.low).skip(front / DEPTH);
        for ((high, low), values) in lines.zip(whole.iter().chain((!rest.is_empty()).then_some(&last))) {
            let (halves, _) = values.as_chunks::<SIDE>();
            // SAFETY: tiles are available, and with them the instructions.
            unsafe { split_line([&halves[0], &halves[1]], high, low) };
        }
    }

    /// Takes the columns of rows of `columns` values, one after the other, each before zeros and `length` values long.
    ///
    /// # Panics
    /// When `columns` is not a multiple of 16 or `length` of 32, `length` too small, or the tiles are not [`available`].
    pub(crate) fn write_columns(&mut self, rows: &[f32], columns: usize, length: usize) {
        assert!(available() && columns.is_multiple_of(SIDE) && length.is_multiple_of(DEPTH), "whole tiles");
        assert!(rows.len() <= columns * length, "columns longer than they may be");
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
                // SAFETY: tiles are available, and with them the instructions.
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

    /// Number of values.
    fn len(&self) -> usize {
        self.high.len().min(self.low.len()) * DEPTH
    }
}

/// High and low parts of 32 values.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn split_line([a, b]: [&[f32; SIDE]; 2], high: &mut Line, low: &mut Line) {
    // SAFETY: 16 values of 4 bytes are read, each, and lines of 64 bytes, aligned to 64, written.
    unsafe {
        let [upper, rest] = split(_mm512_loadu_ps(a.as_ptr()), _mm512_loadu_ps(b.as_ptr()));
        _mm512_store_si512(high.0.as_mut_ptr().cast(), upper);
        _mm512_store_si512(low.0.as_mut_ptr().cast(), rest);
    }
}

/// High and low parts of the 16 columns of 32 rows, one column a line.
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

/// The right operand, packed. Keeps its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Right {
    /// Panel by panel.
    packed: Vec<Step>,
    steps: usize,
    columns: usize,
}

impl Right {
    /// Packs `columns` columns: step by step, those rows of a view `[columns, inner]` that begin at a place along its inner
    /// size, 32 or as many as there are, with zeros beyond its end.
    ///
    /// # Panics
    /// When a view has not `columns` rows or ends before a step, `columns` is not a multiple of 16, or the tiles are not
    /// [`available`].
    pub(crate) fn pack<'a>(&mut self, columns: usize, steps: impl ExactSizeIterator<Item = (View<'a>, usize)>) {
        assert!(available() && columns.is_multiple_of(SIDE), "whole tiles");
        let panels = columns.div_ceil(PANEL);
        (self.steps, self.columns) = (steps.len(), columns);
        self.packed.resize(panels * self.steps, Step { high: [ZERO; 2], low: [ZERO; 2] });
        for (step, (view, inner_start)) in steps.enumerate() {
            assert!(view.shape[0] == columns && inner_start < view.shape[1], "a step of the right operand");
            for panel in 0..panels {
                let to = &mut self.packed[panel * self.steps + step];
                // SAFETY: tiles are available, and with them the instructions.
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

/// What becomes of the values that a product finds in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
    Replaced,
    AddedTo,
}

/// For every `[begin, row]` of `tiles`, puts the product of the tile that begins at value `begin` with the right operand
/// into the 16 rows of `out` from `row` on, or adds it there. `out` has as many columns as the right operand, and no two
/// tiles have a row in common.
///
/// # Panics
/// When a tile ends beyond the left operand or the rows of `out`, the steps or columns differ in number, there is no step,
/// or the tiles are not [`available`].
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
        // A group that is not full does its first tile again, to the same place: all is read before any is written.
        let mut group = [first; GROUP];
        group.iter_mut().skip(1).zip(&mut tiles).for_each(|(to, tile)| *to = tile);
        for [begin, row] in group {
            assert!(
                begin + (SIDE - 1) * left.stride + last_offset + DEPTH <= left.parts.len(),
                "beyond the left operand"
            );
            assert!(row + SIDE <= out.rows, "beyond the rows of the product");
        }
        for column in 0..right.columns / SIDE {
            let places = Places {
                high: group.map(|[begin, _]| left.parts.high.as_ptr().cast::<u16>().wrapping_add(begin)),
                low: group.map(|[begin, _]| left.parts.low.as_ptr().cast::<u16>().wrapping_add(begin)),
                to: group.map(|[_, row]| out.values.as_mut_ptr().wrapping_add(row * out.columns + column * SIDE)),
            };
            let panel = &right.packed[column * SIDE / PANEL * right.steps..][..right.steps];
            let half = column % (PANEL / SIDE);
            // SAFETY: the assertions found all rows of all tiles and of their products; tiles are configured.
            unsafe { multiply_tiles(&places, before, left, panel, half, out.columns) };
        }
    }
}

/// Where the tiles of a group begin, and where their products go.
#[repr(C)]
struct Places {
    high: [*const u16; GROUP],
    low: [*const u16; GROUP],
    to: [*mut f32; GROUP],
}

/// Multiplies a group of tiles by one half of a panel, with sums in tiles 0 to 3.
///
/// # Safety
/// From every place of `places`, 16 rows `left.stride` values apart may be read at all offsets of `left`, and 16 rows
/// `columns` values apart written; `right` has a step for each of these offsets; tiles are configured.
unsafe fn multiply_tiles(places: &Places, before: Before, left: Rows<'_>, right: &[Step], half: usize, columns: usize) {
    assert!(right.len() == left.offsets.len() && !right.is_empty() && half < 2);
    // SAFETY: the loop reads one offset and one half of a `Step`, 4096 bytes, a round; what else is read and written is
    // the caller's promise.
    unsafe {
        asm!(
            "tilezero tmm0",
            "tilezero tmm1",
            "tilezero tmm2",
            "tilezero tmm3",
            "test {add:e}, {add:e}",
            "jz 2f",
            "mov {at}, [{places} + 64]",
            "tileloadd tmm0, [{at} + {bytes}]",
            "mov {at}, [{places} + 72]",
            "tileloadd tmm1, [{at} + {bytes}]",
            "mov {at}, [{places} + 80]",
            "tileloadd tmm2, [{at} + {bytes}]",
            "mov {at}, [{places} + 88]",
            "tileloadd tmm3, [{at} + {bytes}]",
            "2:",
            "mov {offset}, [{offsets}]",
            "tileloadd tmm6, [{right} + {row}]",
            "tileloadd tmm7, [{right} + {row} + 2048]",
            // Of each tile: high high', high low', low high'.
            "mov {at}, [{places}]",
            "lea {at}, [{at} + 2 * {offset}]",
            "tileloadd tmm4, [{at} + {stride}]",
            "tdpbf16ps tmm0, tmm4, tmm6",
            "tdpbf16ps tmm0, tmm4, tmm7",
            "mov {at}, [{places} + 32]",
            "lea {at}, [{at} + 2 * {offset}]",
            "tileloadd tmm5, [{at} + {stride}]",
            "tdpbf16ps tmm0, tmm5, tmm6",
            "mov {at}, [{places} + 8]",
            "lea {at}, [{at} + 2 * {offset}]",
            "tileloadd tmm4, [{at} + {stride}]",
            "tdpbf16ps tmm1, tmm4, tmm6",
            "tdpbf16ps tmm1, tmm4, tmm7",
            "mov {at}, [{places} + 40]",
            "lea {at}, [{at} + 2 * {offset}]",
            "tileloadd tmm5, [{at} + {stride}]",
            "tdpbf16ps tmm1, tmm5, tmm6",
            "mov {at}, [{places} + 16]",
            "lea {at}, [{at} + 2 * {offset}]",
            "tileloadd tmm4, [{at} + {stride}]",
            "tdpbf16ps tmm2, tmm4, tmm6",
            "tdpbf16ps tmm2, tmm4, tmm7",
            "mov {at}, [{places} + 48]",
            "lea {at}, [{at} + 2 * {offset}]",
            "tileloadd tmm5, [{at} + {stride}]",
            "tdpbf16ps tmm2, tmm5, tmm6",
            "mov {at}, [{places} + 24]",
            "lea {at}, [{at} + 2 * {offset}]",
            "tileloadd tmm4, [{at} + {stride}]",
            "tdpbf16ps tmm3, tmm4, tmm6",
            "tdpbf16ps tmm3, tmm4, tmm7",
            "mov {at}, [{places} + 56]",
            "lea {at}, [{at} + 2 * {offset}]",
            "tileloadd tmm5, [{at} + {stride}]",
            "tdpbf16ps tmm3, tmm5, tmm6",
            "add {offsets}, 8",
            "add {right}, 4096",
            "dec {steps}",
            "jnz 2b",
            "mov {at}, [{places} + 64]",
            "tilestored [{at} + {bytes}], tmm0",
            "mov {at}, [{places} + 72]",
            "tilestored [{at} + {bytes}], tmm1",
            "mov {at}, [{places} + 80]",
            "tilestored [{at} + {bytes}], tmm2",
            "mov {at}, [{places} + 88]",
            "tilestored [{at} + {bytes}], tmm3",
            places = in(reg) places, add = in(reg) u32::from(before == Before::AddedTo), offset = out(reg) _, at = out(reg) _,
            offsets = inout(reg) left.offsets.as_ptr() => _, steps = inout(reg) right.len() => _,
            right = inout(reg) right.as_ptr().cast::<Tile>().wrapping_add(half) => _, row = in(reg) 64_usize,
            stride = in(reg) left.stride * size_of::<u16>(), bytes = in(reg) columns * size_of::<f32>(),
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _, options(nostack));
    }
}
