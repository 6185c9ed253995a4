//! The spectral embedding of a graph of nearest neighbours.

use rand_distr::{Distribution, StandardNormal};
use speed_core::random::Stream;

use crate::pool::components::fix_sign;
use crate::pool::eigen::{combine, dot, orthonormalise, symmetric};
use crate::pool::rows::{Queued, Rows, in_blocks};

/// Further vectors of the basis, which speed up the convergence.
const SPARE: usize = 10;
/// Degree of the Chebyshev polynomials that amplify the wanted eigenvectors.
const DEGREE: usize = 20;
/// The iteration ends if all residuals are this small, or after this many rounds.
const TOLERANCE: f64 = 1e-6;
const ROUNDS: usize = 40;
/// Nodes that one thread handles at a time.
const BLOCK: usize = 1024;

/// The normalised adjacency matrix `D^-1/2 W D^-1/2` of an undirected graph: `W` is the mean of the adjacency matrices of the graph of
/// nearest neighbours and of its transpose, and `D` has the sums of its rows.
pub(crate) struct Graph {
    /// The first edge of each node, and the number of all edges.
    starts: Vec<usize>,
    edges: Vec<(u32, f64)>,
    /// The square roots of the degrees.
    roots: Vec<f64>,
}

impl Graph {
    /// Makes the graph of `neighbours`, the nearest neighbours of each node, which are not the node itself.
    pub(crate) fn new(neighbours: &[Vec<(f32, u32)>]) -> Self {
        let mut weights: Vec<Vec<(u32, f64)>> = vec![Vec::new(); neighbours.len()];
        for (node, near) in neighbours.iter().enumerate() {
            for &(_, other) in near {
                weights[node].push((other, 0.5));
                weights[other as usize].push((node as u32, 0.5));
            }
        }
        let (mut starts, mut edges, mut roots) = (vec![0], Vec::new(), Vec::new());
        for mut near in weights {
            near.sort_by_key(|&(other, _)| other);
            let merged = near.chunk_by(|one, other| one.0 == other.0);
            edges.extend(merged.map(|same| (same[0].0, same.iter().map(|&(_, weight)| weight).sum::<f64>())));
            starts.push(edges.len());
            let degree: f64 = near.iter().map(|&(_, weight)| weight).sum();
            roots.push(if degree > 0.0 { libm::sqrt(degree) } else { 1.0 });
        }
        for node in 0..roots.len() {
            for (other, weight) in &mut edges[starts[node]..starts[node + 1]] {
                *weight /= roots[node] * roots[*other as usize];
            }
        }
        Self { starts, edges, roots }
    }

    fn nodes(&self) -> usize {
        self.roots.len()
    }

    /// Returns `scale (A - shift) x - other` for vectors that are stored node by node.
    fn apply(
        &self,
        [scale, shift]: [f64; 2],
        x: &Rows<f64>,
        other: Option<&Rows<f64>>,
        threads: usize,
    ) -> Queued<Rows<f64>> {
        let width = x.width;
        let blocks = in_blocks(self.nodes(), BLOCK, threads, |nodes| {
            let mut out = vec![0.0; nodes.len() * width];
            for (node, out) in nodes.zip(out.chunks_exact_mut(width)) {
                for &(near, weight) in &self.edges[self.starts[node]..self.starts[node + 1]] {
                    out.iter_mut().zip(x.row(near as usize)).for_each(|(out, value)| *out += weight * value);
                }
                out.iter_mut().zip(x.row(node)).for_each(|(out, value)| *out = scale * (*out - shift * value));
                if let Some(other) = other {
                    out.iter_mut().zip(other.row(node)).for_each(|(out, value)| *out -= value);
                }
            }
            out
        })?;
        Ok(Rows::new(width, blocks.concat()))
    }

    /// Returns the coordinates of every node in at most `dimensions` dimensions: the eigenvectors of the normalised adjacency matrix
    /// with the largest eigenvalues, without the constant one, divided by the square roots of the degrees. The largest magnitude of
    /// every coordinate is 1. A Chebyshev-filtered subspace iteration computes them (Zhou, Saad, Tiago and Chelikowsky, 2006).
    pub(crate) fn embed(
        &self,
        dimensions: usize,
        stream: &mut Stream,
        threads: usize,
        on_round: &dyn Fn(),
    ) -> Queued<Rows<f64>> {
        let nodes = self.nodes();
        let dimensions = dimensions.min(nodes.saturating_sub(1)).max(1);
        let size = (dimensions + SPARE).min(nodes.saturating_sub(1)).max(1);
        let trivial = self.roots.clone();
        let mut basis: Vec<Vec<f64>> = std::iter::once(trivial)
            .chain((0..size).map(|_| (0..nodes).map(|_| StandardNormal.sample(stream)).collect()))
            .collect();
        let (mut vectors, mut cut) = (Vec::new(), 0.5);
        for _ in 0..ROUNDS {
            orthonormalise(&mut basis);
            let by_node = transposed(&basis[1..]);
            let image = columns(&self.apply([1.0, 0.0], &by_node, None, threads)?);
            let own = &basis[1..];
            let products: Vec<f64> =
                own.iter().flat_map(|one| image.iter().map(move |other| dot(one, other))).collect();
            // Rounding makes products slightly asymmetric.
            let mean = |i: usize| 0.5 * (products[i] + products[i % size * size + i / size]);
            let (values, rotation) = symmetric(&(0..size * size).map(mean).collect::<Vec<_>>(), size);
            vectors = combine(own, &rotation);
            let images = combine(&image, &rotation);
            on_round();
            let residual = |i: usize| {
                let squares = vectors[i].iter().zip(&images[i]).map(|(v, image)| image - values[i] * v).map(|r| r * r);
                libm::sqrt(squares.sum::<f64>())
            };
            if (0..dimensions.min(size)).all(|i| residual(i) < TOLERANCE) {
                break;
            }
            cut = values.last().copied().unwrap_or(cut).clamp(-0.9, 0.999);
            let filtered = self.filter(&transposed(&vectors), cut, threads)?;
            basis.truncate(1);
            basis.extend(columns(&filtered));
        }
        vectors.truncate(dimensions);
        for vector in &mut vectors {
            vector.iter_mut().zip(&self.roots).for_each(|(value, root)| *value /= root);
            fix_sign(vector);
            let largest = vector.iter().fold(f64::MIN_POSITIVE, |largest, value| largest.max(value.abs()));
            vector.iter_mut().for_each(|value| *value /= largest);
        }
        Ok(transposed(&vectors))
    }

    /// Amplifies the eigenvectors with eigenvalues above `cut`: the Chebyshev polynomial of the interval from -1 to `cut`.
    fn filter(&self, x: &Rows<f64>, cut: f64, threads: usize) -> Queued<Rows<f64>> {
        let (half, middle) = ((cut + 1.0) / 2.0, (cut - 1.0) / 2.0);
        let mut before = x.clone();
        let mut now = self.apply([1.0 / half, middle], x, None, threads)?;
        for _ in 1..DEGREE {
            let next = self.apply([2.0 / half, middle], &now, Some(&before), threads)?;
            before = std::mem::replace(&mut now, next);
            // Large values are scaled back together, which does not change the space.
            let largest = now.values.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
            if largest > 1e100 {
                let shrink = |rows: &mut Rows<f64>| rows.values.iter_mut().for_each(|value| *value /= largest);
                shrink(&mut now);
                shrink(&mut before);
            }
        }
        Ok(now)
    }
}

/// Returns vectors node by node.
fn transposed(vectors: &[Vec<f64>]) -> Rows<f64> {
    let nodes = vectors[0].len();
    Rows::new(vectors.len(), (0..nodes).flat_map(|node| vectors.iter().map(move |vector| vector[node])).collect())
}

/// Returns the columns of rows, vector by vector.
fn columns(rows: &Rows<f64>) -> Vec<Vec<f64>> {
    (0..rows.width).map(|column| rows.iter().map(|row| row[column]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use speed_core::random::Streams;

    use super::*;

    /// A ring of `count` nodes, each a neighbour of the two beside it.
    fn ring(count: u32) -> Vec<Vec<(f32, u32)>> {
        (0..count).map(|i| vec![(1.0, (i + 1) % count), (1.0, (i + count - 1) % count)]).collect()
    }

    #[test]
    fn a_ring_is_embedded_as_a_circle() {
        let graph = Graph::new(&ring(60));
        let found = graph.embed(2, &mut Streams::new(1).stream("x", 0), 2, &|| ()).expect("threads");
        // The two eigenvectors of cos(2 pi / 60) are cosine and sine, up to a rotation: all nodes are equally far from the centre, up to
        // the scale of the axes.
        let radius = |row: &[f64]| row[0] * row[0] + row[1] * row[1];
        let first = radius(found.row(0));
        assert!(found.iter().all(|row| (radius(row) / first - 1.0).abs() < 0.02), "{found:?}");
    }

    #[test]
    fn components_of_a_graph_lie_at_one_point_each() {
        // Two rings without an edge between them: the eigenvalue 1 has two eigenvectors, and one remains beside the constant one.
        let mut near = ring(20);
        near.extend(ring(30).into_iter().map(|near| near.into_iter().map(|(d, i)| (d, i + 20)).collect()));
        let found = Graph::new(&near).embed(1, &mut Streams::new(2).stream("x", 0), 1, &|| ()).expect("threads");
        let is_at = |range: std::ops::Range<usize>, value: f64| {
            range.into_iter().all(|i| (found.row(i)[0] - value).abs() < 1e-4)
        };
        let (one, other) = (found.row(0)[0], found.row(20)[0]);
        assert!(is_at(0..20, one) && is_at(20..50, other) && one * other < 0.0, "{found:?}");
    }

    #[test]
    fn tiny_graphs_have_finite_coordinates() {
        for near in [vec![vec![]], vec![vec![(0.0, 1)], vec![(0.0, 0)]], vec![vec![], vec![(0.0, 2)], vec![(0.0, 1)]]] {
            let found = Graph::new(&near).embed(20, &mut Streams::new(1).stream("x", 0), 1, &|| ()).expect("threads");
            assert_eq!(found.len(), near.len());
            assert!(found.values.iter().all(|value| value.is_finite()), "{found:?}");
        }
    }
}
