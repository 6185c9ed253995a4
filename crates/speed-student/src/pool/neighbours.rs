//! The nearest neighbours of points, exactly.

use crate::pool::rows::{Queued, Rows, in_blocks};

/// Candidates whose distances to a point are computed together: one vector of sums, so that the compiler uses vector instructions
/// without changing the order of any sum.
const TOGETHER: usize = 256;
/// Points that one thread handles at a time.
const BLOCK: usize = 64;

/// Points in which nearest neighbours are searched, stored coordinate by coordinate in groups of [`TOGETHER`].
pub(crate) struct Candidates {
    count: usize,
    width: usize,
    groups: Vec<f32>,
}

impl Candidates {
    pub(crate) fn new(points: &Rows<f32>) -> Self {
        let (count, width) = (points.len(), points.width);
        // Points beyond the last are infinitely far away.
        let mut groups = vec![f32::INFINITY; count.div_ceil(TOGETHER) * TOGETHER * width];
        for (i, point) in points.iter().enumerate() {
            let group = &mut groups[i / TOGETHER * TOGETHER * width..];
            point.iter().enumerate().for_each(|(axis, &value)| group[axis * TOGETHER + i % TOGETHER] = value);
        }
        Self { count, width, groups }
    }

    /// Returns the `count` candidates nearest to `point`, nearest first, as (squared distance, index); of equally near ones the lowest
    /// indices. `except` is not returned.
    pub(crate) fn nearest(&self, point: &[f32], count: usize, except: Option<usize>) -> Vec<(f32, u32)> {
        let mut nearest: Vec<(f32, u32)> = Vec::with_capacity(count + 1);
        for (group, values) in self.groups.chunks_exact(TOGETHER * self.width).enumerate() {
            let mut distances = [0.0_f32; TOGETHER];
            for (axis, values) in point.iter().zip(values.chunks_exact(TOGETHER)) {
                for (distance, value) in distances.iter_mut().zip(values) {
                    let difference = axis - value;
                    *distance += difference * difference;
                }
            }
            let first = group * TOGETHER;
            for (i, &distance) in distances.iter().enumerate().take(self.count - first) {
                let is_far =
                    nearest.len() == count && nearest.last().is_some_and(|&(farthest, _)| farthest <= distance);
                if is_far || except == Some(first + i) {
                    continue;
                }
                let place = nearest.partition_point(|&(nearer, _)| nearer <= distance);
                nearest.insert(place, (distance, (first + i) as u32));
                nearest.truncate(count);
            }
        }
        nearest
    }

    /// Returns the neighbours of every candidate among the others, as [`Self::nearest`] does. `on_points` is called with numbers of
    /// finished points.
    pub(crate) fn of_each_other(
        &self,
        points: &Rows<f32>,
        count: usize,
        threads: usize,
        on_points: &(dyn Fn(usize) + Sync),
    ) -> Queued<Vec<Vec<(f32, u32)>>> {
        let blocks = in_blocks(points.len(), BLOCK, threads, |block| {
            let found: Vec<_> = block.clone().map(|i| self.nearest(points.row(i), count, Some(i))).collect();
            on_points(block.len());
            found
        })?;
        Ok(blocks.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use speed_core::random::Streams;

    use super::*;

    #[test]
    fn neighbours_are_those_of_a_sorted_list_of_all_distances() {
        let mut stream = Streams::new(5).stream("points", 0);
        // Small integers, so that many distances are equal; 600 points fill two groups and a part of a third.
        let points = Rows::new(3, (0..1800).map(|_| stream.random_range(0..6) as f32).collect());
        let candidates = Candidates::new(&points);
        let found = candidates.of_each_other(&points, 7, 2, &|_| ()).expect("threads");
        for (i, found) in found.iter().enumerate() {
            let distance =
                |j: usize| points.row(i).iter().zip(points.row(j)).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
            let mut all: Vec<(f32, u32)> = (0..600).filter(|&j| j != i).map(|j| (distance(j), j as u32)).collect();
            all.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            assert_eq!(found[..], all[..7], "point {i}");
        }
        assert_eq!(candidates.nearest(points.row(4), 1, None)[0].0, 0.0);
    }

    #[test]
    fn few_points_have_few_neighbours() {
        let points = Rows::new(1, vec![0.0, 1.0, 5.0]);
        let found = Candidates::new(&points).of_each_other(&points, 10, 1, &|_| ()).expect("threads");
        assert_eq!(found[0], [(1.0, 1), (25.0, 2)]);
    }
}
