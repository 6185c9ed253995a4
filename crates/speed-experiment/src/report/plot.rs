//! SVG plots of sweeps, figures and students, and the same figures of students as tables.

mod by_epoch;
mod chart;
mod strip;

pub use chart::{Axis, Chart, Line, Point, Series};
