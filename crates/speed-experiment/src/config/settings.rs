//! The settings of a config as its report shows them.

use crate::report::{Document, RunSettings, VotesOrigin};
use serde::Serialize;
use speed_core::NoisePlacement;
use speed_mechanism::{Mechanism, MechanismKind};

use super::data::DataSource;
use super::experiment::RawConfig;
use super::noise::RawNoise;
use super::queries::RawQueries;
use super::votes::VotesSourceKind;

impl From<&RawConfig> for RunSettings {
    fn from(config: &RawConfig) -> Self {
        let votes = match config.votes.source {
            VotesSourceKind::Truth => VotesOrigin::TrueLabels,
            VotesSourceKind::Teachers => VotesOrigin::Teachers,
            source => VotesOrigin::Other(word(&source)),
        };
        Self {
            images: word(&config.data.source),
            dataset: config.data.source.published().map(str::to_owned),
            has_images: config.data.source != DataSource::None,
            votes,
            queries: config.queries.count,
            selection: selection(&config.queries),
            noise: noise(&config.noise, config.ensemble.teachers),
            delta: config.privacy.delta,
            budget: Some(config.privacy.budget).filter(|budget| *budget > 0.0),
            repeats: config.table.repeats,
            method: config.student.method.title().to_owned(),
            seed: config.seed,
            config: Document::from_value(config).expect("a config holds only tables, numbers, strings and flags"),
            toml: config.to_toml(),
        }
    }
}

/// Returns the name of a choice in a config.
fn word(choice: &impl Serialize) -> String {
    serde_json::to_value(choice).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Returns a short description of the choice of the queries.
fn selection(queries: &RawQueries) -> String {
    let groups = if queries.groups { ", groups of images" } else { "" };
    format!("{}{groups}", word(&queries.selection))
}

/// Returns a short description of the noise in the config of an ensemble of `teachers`.
fn noise(noise: &RawNoise, teachers: usize) -> String {
    let kind = noise.mechanism;
    let width = match noise.distribution(teachers).map(|(_, noise)| noise.mechanism()) {
        Ok(Mechanism::Binomial { coins }) => {
            format!("coins {} a teacher (deviation {:.1})", coins.of_teacher(teachers), coins.deviation())
        }
        _ => format!("{} {}", kind.parameter(), if kind.is_inverse() { noise.gamma } else { noise.sigma }),
    };
    let kind = if kind == MechanismKind::default() { String::new() } else { format!("{kind}, ") };
    let place = if noise.placement == NoisePlacement::Central { ", added by the server" } else { "" };
    let threshold = if noise.threshold == 0 { String::new() } else { format!(", threshold {}", noise.threshold) };
    format!("{kind}{width}{place}{threshold}")
}
