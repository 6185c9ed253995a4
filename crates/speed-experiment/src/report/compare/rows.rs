//! Comparison of the rows with the same name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::figures::{self, FigureComparison, SideRow};
use crate::report::row::{PaperFigures, ReportRow};
use crate::report::run::Report;

/// The name of the paper's column, which is the last one.
pub(super) const PAPER: &str = "paper";

/// A row in all columns that contain it.
#[derive(Clone, Debug, Serialize)]
pub struct RowComparison {
    /// Its name.
    pub name: String,
    /// The columns without this row.
    pub missing_in: Vec<String>,
    /// The figures that at least two columns contain.
    pub figures: Vec<FigureComparison>,
}

/// The rows of a report by name; if two have the same name, the first one counts.
type ByName<'a> = BTreeMap<&'a str, &'a ReportRow>;

/// Compares all rows of all runs, in order of first occurrence.
pub(super) fn compare(reports: &[&Report], labels: &[String]) -> Vec<RowComparison> {
    let tables: Vec<ByName<'_>> = reports.iter().map(|report| by_name(report)).collect();
    let mut seen = BTreeSet::new();
    let names = reports.iter().flat_map(|report| &report.rows).map(|row| row.name.as_str());
    let names = names.filter(|name| seen.insert(*name));
    let row = |name: &str| {
        let runs = tables.iter().map(|table| table.get(name).copied().map(SideRow::Run));
        let paper = (labels.len() > tables.len()).then(|| paper_of(&tables, name).map(SideRow::Paper));
        let row: Vec<Option<SideRow<'_>>> = runs.chain(paper).collect();
        let missing = labels.iter().zip(&row).filter(|(_, row)| row.is_none()).map(|(label, _)| label.clone());
        RowComparison { name: name.to_owned(), missing_in: missing.collect(), figures: figures::of_row(&row) }
    };
    names.map(row).collect()
}

fn by_name(report: &Report) -> ByName<'_> {
    report.rows.iter().rev().map(|row| (row.name.as_str(), row)).collect()
}

/// Returns the paper's figures for a row, from the first run that has any.
fn paper_of<'a>(tables: &[ByName<'a>], name: &str) -> Option<&'a PaperFigures> {
    tables.iter().filter_map(|table| table.get(name)).map(|row| &row.paper).find(|paper| carries_any(paper))
}

fn carries_any(paper: &PaperFigures) -> bool {
    *paper != PaperFigures::default()
}

/// Notes the runs whose figures of the paper differ, for example because they are from different tables.
pub(super) fn other_paper_figures<'a>(
    reports: &'a [&Report],
    labels: &'a [String],
) -> impl Iterator<Item = String> + 'a {
    let tables: Vec<ByName<'_>> = reports.iter().map(|report| by_name(report)).collect();
    let names: BTreeSet<&str> = tables.iter().flat_map(|table| table.keys().copied()).collect();
    names.into_iter().filter_map(move |name| {
        let carrying = tables.iter().zip(labels).filter_map(|(table, label)| Some((table.get(name)?.paper, label)));
        let mut carrying = carrying.filter(|(paper, _)| carries_any(paper));
        let (first, from) = carrying.next()?;
        let (_, other) = carrying.find(|(paper, _)| *paper != first)?;
        Some(format!(
            "row {name:?}: {from} and {other} have different figures of the paper; the figures of {from} are shown"
        ))
    })
}

/// Notes the differences between the claims of one figure; each note appears once, with all its places.
pub(super) fn notes(rows: &[RowComparison], labels: &[String]) -> Vec<String> {
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut note = |text: String, place: String| {
        let index = *places.entry(text.clone()).or_insert(notes.len());
        match notes.get_mut(index) {
            Some((_, places)) => places.push(place),
            None => notes.push((text, vec![place])),
        }
    };
    for row in rows {
        for figure in row.figures.iter().filter(|figure| figure.is_epsilon) {
            let place = format!("{} ({})", figure.title, row.name);
            for claim in &figure.claims {
                let values = labels
                    .iter()
                    .zip(&claim.values)
                    .filter_map(|(label, value)| value.as_ref().map(|value| format!("{label} {}", shown(value))));
                let values = values.collect::<Vec<_>>().join(", ");
                let meaning = if claim.changes_meaning {
                    "claims with different meanings, so no difference is computed"
                } else {
                    "claims about different settings"
                };
                note(format!("{meaning}: {} is {values}", claim.field), place.clone());
            }
            let is_paper = |(label, value): (&String, &Option<_>)| label == PAPER && value.is_some();
            if labels.iter().zip(&figure.values).any(is_paper) {
                let text =
                    "the paper's epsilon is for PATE's published votes, not for these, so no difference is computed";
                note(text.to_owned(), place);
            }
        }
    }
    notes.into_iter().map(|(text, places)| format!("{text}: {}", places.join(", "))).collect()
}

/// Formats a value of a report as TOML.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        // As in a claim: 1e-5.
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or_else(|| number.to_string(), |number| format!("{number:?}"))
        }
        value => value.to_string(),
    }
}
