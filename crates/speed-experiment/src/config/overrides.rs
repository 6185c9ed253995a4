//! Changes of single keys after the file: `--set` and the settings of a sweep.

use toml::{Table, Value};

use super::defaults::{ROWS, typed};
use super::unknown::unknown_key;
use crate::error::ExperimentError;

/// Selects all rows, in place of a row's number.
const ALL_ROWS: &str = "*";
/// Selects all rows with noise, in place of a row's number.
const NOISY_ROWS: &str = "noisy";

#[derive(Clone, Debug)]
pub(super) struct Override {
    pub(super) place: String,
    key: String,
    value: String,
}

impl Override {
    /// Creates a change of `key` to a TOML value or an unquoted string; messages show `place` as its origin.
    pub(super) fn new(place: impl Into<String>, key: impl Into<String>, value: impl Into<String>) -> Self {
        Self { place: place.into(), key: key.into(), value: value.into() }
    }

    /// Returns whether the change sets this key, perhaps among those of several rows.
    pub(super) fn names(&self, key: &str) -> bool {
        let in_row = |key: &str| row_of(key).map(|(row, rest)| (row.to_owned(), rest.to_owned()));
        match (in_row(&self.key), in_row(key)) {
            (Some((rows, own)), Some((_, rest))) if rows == ALL_ROWS || rows == NOISY_ROWS => own == rest,
            _ => self.key == key,
        }
    }

    pub(super) fn apply(&self, merged: &mut Table) -> Result<(), ExperimentError> {
        let fail = |message: String| ExperimentError::key(&self.place, &self.key, message);
        // A bare word is a string, because quotes are inconvenient in a shell.
        let value = match format!("value = {}", self.value).parse::<Table>() {
            Ok(mut table) => table.remove("value").unwrap_or_else(|| Value::String(self.value.clone())),
            Err(_) => Value::String(self.value.clone()),
        };
        let Some((number, key)) = row_of(&self.key) else {
            let of_a_row = self.key.strip_prefix(ROWS).and_then(|rest| rest.strip_prefix('.'));
            return match of_a_row {
                Some(key) => Err(fail(format!("which row? {}", row_keys(key)))),
                None => set(merged, &self.key, value).map_err(fail),
            };
        };
        let Some(Value::Array(rows)) = merged.get_mut(ROWS) else { return Err(fail("the config has no rows".into())) };
        for row in rows_named(rows, number).map_err(fail)? {
            set(row, key, value.clone()).map_err(fail)?;
        }
        Ok(())
    }
}

pub(super) fn overlap(one: &str, other: &str) -> bool {
    let is_group = |rows: &str| rows == ALL_ROWS || rows == NOISY_ROWS;
    match (row_of(one), row_of(other)) {
        (Some((rows, key)), Some((others, same))) => key == same && (is_group(rows) || is_group(others)),
        _ => false,
    }
}

/// Splits `row.NUMBER.KEY`.
fn row_of(key: &str) -> Option<(&str, &str)> {
    key.strip_prefix(ROWS)?.strip_prefix('.')?.split_once('.')
}

fn row_keys(key: &str) -> String {
    format!("{ROWS}.0.{key} for one, {ROWS}.{ALL_ROWS}.{key} for all, {ROWS}.{NOISY_ROWS}.{key} for those with noise")
}

/// Returns the rows that `number` selects: one, all, or all with noise.
fn rows_named<'a>(rows: &'a mut [Value], number: &str) -> Result<impl Iterator<Item = &'a mut Table>, String> {
    let count = rows.len();
    let chosen = match number.parse::<usize>() {
        Ok(row) if row < count => row..row + 1,
        Err(_) if number == ALL_ROWS || number == NOISY_ROWS => 0..count,
        _ => {
            let last = count.saturating_sub(1);
            return Err(format!("there are {count} rows, from 0 to {last}: {}", row_keys("KEY")));
        }
    };
    let has_noise = |row: &Table| row.get("aggregation").and_then(Value::as_str) != Some("non-private");
    let noisy = number == NOISY_ROWS;
    let tables = rows[chosen].iter_mut().filter_map(Value::as_table_mut);
    Ok(tables.filter(move |row| !noisy || has_noise(row)))
}

fn set(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().unwrap_or_default();
    let mut table = table;
    for part in parts {
        if !table.contains_key(part) {
            return Err(unknown_key(table, part));
        }
        table = match table.get_mut(part) {
            Some(Value::Table(inner)) => inner,
            _ => return Err(format!("{part} is not a section: it has no keys")),
        };
    }
    match table.get_mut(last) {
        Some(Value::Table(_)) => Err("is a section: set one of its keys".into()),
        Some(Value::Array(items)) if items.iter().any(Value::is_table) => {
            Err(format!("rows are set one by one, {ROWS}.0.KEY, or all, {ROWS}.{ALL_ROWS}.KEY"))
        }
        Some(default) => {
            *default = typed(default, value)?;
            Ok(())
        }
        None => Err(unknown_key(table, last)),
    }
}
