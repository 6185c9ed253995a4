//! Configs: a TOML document, merged with the documented defaults, becomes a [`RawConfig`], and its checks turn it into
//! a [`Config`]. Only a [`Config`] can run. One file contains each section and its checks.

mod data;
mod defaults;
mod document;
mod experiment;
mod fault;
mod features;
mod noise;
mod overrides;
mod patients;
mod privacy;
mod queries;
mod row;
mod settings;
mod sweep;
#[cfg(test)]
mod tests;
mod unknown;
mod votes;

pub use crate::report::{AggregationKind, PaperFigures};
pub(crate) use data::MAX_PIXELS;
pub use data::{ComputeDevice, DataConfig, DataSource, EnsembleConfig, PoolOrigin, TableConfig};
pub use document::Source;
pub use experiment::{Config, RawConfig};
pub use features::FeaturesConfig;
pub use noise::{Choice, NoiseConfig, QueryNoise};
pub use patients::PatientRule;
pub(crate) use patients::before_separator;
pub use privacy::PrivacyConfig;
pub use queries::{QueriesConfig, QuerySelection};
pub use row::{RawRow, RowConfig, RowStudent};
pub(crate) use settings::word;
pub(crate) use sweep::MAX_SETTINGS;
pub use sweep::{Setting, Sweep};
pub use votes::{VotesConfig, VotesSource};
