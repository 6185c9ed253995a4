//! The queries of a run: images, true labels, the labels given and, if they are public, the votes.

use maud::{Markup, html};
use speed_core::printable;

use super::frame::{data_uri, folded};
use crate::report::asked::AskedQueries;
use crate::report::picture::{SHEET_COLUMNS, SHOWN_QUERIES, dimensions_of_whole};

/// The sheet of the queries' pictures as a CSS style: each query shows a part of one PNG file.
#[derive(Clone, Debug)]
pub struct Sheet {
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
    let (amiss, right): (Vec<usize>, Vec<usize>) = (0..shown).partition(|&query| asked.is_amiss(query));
    let list =
        |queries: &[usize]| html! { ol.queries { @for &query in queries { (one(asked, names, sheet, query)) } } };
    html! {
        @if shown < all { p.note { "The first " (shown) " of " (all) " queries; all: " code { "queries.json" } "." } }
        @if asked.votes.is_none() {
            p.note { "Votes are not shown because the noise is real and protects them." }
        }
        @if asked.rows.is_empty() {
            p.note { "No row's labels may be shown: no finite data-independent claim covers them." }
            (list(&(0..shown).collect::<Vec<_>>()))
        } @else if asked.truth.is_none() {
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

/// Returns the name of a class, or its number if it has no name.
fn name(names: &[String], class: usize) -> String {
    names.get(class).map_or_else(|| class.to_string(), |name| printable(name))
}

/// Returns the classes with the most votes, in descending order.
fn ranked(votes: &[u32], names: &[String]) -> String {
    let mut classes: Vec<(usize, u32)> = votes.iter().copied().enumerate().filter(|(_, votes)| *votes > 0).collect();
    classes.sort_by_key(|(class, votes)| (std::cmp::Reverse(*votes), *class));
    let most: Vec<String> =
        classes.iter().take(4).map(|(class, votes)| format!("{}: {votes}", name(names, *class))).collect();
    let rest: u32 = classes.iter().skip(4).map(|(_, votes)| votes).sum();
    let rest = if rest > 0 { format!(", others: {rest}") } else { String::new() };
    format!("votes {}{rest}", most.join(", "))
}

impl AskedQueries {
    /// Returns whether a row's label of the query is missing or wrong.
    fn is_amiss(&self, query: usize) -> bool {
        let truth = self.truth.as_ref().map(|truth| truth[query]);
        let mut labels = self.rows.iter().filter_map(|row| row.labels.get(query));
        truth.is_some() && labels.any(|label| *label != truth)
    }
}
