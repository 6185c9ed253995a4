//! The table: our figures beside the paper's, with everything that is needed to make them again.

use serde::{Deserialize, Serialize};
use speed_accountant::{Account, round_up};
use speed_ledger::Statement;
use speed_student::StudentMethod;

use crate::config::{AggregationKind, Config, VotesSource};
use crate::environment::Environment;
use crate::plot::median;
use crate::stages::{Accounts, Aggregate, AggregateTimes, EnsembleQuality, StudentRun};
use crate::table::{Table, percent};

/// One line of the table.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReportRow {
    /// The row's name.
    pub name: String,
    /// How its labels were made.
    pub aggregation: AggregationKind,
    /// Ratio of teachers that added noise.
    pub honest_ratio: f64,
    /// The row that its labels are from; empty: its own.
    #[serde(default)]
    pub labels_of: String,
    /// How its students learn.
    #[serde(default)]
    pub method: StudentMethod,
    /// The tightest valid claim for the integer noise, at these votes.
    pub privacy: Option<Account>,
    /// The same where the other teachers' noise is known to the adversary.
    #[serde(default)]
    pub privacy_collusion: Option<Account>,
    /// The tightest claim for any votes.
    pub privacy_data_independent: Option<Account>,
    /// Algorithm 1 with the paper's formulas for continuous noise, at these votes.
    pub privacy_paper_formulas: Option<Account>,
    /// Which of these have no value although noise was added, and why.
    #[serde(default)]
    pub privacy_without_value: Vec<String>,
    /// Share of the answered queries whose label is right.
    pub label_accuracy: Option<f64>,
    /// Queries on which the released label is that of the clear-text argmax.
    pub agreement: usize,
    /// Queries without one winner, for the paper's circuit; no other leaves any.
    #[serde(default)]
    pub unresolved: Option<usize>,
    /// Queries asked.
    pub queries: usize,
    /// The students, one a repeat.
    pub students: Vec<StudentRun>,
    /// Mean accuracy of the students.
    pub student_mean: Option<f64>,
    /// Their sample standard deviation; none for one repeat.
    pub student_deviation: Option<f64>,
    /// Their median.
    #[serde(default)]
    pub student_median: Option<f64>,
    /// The paper's own figures; 0 = it gives none.
    pub paper: PaperFigures,
}

/// What the paper printed for a row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PaperFigures {
    /// Epsilon.
    pub epsilon: f64,
    /// Student accuracy, percent.
    pub accuracy: f64,
    /// Its deviation, percentage points.
    pub deviation: f64,
    /// Homomorphic time for all queries, minutes.
    pub minutes: f64,
}

/// Wall-clock time of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StageTime {
    /// The stage.
    pub stage: String,
    /// Seconds of the attempt that finished it.
    pub seconds: f64,
    /// Units of work left by earlier attempts, whose time is not in `seconds`.
    pub resumed_units: usize,
}

/// A finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Experiment name.
    pub experiment: String,
    /// Run id.
    pub run: String,
    /// Whether noise and keys came from the seed: reproducible, not private.
    pub simulation: bool,
    /// The resolved config.
    pub config: Config,
    /// The ensemble on the pool.
    pub(crate) ensemble: EnsembleQuality,
    /// The lines.
    pub rows: Vec<ReportRow>,
    /// Machine and versions.
    pub environment: Environment,
    /// The kinds of machine that trained; more than one only where `--mix-machines` was given.
    #[serde(default)]
    pub kinds_of_machine: Vec<String>,
    /// Times of the homomorphic part, by row.
    pub(crate) encrypted_times: Vec<Option<AggregateTimes>>,
    /// Times of the stages.
    pub stage_times: Vec<StageTime>,
    /// What the experiment's ledger adds up to, over all its runs; none for simulations, which charge nothing.
    #[serde(default)]
    pub ledger: Option<Statement>,
}

impl ReportRow {
    /// The row at `index` of `config`.
    pub(crate) fn new(
        config: &Config,
        index: usize,
        aggregate: &Aggregate,
        accounts: Option<Accounts>,
        students: Vec<StudentRun>,
    ) -> Self {
        let (row, release) = (&config.row[index], &config.row[config.labels_of(index)]);
        let accuracies: Vec<f64> = students.iter().map(|student| student.accuracy).collect();
        let (student_mean, student_deviation) = mean_and_deviation(&accuracies);
        let Accounts { tight, collusion, data_independent, paper_formulas, without_value } =
            accounts.unwrap_or_default();
        Self {
            name: row.name.clone(),
            aggregation: release.aggregation,
            honest_ratio: release.honest_ratio,
            labels_of: row.labels_of.clone(),
            method: config.method_of(row),
            privacy: tight,
            privacy_collusion: collusion,
            privacy_data_independent: data_independent,
            privacy_paper_formulas: paper_formulas,
            privacy_without_value: without_value,
            label_accuracy: aggregate.label_accuracy,
            agreement: aggregate.agreement,
            unresolved: aggregate.unresolved,
            queries: aggregate.labels.len(),
            students,
            student_mean,
            student_deviation,
            student_median: (!accuracies.is_empty()).then(|| median(&accuracies)),
            paper: PaperFigures {
                epsilon: row.paper_epsilon,
                accuracy: row.paper_accuracy,
                deviation: row.paper_deviation,
                minutes: row.paper_minutes,
            },
        }
    }

    /// The cells that the config and the seed determine.
    fn cells(&self) -> Vec<String> {
        let epsilon = |account: &Option<Account>| account.as_ref().map_or_else(dash, |a| two_digits_up(a.epsilon));
        vec![
            self.name.clone(),
            epsilon(&self.privacy),
            epsilon(&self.privacy_collusion),
            epsilon(&self.privacy_data_independent),
            epsilon(&self.privacy_paper_formulas),
            optional(self.paper.epsilon, |value| format!("{value:.2}")),
            self.label_accuracy.map_or_else(dash, percent),
            match (self.students.is_empty(), self.method) {
                (true, _) => dash(),
                (false, StudentMethod::Gan) => "GAN".to_owned(),
                (false, StudentMethod::PseudoLabels) => "ours".to_owned(),
            },
            self.student_mean
                .map_or_else(dash, |mean| plus_minus(100.0 * mean, self.student_deviation.map(|d| 100.0 * d))),
            optional(self.paper.accuracy, |mean| {
                plus_minus(mean, (self.paper.deviation > 0.0).then_some(self.paper.deviation))
            }),
            match self.aggregation {
                AggregationKind::Encrypted => format!("{}/{}", self.agreement, self.queries),
                AggregationKind::NonPrivate | AggregationKind::Trusted => dash(),
            },
        ]
    }
}

const COLUMNS: [&str; 11] = [
    "row",
    "ε",
    "ε collusion",
    "ε any votes",
    "ε formulas",
    "ε paper",
    "labels %",
    "student",
    "student %",
    "paper %",
    "HE = clear",
];

impl Report {
    /// The table without times: the same bytes for the same config and seed.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new(self.columns());
        for row in &self.rows {
            table.push(self.cells(row));
        }
        table
    }

    /// "unresolved" only where a row can have such queries.
    fn columns(&self) -> impl Iterator<Item = &'static str> {
        COLUMNS.into_iter().chain(self.has_unresolved().then_some("unresolved"))
    }

    fn cells(&self, row: &ReportRow) -> Vec<String> {
        let mut cells = row.cells();
        if self.has_unresolved() {
            cells.push(row.unresolved.map_or_else(dash, |count| format!("{count}/{}", row.queries)));
        }
        cells
    }

    fn has_unresolved(&self) -> bool {
        self.rows.iter().any(|row| row.unresolved.is_some())
    }

    /// The table with the homomorphic times.
    #[must_use]
    pub fn table_with_times(&self) -> Table {
        let mut table = Table::new(self.columns().chain(["HE s", "core-s/query", "paper s"]));
        for (row, times) in self.rows.iter().zip(&self.encrypted_times) {
            let mut cells = self.cells(row);
            match times {
                Some(times) => {
                    cells.push(format!("{:.1}", times.argmax_seconds));
                    cells.push(times.core_seconds_per_query().map_or_else(dash, |seconds| format!("{seconds:.2}")));
                }
                None => cells.extend([dash(), dash()]),
            }
            cells.push(optional(60.0 * row.paper.minutes, |seconds| format!("{seconds:.0}")));
            table.push(cells);
        }
        table
    }

    /// The table with its conditions above and how to read it below.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}\n{}\n{}", self.heading(), self.table_with_times().to_text(), self.notes())
    }

    /// The table and its conditions as Markdown.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.experiment, self.heading());
        text.push_str(&self.table_with_times().to_markdown());
        text.push_str(&format!("\n```text\n{}```\n\n## Claims\n\n{}\n## Stages\n\n", self.notes(), self.claims()));
        let mut times = Table::new(["stage", "wall seconds", "units from earlier attempts"]);
        for stage in &self.stage_times {
            let seconds = format!("{:.1}", stage.seconds);
            times.push(vec![stage.stage.clone(), seconds, stage.resumed_units.to_string()]);
        }
        text.push_str(&times.to_markdown());
        text.push_str(&format!("\n## Config\n\n```toml\n{}```\n", self.config.to_toml()));
        text
    }

    fn notes(&self) -> String {
        if self.has_unresolved() { format!("{NOTES}{UNRESOLVED_NOTE}") } else { NOTES.to_owned() }
    }

    fn heading(&self) -> String {
        let accuracy = |share: Option<f64>| share.map_or_else(dash, |share| format!("{} %", percent(share)));
        let environment = &self.environment;
        let mut text = String::new();
        if self.simulation {
            text.push_str("SIMULATION: noise and keys come from the seed. Reproducible, not private.\n\n");
        }
        let EnsembleQuality { teachers, pool_images, mean_accuracy, plurality_accuracy } = &self.ensemble;
        let [mean, plurality] = [mean_accuracy, plurality_accuracy].map(|share| accuracy(*share));
        let votes = match self.config.votes.source {
            VotesSource::Truth => format!("True labels of {pool_images} pool images in place of votes"),
            _ => format!("{teachers} teachers (mean {mean}, plurality {plurality} on {pool_images} pool images)"),
        };
        text.push_str(&format!(
            "{votes}, {} queries, gamma {}, delta {}, seed {}.\n\
             {}, {} processors, {}; {}; speed {}, burn {}, tfhe {}.\n",
            self.config.queries.count,
            self.config.noise.gamma,
            self.config.privacy.delta,
            self.config.seed,
            environment.processor,
            environment.processors,
            environment.system,
            environment.products,
            environment.speed,
            environment.burn,
            environment.tfhe,
        ));
        if self.kinds_of_machine.len() > 1 {
            text.push_str(&format!(
                "MIXED: trained on machines of {} kinds ({}); no one machine repeats these trainings.\n",
                self.kinds_of_machine.len(),
                self.kinds_of_machine.join(", ")
            ));
        }
        if let Some(ledger) = &self.ledger {
            let budget = self.config.privacy.budget;
            let of = if budget > 0.0 { format!(" of {budget}") } else { String::new() };
            text.push_str(&format!(
                "Ledger: {} answers charged in all runs of this experiment, epsilon {}{of} at delta {:e} whatever the votes \
                 are.\n",
                ledger.queries,
                two_digits_up(ledger.spent_epsilon),
                ledger.budget.delta.get(),
            ));
        }
        text
    }

    /// The claims in full, one for each figure.
    fn claims(&self) -> String {
        let mut text = String::new();
        for row in self.rows.iter().filter(|row| row.labels_of.is_empty()) {
            for account in
                [&row.privacy, &row.privacy_collusion, &row.privacy_data_independent, &row.privacy_paper_formulas]
                    .into_iter()
                    .flatten()
            {
                text.push_str(&format!("- **{}**, {}: {}\n", row.name, two_digits_up(account.epsilon), account.claim));
            }
            for why in &row.privacy_without_value {
                text.push_str(&format!("- **{}**, no value of {why}\n", row.name));
            }
        }
        text
    }
}

/// How to read the columns.
const NOTES: &str = "\
ε            the tightest valid claim for the integer noise that was added, at these votes, rounded up: both
             directions; neighbours differ in one teacher's vote; noise of up to as many teachers as are beyond tau is
             missing, not known (dropout; central for Trusted); depends on the votes, so not for publication as it is.
ε collusion  the same where that noise may be known to the adversary, missing, or some of both.
ε any votes  without looking at the votes: both directions, dropout or collusion, may be published.
ε formulas   Algorithm 1 with the paper's formulas for continuous noise, at these votes: one direction, dropout.
ε paper      what the paper printed. Its accuracies stand under \"paper %\", its homomorphic time under \"paper s\".
labels %     right labels among the answered queries.
student      GAN: the paper's | ours: the student on pseudo-labels, on the same labels and images (docs/student.md).
student %    accuracy on test images, mean ± deviation of repeats; one by one in
             tables/students.csv and students.svg.
HE = clear   queries on which the homomorphic argmax gives the label of the clear-text one.
HE s         wall clock of the homomorphic argmax, all queries. core-s/query: processor time of the whole round.
";

const UNRESOLVED_NOTE: &str = "\
unresolved   queries for which the paper's circuit found no winner or several; they stay without a label. Of tied
             counts the clear-text argmax takes the lowest class, the paper's circuit any.
";

/// Mean, and sample standard deviation of two or more.
fn mean_and_deviation(values: &[f64]) -> (Option<f64>, Option<f64>) {
    if values.is_empty() {
        return (None, None);
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of repeats")]
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (Some(mean), (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt()))
}

fn plus_minus(mean: f64, deviation: Option<f64>) -> String {
    deviation.map_or_else(|| format!("{mean:.2}"), |deviation| format!("{mean:.2} ± {deviation:.2}"))
}

fn two_digits_up(epsilon: f64) -> String {
    format!("{:.2}", round_up(epsilon, 2))
}

fn optional(value: f64, show: impl Fn(f64) -> String) -> String {
    if value > 0.0 { show(value) } else { dash() }
}

fn dash() -> String {
    "-".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_that_of_a_sample() {
        assert_eq!(mean_and_deviation(&[]), (None, None));
        assert_eq!(mean_and_deviation(&[0.5]), (Some(0.5), None));
        assert_eq!(mean_and_deviation(&[1.0, 3.0]), (Some(2.0), Some(2f64.sqrt())));
    }
}
