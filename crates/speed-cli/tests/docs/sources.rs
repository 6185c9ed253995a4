//! Values in files and in the outputs of commands.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use crate::docs::number::{NUMBER, Printed};
use crate::docs::pages;
use crate::docs::shell::Shell;

/// A source's text; `None` if it needs data that this machine lacks.
type Text = Result<Option<Arc<str>>, String>;

/// All sources. Each is read or run once.
pub(crate) struct Sources {
    shell: Shell,
    texts: RefCell<HashMap<String, Text>>,
    values: RefCell<HashMap<String, Result<Option<f64>, String>>>,
}

pub(crate) struct Grid {
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self { shell: Shell::new(), texts: RefCell::default(), values: RefCell::default() }
    }

    fn text(&self, source: &str) -> Text {
        let read = || -> Text {
            match source.strip_prefix("$ ") {
                Some(command) => Ok(self.shell.run(command)?.map(Into::into)),
                None => fs::read_to_string(pages::root().join(source))
                    .map(|text| Some(text.into()))
                    .map_err(|error| format!("{source}: {error}")),
            }
        };
        self.texts.borrow_mut().entry(source.to_owned()).or_insert_with(read).clone()
    }

    /// Returns the value of `SOURCE # SELECTOR`, or of `# SELECTOR` in the source `from`.
    pub(crate) fn value(&self, specification: &str, from: &str) -> Result<Option<f64>, String> {
        let key = format!("{from}\n{specification}");
        self.values.borrow_mut().entry(key).or_insert_with(|| self.look_up(specification, from)).clone()
    }

    fn look_up(&self, specification: &str, from: &str) -> Result<Option<f64>, String> {
        let arithmetic = Regex::new(r"^(.*\S) ([*/]) (\d+(?:\.\d+)?)$").expect("a pattern");
        let (specification, factor) = match arithmetic.captures(specification) {
            Some(parts) => {
                let number: f64 = parts[3].parse().expect("digits");
                (parts[1].to_owned(), if &parts[2] == "*" { number } else { number.recip() })
            }
            None => (specification.to_owned(), 1.0),
        };
        let (source, selector) = match specification.strip_prefix("# ") {
            Some(selector) => (from, selector),
            None => specification
                .split_once(" # ")
                .ok_or_else(|| format!("{specification:?}: expected SOURCE # SELECTOR"))?,
        };
        let Some(text) = self.text(source)? else { return Ok(None) };
        let value = select(source, &text, selector).map_err(|problem| format!("{source} # {selector}: {problem}"))?;
        Ok(Some(value * factor))
    }

    /// Returns the first table of a source with these headings.
    pub(crate) fn grid(&self, source: &str, headings: &[&String]) -> Result<Option<Grid>, String> {
        let Some(text) = self.text(source)? else { return Ok(None) };
        let grids = if is_csv(source) { vec![csv_grid(&text)?] } else { markdown_grids(&text) };
        let found = grids.into_iter().find(|grid| headings.iter().all(|heading| grid.head.contains(heading)));
        found.map(Some).ok_or_else(|| format!("{source}: no table with the columns {headings:?}"))
    }
}

fn is_csv(source: &str) -> bool {
    source.ends_with(".csv")
}

fn select(source: &str, text: &str, selector: &str) -> Result<f64, String> {
    if let Some((statistic, pattern)) = selector.split_once('~') {
        let pattern = Regex::new(&pattern.replace("{}", &format!("({NUMBER})"))).map_err(|error| error.to_string())?;
        let read = |found: regex::Captures| Printed::read(found.get(1)?.as_str()).map(|printed| printed.value);
        let values = pattern.captures_iter(text).map(|found| read(found).ok_or("the pattern has no {}"));
        return summary(statistic.trim(), values.collect::<Result<_, _>>()?);
    }
    if is_csv(source) {
        return select_column(&csv_grid(text)?, selector);
    }
    let value: Value = if source.ends_with(".toml") {
        toml::from_str(text).map_err(|error| error.to_string())?
    } else {
        serde_json::from_str(text).map_err(|error| error.to_string())?
    };
    select_value(&value, selector)
}

const STATISTICS: [&str; 7] = ["mean", "sd", "min", "max", "median", "sum", "count"];

/// Evaluates `[STATISTIC ]PATH[ : PATH]`: one value, or a statistic of all values that match a path with `*`, each divided
/// by the corresponding value of a second path.
fn select_value(value: &Value, selector: &str) -> Result<f64, String> {
    let (statistic, paths) = match selector.split_once(' ') {
        Some((word, paths)) if STATISTICS.contains(&word) => (word, paths),
        _ => ("", selector),
    };
    let reach = |path: &str| -> Result<Vec<f64>, String> {
        let Some((before, after)) = path.split_once("/*/") else {
            return number(pointer(value, path)?).map(|number| vec![number]);
        };
        let elements = pointer(value, before)?.as_array().ok_or("not a list")?;
        elements.iter().map(|element| number(pointer(element, &format!("/{after}"))?)).collect()
    };
    let values = match paths.split_once(" : ") {
        Some((above, below)) => reach(above)?.iter().zip(reach(below)?).map(|(above, below)| above / below).collect(),
        None => reach(paths)?,
    };
    summary(statistic, values)
}

fn number(value: &Value) -> Result<f64, String> {
    value.as_f64().ok_or_else(|| format!("{value} is not a number"))
}

/// Follows a path like `/rows/tau = 1/student_mean`: keys of objects, and for arrays an index or an element's `name`.
fn pointer<'a>(value: &'a Value, path: &str) -> Result<&'a Value, String> {
    let path = path.strip_prefix('/').ok_or("expected a path that begins with /")?;
    path.split('/').try_fold(value, |value, step| {
        let found = match value {
            Value::Object(map) => map.get(step),
            Value::Array(elements) => match step.parse::<usize>() {
                Ok(index) => elements.get(index),
                Err(_) => elements.iter().find(|element| element.get("name").and_then(Value::as_str) == Some(step)),
            },
            _ => None,
        };
        found.ok_or_else(|| format!("no {step:?}"))
    })
}

/// Evaluates `[STATISTIC ]COLUMN[ where COLUMN=VALUE[ and COLUMN=VALUE]]`.
fn select_column(grid: &Grid, selector: &str) -> Result<f64, String> {
    let (selected, conditions) = selector.split_once(" where ").unwrap_or((selector, ""));
    let (statistic, column) = match selected.split_once(' ') {
        Some((word, column)) if STATISTICS.contains(&word) => (word, column),
        _ => ("", selected),
    };
    let position =
        |name: &str| grid.head.iter().position(|head| head == name).ok_or_else(|| format!("no column {name:?}"));
    let at = position(column)?;
    let mut conditions_at = Vec::new();
    for condition in conditions.split(" and ").filter(|condition| !condition.is_empty()) {
        let (name, wanted) = condition.split_once('=').ok_or("expected COLUMN=VALUE")?;
        conditions_at.push((position(name)?, wanted));
    }
    let rows = grid.rows.iter().filter(|row| conditions_at.iter().all(|(at, wanted)| row[*at] == *wanted));
    let values = rows
        .map(|row| row[at].parse::<f64>().map_err(|_| format!("{:?} is not a number", row[at])))
        .collect::<Result<Vec<_>, _>>()?;
    summary(statistic, values)
}

/// Returns the only value, or a statistic of all values.
fn summary(statistic: &str, mut values: Vec<f64>) -> Result<f64, String> {
    values.sort_by(f64::total_cmp);
    let (first, last) = (*values.first().ok_or("no value")?, *values.last().ok_or("no value")?);
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    match statistic {
        "" if values.len() == 1 => Ok(first),
        "" => Err(format!("{} values, expected one", values.len())),
        "mean" => Ok(mean),
        "sd" => Ok((values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt()),
        "min" => Ok(first),
        "max" => Ok(last),
        "sum" => Ok(values.iter().sum()),
        "count" => Ok(count),
        _ => Ok((values[(values.len() - 1) / 2] + values[values.len() / 2]) / 2.0),
    }
}

fn csv_grid(text: &str) -> Result<Grid, String> {
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let head = reader.headers().map_err(|error| error.to_string())?.iter().map(str::to_owned).collect();
    let rows = reader.records().map(|record| record.map(|record| record.iter().map(str::to_owned).collect()));
    Ok(Grid { head, rows: rows.collect::<Result<_, _>>().map_err(|error| error.to_string())? })
}

fn markdown_grids(text: &str) -> Vec<Grid> {
    let mut grids = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('|') {
            continue;
        }
        let mut grid = Grid { head: headings(line), rows: Vec::new() };
        while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
            if !row.trim_matches(['|', '-', ':', ' ']).is_empty() || row.contains(" - ") {
                grid.rows.push(cells(row));
            }
        }
        grids.push(grid);
    }
    grids
}

/// Returns the cells of a line of a table, without emphasis.
pub(crate) fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().strip_prefix('|').unwrap_or(line);
    inner.strip_suffix('|').unwrap_or(inner).split('|').map(|cell| cell.trim().trim_matches('*').to_owned()).collect()
}

/// Returns the headings of a table. The second heading with the same name gets the suffix " (2)".
pub(crate) fn headings(line: &str) -> Vec<String> {
    let mut headings: Vec<String> = Vec::new();
    for name in cells(line) {
        let double = headings.contains(&name);
        headings.push(if double { format!("{name} (2)") } else { name });
    }
    headings
}
