//! Plots of the students, as SVG, and the same figures as tables.

mod by_epoch;
mod strip;
mod svg;
