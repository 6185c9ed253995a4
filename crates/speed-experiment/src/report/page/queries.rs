//! The queries of a run: images, true labels, the labels given and, if they are public, the votes.

use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use speed_core::printable;

use super::frame::{data_uri, folded};
use crate::report::picture::{SHEET_COLUMNS, SHOWN_QUERIES, dimensions_of_whole};

/// Maximum total length of the names of all rows, in bytes.
const MAX_NAMES: usize = 20_000;

/// The queries of a run in order, and the labels of rows. In a simulation, and if no row has noise, the labels of all
/// rows are included. If the noise is real, only labels with a finite data-independent claim are included, and votes
/// are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskedQueries {
    /// The image of each query in the pool, or the typical image of its group.
    pub pool_images: Vec<usize>,
    /// The number of images of each query's group, if the queries are groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_sizes: Option<Vec<usize>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Vec<u8>>,
    /// Votes for each class, without noise; only if nothing is protected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub votes: Option<Vec<Vec<u32>>>,
    pub rows: Vec<RowAnswers>,
}

/// The labels of a row for its queries, which are the first of the run; `None` for a query without an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowAnswers {
    pub row: String,
    pub labels: Vec<Option<u8>>,
}

impl AskedQueries {
    /// Returns whether all lists have a valid length, because the file is untrusted input.
    pub(crate) fn is_whole(&self) -> bool {
        let queries = self.pool_images.len();
        self.truth.as_ref().is_none_or(|truth| truth.len() == queries)
            && self.group_sizes.as_ref().is_none_or(|sizes| sizes.len() == queries)
            && self.votes.as_ref().is_none_or(|votes| votes.len() == queries)
            && self.rows.iter().all(|row| row.labels.len() <= queries)
            // A page may show a name at every query.
            && self.names().map(String::len).sum::<usize>() <= MAX_NAMES
            && self.names().all(|row| !row.chars().any(char::is_control))
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.rows.iter().map(|row| &row.row)
    }
}

/// The sheet of the queries' pictures as a CSS style: each query shows a part of one PNG file.
pub(crate) struct Sheet {
    pub(super) style: String,
    rows: usize,
}

impl Sheet {
    /// Creates a sheet of `queries` queries; `None` unless it is a picture of a suitable size.
    pub(crate) fn new(png: &[u8], queries: usize) -> Option<Self> {
        let (width, height) = dimensions_of_whole(png)?;
        let rows = queries.min(SHOWN_QUERIES).div_ceil(SHEET_COLUMNS);
        if rows == 0 || width == 0 || height == 0 {
            return None;
        }
        let style = format!(
            ".picture {{ background-image: url({}); background-size: {}% {}%; aspect-ratio: {} / {}; }}",
            data_uri("image/png", png),
            100 * SHEET_COLUMNS,
            100 * rows,
            width as usize * rows,
            height as usize * SHEET_COLUMNS,
        );
        Some(Self { style, rows })
    }

    fn picture(&self, query: usize, image: usize) -> Markup {
        #[expect(clippy::cast_precision_loss, reason = "a few hundred pictures")]
        let share = |place: usize, of: usize| 100.0 * place as f64 / (of.max(2) - 1) as f64;
        let (x, y) = (share(query % SHEET_COLUMNS, SHEET_COLUMNS), share(query / SHEET_COLUMNS, self.rows));
        html! {
            span.picture role="img" aria-label={ "image " (image) " of the pool" } style={ "background-position:" (x) "% " (y) "%" } {}
        }
    }
}

/// Returns the queries; those with a wrong or missing label come first.
pub(super) fn queries(asked: &AskedQueries, names: &[String], sheet: Option<&Sheet>) -> Markup {
    let all = asked.pool_images.len();
    let shown = all.min(SHOWN_QUERIES);
    // A row's label is missing or wrong.
    let is_amiss = |query: &usize| {
        let truth = asked.truth.as_ref().map(|truth| truth[*query]);
        let mut labels = asked.rows.iter().filter_map(|row| row.labels.get(*query));
        truth.is_some() && labels.any(|label| *label != truth)
    };
    let (amiss, right): (Vec<usize>, Vec<usize>) = (0..shown).partition(is_amiss);
    let list =
        |queries: &[usize]| html! { ol.queries { @for &query in queries { (one(asked, names, sheet, query)) } } };
    html! {
        @if shown < all { p.note { "The first " (shown) " of " (all) " queries; all: " code { "queries.json" } "." } }
        @if asked.votes.is_none() {
            p.note { "Votes are not shown because the noise is real and protects them." }
        }
        @if asked.rows.is_empty() {
            p.note { "No row's labels may be shown: no finite data-independent claim covers them." }
        }
        @if asked.rows.is_empty() || asked.truth.is_none() {
            (list(&(0..shown).collect::<Vec<_>>()))
        } @else {
            @if amiss.is_empty() {
                p { "Every label of every row is the true one." }
            } @else {
                h3 { "A row has a wrong label, or none (" (amiss.len()) ")" }
                (list(&amiss))
            }
            @if !right.is_empty() {
                (folded(&format!("Every row has the true label ({})", right.len()), &list(&right)))
            }
        }
    }
}

fn one(asked: &AskedQueries, names: &[String], sheet: Option<&Sheet>, query: usize) -> Markup {
    let image = asked.pool_images[query];
    let truth = asked.truth.as_ref().map(|truth| truth[query]);
    let given = given(asked, query);
    let name = |class: u8| name(names, class.into());
    html! {
        li {
            @if let Some(sheet) = sheet { (sheet.picture(query, image)) }
            div {
                p {
                    "query " (query + 1)
                    @if let Some(sizes) = &asked.group_sizes { ", typical of a group of " (sizes[query]) " images" }
                    @if let Some(truth) = truth { ", true " strong { (name(truth)) } }
                }
                @for (label, rows) in &given {
                    p {
                        @match label { Some(label) => { "given " strong { (name(*label)) } }, None => "no label" }
                        @if label.is_some() && truth.is_some_and(|truth| *label != Some(truth)) { " " span.wrong { "wrong" } }
                        @if given.len() > 1 { ": " (rows.join(", ")) }
                    }
                }
                @if let Some(votes) = &asked.votes { p.note { (ranked(&votes[query], names)) } }
            }
        }
    }
}

/// Returns the labels of a query, each with the rows that gave it, in the order of the rows.
fn given(asked: &AskedQueries, query: usize) -> Vec<(Option<u8>, Vec<&str>)> {
    let mut given: Vec<(Option<u8>, Vec<&str>)> = Vec::new();
    for row in &asked.rows {
        let Some(&label) = row.labels.get(query) else { continue };
        match given.iter_mut().find(|(other, _)| *other == label) {
            Some((_, rows)) => rows.push(&row.row),
            None => given.push((label, vec![&row.row])),
        }
    }
    given
}

fn name(names: &[String], class: usize) -> String {
    names.get(class).map_or_else(|| class.to_string(), |name| printable(name))
}

fn ranked(votes: &[u32], names: &[String]) -> String {
    let mut classes: Vec<(usize, u32)> = votes.iter().copied().enumerate().filter(|(_, votes)| *votes > 0).collect();
    classes.sort_by_key(|(class, votes)| (std::cmp::Reverse(*votes), *class));
    let most: Vec<String> =
        classes.iter().take(4).map(|(class, votes)| format!("{}: {votes}", name(names, *class))).collect();
    let rest: u32 = classes.iter().skip(4).map(|(_, votes)| votes).sum();
    let rest = if rest > 0 { format!(", others: {rest}") } else { String::new() };
    format!("votes {}{rest}", most.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_of_one_length() {
        let row = |labels: usize| RowAnswers { row: "a".into(), labels: vec![Some(1); labels] };
        let whole = AskedQueries {
            pool_images: vec![4, 2],
            group_sizes: Some(vec![20, 30]),
            truth: Some(vec![1, 0]),
            votes: Some(vec![vec![1], vec![1]]),
            rows: vec![row(2), row(1)],
        };
        assert!(whole.is_whole());
        let rows = vec![RowAnswers { row: "a\u{1b}".into(), labels: Vec::new() }];
        assert!(!AskedQueries { rows, ..whole.clone() }.is_whole());
        assert!(!AskedQueries { truth: Some(vec![1]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { group_sizes: Some(vec![20]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { votes: Some(vec![]), ..whole.clone() }.is_whole());
        assert!(!AskedQueries { rows: vec![row(3)], ..whole }.is_whole());
    }
}
