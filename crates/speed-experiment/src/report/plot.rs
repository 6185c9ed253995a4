//! SVG plots of sweeps, figures and students, and the same figures of students as tables.

mod chart;
mod students;

pub use chart::{Axis, Chart, Line, Point, Series};
