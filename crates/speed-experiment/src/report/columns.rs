//! The table's columns: every column is defined in [`COLUMNS`] and nowhere else.

use speed_accountant::{Account, epsilon_text};

use crate::report::classification::Classification;
use crate::report::row::{AggregationKind, PaperFigures, ReportRow};
use crate::report::run::{Report, title_of};
use crate::report::table::{NO_VALUE, Table};

/// The heads of the columns of epsilons; the first two may be published.
pub(crate) const DATA_INDEPENDENT: &str = "ε data-independent";
pub(crate) const DATA_INDEPENDENT_PARTY: &str = "ε one party";
pub(crate) const DATA_DEPENDENT: &str = "ε data-dependent";
/// The head of the column of the same claim if the adversary knows the other teachers' noise.
pub(crate) const DATA_DEPENDENT_COLLUSION: &str = "ε data-dependent collusion";
pub(crate) const PAPER_FORMULAS: &str = "ε paper formulas";
/// The heads of columns that sweeps have too.
pub(crate) const LABELS: &str = "labels %";
pub(crate) const STUDENTS: &str = "student %";
pub(crate) const BALANCED: &str = "student balanced %";
pub(crate) const ROW: &str = "row";
/// The cell of a missing epsilon in a row with noise.
pub(crate) const NONE: &str = "none";

pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) content: Content,
    pub(crate) compared: Option<Compared>,
    summary: InSummary,
    /// Whether a machine determines it, not only config and seed.
    is_measured: bool,
    /// Whether a row with a data-independent claim may show it to everyone.
    is_public: bool,
    legend: Legend,
}

pub(crate) enum Content {
    Text(fn(&ReportRow) -> Option<String>),
    /// An epsilon with its claim, rounded up.
    Epsilon(fn(&ReportRow) -> Option<&Account>),
    /// A number of queries, with the number of all queries.
    Count(fn(&ReportRow) -> Option<usize>),
    /// A number with this many decimal places.
    Number(usize, fn(&ReportRow) -> Option<f64>),
    /// The mean accuracy of the students and its deviation, in percent.
    Students,
}

/// Returns the paper's value and its standard deviation, if the paper has them.
pub(crate) type PaperValue = fn(&PaperFigures) -> Option<(f64, Option<f64>)>;

/// The figure of a column in comparisons: its name in JSON, and the paper's value.
pub(crate) type Compared = (&'static str, PaperValue);

enum InSummary {
    Always,
    /// If rows differ in it.
    IfDifferent,
    /// If a class has at least twice as many test images as another one.
    IfUnequal,
    Never,
}

enum Legend {
    Always(&'static str),
    /// Only if a row has a value.
    IfPresent(&'static str),
    /// The legend of another column explains it.
    Elsewhere,
}

impl Column {
    const fn new(head: &'static str, content: Content, legend: Legend) -> Self {
        Self { head, content, compared: None, summary: InSummary::Never, is_measured: false, is_public: true, legend }
    }

    const fn compared(mut self, key: &'static str) -> Self {
        self.compared = Some((key, |_| None));
        self
    }

    const fn compared_with_paper(mut self, key: &'static str, paper: PaperValue) -> Self {
        self.compared = Some((key, paper));
        self
    }

    const fn in_summary(mut self, summary: InSummary) -> Self {
        self.summary = summary;
        self
    }

    const fn measured(mut self) -> Self {
        self.is_measured = true;
        self
    }

    const fn secret(mut self) -> Self {
        self.is_public = false;
        self
    }

    fn cell(&self, row: &ReportRow) -> Option<String> {
        match self.content {
            Content::Text(text) => text(row),
            Content::Epsilon(account) => account(row).map(|account| epsilon_text(account.epsilon)),
            Content::Count(count) => count(row).map(|count| format!("{count}/{}", row.queries)),
            Content::Number(digits, value) => value(row).map(|value| format!("{value:.digits$}")),
            Content::Students => {
                let deviation = row.student_deviation.map(|deviation| 100.0 * deviation);
                row.student_mean.map(|mean| plus_minus((100.0 * mean, deviation)))
            }
        }
    }

    /// Returns the cell of a row in a summary, which marks a missing data-independent epsilon.
    fn summary_cell(&self, row: &ReportRow) -> Option<String> {
        let is_missing = self.head == DATA_INDEPENDENT && row.is_noisy();
        self.cell(row).or_else(|| is_missing.then(|| NONE.to_owned()))
    }

    fn is_in_summary(&self, report: &Report) -> bool {
        match self.summary {
            InSummary::Always => true,
            InSummary::Never => false,
            InSummary::IfUnequal => {
                report.rows.iter().filter_map(|row| row.classification.as_ref()).any(Classification::is_unequal)
            }
            InSummary::IfDifferent => {
                let cells: Vec<_> = report.rows.iter().map(|row| self.cell(row)).collect();
                cells.iter().any(|cell| cell.is_some() && *cell != cells[0])
            }
        }
    }

    /// Returns the entry of the legend: the head and its meaning, if it is explained here.
    fn legend(&self) -> String {
        let (Legend::Always(text) | Legend::IfPresent(text)) = self.legend else { return String::new() };
        let indent = format!("\n{:LEGEND_INDENT$}", "");
        let head = if self.head.chars().count() < LEGEND_INDENT {
            format!("{:<LEGEND_INDENT$}", self.head)
        } else {
            format!("{}{indent}", self.head)
        };
        format!("{head}{}\n", text.replace('\n', &indent))
    }
}

const LEGEND_INDENT: usize = 13;

/// The columns of the table after the row's name, in their order. The epsilon that may be published precedes the
/// others.
pub(crate) static COLUMNS: &[Column] = &[
    Column::new(
        DATA_INDEPENDENT,
        Content::Epsilon(|row| row.data_independent.as_ref()),
        Legend::Always("holds for all votes: both directions, dropout or collusion, rounded up; may be published."),
    )
    .compared("epsilon_data_independent")
    .in_summary(InSummary::Always),
    Column::new(
        DATA_INDEPENDENT_PARTY,
        Content::Epsilon(|row| row.data_independent_party.as_ref()),
        Legend::IfPresent(
            "the same if all votes of one party may differ, not only those of one of its teachers; may be published.",
        ),
    )
    .compared("epsilon_data_independent_party")
    .in_summary(InSummary::IfDifferent),
    Column::new(
        DATA_DEPENDENT,
        Content::Epsilon(|row| row.data_dependent.as_ref()),
        Legend::Always(
            "the tightest valid claim for the added integer noise, at these votes, rounded up: both\n\
             directions; neighbours differ in one teacher's vote; the noise of up to (1 - tau) n teachers is\n\
             missing, not known (dropout; central for Trusted); depends on the votes, so must not be published as it is.",
        ),
    )
    .compared("epsilon_data_dependent")
    .secret(),
    Column::new(
        DATA_DEPENDENT_COLLUSION,
        Content::Epsilon(|row| row.data_dependent_collusion.as_ref()),
        Legend::Always("the same if that noise is known to the adversary, or partly known and partly missing."),
    )
    .compared("epsilon_data_dependent_collusion")
    .secret(),
    Column::new(
        PAPER_FORMULAS,
        Content::Epsilon(|row| row.paper_formulas.as_ref()),
        Legend::Always(
            "Algorithm 1 with the paper's formulas for continuous noise, at these votes: one direction, dropout.",
        ),
    )
    .compared_with_paper("epsilon_paper_formulas", |paper| Some((paper.epsilon?, None)))
    .secret(),
    Column::new(
        "ε paper",
        Content::Number(2, |row| row.paper.epsilon),
        Legend::Always(
            "the paper's epsilon. Its accuracies are under \"paper %\", its homomorphic time under \"paper s\".",
        ),
    ),
    Column::new(
        LABELS,
        Content::Number(2, |row| row.label_accuracy.map(|share| 100.0 * share)),
        Legend::Always("right labels among the answered queries."),
    )
    .compared("right_labels_percent")
    .in_summary(InSummary::Always),
    Column::new(
        "labels balanced %",
        Content::Number(2, |row| row.label_balanced_accuracy.map(|share| 100.0 * share)),
        Legend::IfPresent("the mean over true classes of the share of right labels."),
    )
    .in_summary(InSummary::IfUnequal),
    Column::new(
        "student",
        Content::Text(|row| (!row.students.is_empty()).then(|| title_of(&row.method).to_owned())),
        Legend::Always(
            "GAN, conv GAN: the paper's for MNIST and for SVHN | ours: the student on pseudo-labels, on the same \
             labels and images; linear: on an encoder's vectors (docs/student.md).",
        ),
    )
    .in_summary(InSummary::IfDifferent),
    Column::new(
        STUDENTS,
        Content::Students,
        Legend::Always(
            "accuracy on test images, mean ± deviation of repeats; single students are in\n\
             tables/students.csv and students.svg.",
        ),
    )
    .compared_with_paper("student_percent", |paper| Some((paper.accuracy?, paper.deviation)))
    .in_summary(InSummary::Always),
    Column::new(
        BALANCED,
        Content::Number(2, |row| Some(100.0 * row.mean_of_students(|student| student.balanced_accuracy)?)),
        Legend::IfPresent(
            "the mean over classes of the share of right test images, so every class counts the same; mean of repeats.",
        ),
    )
    .in_summary(InSummary::IfUnequal),
    Column::new(
        "student AUC",
        Content::Number(4, |row| row.mean_of_students(|student| student.auc)),
        Legend::IfPresent(
            "two classes: probability that a test image of the second class is ranked above one of the first; mean \
             of repeats.",
        ),
    )
    .in_summary(InSummary::Always),
    Column::new(
        "paper %",
        Content::Text(|row| Some(plus_minus((row.paper.accuracy?, row.paper.deviation)))),
        Legend::Elsewhere,
    ),
    Column::new(
        "HE = clear",
        Content::Count(|row| (row.aggregation == AggregationKind::Encrypted).then_some(row.agreement)),
        Legend::Always("queries for which the homomorphic argmax gives the same label as the clear-text argmax."),
    )
    .compared("agreement")
    .in_summary(InSummary::Always)
    // The agreement of the two argmaxes depends on ties, which the labels do not reveal.
    .secret(),
    Column::new(
        "answered",
        Content::Count(|row| row.answered),
        Legend::IfPresent(
            "queries with an answer, where the noisy maximum must reach the row's threshold; the others stay without \
             a label.",
        ),
    )
    .compared("answered")
    .in_summary(InSummary::Always),
    Column::new(
        "unresolved",
        Content::Count(|row| row.unresolved),
        Legend::IfPresent(
            "queries for which the paper's circuit found no winner or several; they stay without a label. For tied\n\
             counts the clear-text argmax takes the lowest class, the paper's circuit any of them.",
        ),
    )
    .compared("unresolved")
    .in_summary(InSummary::Always),
    Column::new(
        "HE s",
        Content::Number(1, |row| Some(row.encrypted_times.as_ref()?.argmax_seconds)),
        Legend::Always(
            "wall-clock time of the homomorphic argmax, all queries. core-s/query: processor time of the round per \
             query.",
        ),
    )
    .compared_with_paper("argmax_seconds", |paper| Some((60.0 * paper.minutes?, None)))
    .in_summary(InSummary::Always)
    .measured(),
    Column::new(
        "core-s/query",
        Content::Number(2, |row| {
            let times = row.encrypted_times.as_ref()?;
            Some(times.core_seconds? / times.query_seconds.len().max(1) as f64)
        }),
        Legend::Elsewhere,
    )
    .compared("core_seconds_per_query")
    .measured(),
    Column::new("paper s", Content::Number(0, |row| row.paper.minutes.map(|minutes| 60.0 * minutes)), Legend::Elsewhere)
        .measured(),
];

impl Report {
    /// Returns the table without times: byte-identical for the same config and seed.
    pub(crate) fn table(&self) -> Table {
        self.table_of(|column| !column.is_measured, Column::cell)
    }

    /// Returns the most important columns; with real noise, the public ones only. A row with noise but without a
    /// data-independent epsilon is marked.
    pub fn summary(&self) -> Table {
        self.table_of(|column| column.is_in_summary(self) && self.is_for_anyone(column), Column::summary_cell)
    }

    pub(crate) fn table_with_times(&self) -> Table {
        self.table_of(|_| true, Column::cell)
    }

    /// Returns the public columns with the homomorphic times; all columns if no answers are protected.
    pub(crate) fn table_for_anyone(&self) -> Table {
        self.table_of(|column| self.is_for_anyone(column), Column::cell)
    }

    fn is_for_anyone(&self, column: &Column) -> bool {
        column.is_public || !self.is_protected()
    }

    /// Returns the columns that are shown and have a value in a row.
    fn table_of(&self, is_shown: impl Fn(&Column) -> bool, cell: fn(&Column, &ReportRow) -> Option<String>) -> Table {
        let shown: Vec<&Column> = COLUMNS.iter().filter(|column| is_shown(column)).collect();
        let mut table = Table::new(std::iter::once(ROW).chain(shown.iter().map(|column| column.head)));
        for row in &self.rows {
            let cells = shown.iter().map(|column| cell(column, row).unwrap_or_else(dash));
            table.push(std::iter::once(row.name.clone()).chain(cells).collect());
        }
        table.without_empty_columns()
    }

    /// Returns the meaning of the columns.
    pub fn legend(&self) -> String {
        let always = COLUMNS.iter().filter(|column| matches!(column.legend, Legend::Always(_)));
        let is_present = |column: &&Column| {
            matches!(column.legend, Legend::IfPresent(_)) && self.rows.iter().any(|row| column.cell(row).is_some())
        };
        always.chain(COLUMNS.iter().filter(is_present)).map(Column::legend).collect()
    }
}

impl ReportRow {
    /// Returns its claims in the order of their columns, each with its columns.
    pub(crate) fn claims(&self) -> Vec<(&Account, Vec<&'static str>)> {
        let mut claims: Vec<(&Account, Vec<&'static str>)> = Vec::new();
        for column in COLUMNS {
            let Content::Epsilon(account) = column.content else { continue };
            let Some(account) = account(self) else { continue };
            match claims.iter_mut().find(|(other, _)| other.claim == account.claim) {
                Some((_, columns)) => columns.push(column.head),
                None => claims.push((account, vec![column.head])),
            }
        }
        claims
    }
}

/// Returns the reasons why rows with noise have no data-independent epsilon, each with the names of its rows.
pub fn without_epsilon<'a>(rows: impl IntoIterator<Item = &'a ReportRow>) -> Vec<(String, Vec<String>)> {
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
pub fn largest_epsilon<'a>(rows: impl IntoIterator<Item = &'a ReportRow>) -> Option<f64> {
    let epsilons = rows.into_iter().filter_map(|row| row.data_independent.as_ref()).map(|account| account.epsilon);
    epsilons.max_by(f64::total_cmp)
}

pub(super) fn plus_minus((mean, deviation): (f64, Option<f64>)) -> String {
    deviation.map_or_else(|| format!("{mean:.2}"), |deviation| format!("{mean:.2} ± {deviation:.2}"))
}

pub(crate) fn dash() -> String {
    NO_VALUE.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_head_has_a_line_of_its_own_in_the_legend() {
        let entry = |head: &str| COLUMNS.iter().find(|column| column.head == head).expect("a column").legend();
        let indent = " ".repeat(5);
        assert_eq!(entry(LABELS), format!("labels %{indent}right labels among the answered queries.\n"));
        let indent = " ".repeat(13);
        assert!(entry(DATA_INDEPENDENT).starts_with(&format!("ε data-independent\n{indent}holds for all votes")));
        assert!(entry(BALANCED).starts_with("student balanced %\n"));
        assert_eq!(entry("paper %"), "");
    }
}
