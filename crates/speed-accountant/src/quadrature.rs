//! Double-exponential quadrature (Takahasi and Mori 1974), which tolerates singular ends. The densities here have
//! cusps.
//!
//! Integrands take a point as an anchor and an offset from it, so that the distance from a cusp at the anchor is exact
//! however small it is.

use std::f64::consts::PI;
use std::sync::LazyLock;

/// A point of the line: `anchor + offset`, where the offset is exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnchoredPoint {
    pub(crate) anchor: f64,
    pub(crate) offset: f64,
}

impl AnchoredPoint {
    /// Returns the distance from `origin`, which is exact if `origin` is the anchor.
    pub(crate) fn from(self, origin: f64) -> f64 {
        (self.anchor - origin) + self.offset
    }
}

/// Number of nodes: fine is accurate to about fourteen digits, coarse to seven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Fine,
    Coarse,
}

/// Nodes of `[0, 1]` (distance from the near end) or of the half line (distance from its end), with weights.
type Nodes = Vec<(f64, f64)>;

static FINITE: LazyLock<[Nodes; 2]> = LazyLock::new(|| [finite(1.0 / 12.0, 1e-290), finite(1.0 / 5.0, 1e-60)]);
static HALF_LINE: LazyLock<[Nodes; 2]> = LazyLock::new(|| [half(1.0 / 18.0), half(1.0 / 8.0)]);

impl Precision {
    fn select(self, nodes: &'static LazyLock<[Nodes; 2]>) -> &'static Nodes {
        match self {
            Self::Fine => &nodes[0],
            Self::Coarse => &nodes[1],
        }
    }
}

fn finite(step: f64, nearest: f64) -> Nodes {
    // x = 1 / (1 + e^{pi sinh t}) is the distance from the right end at t > 0.
    let node = |i: i32| {
        let t = f64::from(i) * step;
        let u = PI * t.sinh();
        let distance = (-u).exp() / (1.0 + (-u).exp());
        (distance, step * PI * t.cosh() * distance / (1.0 + (-u).exp()))
    };
    (0..).map(node).take_while(|&(distance, weight)| distance > nearest && weight > 0.0).collect()
}

/// Computes the nodes for integrands that fall like `e^-x`: `x = e^{t - e^-t}`.
fn half(step: f64) -> Nodes {
    let last = (6.6 / step) as i32;
    (-last..=last)
        .map(|i| {
            let t = f64::from(i) * step;
            let x = (t - (-t).exp()).exp();
            (x, step * x * (1.0 + (-t).exp()))
        })
        .filter(|&(x, _)| x > 1e-290)
        .collect()
}

/// Returns the nodes and weights of the real line, cut at `breaks` (in increasing order), for integrands that fall like
/// `e^{-|x| / scale}` outside.
pub(crate) fn line(breaks: &[f64], scale: f64, precision: Precision) -> Vec<(AnchoredPoint, f64)> {
    let mut nodes = Vec::new();
    if let Some(&first) = breaks.first() {
        nodes.extend(half_line(first, -scale, precision));
    }
    for pair in breaks.windows(2) {
        nodes.extend(interval(pair[0], pair[1], precision));
    }
    if let Some(&last) = breaks.last() {
        nodes.extend(half_line(last, scale, precision));
    }
    nodes
}

/// Iterates over the nodes from `from` to infinity, or for a negative `scale` to minus infinity.
fn half_line(from: f64, scale: f64, precision: Precision) -> impl Iterator<Item = (AnchoredPoint, f64)> {
    let nodes = precision.select(&HALF_LINE).iter();
    nodes.map(move |&(x, weight)| (AnchoredPoint { anchor: from, offset: x * scale }, weight * scale.abs()))
}

pub(crate) fn interval(from: f64, to: f64, precision: Precision) -> impl Iterator<Item = (AnchoredPoint, f64)> {
    let length = to - from;
    precision.select(&FINITE).iter().enumerate().flat_map(move |(i, &(distance, weight))| {
        let right = (AnchoredPoint { anchor: to, offset: -distance * length }, weight * length);
        let left = (AnchoredPoint { anchor: from, offset: distance * length }, weight * length);
        // The middle is one node, not two.
        std::iter::once(right).chain((i > 0).then_some(left))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrates_singular_ends_and_tails() {
        // x^{-0.9} over [0, 2] about an anchor away from zero.
        let singular: f64 =
            interval(5.0, 7.0, Precision::Fine).map(|(point, weight)| weight * point.from(5.0).powf(-0.9)).sum();
        assert!((singular / (10.0 * 2f64.powf(0.1)) - 1.0).abs() < 1e-10, "{singular}");
        let smooth: f64 =
            interval(-1.0, 3.0, Precision::Fine).map(|(point, weight)| weight * point.from(0.0).powi(4)).sum();
        assert!((smooth / (244.0 / 5.0) - 1.0).abs() < 1e-11, "{smooth}");
        // Gamma(0.2).
        let gamma: f64 =
            half_line(3.0, 1.0, Precision::Fine).map(|(p, w)| w * p.from(3.0).powf(-0.8) * (-p.from(3.0)).exp()).sum();
        assert!((gamma / 4.590_843_711_998_803 - 1.0).abs() < 1e-10, "{gamma}");
        let bell: f64 = line(&[-1.0, 0.5], 1.0, Precision::Fine).into_iter().map(|(p, w)| w / p.from(0.0).cosh()).sum();
        assert!((bell / PI - 1.0).abs() < 1e-10, "{bell}");
    }
}
