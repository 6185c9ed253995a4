//! Layers as Burn modules, built on this crate's [operations](crate::ops). Initial values are passed in, not drawn
//! ([`init`](crate::init)).

mod batch_norm;
mod batch_norm_conv;
mod contrast_conv;
mod conv;
mod dense;
mod pooled_conv;
mod standardised;
mod unit_rows;
mod weight_norm;
mod weight_norm_conv;

pub use batch_norm::BatchNormDense;
pub use batch_norm_conv::BatchNormConvTransposed;
pub use contrast_conv::ContrastConv;
pub use conv::Conv;
pub use dense::Dense;
pub use pooled_conv::PooledConv;
pub use standardised::standardised;
pub use unit_rows::unit_rows;
pub use weight_norm::{WeightNorm, WeightNormDense};
pub use weight_norm_conv::{WeightNormConv, WeightNormConvTransposed};
