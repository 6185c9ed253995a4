//! Checks the numbers of a page against their sources.

use std::ops::Range;

use regex::Regex;
use speed_core::fixture::exhaustive;

use crate::docs::book::{Book, Claim, Table};
use crate::docs::number::{NUMBER, Printed, Rounding, measurements, numbers};
use crate::docs::pages::Page;
use crate::docs::sources::{Sources, cells, headings};

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) problems: Vec<String>,
    /// Passages with entries in the book.
    explained: Vec<Range<usize>>,
    /// Numbers that were compared with a value.
    pub(crate) compared: Vec<Range<usize>>,
    /// Tables that other tests or .ci/nightly check.
    pub(crate) elsewhere: Vec<Range<usize>>,
    /// Number of values that were not compared, because their source needs data that this machine lacks.
    pub(crate) without_data: usize,
}

pub(crate) fn check(page: &Page, book: &Book, sources: &Sources) -> Report {
    let mut report = Report::default();
    let here = |pages: &[String]| pages.contains(&page.name);
    for claim in book.claim.iter().filter(|claim| here(&claim.pages)) {
        check_claim(page, claim, sources, &mut report);
    }
    for table in book.table.iter().filter(|table| here(&table.pages)) {
        if let Err(problem) = check_table(page, table, sources, &mut report) {
            report.problems.push(format!("{}: table {:?}: {problem}", page.name, table.head));
        }
    }
    for tested in book.tested.iter().filter(|tested| tested.page == page.name) {
        match table_at(page, &tested.head) {
            Some(table) => report.elsewhere.push(table),
            None => report.problems.push(format!("{} has no table {:?} (docs/numbers)", page.name, tested.head)),
        }
    }
    check_rest(page, book, &mut report);
    report
}

/// Checks that the numbers outside claims and tables are exactly the given numbers of the book.
fn check_rest(page: &Page, book: &Book, report: &mut Report) {
    let mut given: Vec<&str> = book
        .given
        .iter()
        .filter(|given| given.page == page.name)
        .flat_map(|given| &given.numbers)
        .map(String::as_str)
        .collect();
    let covers = |range: &Range<usize>, number: &Range<usize>| range.start <= number.start && number.end <= range.end;
    for number in measurements(&page.prose()) {
        if report.explained.iter().chain(&report.elsewhere).any(|range| covers(range, &number)) {
            continue;
        }
        let (line, text) = (page.line(number.start), &page.text[number]);
        match given.iter().position(|given| *given == text) {
            Some(position) => drop(given.swap_remove(position)),
            None => report.problems.push(format!("{}:{line}: {text} has no source in docs/numbers", page.name)),
        }
    }
    report.problems.extend(
        given
            .iter()
            .map(|text| format!("{} has no number {text} beside its claims any more (docs/numbers)", page.name)),
    );
}

/// Returns the pattern of a passage, with any white space between words and `{}` for a number.
fn pattern(text: &str) -> Regex {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| word.split("{}").map(regex::escape).collect::<Vec<_>>().join(&format!("({NUMBER})")))
        .collect();
    Regex::new(&words.join(r"\s+")).expect("a pattern of escaped words")
}

fn check_claim(page: &Page, claim: &Claim, sources: &Sources, report: &mut Report) {
    let mut found = false;
    for captures in claim.pattern.get_or_init(|| pattern(&claim.text)).captures_iter(&page.text) {
        found = true;
        report.explained.push(captures.get(0).expect("the match").range());
        for (place, specification) in captures.iter().skip(1).flatten().zip(&claim.values) {
            let printed = Printed::read(place.as_str()).expect("the pattern of a number");
            report.compared.push(place.range());
            let (specification, round) = match specification.split_once("# up ") {
                Some((source, selector)) => (&format!("{source}# {selector}"), Rounding::Up),
                None => (specification, claim.round),
            };
            let problem = match sources.value(specification, &claim.from) {
                Ok(Some(value)) if printed.agrees(value, round) => continue,
                Ok(None) => {
                    report.without_data += 1;
                    continue;
                }
                Ok(Some(value)) => format!("{} here, {value} in {}{specification}", place.as_str(), claim.from),
                Err(problem) => problem,
            };
            report.problems.push(format!("{}:{}: {problem}", page.name, page.line(place.start())));
        }
    }
    if !found {
        report.problems.push(format!("{} does not say {:?} any more (docs/numbers)", page.name, claim.text));
    }
}

/// Returns the position of the table whose first line begins with `head`.
fn table_at(page: &Page, head: &str) -> Option<Range<usize>> {
    let mut starts = page.text.match_indices(head).map(|(at, _)| at);
    let start = starts.find(|at| *at == 0 || page.text[..*at].ends_with('\n'))?;
    let lines = page.text[start..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    Some(start..start + lines.map(str::len).sum::<usize>())
}

fn check_table(page: &Page, table: &Table, sources: &Sources, report: &mut Report) -> Result<(), String> {
    let place = table_at(page, &table.head).ok_or("it is not there")?;
    if table.nightly && !exhaustive() {
        report.elsewhere.push(place);
        return Ok(());
    }
    let mut lines = page.text[place.clone()].split_inclusive('\n').scan(place.start, |at, line| {
        *at += line.len();
        Some((*at - line.len(), line))
    });
    let (_, head) = lines.next().ok_or("it is not there")?;
    let columns: Vec<(usize, String)> = headings(head)
        .into_iter()
        .enumerate()
        .skip(table.key)
        .filter(|(_, name)| !table.skip.contains(name) && (table.only.is_empty() || table.only.contains(name)))
        .map(|(at, name)| (at, table.columns.get(&name).cloned().unwrap_or(name)))
        .collect();
    let wanted: Vec<&String> = columns.iter().map(|(_, name)| name).collect();
    let Some(grid) = sources.grid(&table.from, &wanted)? else {
        report.explained.push(place);
        report.without_data += 1;
        return Ok(());
    };
    for (at, line) in lines.skip(1) {
        let row = cells(line);
        let key = row.iter().take(table.key).cloned().collect::<Vec<_>>().join(" | ");
        let key = table.rows.get(&key).cloned().unwrap_or(key);
        let there =
            grid.rows.iter().find(|row| row.iter().take(table.key).cloned().collect::<Vec<_>>().join(" | ") == key);
        let there = there.ok_or_else(|| format!("{} has no row {key:?}", table.from))?;
        let edges: Vec<usize> = line.match_indices('|').map(|(edge, _)| at + edge).collect();
        report.explained.extend(edges.first().zip(edges.get(table.key)).map(|(from, to)| *from..*to));
        for (column, name) in &columns {
            let position = grid.head.iter().position(|head| head == name).expect("a heading of the table");
            let place = edges[*column]..edges[column + 1];
            report.explained.push(place.clone());
            if !row[*column].is_empty() {
                same_cell(&row[*column], &there[position])
                    .map_err(|problem| format!("row {key:?}, column {name:?}: {problem}"))?;
                report.compared.push(place);
            }
        }
    }
    Ok(())
}

/// Checks that the numbers of a cell are the first numbers of another cell, rounded to the printed digits.
fn same_cell(here: &str, there: &str) -> Result<(), String> {
    let (ours, theirs) = (numbers(here), numbers(there));
    let agree = ours.len() <= theirs.len()
        && ours.iter().zip(&theirs).all(|(ours, theirs)| ours.agrees(theirs.value, Rounding::Nearest));
    let both = ours.is_empty() == theirs.is_empty();
    if agree && both { Ok(()) } else { Err(format!("{here:?} here, {there:?} in its source")) }
}
