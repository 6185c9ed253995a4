//! Plots, as SVG: of sweeps and figures, and of the students, with the same figures as tables.

mod by_epoch;
mod chart;
mod strip;

pub use chart::{Axis, Chart, Line, Point, Series};
