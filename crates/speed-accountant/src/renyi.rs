//! Rényi differential privacy of the noisy argmax with Gaussian noise and Skellam noise, its integer counterpart.

mod curve;
mod gaussian;
mod gnmax;
mod skellam;

pub(crate) use curve::RenyiCurve;
pub use gaussian::gaussian_rdp;
pub use gnmax::gnmax_rdp;
pub(crate) use gnmax::{theorem_6, theorem_6_at};
pub(crate) use skellam::{SkellamCurve, is_wide};
