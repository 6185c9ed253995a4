//! The figures of rows and runs, and their differences.

use serde::Serialize;
use speed_accountant::Account;

use super::Side;
use super::claims::{self, ClaimDifference};
use super::spread::{Difference, WithoutSpread};
use crate::config::{AggregationKind, PaperFigures};
use crate::report::{Report, ReportRow, mean_and_deviation};

/// A figure of a row or of a run, in the order of the report's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are those of the report's columns")]
pub enum Figure {
    EpsilonDataIndependent,
    EpsilonDataDependent,
    EpsilonDataDependentCollusion,
    EpsilonPaperFormulas,
    RightLabelsPercent,
    StudentPercent,
    Agreement,
    Answered,
    Unresolved,
    ArgmaxSeconds,
    CoreSecondsPerQuery,
    TeachersPercent,
    PluralityPercent,
    StagesSeconds,
}

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

/// A row in one column.
#[derive(Clone, Copy)]
pub(super) enum SideRow<'a> {
    Run(&'a ReportRow),
    Paper(&'a PaperFigures),
}

impl Figure {
    const OF_ROWS: [Self; 11] = [
        Self::EpsilonDataIndependent,
        Self::EpsilonDataDependent,
        Self::EpsilonDataDependentCollusion,
        Self::EpsilonPaperFormulas,
        Self::RightLabelsPercent,
        Self::StudentPercent,
        Self::Agreement,
        Self::Answered,
        Self::Unresolved,
        Self::ArgmaxSeconds,
        Self::CoreSecondsPerQuery,
    ];
    const OF_RUNS: [Self; 3] = [Self::TeachersPercent, Self::PluralityPercent, Self::StagesSeconds];

    /// Returns the figure's name, equal to the name of the report's column if there is one.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::EpsilonDataDependent => "ε data-dependent",
            Self::EpsilonDataDependentCollusion => "ε data-dependent collusion",
            Self::EpsilonDataIndependent => "ε data-independent",
            Self::EpsilonPaperFormulas => "ε paper formulas",
            Self::RightLabelsPercent => "labels %",
            Self::StudentPercent => "student %",
            Self::Agreement => "HE = clear",
            Self::Answered => "answered",
            Self::Unresolved => "unresolved",
            Self::ArgmaxSeconds => "HE s",
            Self::CoreSecondsPerQuery => "core-s/query",
            Self::TeachersPercent => "teachers %",
            Self::PluralityPercent => "plurality %",
            Self::StagesSeconds => "all stages s",
        }
    }

    /// Returns whether it is an epsilon.
    pub(super) fn is_epsilon(self) -> bool {
        matches!(
            self,
            Self::EpsilonDataDependent
                | Self::EpsilonDataDependentCollusion
                | Self::EpsilonDataIndependent
                | Self::EpsilonPaperFormulas
        )
    }

    /// Returns the claim of an epsilon of a run.
    fn account(self, row: &ReportRow) -> Option<&Account> {
        match self {
            Self::EpsilonDataDependent => row.data_dependent.as_ref(),
            Self::EpsilonDataDependentCollusion => row.data_dependent_collusion.as_ref(),
            Self::EpsilonDataIndependent => row.data_independent.as_ref(),
            Self::EpsilonPaperFormulas => row.paper_formulas.as_ref(),
            _ => None,
        }
    }

    fn of_row(self, row: &ReportRow) -> Option<Measure> {
        match self {
            Self::RightLabelsPercent => row.label_accuracy.map(|share| Measure::plain(100.0 * share)),
            Self::StudentPercent => {
                let accuracies = accuracies(row);
                let (mean, deviation) = mean_and_deviation(&accuracies);
                mean.map(|value| Measure { deviation, students: Some(accuracies.len()), ..Measure::plain(value) })
            }
            Self::Agreement => {
                (row.aggregation == AggregationKind::Encrypted).then(|| Measure::count(row.agreement, row.queries))
            }
            Self::Answered => row.answered.map(|count| Measure::count(count, row.queries)),
            Self::Unresolved => row.unresolved.map(|count| Measure::count(count, row.queries)),
            Self::ArgmaxSeconds => row.encrypted_times.as_ref().map(|times| Measure::plain(times.argmax_seconds)),
            Self::CoreSecondsPerQuery => row.encrypted_times.as_ref()?.core_seconds_per_query().map(Measure::plain),
            epsilon => epsilon.account(row).map(|account| Measure::plain(account.epsilon)),
        }
    }

    fn of_paper(self, paper: &PaperFigures) -> Option<Measure> {
        match self {
            Self::EpsilonPaperFormulas => paper.epsilon.map(Measure::plain),
            Self::StudentPercent => {
                paper.accuracy.map(|value| Measure { deviation: paper.deviation, ..Measure::plain(value) })
            }
            Self::ArgmaxSeconds => paper.minutes.map(|minutes| Measure::plain(60.0 * minutes)),
            _ => None,
        }
    }

    fn of_run(self, report: &Report) -> Option<Measure> {
        let percent = |share: Option<f64>| share.map(|share| Measure::plain(100.0 * share));
        match self {
            Self::TeachersPercent => percent(report.ensemble.mean_accuracy),
            Self::PluralityPercent => percent(report.ensemble.plurality_accuracy),
            _ => Some(Measure::plain(report.stage_times.iter().map(|stage| stage.seconds).sum())),
        }
    }

    /// Returns the difference of the figure in `second` from the figure in `first`. `None` if either has no value, or
    /// is an epsilon for other votes.
    fn difference(self, first: SideRow<'_>, second: SideRow<'_>) -> Option<Difference> {
        let (a, b) = (self.of(first)?, self.of(second)?);
        let (SideRow::Run(first), SideRow::Run(second)) = (first, second) else {
            return match self {
                Self::StudentPercent => Some(Difference::without_spread(b.value - a.value, WithoutSpread::Paper)),
                // The paper's epsilons are for other votes.
                _ if self.is_epsilon() => None,
                _ => Some(Difference::plain(b.value - a.value)),
            };
        };
        if self != Self::StudentPercent {
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

    fn of(self, row: SideRow<'_>) -> Option<Measure> {
        match row {
            SideRow::Run(row) => self.of_row(row),
            SideRow::Paper(paper) => self.of_paper(paper),
        }
    }
}

/// Returns the accuracies of a row's students, in percent.
fn accuracies(row: &ReportRow) -> Vec<f64> {
    row.students.iter().map(|student| 100.0 * student.accuracy).collect()
}

/// Compares the figures of a row that at least two columns contain.
pub(super) fn of_row(row: &[Option<SideRow<'_>>]) -> Vec<FigureComparison> {
    let compare = |figure: Figure| {
        let values: Vec<Option<Measure>> = row.iter().map(|row| row.and_then(|row| figure.of(row))).collect();
        let accounts: Vec<Option<&Account>> = row
            .iter()
            .map(|row| match row {
                Some(SideRow::Run(row)) => figure.account(row),
                _ => None,
            })
            .collect();
        let claims = claims::differences(&accounts);
        let difference = |(index, second): (usize, &Option<SideRow<'_>>)| {
            let first = row[0].filter(|_| index > 0 && !claims::is_other_claim(&claims, index))?;
            figure.difference(first, (*second)?)
        };
        let differences = row.iter().enumerate().map(difference).collect();
        FigureComparison { figure, values, differences, claims }
    };
    Figure::OF_ROWS.into_iter().map(compare).filter(FigureComparison::is_shared).collect()
}

/// Compares the figures of runs.
pub(super) fn of_runs(sides: &[Side<'_>]) -> Vec<FigureComparison> {
    let compare = |figure: Figure| {
        let of = |side: &Side<'_>| match side {
            Side::Run(report) => figure.of_run(report),
            Side::Paper => None,
        };
        let values: Vec<Option<Measure>> = sides.iter().map(of).collect();
        let difference = |(index, value): (usize, &Option<Measure>)| {
            let first = values[0].as_ref().filter(|_| index > 0)?;
            Some(Difference::plain(value.as_ref()?.value - first.value))
        };
        let differences = values.iter().enumerate().map(difference).collect();
        FigureComparison { figure, values, differences, claims: Vec::new() }
    };
    Figure::OF_RUNS.into_iter().map(compare).filter(FigureComparison::is_shared).collect()
}

impl FigureComparison {
    /// Returns whether at least two columns contain the figure.
    fn is_shared(&self) -> bool {
        self.values.iter().flatten().count() > 1
    }
}
