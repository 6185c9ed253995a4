//! The common parts of the plots: pieces of SVG, and round numbers along an axis.

use std::fmt::Write as _;

pub(super) const WIDTH: f64 = 760.0;
/// Margins around the drawing; the left one depends on the labels there.
pub(super) const RIGHT: f64 = 24.0;
pub(super) const TOP: f64 = 64.0;
pub(super) const BOTTOM: f64 = 52.0;

/// Begins a white picture with title and key in its upper margin; `</svg>` is left to its end.
pub(super) fn begin(height: f64, title: &str, key: &str) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#111\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    text(&mut svg, WIDTH / 2.0, 22.0, "middle", 15, title);
    text(&mut svg, WIDTH / 2.0, 44.0, "middle", 12, key);
    svg
}

pub(super) fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), stroke: &str, width: f64) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{stroke}\" stroke-width=\"{width}\"/>",
        from.0, from.1, to.0, to.1
    );
}

pub(super) fn text(svg: &mut String, x: f64, y: f64, anchor: &str, size: u8, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{content}</text>");
}

/// Round numbers from below the least value to above the greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ticks {
    low: f64,
    high: f64,
    step: f64,
}

impl Ticks {
    /// About `most` steps at most; `None` without a finite value.
    pub(super) fn covering(values: impl Iterator<Item = f64>, most: f64) -> Option<Self> {
        let ends = values.filter(|value| value.is_finite()).map(|value| (value, value));
        let (least, greatest) = ends.reduce(|(low, high), (value, _)| (low.min(value), high.max(value)))?;
        let steps = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0];
        let step = steps.into_iter().find(|step| (greatest - least) / step <= most).unwrap_or(1000.0);
        let (low, high) = ((least / step).floor() * step, (greatest / step).ceil() * step);
        Some(Self { low, high: high.max(low + step), step })
    }

    pub(super) fn values(self) -> impl Iterator<Item = f64> {
        (0..=20).map(move |i| self.low + f64::from(i) * self.step).take_while(move |tick| *tick <= self.high + 1e-9)
    }

    /// 0 at the first tick, 1 at the last.
    pub(super) fn share(self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_hold_all_values() {
        let ticks = Ticks::covering([91.2, 99.7, f64::NAN].into_iter(), 10.0).expect("values");
        assert_eq!(ticks, Ticks { low: 91.0, high: 100.0, step: 1.0 });
        assert_eq!((ticks.share(91.0), ticks.share(100.0), ticks.values().count()), (0.0, 1.0, 10));
        assert_eq!(Ticks::covering([5.0].into_iter(), 10.0).map(|ticks| ticks.high), Some(5.5));
        assert_eq!(Ticks::covering([f64::NAN].into_iter(), 10.0), None);
    }
}
