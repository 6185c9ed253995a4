//! The rows of the table: `[[row]]`.

use std::ops::Deref;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use speed_core::{Circuit, NoisePlacement, RandomnessKind, is_legible};
use speed_mechanism::{HonestRatio, MechanismKind};
use speed_student::StudentMethod;

use super::fault::{Fault, refuse};
use super::noise::{Choice, NoiseConfig, QueryNoise, WrittenNoise};
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
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub mechanism: Choice,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub sigma: f64,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub coins: u64,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub placement: NoisePlacement,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub threshold: i64,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
    pub check_noise: f64,
    #[serde(default, skip_serializing_if = "speed_core::is_default")]
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

/// A row, checked; its other keys are those of [`RawRow`].
#[derive(Clone, Debug, PartialEq)]
pub struct RowConfig {
    written: RawRow,
    /// Fraction of the teachers that add noise (tau).
    pub honest_ratio: HonestRatio,
    /// The noise of its queries, if it has any. If checks come first, the queries have no threshold themselves.
    pub noise: QueryNoise,
    /// The noise and threshold of the checks that come before its answers, if they have noise of their own.
    pub check: Option<QueryNoise>,
    /// The position of the earlier row whose labels its students learn from; `None` means its own labels.
    pub labels_of: Option<usize>,
    /// The paper's own figures.
    pub paper: PaperFigures,
}

impl Deref for RowConfig {
    type Target = RawRow;

    fn deref(&self) -> &RawRow {
        &self.written
    }
}

/// Returns a number of queries up to `all`; 0 means all.
fn up_to(count: usize, all: usize) -> usize {
    if count == 0 { all } else { count.min(all) }
}

impl RowConfig {
    /// Returns the number of queries that the row answers, out of `all`, from the first.
    pub(crate) fn query_count(&self, all: usize) -> usize {
        up_to(self.queries, all)
    }

    /// Returns the minimum of a query's noisy maximum for an answer, in votes, if any.
    pub(crate) fn threshold(&self) -> Option<i64> {
        self.check.unwrap_or(self.noise).threshold.filter(|_| self.is_noisy())
    }

    pub(crate) fn most_answers(&self, queries: usize) -> usize {
        up_to(self.answers, queries)
    }

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
        let (noise, check) = self.check_noise(around).map_err(|fault| self.of_noise(fault, around.noise, key))?;
        if self.answers != 0 && check.is_none() {
            return refuse(key("answers"), "limits the answers after checks, so it needs check_noise");
        }
        self.check_circuit(around.noise.source, noise.threshold.is_some() || check.is_some())
            .map_err(|message| Fault::new(key("circuit"), message))?;
        if self.queries > around.queries {
            return refuse(
                key("queries"),
                format!("found {}, expected 0 (all) to queries.count = {}", self.queries, around.queries),
            );
        }
        let labels_of = self.labels_of(earlier).map_err(|message| Fault::new(key("labels_of"), message))?;
        let figure = |field: &str, value: f64| match value.is_finite() && value >= 0.0 {
            true => Ok(Some(value).filter(|value| *value > 0.0)),
            false => refuse(key(field), format!("found {value:?}, expected a number of at least 0")),
        };
        let paper = PaperFigures {
            epsilon: figure("paper_epsilon", self.paper_epsilon)?,
            accuracy: figure("paper_accuracy", self.paper_accuracy)?,
            deviation: figure("paper_deviation", self.paper_deviation)?,
            minutes: figure("paper_minutes", self.paper_minutes)?,
        };
        Ok(RowConfig { written: self.clone(), honest_ratio, noise, check, labels_of, paper })
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

    /// Returns a fault of the row's noise with its complete key: that of the section if the row takes the width from there.
    fn of_noise(&self, Fault { key, message }: Fault, section: &NoiseConfig, of_row: impl Fn(&str) -> String) -> Fault {
        let is_of_section = match key.as_str() {
            "gamma" => true,
            "sigma" => self.sigma == 0.0 && section.sigma != 0.0,
            "coins" => self.coins == 0 && section.coins != 0,
            _ => false,
        };
        if is_of_section {
            return Fault::new(format!("noise.{key}"), format_args!("in the row \"{}\": {message}", self.name));
        }
        Fault::new(of_row(&key), message)
    }

    /// Returns the noise of the row's answers, and of the checks that come first, if it has any; faults name the key within the
    /// row.
    fn check_noise(&self, around: &Surroundings<'_>) -> Result<(QueryNoise, Option<QueryNoise>), Fault> {
        if self.aggregation == AggregationKind::NonPrivate {
            if self.honest_ratio < 1.0 {
                return refuse("honest_ratio", "a non-private row has no noise: leave it out");
            }
            let own = (self.mechanism, self.sigma, self.coins, self.placement, self.threshold);
            if !speed_core::is_default(&own) || self.check_noise != 0.0 {
                return refuse(
                    "aggregation",
                    "a non-private row has no noise: leave out mechanism, sigma, coins, placement, threshold and check_noise",
                );
            }
        }
        let noise = self.query_noise(around.noise, around.teachers)?;
        if noise.0.is_central() && self.honest_ratio < 1.0 {
            return refuse("honest_ratio", "the server adds all of the noise (placement \"central\"): leave it out");
        }
        Ok(noise)
    }

    /// Checks the noise of the answers together with the section, and that of the checks.
    fn query_noise(&self, section: &NoiseConfig, teachers: usize) -> Result<(QueryNoise, Option<QueryNoise>), Fault> {
        let (merged, width) = (self.merged(section), self.check_noise);
        if width == 0.0 {
            return Ok((merged.query(teachers)?, None));
        }
        if merged.threshold == 0 {
            return refuse("threshold", "found 0, but a check compares with a threshold: expected a number of votes");
        }
        // The answers have no threshold of their own, so their coins may be odd.
        let answers = WrittenNoise { threshold: 0, ..merged.clone() }.query(teachers)?;
        // The width is that of the row's mechanism, which reads only one of these keys.
        let check = WrittenNoise { gamma: width, sigma: width, coins: 0, ..merged };
        let of_check = |Fault { key, message }: Fault| match key.as_str() {
            "gamma" | "sigma" => Fault::new("check_noise", message),
            _ => Fault::new(key, message),
        };
        let check = check.query(teachers).map_err(of_check)?;
        Ok((answers, Some(QueryNoise { is_check: true, ..check })))
    }

    /// Returns the row's noise with the values of the section that it does not override.
    fn merged(&self, section: &NoiseConfig) -> WrittenNoise {
        let mechanism = self.mechanism.0.unwrap_or(section.mechanism);
        // A row's own coins or sigma replace both values of the section, because binomial noise has only one of them.
        let has_own_width = self.coins != 0 || self.sigma != 0.0;
        let inherits_coins = mechanism == MechanismKind::Binomial && !has_own_width;
        WrittenNoise {
            mechanism,
            gamma: section.gamma,
            sigma: if has_own_width { self.sigma } else { section.sigma },
            coins: if inherits_coins { section.coins } else { self.coins },
            placement: self.placement,
            threshold: self.threshold,
            source: section.source,
        }
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
