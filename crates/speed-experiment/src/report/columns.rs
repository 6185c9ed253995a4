//! The table's columns and cells.

use speed_accountant::{Account, round_up};

use super::finished::Report;
use super::row::ReportRow;
use crate::config::AggregationKind;
use crate::table::{NO_VALUE, Table, percent};

/// The columns of epsilons; the one that may be published precedes the others.
pub(super) const EPSILONS: [&str; 4] =
    [DATA_INDEPENDENT, "ε data-dependent", "ε data-dependent collusion", "ε paper formulas"];
pub(crate) const DATA_INDEPENDENT: &str = "ε data-independent";
/// The cell of a missing epsilon in a row with noise.
pub(crate) const NONE: &str = "none";
/// The other columns that config and seed determine.
const FIGURES: [&str; 6] = ["ε paper", "labels %", STUDENT, "student %", "paper %", AGREEMENT];
/// The number of queries for which the homomorphic and the clear-text argmax give the same label.
pub(crate) const AGREEMENT: &str = "HE = clear";
/// The method of a row's students.
const STUDENT: &str = "student";
const ANSWERED: &str = "answered";
const UNRESOLVED: &str = "unresolved";
const ARGMAX_SECONDS: &str = "HE s";

/// The most important columns: the price, and the results. [`STUDENT`] is included if rows differ in it.
const SUMMARY: [&str; 7] = [DATA_INDEPENDENT, "labels %", "student %", AGREEMENT, ANSWERED, UNRESOLVED, ARGMAX_SECONDS];

impl ReportRow {
    /// Returns the cells that the config and the seed determine.
    fn cells(&self) -> Vec<String> {
        let epsilon = |account: &Option<Account>| account.as_ref().map_or_else(dash, |a| two_digits_up(a.epsilon));
        vec![
            self.name.clone(),
            epsilon(&self.data_independent),
            epsilon(&self.data_dependent),
            epsilon(&self.data_dependent_collusion),
            epsilon(&self.paper_formulas),
            optional(self.paper.epsilon, |value| format!("{value:.2}")),
            self.label_accuracy.map_or_else(dash, percent),
            if self.students.is_empty() { dash() } else { self.method.title().to_owned() },
            self.student_mean
                .map_or_else(dash, |mean| plus_minus(100.0 * mean, self.student_deviation.map(|d| 100.0 * d))),
            optional(self.paper.accuracy, |mean| plus_minus(mean, self.paper.deviation)),
            match self.aggregation {
                AggregationKind::Encrypted => format!("{}/{}", self.agreement, self.queries),
                AggregationKind::NonPrivate | AggregationKind::Trusted => dash(),
            },
        ]
    }
}

impl Report {
    /// Returns the table without times: byte-identical for the same config and seed.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new(self.columns());
        for row in &self.rows {
            table.push(self.cells(row));
        }
        table.without_empty_columns()
    }

    /// Returns the most important columns of the table. A row with noise but without a data-independent epsilon is
    /// marked.
    #[must_use]
    pub fn summary(&self) -> Table {
        let without = |row: &ReportRow| row.is_noisy() && row.data_independent.is_none();
        let shown =
            |row: usize, head: &str| (head == DATA_INDEPENDENT && without(&self.rows[row])).then(|| NONE.to_owned());
        self.all_columns().replaced(shown).without_empty_columns().filtered(|head, cells| match head {
            STUDENT => cells.iter().any(|cell| cell != &cells[0] && *cell != NO_VALUE),
            _ => SUMMARY.contains(&head),
        })
    }

    /// Returns the columns; "unresolved" and "answered" are included only if rows have such figures.
    fn columns(&self) -> impl Iterator<Item = &'static str> {
        let answered = self.has_thresholds().then_some(ANSWERED);
        let determined = std::iter::once("row").chain(EPSILONS).chain(FIGURES);
        determined.chain(answered).chain(self.has_unresolved().then_some(UNRESOLVED))
    }

    fn cells(&self, row: &ReportRow) -> Vec<String> {
        let mut cells = row.cells();
        if self.has_thresholds() {
            cells.push(row.answered.map_or_else(dash, |count| format!("{count}/{}", row.queries)));
        }
        if self.has_unresolved() {
            cells.push(row.unresolved.map_or_else(dash, |count| format!("{count}/{}", row.queries)));
        }
        cells
    }

    pub(super) fn has_thresholds(&self) -> bool {
        self.rows.iter().any(|row| row.answered.is_some())
    }

    pub(super) fn has_unresolved(&self) -> bool {
        self.rows.iter().any(|row| row.unresolved.is_some())
    }

    /// Returns the reasons why rows with noise have no data-independent epsilon, each with the names of its rows.
    #[must_use]
    pub fn without_epsilon(&self) -> Vec<(String, Vec<String>)> {
        without_epsilon(&self.rows)
    }

    /// Returns the largest data-independent epsilon, if a row has one.
    #[must_use]
    pub fn largest_epsilon(&self) -> Option<f64> {
        largest_epsilon(&self.rows)
    }

    /// Returns the table with the homomorphic times.
    #[must_use]
    pub fn table_with_times(&self) -> Table {
        self.all_columns().without_empty_columns()
    }

    fn all_columns(&self) -> Table {
        let mut table = Table::new(self.columns().chain([ARGMAX_SECONDS, "core-s/query", "paper s"]));
        for row in &self.rows {
            let mut cells = self.cells(row);
            match &row.encrypted_times {
                Some(times) => {
                    cells.push(format!("{:.1}", times.argmax_seconds));
                    cells.push(times.core_seconds_per_query().map_or_else(dash, |seconds| format!("{seconds:.2}")));
                }
                None => cells.extend([dash(), dash()]),
            }
            cells.push(optional(row.paper.minutes, |minutes| format!("{:.0}", 60.0 * minutes)));
            table.push(cells);
        }
        table
    }
}

/// Returns the reasons why rows with noise have no data-independent epsilon, each with the names of its rows.
pub(crate) fn without_epsilon<'a>(rows: impl IntoIterator<Item = &'a ReportRow>) -> Vec<(String, Vec<String>)> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows.into_iter().filter(|row| row.is_noisy() && row.data_independent.is_none()) {
        let why = row.without_value.iter().find_map(|why| why.strip_prefix(DATA_INDEPENDENT)?.strip_prefix(": "));
        let why = why.unwrap_or("the reason was not recorded");
        let name = if row.labels_of.is_empty() { &row.name } else { &row.labels_of };
        match reasons.iter_mut().find(|(other, _)| other == why) {
            Some((_, rows)) if rows.contains(name) => {}
            Some((_, rows)) => rows.push(name.clone()),
            None => reasons.push((why.to_owned(), vec![name.clone()])),
        }
    }
    reasons
}

/// Returns the largest data-independent epsilon of the rows, if any.
pub(crate) fn largest_epsilon<'a>(rows: impl IntoIterator<Item = &'a ReportRow>) -> Option<f64> {
    let epsilons = rows.into_iter().filter_map(|row| row.data_independent.as_ref()).map(|account| account.epsilon);
    epsilons.max_by(f64::total_cmp)
}

fn plus_minus(mean: f64, deviation: Option<f64>) -> String {
    deviation.map_or_else(|| format!("{mean:.2}"), |deviation| format!("{mean:.2} ± {deviation:.2}"))
}

/// Formats an epsilon, rounded up to two decimal places.
pub(crate) fn two_digits_up(epsilon: f64) -> String {
    format!("{:.2}", round_up(epsilon, 2))
}

fn optional(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(dash, show)
}

/// Returns the placeholder for a missing value.
pub(super) fn dash() -> String {
    NO_VALUE.to_owned()
}
