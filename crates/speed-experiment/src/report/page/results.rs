//! The table of a run; each epsilon links to its claim and shows it on hover.

use maud::{Markup, html};
use speed_accountant::epsilon_text;

use super::frame::{folded, verbatim, wide};
use crate::report::run::{FROM_PUBLIC_DATA, Report};
use crate::report::table::Table;

struct Footnote {
    row: String,
    columns: String,
    epsilon: String,
    claim: String,
}

pub(super) fn results(report: &Report, table: &Table) -> Markup {
    // Each claim once, even if it belongs to several rows or columns.
    let mut notes: Vec<Footnote> = Vec::new();
    // For each row: the columns with a claim, and the place of its note.
    let mut claims: Vec<Vec<(&str, usize)>> = Vec::new();
    for row in &report.rows {
        let mut of_row = Vec::new();
        for (account, columns) in row.claims() {
            let (claim, epsilon) = (account.claim.to_string(), epsilon_text(account.epsilon));
            let known = notes.iter().position(|note| note.claim == claim && note.epsilon == epsilon);
            let place = known.unwrap_or(notes.len());
            if known.is_none() {
                notes.push(Footnote { row: row.name.clone(), columns: columns.join(" and "), epsilon, claim });
            }
            of_row.extend(columns.into_iter().map(|column| (column, place)));
        }
        claims.push(of_row);
    }
    let cell = |row: usize, column: usize| {
        let text = &table.rows[row][column];
        let of_column = claims[row].iter().find(|(name, _)| *name == table.columns()[column]);
        html! {
            @if let Some((_, place)) = of_column {
                a href={ "#claim-" (place + 1) } title=(notes[*place].claim) { (text) sup { (place + 1) } }
            } @else { (text) }
        }
    };
    html! {
        @if table.rows.is_empty() { p { "No row of this run may be shown." } } @else { (wide("Results", &html! {
            table {
                thead { tr { @for head in table.columns() { th scope="col" { (head) } } } }
                tbody {
                    @for row in 0..table.rows.len() {
                        tr {
                            th scope="row" { (table.rows[row][0]) }
                            @for column in 1..table.columns().len() { td { (cell(row, column)) } }
                        }
                    }
                }
            }
        })) }
        @if !notes.is_empty() {
            (folded(&format!("Claims in full ({})", notes.len()), &html! {
                ol.claims {
                    @for (index, note) in notes.iter().enumerate() {
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

fn without_value(report: &Report) -> Vec<(&str, &str)> {
    let own = report.rows.iter().filter(|row| row.labels_of.is_empty());
    own.flat_map(|row| row.without_value.iter().map(|why| (row.name.as_str(), why.as_str()))).collect()
}
