//! The settings that a sweep compares: `[sweep]`.

use std::collections::HashMap;

use toml::Value;

use super::defaults::defaults;
use super::document::{SWEEP, Source};
use super::experiment::Config;
use super::overrides::{self, Override};
use super::unknown::unknown_of;
use crate::error::ExperimentError;

/// The largest number of settings; each setting is a run.
pub(crate) const MAX_SETTINGS: usize = 1000;

/// Keys that cannot be swept: they determine the place of the results and which of them may be published.
const NOT_SWEPT: [&str; 2] = ["name", "noise.source"];

/// The honest ratio of all rows with noise.
const TAU: &str = "row.noisy.honest_ratio";

const SHORT: [(&str, &str); 14] = [
    ("mechanism", "noise.mechanism"),
    ("gamma", "noise.gamma"),
    ("sigma", "noise.sigma"),
    ("coins", "noise.coins"),
    ("placement", "row.noisy.placement"),
    ("threshold", "row.noisy.threshold"),
    ("tau", TAU),
    ("queries", "queries.count"),
    ("teachers", "ensemble.teachers"),
    ("delta", "privacy.delta"),
    ("method", "student.method"),
    ("epochs", "student.epochs"),
    ("repeats", "table.repeats"),
    ("seed", "seed"),
];

/// A config for every combination of the values of some keys; a config without `[sweep]` is a sweep of one run, without keys.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The keys as written, in alphabetical order.
    pub keys: Vec<String>,
    /// The values of each key, as TOML.
    pub values: Vec<Vec<String>>,
    /// One setting for every combination of values; the last key changes fastest.
    pub settings: Vec<Setting>,
}

/// One combination of values of a sweep.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The value of each key, in a readable form.
    pub values: Vec<String>,
    /// The config of its run.
    pub config: Config,
}

struct Swept {
    name: String,
    key: String,
    values: Vec<Value>,
}

impl Sweep {
    /// Reads and checks a config, or the config of every setting.
    ///
    /// # Errors
    /// If a key has no values or a repeated value, if there are too many combinations, or if the config of a setting
    /// cannot run.
    pub fn load(source: &Source) -> Result<Self, ExperimentError> {
        let Some(table) = source.sweep()? else {
            let settings = vec![Setting { values: Vec::new(), config: Config::load(source)? }];
            return Ok(Self { keys: Vec::new(), values: Vec::new(), settings });
        };
        let mut swept = Vec::new();
        table.iter().try_for_each(|(name, value)| flatten(source, name, value, &mut swept))?;
        let count = swept.iter().try_fold(1usize, |count, key| count.checked_mul(key.values.len()));
        if swept.is_empty() || count.is_none_or(|count| count > MAX_SETTINGS) {
            let found =
                count.filter(|_| !swept.is_empty()).map_or_else(|| "none".to_owned(), |count| count.to_string());
            return Err(source.error(SWEEP, format!("found {found} settings, expected 1 to {MAX_SETTINGS}")));
        }
        let settings: Vec<Setting> =
            (0..count.unwrap_or_default()).map(|index| setting(source, &swept, index)).collect::<Result<_, _>>()?;
        let mut runs = HashMap::new();
        for Setting { values, config } in &settings {
            if let Some(other) = runs.insert(config.to_toml(), values) {
                let message = format!("{} and {} are the same run", other.join(", "), values.join(", "));
                return Err(source.error(SWEEP, message));
            }
        }
        let values = swept.iter().map(|key| key.values.iter().map(ToString::to_string).collect()).collect();
        Ok(Self { keys: swept.into_iter().map(|key| key.name).collect(), values, settings })
    }

    /// Returns whether the config has no `[sweep]`.
    pub fn is_plain(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the config of the first setting.
    pub fn first(&self) -> &Config {
        &self.settings[0].config
    }

    pub(crate) fn configs(&self) -> impl Iterator<Item = &Config> {
        self.settings.iter().map(|setting| &setting.config)
    }
}

/// Adds the keys of a value of the table, which may be written dotted, quoted or as nested tables.
fn flatten(source: &Source, name: &str, value: &Value, found: &mut Vec<Swept>) -> Result<(), ExperimentError> {
    let refuse = |message: &str| Err(source.error(&format!("{SWEEP}.{name}"), message));
    match value {
        Value::Table(inner) => {
            inner.iter().try_for_each(|(key, value)| flatten(source, &format!("{name}.{key}"), value, found))
        }
        Value::Array(values) if values.is_empty() => refuse("has no values"),
        Value::Array(values) => {
            if (1..values.len()).any(|index| values[..index].contains(&values[index])) {
                return refuse("has a repeated value");
            }
            let key = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, key)| key);
            // A dotted key is looked up in the merged document, like a key of `--set`.
            if key == name && !name.contains('.') && !defaults().contains_key(name) {
                let known: Vec<&str> = SHORT.iter().map(|(short, _)| *short).collect();
                return refuse(&unknown_of(&known, name));
            }
            if NOT_SWEPT.contains(&key) {
                return refuse("cannot be swept: use a separate config for each value");
            }
            if let Some(other) = found.iter().find(|other| other.key == key) {
                return refuse(&format!("is the same key as {}", other.name));
            }
            if let Some(other) = found.iter().find(|other| overrides::overlap(&other.key, key)) {
                return refuse(&format!(
                    "sets the same key of a row as {}: the table would show a value that no row has",
                    other.name
                ));
            }
            found.push(Swept { name: name.to_owned(), key: key.to_owned(), values: values.clone() });
            Ok(())
        }
        _ => refuse("expected a list of values, for example gamma = [0.05, 0.1]"),
    }
}

/// Returns the setting at an index; the last key changes fastest.
fn setting(source: &Source, swept: &[Swept], mut index: usize) -> Result<Setting, ExperimentError> {
    let mut chosen = vec![0; swept.len()];
    for (place, key) in swept.iter().enumerate().rev() {
        chosen[place] = index % key.values.len();
        index /= key.values.len();
    }
    let mut source = source.clone();
    let mut values = Vec::new();
    for (key, place) in swept.iter().zip(chosen) {
        let value = &key.values[place];
        let shown = match value {
            Value::String(text) => text.clone(),
            Value::Float(number) if *number != 0.0 && number.abs() < 1e-3 => format!("{number:e}"),
            other => other.to_string(),
        };
        let change = Override::new(format!("[{SWEEP}], {} = {value}", key.name), &key.key, value.to_string());
        source = source.with(change);
        values.push(shown);
    }
    Ok(Setting { values, config: Config::load(&source)? })
}
