//! Configs: a raw TOML document, checked against the documented defaults, becomes a [`Config`]; only that runs.

mod check;
mod document;
mod error;
mod schema;
#[cfg(test)]
mod tests;

pub use document::{DEFAULTS, Source};
pub use error::ConfigError;
pub use schema::{
    AggregationKind, CircuitKind, ComputeDevice, Config, DataConfig, DataSource, EnsembleConfig, NoiseConfig,
    NoiseMechanism, NoiseSourceKind, PrivacyConfig, QueriesConfig, QuerySelection, RowConfig, RowStudent,
    SCHEMA_VERSION, TableConfig, VotesConfig, VotesSource,
};
