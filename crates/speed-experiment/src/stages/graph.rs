//! The stages of a run in the order of execution, before anything is computed.
//!
//! `run`, `--stage`, `--shard`, `--force`, `--dry-run`, `submit` and `show` walk or filter this list.

use std::path::Path;

use speed_accountant::QueryBatch;
use speed_core::Digest;

use super::KINDS;
use super::kind::{Kind, Node};
use super::units::StageUnits;
use crate::config::{Config, RowConfig};
use crate::error::ExperimentError;
use crate::store::RunStore;

pub(crate) struct Graph(Vec<Node>);

impl Graph {
    pub(crate) fn for_config(config: &Config) -> Self {
        let own = || (0..config.rows.len()).filter(|&row| config.labels_of(row) == row).map(Some);
        let mut nodes = Vec::new();
        // Consecutive kinds that are executed row by row.
        for kinds in KINDS.chunk_by(|one, next| one.is_per_row && next.is_per_row && !one.precedes_all_rows) {
            let rows: Vec<Option<usize>> = if kinds[0].is_per_row { own().collect() } else { vec![None] };
            for row in rows {
                let present = kinds.iter().filter(|kind| (kind.is_in)(config, row));
                nodes.extend(present.map(|&kind| Node { kind, name: name(kind, config, row), row }));
            }
        }
        Self(nodes)
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.0
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|node| &node.name)
    }

    /// Returns the names of all stages in order, each with whether it is done in the directory `run`, according to records.
    pub(crate) fn done_in(&self, run: &Path, config: &Config) -> impl Iterator<Item = (&str, bool)> {
        self.0.iter().enumerate().map(move |(at, node)| {
            let is_done = (node.kind.is_finished)(run, config, node, &self.0[..at]);
            (node.name.as_str(), is_done)
        })
    }

    /// Counts the units of the stage at a place in the directory `run`, by their records; `None` for a stage without units.
    pub(crate) fn found_units(&self, run: &Path, config: &Config, at: usize) -> Option<StageUnits> {
        let node = &self.0[at];
        node.kind.units.as_ref().and_then(|units| (units.found)(run, config, node, &self.0[..at]))
    }

    pub(crate) fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Node> {
        self.0.iter().filter(move |node| node.kind.name == kind)
    }

    /// Returns the stages of rows whose answers or checks are charged, with their rows and charges for `classes` classes.
    pub(crate) fn charged(
        &self,
        config: &Config,
        classes: usize,
    ) -> Result<Vec<(&Node, usize, QueryBatch)>, ExperimentError> {
        let rows = self.0.iter().filter_map(|node| Some((node, node.row?)));
        let noisy = rows.filter(|(_, row)| config.rows[*row].is_noisy());
        let mut charged = Vec::new();
        for (node, row) in noisy {
            charged.extend((node.kind.charge)(config, row, classes)?.map(|batch| (node, row, batch)));
        }
        Ok(charged)
    }

    pub(crate) fn check(&self, forced: &[String]) -> Result<(), ExperimentError> {
        match forced.iter().find(|stage| !self.0.iter().any(|node| node.is_called(stage))) {
            Some(stage) => Err(self.no_such("--force", stage)),
            None => Ok(()),
        }
    }

    pub(crate) fn up_to(&self, stage: &str) -> Result<&[Node], ExperimentError> {
        let last = self.0.iter().rposition(|node| node.is_called(stage));
        last.map(|last| &self.0[..=last]).ok_or_else(|| self.no_such("--stage", stage))
    }

    fn no_such(&self, option: &str, stage: &str) -> ExperimentError {
        let known: Vec<&str> = self.names().map(String::as_str).collect();
        let message = format_args!("no such stage; this config has {}", known.join(", "));
        ExperimentError::option(format_args!("{option} {stage}"), message)
    }
}

/// Returns the kind that a name on the command line means, if its stages have units.
pub(crate) fn kind_with_units(name: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|kind| kind.units.is_some() && kind.name == name)
}

fn name(kind: &Kind, config: &Config, row: Option<usize>) -> String {
    row.map_or_else(|| kind.name.to_owned(), |row| of_row(kind.name, config, &config.rows[row]))
}

/// Returns the name of a row's stage of a `kind`, which is unique as a directory.
fn of_row(kind: &str, config: &Config, row: &RowConfig) -> String {
    let names = config.rows.iter().map(|row| row.name.as_str());
    format!("{kind}-{}", folder_of_row(&row.name, names))
}

/// Returns the name of a row as a directory, unique among the names of all rows of the run: its letters and digits, and a
/// part of its digest if another row has the same or none are left.
pub(crate) fn folder_of_row<'a>(row: &str, mut rows: impl Iterator<Item = &'a str>) -> String {
    let own = slug(row);
    let is_shared = rows.any(|other| other != row && slug(other) == own);
    if is_shared || own.is_empty() {
        let digest = Digest::of(row).to_hex();
        let parts = [own.as_str(), &digest[..8]];
        return parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    }
    own
}

fn slug(name: &str) -> String {
    let mapped: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let parts: Vec<&str> = mapped.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

impl StageUnits {
    /// Counts the records of the units in the directory of a run, and changes nothing there. Nothing checks the records; a
    /// process checks a unit when it uses it.
    ///
    /// # Errors
    /// If the run's config cannot be read.
    pub fn of_run(folder: &Path) -> Result<Vec<Self>, ExperimentError> {
        let config = RunStore::config_in(folder)?;
        let graph = Graph::for_config(&config);
        Ok((0..graph.0.len()).filter_map(|at| graph.found_units(folder, &config, at)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn names(text: &str) -> String {
        let config = Config::load(&Source::new("test.toml", text)).expect("a config");
        Graph::for_config(&config).names().map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_are_those_of_finished_runs() {
        let rows = "[[row]]\nname = \"A b\"\naggregation = \"non-private\"\n[[row]]\nname = \"a-b\"\naggregation = \"trusted\"\n\
                    [[row]]\nname = \"tau = 1\"\naggregation = \"encrypted\"\n[[row]]\nname = \"ours\"\nlabels_of = \"tau = 1\"\n";
        // Python: hashlib.sha256(b"A b").hexdigest()[:8] and of b"a-b"
        let labelled = "votes queries aggregate-a-b-a760b0e1 aggregate-a-b-d44362d6 account-a-b-d44362d6 aggregate-tau-1 account-tau-1";
        assert_eq!(names(rows), format!("data teachers {labelled} student"));
        let without = "[data]\nsource = \"none\"\n[votes]\nsource = \"uniform\"\n[table]\nrepeats = 0\n";
        assert_eq!(names(&format!("{without}{rows}")), labelled);
    }

    #[test]
    fn maps_come_first_and_beliefs_before_students() {
        let rows = "[[row]]\nname = \"a\"\naggregation = \"trusted\"\n[[row]]\nname = \"b\"\naggregation = \"non-private\"\n\
                    [[row]]\nname = \"c\"\nlabels_of = \"a\"\n";
        let text = format!("[queries]\nselection = \"clusters\"\ngroups = true\nbeliefs = true\n{rows}");
        let expected = "data map teachers votes queries aggregate-a account-a aggregate-b beliefs student";
        assert_eq!(names(&text), expected);
        let config = Config::load(&Source::new("test.toml", text)).expect("a config");
        let graph = Graph::for_config(&config);
        let charged = graph.charged(&config, 10).expect("charges");
        let charged: Vec<_> =
            charged.iter().map(|(node, row, batch)| (node.name.as_str(), *row, batch.queries)).collect();
        assert_eq!(charged, [("aggregate-a", 0, 100)]);
        let last = graph.up_to("aggregate").expect("a kind").last().expect("a stage");
        assert_eq!(&*last.name, "aggregate-b");
        assert!(graph.up_to("labels").is_err() && kind_with_units("votes").is_none());
    }
}
