//! Histograms of oriented gradients (Dalal and Triggs, "Histograms of Oriented Gradients for Human Detection", 2005): which edges are
//! where, whatever the colours of the two sides are.

/// Directions of an edge that are distinguished, between 0 and 180 degrees.
const BINS: usize = 8;
/// Side of a cell, in pixels.
const CELL: usize = 4;
/// The largest value of a direction in a cell, relative to the norm of the 3 x 3 cells around it.
const LARGEST: f64 = 0.3;
/// Added to the squared norm of 3 x 3 cells, so that noise in an even region stays small.
const EVEN: f64 = 1e-3;
/// Standard deviation of the window around the middle of the image, relative to its sides.
const WINDOW: f64 = 0.3;

/// Returns the number of values for an image of this size in pixels.
pub(super) fn width([height, width]: [usize; 2]) -> usize {
    height.div_ceil(CELL) * width.div_ceil(CELL) * BINS
}

/// Returns for every cell, row by row, the strength of edges in each direction: a vector of norm 1, or zeros for an image without edges.
/// `channels` have values of 0 to 1.
pub(super) fn histograms(channels: &[Vec<f64>], [height, width]: [usize; 2]) -> Vec<f64> {
    let smooth: Vec<Vec<f64>> = channels.iter().map(|channel| blur(channel, [height, width])).collect();
    let (rows, columns) = (height.div_ceil(CELL), width.div_ceil(CELL));
    let mut cells = vec![[0.0; BINS]; rows * columns];
    for row in 0..height {
        for column in 0..width {
            let (strength, direction) = edge(&smooth, [height, width], row, column);
            let (first, share) = (direction.floor(), direction - direction.floor());
            let bins = [(first as usize % BINS, 1.0 - share), ((first as usize + 1) % BINS, share)];
            for (cell_row, by_row) in near(row, rows) {
                for (cell_column, by_column) in near(column, columns) {
                    let cell = &mut cells[cell_row * columns + cell_column];
                    bins.iter().for_each(|(bin, part)| cell[*bin] += strength * part * by_row * by_column);
                }
            }
        }
    }
    normalised(&cells, rows, columns)
}

/// Returns the strength of the edge at a pixel, over all channels, and its direction in bins. Opposite directions are the same, so an
/// edge from dark to light equals one from light to dark.
fn edge(channels: &[Vec<f64>], [height, width]: [usize; 2], row: usize, column: usize) -> (f64, f64) {
    let (mut difference, mut product) = (0.0, 0.0);
    for channel in channels {
        let at = |r: usize, c: usize| channel[r * width + c];
        let across = at(row, (column + 1).min(width - 1)) - at(row, column.saturating_sub(1));
        let down = at((row + 1).min(height - 1), column) - at(row.saturating_sub(1), column);
        difference += across * across - down * down;
        product += 2.0 * across * down;
    }
    let turns = libm::atan2(product, difference) / std::f64::consts::TAU;
    let direction = if turns < 0.0 { turns + 1.0 } else { turns } * BINS as f64;
    ((difference * difference + product * product).sqrt().sqrt(), direction)
}

/// Returns the cells on one axis to which a pixel belongs, with its shares: linear between the middles of cells.
fn near(pixel: usize, cells: usize) -> impl Iterator<Item = (usize, f64)> {
    let middle = move |cell: usize| (cell * CELL) as f64 + (CELL as f64 - 1.0) / 2.0;
    let first = (pixel / CELL).saturating_sub(1);
    (first..(first + 3).min(cells))
        .map(move |cell| (cell, 1.0 - (middle(cell) - pixel as f64).abs() / CELL as f64))
        .filter(|(_, share)| *share > 0.0)
}

/// Divides every cell by the norm of the 3 x 3 cells around it, limits its values, weighs it by a window around the middle of the image,
/// and scales the vector to norm 1.
fn normalised(cells: &[[f64; BINS]], rows: usize, columns: usize) -> Vec<f64> {
    let energy: Vec<f64> = cells.iter().map(|cell| cell.iter().map(|v| v * v).sum()).collect();
    let mut values = Vec::with_capacity(cells.len() * BINS);
    for (index, cell) in cells.iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let beside = |place: usize, count: usize| [place.saturating_sub(1), place, (place + 1).min(count - 1)];
        let around: f64 =
            beside(row, rows).iter().flat_map(|r| beside(column, columns).map(|c| energy[r * columns + c])).sum();
        let weight = window(row, rows) * window(column, columns);
        values.extend(cell.map(|value| weight * (value / (around + EVEN).sqrt()).min(LARGEST)));
    }
    let norm = values.iter().map(|v| v * v).sum::<f64>().sqrt();
    if norm > 0.0 {
        values.iter_mut().for_each(|value| *value /= norm);
    }
    values
}

fn window(place: usize, count: usize) -> f64 {
    let deviations = (place as f64 - (count as f64 - 1.0) / 2.0) / (count as f64 * WINDOW);
    libm::exp(-0.5 * deviations * deviations)
}

/// Returns the image after a blur with weights of 1/4, 1/2, 1/4 on both axes; pixels at the border count for those outside.
fn blur(channel: &[f64], [height, width]: [usize; 2]) -> Vec<f64> {
    let mean = |before: f64, here: f64, after: f64| 0.25 * before + 0.5 * here + 0.25 * after;
    let across: Vec<f64> = (0..height * width)
        .map(|i| {
            let (row, column) = (i / width, i % width);
            let at = |c: usize| channel[row * width + c];
            mean(at(column.saturating_sub(1)), at(column), at((column + 1).min(width - 1)))
        })
        .collect();
    (0..height * width)
        .map(|i| {
            let (row, column) = (i / width, i % width);
            let at = |r: usize| across[r * width + column];
            mean(at(row.saturating_sub(1)), at(row), at((row + 1).min(height - 1)))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bar of 3 x 17 pixels in the middle of 32 x 32, upright or lying.
    fn bar(upright: bool, ink: f64, wall: f64) -> Vec<f64> {
        let inside = |along: usize, across: usize| (8..25).contains(&along) && (15..18).contains(&across);
        (0..1024)
            .map(|i| {
                let (row, column) = (i / 32, i % 32);
                if if upright { inside(row, column) } else { inside(column, row) } { ink } else { wall }
            })
            .collect()
    }

    fn distance(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt()
    }

    #[test]
    fn edges_count_and_colours_do_not() {
        let upright = histograms(&[bar(true, 0.9, 0.2)], [32, 32]);
        assert_eq!(upright.len(), width([32, 32]));
        assert!((upright.iter().map(|v| v * v).sum::<f64>() - 1.0).abs() < 1e-12);
        // Dark on light, in less contrast, and in one of three channels.
        assert!(distance(&upright, &histograms(&[bar(true, 0.2, 0.9)], [32, 32])) < 1e-9);
        assert!(distance(&upright, &histograms(&[bar(true, 0.5, 0.2)], [32, 32])) < 0.1);
        let grey = vec![0.5; 1024];
        let colour = histograms(&[grey.clone(), bar(true, 0.9, 0.2), grey], [32, 32]);
        assert!(distance(&upright, &colour) < 1e-9);
        assert!(distance(&upright, &histograms(&[bar(false, 0.9, 0.2)], [32, 32])) > 1.0);
    }

    #[test]
    fn a_vertical_edge_is_in_the_first_direction() {
        // The gradient of a vertical edge is horizontal: angle 0. The cell in row 4, column 3 has the left edge of the bar.
        let upright = histograms(&[bar(true, 1.0, 0.0)], [32, 32]);
        let cell = &upright[(4 * 8 + 3) * BINS..][..BINS];
        assert!(cell[0] > 0.1 && cell[1..].iter().all(|value| *value < 1e-9), "{cell:?}");
        // A lying bar: angle 90, bin 4.
        let lying = histograms(&[bar(false, 1.0, 0.0)], [32, 32]);
        let cell = &lying[(3 * 8 + 4) * BINS..][..BINS];
        assert!(cell[4] > 0.1 && cell[0] < 1e-9, "{cell:?}");
    }

    #[test]
    fn even_and_tiny_images_have_finite_values() {
        for size in [[1, 1], [1, 7], [5, 2], [32, 30]] {
            let pixels = size[0] * size[1];
            let even = histograms(&[vec![1.0; pixels]], size);
            assert!(even.len() == width(size) && even.iter().all(|value| *value == 0.0));
            let odd: Vec<f64> = (0..pixels).map(|i| (i % 2) as f64).collect();
            assert!(histograms(&[odd], size).iter().all(|value| value.is_finite()));
        }
    }

    #[test]
    fn a_pixel_is_divided_among_the_cells_around_it() {
        for pixel in 2..30 {
            let shares: Vec<(usize, f64)> = near(pixel, 8).collect();
            assert!((shares.iter().map(|(_, share)| share).sum::<f64>() - 1.0).abs() < 1e-12, "{pixel} {shares:?}");
        }
    }
}
