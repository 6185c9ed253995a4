//! The table of a run; each epsilon links to its claim and shows it on hover.

use maud::{Markup, html};
use speed_accountant::Account;
use speed_accountant::epsilon_text;

use super::frame::{folded, verbatim, wide};
use crate::report::encoder::FROM_PUBLIC_DATA;
use crate::report::run::Report;
use crate::report::table::Table;

/// A claim below the table.
struct Footnote {
    row: String,
    columns: String,
    epsilon: String,
    claim: String,
}

/// The claims of a report, each once even if it belongs to several rows or columns.
#[derive(Default)]
struct Footnotes(Vec<Footnote>);

impl Footnotes {
    /// Returns the number of a claim, from 1.
    fn number(&mut self, row: &str, account: &Account, columns: &[&str]) -> usize {
        let (claim, epsilon) = (account.claim.to_string(), epsilon_text(account.epsilon));
        let is_same = |note: &Footnote| note.claim == claim && note.epsilon == epsilon;
        if let Some(place) = self.0.iter().position(is_same) {
            return place + 1;
        }
        self.0.push(Footnote { row: row.to_owned(), columns: columns.join(" and "), epsilon, claim });
        self.0.len()
    }
}

/// Returns the table of `report`, its claims, and the meanings of its columns.
pub(super) fn results(report: &Report, table: &Table) -> Markup {
    let mut notes = Footnotes::default();
    // For each row: the columns with a claim, and the claim's number.
    let claims: Vec<Vec<(&str, usize)>> = report
        .rows
        .iter()
        .map(|row| {
            let claims = row.claims().into_iter();
            claims
                .flat_map(|(account, columns)| {
                    let number = notes.number(&row.name, account, &columns);
                    columns.into_iter().map(move |column| (column, number))
                })
                .collect()
        })
        .collect();
    let cell = |row: usize, column: usize| {
        let text = &table.rows()[row][column];
        let of_column = claims[row].iter().find(|(name, _)| *name == table.columns()[column]);
        match of_column.and_then(|(_, number)| Some((number, notes.0.get(number - 1)?))) {
            Some((number, note)) => html! {
                a href={ "#claim-" (number) } title=(note.claim) { (text) sup { (number) } }
            },
            None => html! { (text) },
        }
    };
    html! {
        @if table.rows().is_empty() { p { "No row of this run may be shown." } } @else { (wide("Results", &html! {
            table {
                thead { tr { @for head in table.columns() { th scope="col" { (head) } } } }
                tbody {
                    @for row in 0..table.rows().len() {
                        tr {
                            th scope="row" { (table.rows()[row][0]) }
                            @for column in 1..table.columns().len() { td { (cell(row, column)) } }
                        }
                    }
                }
            }
        })) }
        @if !notes.0.is_empty() {
            (folded(&format!("Claims in full ({})", notes.0.len()), &html! {
                ol.claims {
                    @for (index, note) in notes.0.iter().enumerate() {
                        li id={ "claim-" (index + 1) } {
                            strong { (note.epsilon) } " (" (note.row) ", " (note.columns) "): " (note.claim)
                        }
                    }
                }
                @if let Some(encoder) = &report.encoder { p { (FROM_PUBLIC_DATA) " Here it is " (encoder.in_words()) "." } }
            }))
        }
        @if !without_value(report).is_empty() {
            h3 { "Bounds without a value" }
            ul { @for (row, why) in without_value(report) { li { (row) ": " (why) } } }
        }
        (folded("Meaning of the columns", &verbatim("Columns", &report.legend())))
    }
}

/// Returns the bounds of rows without a value, and the reasons.
fn without_value(report: &Report) -> Vec<(&str, &str)> {
    let own = report.rows.iter().filter(|row| row.labels_of.is_empty());
    own.flat_map(|row| row.without_value.iter().map(|why| (row.name.as_str(), why.as_str()))).collect()
}
