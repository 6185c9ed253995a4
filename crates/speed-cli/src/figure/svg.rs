//! Line drawings as SVG.

use std::fmt::Write as _;

use super::Figure;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 62.0;

/// Stroke, width and dashes of each curve: told apart without colour.
const STYLES: [(&str, f64, &str); 3] = [("#8c8c8c", 2.2, "7 4"), ("#111111", 2.6, ""), ("#444444", 1.6, "2 3")];

pub(super) fn draw(figure: &Figure) -> String {
    let axes = Axes::of(figure);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#111\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    text(&mut svg, WIDTH / 2.0, 22.0, "middle", "15", &figure.title);
    axes.draw(&mut svg, figure);
    if let Some((value, name)) = &figure.asymptote {
        let y = axes.y(*value);
        line(&mut svg, (LEFT, y), (WIDTH - RIGHT, y), "#666666", "1.2", "3 3");
        text(&mut svg, LEFT + 8.0, y - 5.0, "start", "12", name);
    }
    for (curve, (stroke, width, dashes)) in figure.curves.iter().zip(STYLES) {
        let points: Vec<String> =
            curve.points.iter().map(|&(x, y)| format!("{:.1},{:.1}", axes.x(x), axes.y(y))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
             stroke-dasharray=\"{dashes}\" stroke-linejoin=\"round\"/>",
            points.join(" ")
        );
    }
    legend(&mut svg, figure);
    svg.push_str("</svg>\n");
    svg
}

struct Axes {
    x: (f64, f64),
    top: f64,
    logarithmic: bool,
}

impl Axes {
    fn of(figure: &Figure) -> Self {
        let points = || figure.curves.iter().flat_map(|curve| &curve.points);
        let low = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
        let high = points().map(|point| point.0).fold(f64::NEG_INFINITY, f64::max);
        let most = points().map(|point| point.1).fold(0.0, f64::max);
        // Room for the legend.
        Self { x: (low, high), top: (most * 1.18).max(1e-6), logarithmic: figure.x_is_logarithmic }
    }

    fn x(&self, x: f64) -> f64 {
        let (low, high) = self.x;
        let share = if self.logarithmic { (x / low).ln() / (high / low).ln() } else { (x - low) / (high - low) };
        LEFT + share * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - y / self.top * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String, figure: &Figure) {
        let bottom = HEIGHT - BOTTOM;
        for value in steps(self.top) {
            let y = self.y(value);
            line(svg, (LEFT, y), (WIDTH - RIGHT, y), "#e2e2e2", "1", "");
            text(svg, LEFT - 8.0, y + 4.0, "end", "13", &label(value));
        }
        let ticks: Vec<f64> = if self.logarithmic {
            (-6..=6).map(|power| 10f64.powi(power)).collect()
        } else {
            (0..=10).map(|i| f64::from(i) / 10.0).collect()
        };
        for value in ticks.into_iter().filter(|v| *v >= self.x.0 * 0.999 && *v <= self.x.1 * 1.001) {
            let x = self.x(value);
            line(svg, (x, TOP), (x, bottom), "#e2e2e2", "1", "");
            text(svg, x, bottom + 18.0, "middle", "13", &label(value));
        }
        line(svg, (LEFT, bottom), (WIDTH - RIGHT, bottom), "#111", "1.2", "");
        line(svg, (LEFT, TOP), (LEFT, bottom), "#111", "1.2", "");
        text(svg, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16.0, "middle", "14", &figure.x_label);
        let middle = (TOP + bottom) / 2.0;
        let _ = writeln!(
            svg,
            "<text x=\"20\" y=\"{middle}\" text-anchor=\"middle\" font-size=\"14\" transform=\"rotate(-90 20 {middle})\">\
             epsilon of all queries</text>"
        );
    }
}

fn legend(svg: &mut String, figure: &Figure) {
    let (x, mut y) = (LEFT + 14.0, TOP + 12.0);
    for (curve, (stroke, width, dashes)) in figure.curves.iter().zip(STYLES) {
        line(svg, (x, y), (x + 38.0, y), stroke, &width.to_string(), dashes);
        text(svg, x + 46.0, y + 4.0, "start", "13", &curve.name);
        y += 19.0;
    }
}

/// Lists round values from 0 to `top`: about six.
fn steps(top: f64) -> Vec<f64> {
    let rough = top / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= rough).unwrap_or(power);
    (0..20).map(|i| f64::from(i) * step).take_while(|value| *value <= top).collect()
}

fn label(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn line(svg: &mut String, from: (f64, f64), to: (f64, f64), stroke: &str, width: &str, dashes: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{stroke}\" stroke-width=\"{width}\" \
         stroke-dasharray=\"{dashes}\"/>",
        from.0, from.1, to.0, to.1
    );
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, size: &str, content: &str) {
    let content = content.replace('&', "&amp;").replace('<', "&lt;");
    let _ =
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\">{content}</text>");
}
