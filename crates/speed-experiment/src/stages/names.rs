//! The stages of a config by name, before anything is computed. Dry runs list them, `--force` selects from them, and a
//! run has no others, because a stage is created from one of these names.

use std::fmt;
use std::ops::Deref;

use speed_core::Digest;
use speed_student::StudentMethod;

use crate::config::{Config, ConfigError, DataSource, RowConfig, VotesSource};
use crate::store::{Fingerprint, is_called};

/// The kind of the stages that label queries, which is the prefix of their names.
const LABELLING: &str = "aggregate";
/// The kind of the stages that train students.
pub(crate) const STUDENT: &str = "student";
/// The kind of the stages that account for labels.
const ACCOUNT: &str = "account";

/// The name of a stage and of its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StageName(String);

impl Deref for StageName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for StageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The stages of a config, in the order of execution.
pub(crate) struct StageNames {
    /// The record of the images, if there are any.
    pub(crate) data: Option<StageName>,
    /// The training of the teachers, if they give the votes.
    pub(crate) teachers: Option<StageName>,
    /// The votes.
    pub(crate) votes: StageName,
    /// The choice of the queries.
    pub(crate) queries: StageName,
    /// The stages of each row with its own labels.
    pub(crate) rows: Vec<RowStages>,
    /// The students, if any are trained.
    pub(crate) students: Option<StudentNames>,
}

/// The stages of one row with its own labels.
pub(crate) struct RowStages {
    /// Its place in the config.
    pub(crate) row: usize,
    /// The labelling of its queries.
    pub(crate) labelling: StageName,
    /// The accounting for its labels, if noise is added.
    pub(crate) account: Option<StageName>,
}

/// The names of students: one stage for each distinct set of labels and repeat. Names contain the labels' hash, so only
/// the common part is known before the labels.
pub(crate) struct StudentNames(StageName);

impl StageNames {
    /// Lists the stages of `config`.
    pub(crate) fn of(config: &Config) -> Self {
        let name = |name: &str| StageName(name.to_owned());
        let own = (0..config.rows.len()).filter(|&row| config.labels_of(row) == row);
        let rows = own.map(|index| {
            let row = &config.rows[index];
            RowStages {
                row: index,
                labelling: of_row(LABELLING, config, row),
                account: row.is_noisy().then(|| of_row(ACCOUNT, config, row)),
            }
        });
        Self {
            data: (config.data.source != DataSource::None).then(|| name("data")),
            teachers: (config.votes == VotesSource::Teachers).then(|| name("teachers")),
            votes: name("votes"),
            queries: name("queries"),
            rows: rows.collect(),
            students: (config.table.repeats > 0).then(|| StudentNames(name(STUDENT))),
        }
    }

    /// Returns all names in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &StageName> {
        let before = self.data.iter().chain(&self.teachers).chain([&self.votes, &self.queries]);
        let rows = self.rows.iter().flat_map(|row| std::iter::once(&row.labelling).chain(&row.account));
        before.chain(rows).chain(self.students.iter().map(|students| &students.0))
    }

    /// Checks that every name in `--force` is a stage.
    ///
    /// # Errors
    /// If one is not; the error lists the valid names.
    pub(crate) fn check(&self, forced: &[String]) -> Result<(), ConfigError> {
        for stage in forced {
            if !self.all().any(|name| is_called(name, stage)) {
                return Err(self.no_such("--force", stage));
            }
        }
        Ok(())
    }

    /// Returns the last stage with the name in `--stage`.
    ///
    /// # Errors
    /// If there is none; the error lists the valid names.
    pub(crate) fn last_called(&self, stage: &str) -> Result<&StageName, ConfigError> {
        let called = self.all().filter(|name| is_called(name, stage));
        called.last().ok_or_else(|| self.no_such("--stage", stage))
    }

    fn no_such(&self, option: &str, stage: &str) -> ConfigError {
        let known: Vec<&str> = self.all().map(|name| &**name).collect();
        ConfigError::Key {
            place: "command line".into(),
            key: format!("{option} {stage}"),
            message: format!("no such stage; this config has {}", known.join(", ")),
        }
    }
}

impl StudentNames {
    /// Returns their common part.
    pub(crate) fn kind(&self) -> &StageName {
        &self.0
    }

    /// Returns the name of one student.
    pub(crate) fn of(&self, method: StudentMethod, labels: Fingerprint, repeat: usize) -> StageName {
        // The paper's students have no method in their names, because they were once the only ones.
        let method = if method == StudentMethod::GAN { String::new() } else { format!("{}-", method.name()) };
        StageName(format!("{}-{method}{}-{repeat}", self.0, labels.short()))
    }
}

/// Returns the name of a row's stage of a `kind`, which is unique as a folder: the row's name in letters that every
/// file system allows, and a part of its digest if another row has the same letters or no letters are left.
fn of_row(kind: &str, config: &Config, row: &RowConfig) -> StageName {
    let own = slug(&row.name);
    let is_shared = config.rows.iter().any(|other| other.name != row.name && slug(&other.name) == own);
    if is_shared || own.is_empty() {
        let digest = Digest::of(&row.name).to_hex();
        let parts = [kind, &own, &digest[..8]];
        return StageName(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-"));
    }
    StageName(format!("{kind}-{own}"))
}

fn slug(name: &str) -> String {
    let mapped: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let parts: Vec<&str> = mapped.split('-').filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    fn names(text: &str) -> Vec<String> {
        let config = Config::load(&Source::new("test.toml", text)).expect("a config");
        StageNames::of(&config).all().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_those_of_finished_runs() {
        let rows = "[[row]]\nname = \"A b\"\naggregation = \"non-private\"\n[[row]]\nname = \"a-b\"\naggregation = \"trusted\"\n\
                    [[row]]\nname = \"tau = 1\"\naggregation = \"encrypted\"\n[[row]]\nname = \"ours\"\nlabels_of = \"tau = 1\"\n";
        let found = names(rows);
        // Python: hashlib.sha256(b"A b").hexdigest()[:8] and of b"a-b"
        let expected = [
            "data",
            "teachers",
            "votes",
            "queries",
            "aggregate-a-b-a760b0e1",
            "aggregate-a-b-d44362d6",
            "account-a-b-d44362d6",
            "aggregate-tau-1",
            "account-tau-1",
            "student",
        ];
        assert_eq!(found, expected);
        let without = "[data]\nsource = \"none\"\n[votes]\nsource = \"uniform\"\n[table]\nrepeats = 0\n";
        assert_eq!(names(&format!("{without}{rows}"))[..3], ["votes", "queries", expected[4]]);
    }
}
