//! The differing settings, versions and machines of runs, by key.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::report::run::Report;

/// A key whose value differs between runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingDifference {
    /// The key, dotted, as in `student.epochs`, `row."tau = 0.9".honest_ratio` or `environment.speed`.
    pub key: String,
    /// Its value in each run, if the run has one.
    pub values: Vec<Option<Value>>,
}

/// The groups of keys, in the order of output.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Group {
    Alone,
    Section,
    Row,
    Machine,
}

struct Settings {
    /// By group, name of the row and key.
    values: BTreeMap<(Group, String, String), Value>,
    rows: BTreeSet<String>,
}

/// Returns the settings that differ between the runs; a row's settings are compared among the runs that have the row.
pub(super) fn differences(reports: &[&Report]) -> Vec<SettingDifference> {
    let settings: Vec<Settings> = reports.iter().map(|report| Settings::from_report(report)).collect();
    let keys: BTreeSet<_> = settings.iter().flat_map(|settings| settings.values.keys()).collect();
    let difference = |key: &(Group, String, String)| {
        let (group, row, path) = key;
        let having = settings.iter().filter(|settings| *group != Group::Row || settings.rows.contains(row));
        let mut values = having.map(|settings| settings.values.get(key));
        let first = values.next()?;
        let differs = values.any(|value| value != first);
        let values = settings.iter().map(|settings| settings.values.get(key).cloned()).collect();
        differs.then(|| SettingDifference { key: path.clone(), values })
    };
    keys.into_iter().filter_map(difference).collect()
}

impl Settings {
    fn from_report(report: &Report) -> Self {
        let mut settings = Self { values: BTreeMap::new(), rows: BTreeSet::new() };
        if let Ok(Value::Object(sections)) = serde_json::to_value(&report.config) {
            for (name, value) in sections {
                match value {
                    Value::Array(rows) if name == "row" => rows.into_iter().for_each(|row| settings.add_row(row)),
                    value => {
                        let group = if value.is_object() { Group::Section } else { Group::Alone };
                        settings.add(group, "", name, value);
                    }
                }
            }
        }
        let machine = [
            ("environment", serde_json::to_value(&report.environment)),
            ("kinds_of_machine", serde_json::to_value(&report.kinds_of_machine)),
        ];
        for (name, value) in machine {
            settings.add(Group::Machine, "", name.to_owned(), value.unwrap_or_default());
        }
        if let Some(handwriting) = &report.handwriting {
            settings.add(Group::Section, "", "handwriting".to_owned(), Value::String(handwriting.clone()));
        }
        settings
    }

    /// Adds a row under its name; if two have the same name, the first one counts.
    fn add_row(&mut self, row: Value) {
        let Value::Object(mut keys) = row else { return };
        let Some(Value::String(name)) = keys.remove("name") else { return };
        if self.rows.insert(name.clone()) {
            self.add(Group::Row, &name, format!("row.{}", part(&name)), Value::Object(keys));
        }
    }

    /// Adds a value, or all values of a table.
    fn add(&mut self, group: Group, row: &str, path: String, value: Value) {
        let Value::Object(inner) = value else {
            self.values.insert((group, row.to_owned(), path), value);
            return;
        };
        for (name, value) in inner {
            self.add(group, row, format!("{path}.{}", part(&name)), value);
        }
    }
}

/// Returns a component of a dotted key, quoted if TOML requires it.
fn part(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if is_bare { name.to_owned() } else { Value::from(name).to_string() }
}
