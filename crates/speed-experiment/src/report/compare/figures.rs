//! The figures of rows and runs, and their differences.

use serde::Serialize;
use serde_json::Value;
use speed_accountant::Account;

use super::spread::{Difference, WithoutSpread};
use crate::report::columns::{COLUMNS, Column, Content, PaperValue};
use crate::report::row::{PaperFigures, ReportRow};
use crate::report::run::Report;
use crate::report::statistics::mean_and_deviation;

/// Fields of a claim that determine the meaning of epsilon: no difference is computed if one of them differs.
const MEANING: [&str; 6] = ["delta", "assume", "extent", "directions", "bound", "publishable"];
/// Fields that are shown with the difference.
const SETTING: [&str; 8] = ["tau", "noise", "gamma", "sigma", "coins", "threshold", "queries", "checks"];

type RunFigure = fn(&Report) -> Option<f64>;

/// The figures of runs, in their order: key, title, decimal places and value.
static OF_RUNS: [(&str, &str, usize, RunFigure); 3] = [
    ("teachers_percent", "teachers %", 2, |report| Some(100.0 * report.ensemble.mean_accuracy?)),
    ("plurality_percent", "plurality %", 2, |report| Some(100.0 * report.ensemble.plurality_accuracy?)),
    ("stages_seconds", "all stages s", 1, |report| Some(report.stage_times.iter().map(|stage| stage.seconds).sum())),
];

#[derive(Clone, Copy)]
pub(super) enum SideRow<'a> {
    Run(&'a ReportRow),
    Paper(&'a PaperFigures),
}

/// A figure of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Measure {
    /// The value; for students, their mean.
    pub value: f64,
    /// Sample standard deviation of the students.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// Number of students; `None` for the paper, because a config does not contain it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub students: Option<usize>,
    /// Number of queries, if the value is a count of queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<usize>,
}

/// A field of a claim that differs between runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimDifference {
    /// The field, as in reports.
    pub field: &'static str,
    /// Its value in each run; `None` if the run has no such claim.
    pub values: Vec<Option<Value>>,
    /// Whether it changes the meaning of epsilon, so that no difference is computed.
    pub changes_meaning: bool,
}

/// A figure in all runs.
#[derive(Clone, Debug, Serialize)]
pub struct FigureComparison {
    /// The figure's name in JSON.
    pub figure: &'static str,
    /// Its name in tables, equal to the head of the report's column if there is one.
    #[serde(skip)]
    pub(super) title: &'static str,
    #[serde(skip)]
    pub(super) digits: usize,
    #[serde(skip)]
    pub(super) is_epsilon: bool,
    /// Its value in each run, if the run has one.
    pub values: Vec<Option<Measure>>,
    /// The difference of each value from the first run's. `None` for the first run itself, for missing values, and if
    /// the claims of two epsilons have different meanings.
    pub differences: Vec<Option<Difference>>,
    /// The fields in which claims differ.
    pub claims: Vec<ClaimDifference>,
}

impl Measure {
    fn plain(value: f64) -> Self {
        Self { value, ..Self::default() }
    }
}

impl Column {
    fn account<'a>(&self, row: &SideRow<'a>) -> Option<&'a Account> {
        match (&self.content, row) {
            (Content::Epsilon(account), SideRow::Run(row)) => account(row),
            _ => None,
        }
    }

    fn measure(&self, paper_value: PaperValue, row: SideRow<'_>) -> Option<Measure> {
        let row = match row {
            SideRow::Run(row) => row,
            SideRow::Paper(paper) => {
                let (value, deviation) = paper_value(paper)?;
                return Some(Measure { deviation, ..Measure::plain(value) });
            }
        };
        match self.content {
            Content::Text(_) => None,
            Content::Epsilon(account) => account(row).map(|account| Measure::plain(account.epsilon)),
            Content::Count(count) => {
                count(row).map(|count| Measure { of: Some(row.queries), ..Measure::plain(count as f64) })
            }
            Content::Number(_, value) => value(row).map(Measure::plain),
            Content::Students => {
                let accuracies = accuracies(row);
                let (mean, deviation) = mean_and_deviation(&accuracies);
                mean.map(|value| Measure { deviation, students: Some(accuracies.len()), ..Measure::plain(value) })
            }
        }
    }

    /// Returns the difference of the figure in `second` from the figure in `first`. `None` if either has no value, or
    /// is an epsilon for other votes.
    fn difference(&self, paper_value: PaperValue, first: SideRow<'_>, second: SideRow<'_>) -> Option<Difference> {
        let (a, b) = (self.measure(paper_value, first)?, self.measure(paper_value, second)?);
        let (SideRow::Run(first), SideRow::Run(second)) = (first, second) else {
            return match self.content {
                Content::Students => Some(Difference::without_spread(b.value - a.value, WithoutSpread::Paper)),
                // The paper's epsilons are for other votes.
                Content::Epsilon(_) => None,
                _ => Some(Difference::plain(b.value - a.value)),
            };
        };
        if !matches!(self.content, Content::Students) {
            return (a.of == b.of).then(|| Difference::plain(b.value - a.value));
        }
        let students = |row: &ReportRow| -> Vec<(String, u64)> {
            row.students.iter().map(|student| (student.stage.clone(), student.accuracy.to_bits())).collect()
        };
        if students(first) == students(second) {
            return Some(Difference::without_spread(0.0, WithoutSpread::SameStudents));
        }
        Difference::of_means(&accuracies(first), &accuracies(second))
    }
}

/// Returns the accuracies of a row's students, in percent.
fn accuracies(row: &ReportRow) -> Vec<f64> {
    row.students.iter().map(|student| 100.0 * student.accuracy).collect()
}

fn claim_differences(accounts: &[Option<&Account>]) -> Vec<ClaimDifference> {
    let claims: Vec<Option<Value>> =
        accounts.iter().map(|account| account.and_then(|account| serde_json::to_value(account).ok())).collect();
    let fields = MEANING.map(|field| (field, true)).into_iter().chain(SETTING.map(|field| (field, false)));
    let difference = |(field, changes_meaning): (&'static str, bool)| {
        let values: Vec<Option<Value>> = claims.iter().map(|claim| Some(claim.as_ref()?[field].clone())).collect();
        let mut known = values.iter().flatten();
        let first = known.next()?;
        known.any(|value| value != first).then_some(ClaimDifference { field, values, changes_meaning })
    };
    fields.filter_map(difference).collect()
}

/// Compares the figures of a row that at least two columns contain.
pub(super) fn of_row(row: &[Option<SideRow<'_>>]) -> Vec<FigureComparison> {
    let compare = |column: &Column| {
        let (figure, paper_value) = column.compared?;
        let values: Vec<Option<Measure>> =
            row.iter().map(|row| row.and_then(|row| column.measure(paper_value, row))).collect();
        let accounts: Vec<Option<&Account>> = row.iter().map(|row| column.account(row.as_ref()?)).collect();
        let claims = claim_differences(&accounts);
        let difference = |(index, second): (usize, &Option<SideRow<'_>>)| {
            let means_other = |claim: &ClaimDifference| claim.changes_meaning && claim.values[index] != claim.values[0];
            let first = row[0].filter(|_| index > 0 && !claims.iter().any(means_other))?;
            column.difference(paper_value, first, (*second)?)
        };
        let differences = row.iter().enumerate().map(difference).collect();
        let digits = if let Content::Number(digits, _) = column.content { digits } else { 2 };
        let (title, is_epsilon) = (column.head, matches!(column.content, Content::Epsilon(_)));
        Some(FigureComparison { figure, title, digits, is_epsilon, values, differences, claims })
    };
    COLUMNS.iter().filter_map(compare).filter(FigureComparison::is_shared).collect()
}

/// Compares the figures of runs, in this number of columns.
pub(super) fn of_runs(reports: &[&Report], columns: usize) -> Vec<FigureComparison> {
    let compare = |&(figure, title, digits, value): &(&'static str, &'static str, usize, RunFigure)| {
        let measure = |column: usize| reports.get(column).and_then(|report| value(report)).map(Measure::plain);
        let values: Vec<Option<Measure>> = (0..columns).map(measure).collect();
        let difference = |(index, value): (usize, &Option<Measure>)| {
            let first = values[0].as_ref().filter(|_| index > 0)?;
            Some(Difference::plain(value.as_ref()?.value - first.value))
        };
        let differences = values.iter().enumerate().map(difference).collect();
        FigureComparison { figure, title, digits, is_epsilon: false, values, differences, claims: Vec::new() }
    };
    OF_RUNS.iter().map(compare).filter(FigureComparison::is_shared).collect()
}

impl FigureComparison {
    /// Returns whether at least two columns contain the figure.
    fn is_shared(&self) -> bool {
        self.values.iter().flatten().count() > 1
    }
}
