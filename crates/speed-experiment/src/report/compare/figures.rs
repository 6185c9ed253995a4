//! The figures of rows and runs, and their differences.

use std::fmt;

use serde::{Serialize, Serializer};
use speed_accountant::Account;

use super::claims::{self, ClaimDifference};
use super::side::{Side, SideRow};
use super::spread::{Difference, WithoutSpread};
use crate::report::columns::{COLUMNS, Column, Compared, Content};
use crate::report::row::ReportRow;
use crate::report::run::Report;
use crate::report::statistics::mean_and_deviation;

/// A figure of a row or of a run. It is serialized as its key.
#[derive(Clone, Copy)]
pub struct Figure(Kind);

#[derive(Clone, Copy)]
enum Kind {
    /// A column of the table, with its part in comparisons.
    OfRows(&'static Column, &'static Compared),
    OfRuns(&'static RunFigure),
}

/// A figure of a run as opposed to its rows.
struct RunFigure {
    key: &'static str,
    title: &'static str,
    digits: usize,
    value: fn(&Report) -> Option<f64>,
}

/// The figures of runs, in their order.
static OF_RUNS: [RunFigure; 3] = [
    RunFigure {
        key: "teachers_percent",
        title: "teachers %",
        digits: 2,
        value: |report| report.ensemble.mean_accuracy.map(|share| 100.0 * share),
    },
    RunFigure {
        key: "plurality_percent",
        title: "plurality %",
        digits: 2,
        value: |report| report.ensemble.plurality_accuracy.map(|share| 100.0 * share),
    },
    RunFigure {
        key: "stages_seconds",
        title: "all stages s",
        digits: 1,
        value: |report| Some(report.stage_times.iter().map(|stage| stage.seconds).sum()),
    },
];

/// A figure of one run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
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

/// A figure in all runs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct FigureComparison {
    /// The figure.
    pub figure: Figure,
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
        Self { value, deviation: None, students: None, of: None }
    }

    fn count(value: usize, of: usize) -> Self {
        Self { of: Some(of), ..Self::plain(value as f64) }
    }
}

impl Figure {
    /// Returns the figure's name in JSON.
    pub(crate) fn key(self) -> &'static str {
        match self.0 {
            Kind::OfRows(_, compared) => compared.key,
            Kind::OfRuns(figure) => figure.key,
        }
    }

    /// Returns the figure's name, equal to the head of the table's column if there is one.
    pub(crate) fn title(self) -> &'static str {
        match self.0 {
            Kind::OfRows(column, _) => column.head,
            Kind::OfRuns(figure) => figure.title,
        }
    }

    /// Returns the number of decimal places of its values.
    pub(super) fn digits(self) -> usize {
        match self.0 {
            Kind::OfRows(Column { content: Content::Number(digits, _), .. }, _) => *digits,
            Kind::OfRows(..) => 2,
            Kind::OfRuns(figure) => figure.digits,
        }
    }

    /// Returns whether it is an epsilon.
    pub(super) fn is_epsilon(self) -> bool {
        matches!(self.0, Kind::OfRows(Column { content: Content::Epsilon(_), .. }, _))
    }
}

impl fmt::Debug for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Figure").field(&self.key()).finish()
    }
}

impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

impl Column {
    /// Returns the claim of an epsilon of a run.
    fn account<'a>(&self, row: &SideRow<'a>) -> Option<&'a Account> {
        match (&self.content, row) {
            (Content::Epsilon(account), SideRow::Run(row)) => account(row),
            _ => None,
        }
    }

    fn measure(&self, compared: &Compared, row: SideRow<'_>) -> Option<Measure> {
        let row = match row {
            SideRow::Run(row) => row,
            SideRow::Paper(paper) => {
                let (value, deviation) = (compared.paper)(paper)?;
                return Some(Measure { deviation, ..Measure::plain(value) });
            }
        };
        match self.content {
            Content::Text(_) => None,
            Content::Epsilon(account) => account(row).map(|account| Measure::plain(account.epsilon)),
            Content::Count(count) => count(row).map(|count| Measure::count(count, row.queries)),
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
    fn difference(&self, compared: &Compared, first: SideRow<'_>, second: SideRow<'_>) -> Option<Difference> {
        let (a, b) = (self.measure(compared, first)?, self.measure(compared, second)?);
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

/// Compares the figures of a row that at least two columns contain.
pub(super) fn of_row(row: &[Option<SideRow<'_>>]) -> Vec<FigureComparison> {
    let compare = |column: &'static Column| {
        let compared = column.compared.as_ref()?;
        let values: Vec<Option<Measure>> =
            row.iter().map(|row| row.and_then(|row| column.measure(compared, row))).collect();
        let accounts: Vec<Option<&Account>> = row.iter().map(|row| column.account(row.as_ref()?)).collect();
        let claims = claims::differences(&accounts);
        let difference = |(index, second): (usize, &Option<SideRow<'_>>)| {
            let first = row[0].filter(|_| index > 0 && !claims::is_other_claim(&claims, index))?;
            column.difference(compared, first, (*second)?)
        };
        let differences = row.iter().enumerate().map(difference).collect();
        Some(FigureComparison { figure: Figure(Kind::OfRows(column, compared)), values, differences, claims })
    };
    COLUMNS.iter().filter_map(compare).filter(FigureComparison::is_shared).collect()
}

/// Compares the figures of runs.
pub(super) fn of_runs(sides: &[Side<'_>]) -> Vec<FigureComparison> {
    let compare = |figure: &'static RunFigure| {
        let of = |side: &Side<'_>| match side {
            Side::Run(report) => (figure.value)(report).map(Measure::plain),
            Side::Paper => None,
        };
        let values: Vec<Option<Measure>> = sides.iter().map(of).collect();
        let difference = |(index, value): (usize, &Option<Measure>)| {
            let first = values[0].as_ref().filter(|_| index > 0)?;
            Some(Difference::plain(value.as_ref()?.value - first.value))
        };
        let differences = values.iter().enumerate().map(difference).collect();
        FigureComparison { figure: Figure(Kind::OfRuns(figure)), values, differences, claims: Vec::new() }
    };
    OF_RUNS.iter().map(compare).filter(FigureComparison::is_shared).collect()
}

impl FigureComparison {
    /// Returns whether at least two columns contain the figure.
    fn is_shared(&self) -> bool {
        self.values.iter().flatten().count() > 1
    }
}
