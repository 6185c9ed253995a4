//! The rows of the table: `[[row]]`.

use std::num::NonZeroUsize;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use speed_core::{Circuit, NoisePlacement, RandomnessKind, is_legible};
use speed_mechanism::HonestRatio;
use speed_student::StudentMethod;

use super::fault::{Fault, refuse};
use super::noise::{Choice, NoiseConfig, QueryNoise, RowNoise, RowQueries, is_unset};
use crate::report::{AggregationKind, MAX_ROW_NAME, PaperFigures};

/// `[[row]]` as written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "documented in configs/default.toml")]
pub struct RawRow {
    pub name: String,
    pub aggregation: AggregationKind,
    pub circuit: Circuit,
    pub queries: usize,
    pub honest_ratio: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub mechanism: Choice,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub gamma: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub sigma: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub coins: u64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub placement: NoisePlacement,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub threshold: i64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub check_noise: f64,
    #[serde(default, skip_serializing_if = "is_unset")]
    pub answers: usize,
    pub labels_of: String,
    pub student: RowStudent,
    pub paper_epsilon: f64,
    pub paper_accuracy: f64,
    pub paper_deviation: f64,
    pub paper_minutes: f64,
}

/// `row.student` as written: the name of a method, or "default" for `student.method`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowStudent(pub Option<StudentMethod>);

/// A row, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct RowConfig {
    /// Its name, unique among the rows.
    pub name: String,
    /// The way of computing its labels.
    pub aggregation: AggregationKind,
    /// The circuit of encrypted labels.
    pub circuit: Circuit,
    /// The number of queries that it answers, from the first; `None` means all.
    pub queries: Option<NonZeroUsize>,
    /// Fraction of the teachers that add noise (tau).
    pub honest_ratio: HonestRatio,
    /// The noise of its queries, if it has any. If checks come first, the queries have no threshold themselves.
    pub noise: QueryNoise,
    /// The noise and threshold of the checks that come before its answers, if they have noise of their own.
    pub check: Option<QueryNoise>,
    /// The largest number of answers after checks; `None` for every query that reaches the threshold.
    pub answers: Option<NonZeroUsize>,
    own_noise: RowNoise,
    own_check: f64,
    /// The position of the earlier row whose labels its students learn from; `None` means its own labels.
    pub labels_of: Option<usize>,
    /// The method of its students; `None` means `student.method`.
    pub student: Option<StudentMethod>,
    /// The paper's own figures.
    pub paper: PaperFigures,
}

impl RowConfig {
    /// Returns the number of queries that the row answers, out of `all`, from the first.
    pub(crate) fn query_count(&self, all: usize) -> usize {
        self.queries.map_or(all, |queries| queries.get().min(all))
    }

    /// Returns the minimum of a query's noisy maximum for an answer, in votes, if any.
    pub(crate) fn threshold(&self) -> Option<i64> {
        self.check.unwrap_or(self.noise).threshold.filter(|_| self.is_noisy())
    }

    /// Returns the largest number of answers to `queries` queries.
    pub(crate) fn most_answers(&self, queries: usize) -> usize {
        self.answers.map_or(queries, |answers| answers.get().min(queries))
    }

    /// Returns whether noise is added to its votes.
    pub(crate) fn is_noisy(&self) -> bool {
        self.aggregation != AggregationKind::NonPrivate
    }
}

/// The values of other sections that the checks of a row need.
pub(super) struct Surroundings<'a> {
    pub(super) teachers: usize,
    pub(super) queries: usize,
    pub(super) noise: &'a NoiseConfig,
}

/// Checks all rows, against each other and against other sections.
pub(super) fn check(rows: &[RawRow], around: &Surroundings<'_>) -> Result<Vec<RowConfig>, Fault> {
    if rows.is_empty() {
        return refuse("row", "a table needs at least one [[row]]");
    }
    (0..rows.len()).map(|index| rows[index].check(index, &rows[..index], around)).collect()
}

impl RawRow {
    fn check(&self, index: usize, earlier: &[Self], around: &Surroundings<'_>) -> Result<RowConfig, Fault> {
        let key = |field: &str| format!("row.{index}.{field}");
        self.check_name(earlier).map_err(|message| Fault::new(key("name"), message))?;
        let honest_ratio = HonestRatio::new(self.honest_ratio)
            .and_then(|ratio| ratio.noisy_teachers(around.teachers).map(|_| ratio))
            .map_err(|error| Fault::new(key("honest_ratio"), error))?;
        let RowQueries { answers: noise, check } =
            self.check_noise(around).map_err(|fault| self.of_noise(fault, around.noise, key))?;
        if self.answers != 0 && check.is_none() {
            return refuse(key("answers"), "limits the answers after checks, so it needs check_noise");
        }
        self.check_circuit(around.noise.randomness, noise.threshold.is_some() || check.is_some())
            .map_err(|message| Fault::new(key("circuit"), message))?;
        if self.queries > around.queries {
            return refuse(
                key("queries"),
                format!("found {}, expected 0 (all) to queries.count = {}", self.queries, around.queries),
            );
        }
        let labels_of = self.labels_of(earlier).map_err(|message| Fault::new(key("labels_of"), message))?;
        for (field, value) in [
            ("paper_epsilon", self.paper_epsilon),
            ("paper_accuracy", self.paper_accuracy),
            ("paper_deviation", self.paper_deviation),
            ("paper_minutes", self.paper_minutes),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(key(field), format!("found {value:?}, expected a number of at least 0"));
            }
        }
        let figure = |value: f64| Some(value).filter(|value| *value > 0.0);
        let paper = PaperFigures {
            epsilon: figure(self.paper_epsilon),
            accuracy: figure(self.paper_accuracy),
            deviation: figure(self.paper_deviation),
            minutes: figure(self.paper_minutes),
        };
        Ok(RowConfig {
            name: self.name.clone(),
            aggregation: self.aggregation,
            circuit: self.circuit,
            queries: NonZeroUsize::new(self.queries),
            honest_ratio,
            noise,
            check,
            answers: NonZeroUsize::new(self.answers),
            own_noise: self.own_noise(),
            own_check: self.check_noise,
            labels_of,
            student: self.student.0,
            paper,
        })
    }

    fn check_name(&self, earlier: &[Self]) -> Result<(), String> {
        if self.name.is_empty() {
            return Err("every [[row]] needs a name".into());
        }
        if self.name.len() > MAX_ROW_NAME || !is_legible(&self.name) {
            let found: String = self.name.chars().take(40).collect();
            return Err(format!(
                "expected 1 to {MAX_ROW_NAME} bytes of visible characters, without control characters and spaces at its ends, found {found:?}"
            ));
        }
        if earlier.iter().any(|other| other.name == self.name) {
            return Err(format!("{:?} names two rows", self.name));
        }
        Ok(())
    }

    fn own_noise(&self) -> RowNoise {
        let Self { mechanism, gamma, sigma, coins, placement, threshold, .. } = *self;
        RowNoise { mechanism, gamma, sigma, coins, placement, threshold }
    }

    /// Returns a fault of the row's noise with its complete key: that of the section if the row takes the width from there.
    fn of_noise(&self, Fault { key, message }: Fault, section: &NoiseConfig, of_row: impl Fn(&str) -> String) -> Fault {
        let (own, written) = (self.own_noise(), &section.written);
        let is_of_section = match key.as_str() {
            "gamma" => own.gamma == 0.0 && written.gamma != 0.0,
            "sigma" => own.sigma == 0.0 && written.sigma != 0.0,
            "coins" => own.coins == 0 && written.coins != 0,
            _ => false,
        };
        if is_of_section {
            return Fault::new(format!("noise.{key}"), format_args!("in the row \"{}\": {message}", self.name));
        }
        Fault::new(of_row(&key), message)
    }

    /// Returns the noise of the row's queries and checks; faults name the key within the row.
    fn check_noise(&self, around: &Surroundings<'_>) -> Result<RowQueries, Fault> {
        if self.aggregation == AggregationKind::NonPrivate {
            if self.honest_ratio < 1.0 {
                return refuse("honest_ratio", "a non-private row has no noise: leave it out");
            }
            if self.own_noise() != RowNoise::default() || self.check_noise != 0.0 {
                return refuse(
                    "aggregation",
                    "a non-private row has no noise: leave out mechanism, gamma, sigma, coins, placement, threshold and check_noise",
                );
            }
        }
        let noise = self.own_noise().check(self.check_noise, around.noise, around.teachers)?;
        if noise.answers.is_central() && self.honest_ratio < 1.0 {
            return refuse("honest_ratio", "the server adds all of the noise (placement \"central\"): leave it out");
        }
        Ok(noise)
    }

    fn check_circuit(&self, randomness: RandomnessKind, has_threshold: bool) -> Result<(), &'static str> {
        if self.circuit != Circuit::Tournament && self.aggregation != AggregationKind::Encrypted {
            return Err("is read only with aggregation = \"encrypted\": leave it out");
        }
        if self.circuit == Circuit::Paper && has_threshold {
            return Err("\"paper\" has no threshold: leave one of them out");
        }
        if self.circuit == Circuit::Paper && randomness != RandomnessKind::Simulation {
            return Err(
                "\"paper\" requires noise.source = \"simulation\": it is not exact, and no claim covers the information that \
                        its wrong winners reveal about the noisy counts",
            );
        }
        Ok(())
    }

    fn labels_of(&self, earlier: &[Self]) -> Result<Option<usize>, String> {
        if self.labels_of.is_empty() {
            return Ok(None);
        }
        let Some(source) = earlier.iter().position(|other| other.name == self.labels_of) else {
            return Err(format!("{:?} is not an earlier row", self.labels_of));
        };
        if !earlier[source].labels_of.is_empty() {
            return Err(format!("{:?} takes its labels from another row: name that row", self.labels_of));
        }
        Ok(Some(source))
    }

    /// Returns the row as written; `rows` are all rows of its config.
    pub(super) fn from_row(row: &RowConfig, rows: &[RowConfig]) -> Self {
        let paper = row.paper;
        Self {
            name: row.name.clone(),
            aggregation: row.aggregation,
            circuit: row.circuit,
            queries: row.queries.map_or(0, NonZeroUsize::get),
            honest_ratio: row.honest_ratio.get(),
            mechanism: row.own_noise.mechanism,
            gamma: row.own_noise.gamma,
            sigma: row.own_noise.sigma,
            coins: row.own_noise.coins,
            placement: row.own_noise.placement,
            threshold: row.own_noise.threshold,
            check_noise: row.own_check,
            answers: row.answers.map_or(0, NonZeroUsize::get),
            labels_of: row.labels_of.map_or_else(String::new, |source| rows[source].name.clone()),
            student: RowStudent(row.student),
            paper_epsilon: paper.epsilon.unwrap_or(0.0),
            paper_accuracy: paper.accuracy.unwrap_or(0.0),
            paper_deviation: paper.deviation.unwrap_or(0.0),
            paper_minutes: paper.minutes.unwrap_or(0.0),
        }
    }
}

impl Serialize for RowStudent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.map_or(StudentMethod::DEFAULT_NAME, StudentMethod::name))
    }
}

impl<'de> Deserialize<'de> for RowStudent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        if name == StudentMethod::DEFAULT_NAME {
            return Ok(Self(None));
        }
        let own = |message| format!("{message}, or `{}`", StudentMethod::DEFAULT_NAME);
        StudentMethod::find(&name).map(|method| Self(Some(method))).map_err(own).map_err(serde::de::Error::custom)
    }
}
