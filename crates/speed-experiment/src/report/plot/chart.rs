//! Charts of lines and points, drawn by plotters, for sweeps and for `speed figure`.

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::report::statistics::distinct;

const SIZE: (u32, u32) = (800, 480);
pub(super) const FONT: &str = "sans-serif";
/// Maximum width of a letter of size 13, in pixels.
pub(super) const LETTER: u32 = 8;

/// Colours that are distinguishable with any colour vision (Okabe and Ito); black is first.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Height of an entry of the legend in pixels.
const ENTRY: u32 = 18;

const FAINT: RGBColor = RGBColor(176, 176, 176);
const ASYMPTOTE: Stroke = Stroke { colour: RGBColor(110, 110, 110), width: 1, is_dashed: true };
/// Relative difference below which values count as equal, because sums in different orders round differently.
const SAME: f64 = 1e-9;

/// A chart of lines and points over two axes.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Its title.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// A horizontal line that the others approach, with its name.
    pub asymptote: Option<(f64, String)>,
}

/// An axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// Its title, with the unit.
    pub title: String,
    /// True if equal distances are equal ratios; values that are not positive are left out.
    pub logarithmic: bool,
    /// Names in place of the numbers 0, 1, 2, ...
    pub names: Vec<String>,
}

/// A sequence of points.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend; series with the same name have the same colour.
    pub name: String,
    /// The points, joined in this order.
    pub points: Vec<Point>,
    /// The line that joins the points.
    pub line: Line,
}

/// The line of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// With a mark at each point, for few points.
    Marked,
    /// Without marks.
    Plain,
    /// Thin and grey, in the background.
    Faint,
}

struct Stroke {
    colour: RGBColor,
    width: u32,
    is_dashed: bool,
}

/// A point with an optional spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Position along the horizontal axis.
    pub x: f64,
    /// Position along the vertical axis.
    pub y: f64,
    /// Half the length of its vertical bar, if any.
    pub spread: Option<f64>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

impl Chart {
    /// Draws the chart as an SVG; `None` without points.
    pub fn to_svg(&self) -> Option<String> {
        let mut svg = String::new();
        {
            let entries = self.legend();
            // Names never overlap and are never cut: long ones have a line each, and the picture is wide enough.
            let longest = entries.iter().map(|(name, _)| name.chars().count()).max()?;
            let width = 52 + LETTER * u32::try_from(longest).ok()?;
            let columns = if width <= SIZE.0 / 2 { 2 } else { 1 };
            let below = ENTRY * u32::try_from(entries.len().div_ceil(columns)).ok()? + 14;
            let area = SVGBackend::with_string(&mut svg, (SIZE.0.max(width), SIZE.1 + below)).into_drawing_area();
            area.fill(&WHITE).ok()?;
            let (above, legend) = area.split_vertically(SIZE.1);
            self.draw(&above)?;
            draw_legend(&legend, &entries, columns)?;
            area.present().ok()?;
        }
        Some(named(&svg, &self.title))
    }

    fn draw(&self, area: &Area<'_>) -> Option<()> {
        let points = self.drawn();
        let limit = self.asymptote.iter().map(|(value, _)| [*value; 2]).filter(|[value, _]| self.y.has(*value));
        let x = self.x.range(points.iter().flatten().map(|point| [point.x, point.x]))?;
        let y = self.y.range(points.iter().flatten().map(|point| [point.low(&self.y), point.high()]).chain(limit))?;
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, (FONT, 18))
            .margin(14)
            .x_label_area_size(52)
            .y_label_area_size(64)
            .build_cartesian_2d(self.x.coordinate(x), self.y.coordinate(y))
            .ok()?;
        let (along, up) = (|value: &f64| self.x.label(*value), |value: &f64| self.y.label(*value));
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT).bold_line_style(RGBColor(226, 226, 226));
        mesh.x_desc(&self.x.title).y_desc(&self.y.title).axis_desc_style((FONT, 15)).label_style((FONT, 13));
        mesh.x_label_formatter(&along).y_label_formatter(&up);
        mesh.draw().ok()?;
        if let Some((value, _)) = &self.asymptote {
            let line = [(x.0, self.y.place(*value)), (x.1, self.y.place(*value))];
            let style = ASYMPTOTE.colour.stroke_width(ASYMPTOTE.width);
            chart.draw_series(DashedLineSeries::new(line, 4, 3, style)).ok()?;
        }
        for (series, points) in self.series.iter().zip(&points) {
            let Stroke { colour, width, is_dashed } = self.stroke(series);
            let place = |point: &Point| (self.x.place(point.x), self.y.place(point.y));
            let line = points.iter().map(place);
            let style = colour.stroke_width(width);
            match is_dashed {
                true => chart.draw_series(DashedLineSeries::new(line, 6, 4, style)).ok()?,
                false => chart.draw_series(LineSeries::new(line, style)).ok()?,
            };
            if series.line == Line::Marked {
                chart.draw_series(points.iter().map(|point| Circle::new(place(point), 4, colour.filled()))).ok()?;
            }
            let bars = points.iter().filter(|point| point.spread.is_some()).map(|point| {
                let x = self.x.place(point.x);
                let ends = [point.low(&self.y), point.high()].map(|y| (x, self.y.place(y)));
                PathElement::new(ends, colour.stroke_width(1))
            });
            chart.draw_series(bars).ok()?;
        }
        Some(())
    }

    /// Returns the name and stroke of each series, and of the asymptote.
    fn legend(&self) -> Vec<(&str, Stroke)> {
        let of_name = |name| self.series.iter().find(|series| series.name == name).map(|series| self.stroke(series));
        let series = self.names().into_iter().filter_map(|name| Some((name, of_name(name)?)));
        series.chain(self.asymptote.iter().map(|(_, name)| (name.as_str(), ASYMPTOTE))).collect()
    }

    fn names(&self) -> Vec<&str> {
        distinct(self.series.iter().map(|series| series.name.as_str()))
    }

    /// Returns the stroke of a series: series with the same name share it; after the last colour, the colours repeat
    /// with dashes.
    fn stroke(&self, series: &Series) -> Stroke {
        if series.line == Line::Faint {
            return Stroke { colour: FAINT, width: 1, is_dashed: false };
        }
        let is_faint = |name: &&str| self.series.iter().any(|other| other.name == *name && other.line == Line::Faint);
        let names = self.names().into_iter().filter(|name| !is_faint(name)).collect::<Vec<_>>();
        let place = names.iter().position(|name| *name == series.name).unwrap_or_default();
        Stroke { colour: COLOURS[place % COLOURS.len()], width: 2, is_dashed: place / COLOURS.len() % 2 == 1 }
    }

    /// Returns the points of each series that the axes can show.
    fn drawn(&self) -> Vec<Vec<Point>> {
        let is_there = |point: &&Point| self.x.has(point.x) && self.y.has(point.y);
        self.series.iter().map(|series| series.points.iter().filter(is_there).copied().collect()).collect()
    }
}

/// Draws the legend below the chart, where it hides no point, in one or two columns.
fn draw_legend(area: &Area<'_>, entries: &[(&str, Stroke)], columns: usize) -> Option<()> {
    let half = i32::try_from(SIZE.0 / 2).ok()?;
    for (place, (name, Stroke { colour, width, is_dashed })) in entries.iter().enumerate() {
        let (column, row) = (i32::try_from(place % columns).ok()?, i32::try_from(place / columns).ok()?);
        let (x, y) = (24 + column * (half - 24), 8 + row * i32::try_from(ENTRY).ok()?);
        let lines = if *is_dashed { vec![(x, x + 8), (x + 12, x + 20)] } else { vec![(x, x + 20)] };
        for (from, to) in lines {
            area.draw(&PathElement::new([(from, y), (to, y)], colour.stroke_width(*width))).ok()?;
        }
        area.draw_text(name, &(FONT, 13).into_font().color(&BLACK), (x + 28, y - 7)).ok()?;
    }
    Some(())
}

impl Point {
    /// Returns the lower end of its bar, limited to the axis.
    fn low(&self, axis: &Axis) -> f64 {
        let low = self.y - self.spread.unwrap_or(0.0);
        if axis.has(low) { low } else { self.y }
    }

    fn high(&self) -> f64 {
        self.y + self.spread.unwrap_or(0.0)
    }
}

impl Axis {
    /// Creates an axis of numbers.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// Returns the same axis with equal distances for equal ratios.
    #[must_use]
    pub fn logarithmic(self) -> Self {
        Self { logarithmic: true, ..self }
    }

    fn has(&self, value: f64) -> bool {
        value.is_finite() && (!self.logarithmic || value > 0.0)
    }

    fn place(&self, value: f64) -> f64 {
        if self.logarithmic { value.log10() } else { value }
    }

    /// Returns the ends of the axis, with a margin.
    fn range(&self, values: impl Iterator<Item = [f64; 2]>) -> Option<(f64, f64)> {
        let values = values.map(|ends| ends.map(|end| self.place(end)));
        let [low, high] = values.reduce(|[low, high], [from, to]| [low.min(from), high.max(to)])?;
        // A difference of logarithms is already relative.
        let scale = if self.logarithmic { 1.0 } else { low.abs().max(high.abs()) };
        let is_one = high - low <= SAME * scale;
        let room = if is_one { 0.5 } else { 0.06 * (high - low) };
        (high - low).is_finite().then_some((low - room, high + room))
    }

    /// Returns the range from `low` to `high`, labelled at round numbers.
    fn coordinate(&self, (low, high): (f64, f64)) -> Ticked {
        let range = RangedCoordf64::from(low..high);
        let ticks = if self.logarithmic { round_logarithms(low, high) } else { range.key_points(8) };
        Ticked { range, ticks }
    }

    fn label(&self, place: f64) -> String {
        let whole = (place - place.round()).abs() < 1e-6;
        if !self.names.is_empty() {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the places of a few names")]
            let name = self.names.get(place.round().max(0.0) as usize).filter(|_| whole && place > -0.5);
            return name.cloned().unwrap_or_default();
        }
        let value = if self.logarithmic { 10f64.powf(place) } else { place };
        if value != 0.0 && value.abs() < 1e-3 {
            // The value is rounded, because a position on a logarithmic axis is inexact.
            return format!("{:e}", format!("{value:.2e}").parse().unwrap_or(value));
        }
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

struct Ticked {
    range: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, limit: (i32, i32)) -> i32 {
        self.range.map(place, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Light lines between labels are not drawn.
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.range.range()
    }
}

/// Returns the logarithms of round numbers: decades or, for a narrow range, the labels of a linear axis.
fn round_logarithms(low: f64, high: f64) -> Vec<f64> {
    let (places, ends) = (decades(low, high), [low, high].map(|place| 10f64.powf(place)));
    // An infinite end has no linear axis.
    if places.len() > 1 || !ends[1].is_finite() {
        return places;
    }
    let even = RangedCoordf64::from(ends[0]..ends[1]).key_points(6);
    even.into_iter().map(f64::log10).filter(|place| (low..=high).contains(place)).collect()
}

/// Returns the logarithms of decades, with multiples in between if there are few decades.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let steps: &[f64] = match high - low {
        ..1.2 => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        ..4.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    #[expect(clippy::cast_possible_truncation, reason = "exponents of a number")]
    let exponents = (low.floor() as i32)..=(high.ceil() as i32);
    let places = exponents.flat_map(|exponent| steps.iter().map(move |step| f64::from(exponent) + step.log10()));
    places.filter(|place| (low..=high).contains(place)).collect()
}

/// Adds a name for screen readers to a drawing.
pub(super) fn named(svg: &str, title: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    svg.replacen("<svg ", &format!("<svg role=\"img\" aria-label=\"{title}\" "), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart() -> Chart {
        let point = |x: f64, y: f64| Point { x, y, spread: Some(0.5) };
        Chart {
            title: "a < b & \"c\"".into(),
            x: Axis::new("epsilon").logarithmic(),
            y: Axis::new("right labels, %"),
            series: vec![
                Series {
                    name: "tau <1>".into(),
                    points: vec![point(0.1, 90.0), point(10.0, 95.0)],
                    line: Line::Marked,
                },
                Series {
                    name: "none".into(),
                    points: vec![point(-1.0, 90.0), point(f64::NAN, 9.0)],
                    line: Line::Marked,
                },
            ],
            asymptote: Some((92.0, "limit".into())),
        }
    }

    #[test]
    fn a_chart_is_the_same_bytes_escapes_what_users_chose_and_needs_a_point() {
        let svg = chart().to_svg().expect("points");
        assert_eq!(chart().to_svg().expect("points"), svg);
        assert!(svg.contains("aria-label=\"a &lt; b &amp; &quot;c&quot;\""), "{svg}");
        assert!(svg.contains("tau &lt;1&gt;") && !svg.contains("<1>"), "{svg}");
        // The axis can show only two of the points.
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        let mut empty = chart();
        empty.series.remove(0);
        empty.asymptote = None;
        assert_eq!(empty.to_svg(), None);
        let mut one = chart();
        one.series[0].points.truncate(1);
        one.series[0].points[0].spread = None;
        one.asymptote = None;
        assert!(one.to_svg().is_some(), "one point has an axis too");
    }

    #[test]
    fn long_names_of_a_legend_neither_overlap_nor_are_cut() {
        // A row's name may have 200 letters.
        for (length, width, columns) in [(1, 800, 2), (43, 800, 2), (44, 800, 1), (200, 1652, 1)] {
            let mut chart = chart();
            chart.series[0].name = "w".repeat(length);
            let svg = chart.to_svg().expect("points");
            assert!(svg.contains(&format!("width=\"{width}\"")) && svg.contains(&"w".repeat(length)), "{svg}");
            let height = 480 + 18 * 3_usize.div_ceil(columns) + 14;
            assert!(svg.contains(&format!("height=\"{height}\"")), "{svg}");
        }
    }

    #[test]
    fn a_narrow_axis_has_labels_too() {
        let axis = Axis::new("epsilon").logarithmic();
        let labels = |low: f64, high: f64| -> Vec<String> {
            let ticks = axis.coordinate((low.log10(), high.log10())).ticks;
            ticks.into_iter().map(|place| axis.label(place)).collect()
        };
        assert_eq!(labels(0.9, 11.0), ["1", "1.5", "2", "3", "5", "7", "10"]);
        assert_eq!(labels(6.07, 6.26), ["6.1", "6.15", "6.2"]);
        assert!(labels(0.999, 1.001).len() > 1);
        assert!(axis.coordinate((308.2, 308.26)).ticks.is_empty(), "up to infinity");
    }

    #[test]
    fn values_that_differ_by_rounding_are_one() {
        for axis in [Axis::new("right labels, %"), Axis::new("epsilon").logarithmic()] {
            for alike in [[99.033_333_333_333_33, 99.033_333_333_333_35], [1.0, 1.0 + f64::EPSILON]] {
                let ticks = axis.coordinate(axis.range([alike].into_iter()).expect("a range")).ticks;
                let labels: std::collections::BTreeSet<String> = ticks.iter().map(|place| axis.label(*place)).collect();
                assert!(ticks.len() > 1 && labels.len() == ticks.len(), "{labels:?} for {alike:?}");
            }
        }
    }
}
