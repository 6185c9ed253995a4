//! The merged document of a TOML text: every key is known and has the type of its default.

use std::ops::Range;
use std::path::Path;

use serde::de::DeserializeOwned;
use speed_core::{ExitCode, decode_text, printable_path, read_regular};
use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::defaults::{ROWS, defaults, typed};
use super::overrides::Override;
use super::unknown::{config_instead, unknown_key, with_suggestion};
use crate::error::ExperimentError;

/// The table of the keys that a sweep changes; it is not part of the config of any run.
pub(super) const SWEEP: &str = "sweep";

const MAX_CONFIG: u64 = 16 << 20;

/// A config text with its origin, which messages name together with line numbers.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    text: String,
    overrides: Vec<Override>,
}

impl Source {
    /// Reads a file.
    ///
    /// # Errors
    /// If the file cannot be read as UTF-8 text.
    pub fn read(path: &Path) -> Result<Self, ExperimentError> {
        let read = || -> std::io::Result<String> {
            let bytes = read_regular(path, MAX_CONFIG)?;
            Ok(decode_text(&bytes).map_err(std::io::Error::other)?.to_owned())
        };
        let text = read().map_err(|error| {
            let instead = config_instead(path);
            let meant = instead.map_or_else(String::new, |path| format!("; did you mean {}?", printable_path(&path)));
            let message = format_args!("cannot read config {}: {error}{meant}", printable_path(path));
            ExperimentError::new(ExitCode::Usage, message)
        })?;
        Ok(Self::new(printable_path(path), text))
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), overrides: Vec::new() }
    }

    /// Adds `--set key=value` changes, applied in order after the file. Values are TOML; a bare word is a string.
    ///
    /// # Errors
    /// If an entry has no `=`.
    pub fn with_overrides(mut self, entries: &[String]) -> Result<Self, ExperimentError> {
        for entry in entries {
            let expected = "expected key=value, for example --set teacher.steps=300";
            let pair = entry.split_once('=').ok_or_else(|| ExperimentError::key("--set", entry, expected));
            let (key, value) = pair?;
            self.overrides.push(Override::new("--set", key.trim(), value.trim()));
        }
        Ok(self)
    }

    #[must_use]
    pub(super) fn with(mut self, change: Override) -> Self {
        self.overrides.push(change);
        self
    }

    /// Returns the keys and values of the table `[sweep]` as written; `None` without the table.
    pub(super) fn sweep(&self) -> Result<Option<Table>, ExperimentError> {
        let document = self.parse()?;
        let written = document.get_ref().iter().find(|(name, _)| name.get_ref().as_ref() == SWEEP);
        match written.map(|(_, value)| owned(value.get_ref())) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(table)),
            Some(_) => Err(self.error(SWEEP, "expected a table of keys with their values")),
        }
    }

    /// Returns whether the file or a change sets this key of the defaults, which must not be a row's.
    pub(super) fn sets(&self, key: &str) -> bool {
        let is_written = || {
            let document: Table = self.text.parse().ok()?;
            let mut parts = key.split('.');
            let first = document.get(parts.next()?)?;
            parts.try_fold(first, |value, part| value.get(part))?;
            Some(())
        };
        self.overrides.iter().any(|change| change.names(key)) || is_written().is_some()
    }

    pub(crate) fn resolve<T: DeserializeOwned>(&self) -> Result<T, ExperimentError> {
        let mut merged = defaults();
        let row_template = merged[ROWS][0].as_table().cloned().unwrap_or_default();
        let document = self.parse()?;
        self.merge(&mut merged, document.get_ref(), "", &row_template)?;
        for change in &self.overrides {
            change.apply(&mut merged)?;
        }
        serde_path_to_error::deserialize(Value::Table(merged)).map_err(|error| {
            let key = error.path().to_string().replace("row[", "row.").replace(']', "");
            self.error(&key, with_suggestion(error.inner().message().trim()))
        })
    }

    /// Returns an error at a key, with its line if the file sets it.
    pub(super) fn error(&self, key: &str, message: impl Into<String>) -> ExperimentError {
        let place = match (self.overrides.iter().rfind(|change| change.names(key)), self.span_of(key)) {
            (Some(change), _) => change.place.clone(),
            (None, Some(span)) => self.place(&span),
            (None, None) => format!("{} (value from the defaults)", self.name),
        };
        ExperimentError::key(place, key, message.into())
    }

    fn parse(&self) -> Result<Spanned<DeTable<'_>>, ExperimentError> {
        DeTable::parse(&self.text).map_err(|error| {
            let place = self.place(&error.span().unwrap_or(0..0));
            ExperimentError::new(ExitCode::Usage, format_args!("{place}: not valid TOML: {}", error.message()))
        })
    }

    fn place(&self, span: &Range<usize>) -> String {
        let line = self.text.bytes().take(span.start).filter(|byte| *byte == b'\n').count() + 1;
        format!("{}:{line}", self.name)
    }

    fn span_of(&self, key: &str) -> Option<Range<usize>> {
        let document = DeTable::parse(&self.text).ok()?;
        let mut table = document.get_ref();
        let mut span = None;
        let mut parts = key.split('.').peekable();
        while let Some(part) = parts.next() {
            let Some((name, value)) = table.iter().find(|(name, _)| name.get_ref().as_ref() == part) else {
                return span;
            };
            span = Some(name.span());
            match value.get_ref() {
                DeValue::Table(inner) => table = inner,
                DeValue::Array(items) => {
                    let Some(index) = parts.peek() else { return span };
                    let index: usize = index.parse().ok()?;
                    parts.next();
                    let item = items.get(index)?;
                    span = Some(item.span());
                    match item.get_ref() {
                        DeValue::Table(inner) => table = inner,
                        _ => return span,
                    }
                }
                _ => return span,
            }
        }
        span
    }

    fn merge(
        &self,
        into: &mut Table,
        from: &DeTable<'_>,
        prefix: &str,
        row_template: &Table,
    ) -> Result<(), ExperimentError> {
        for (name, value) in from {
            let key = join(prefix, name.get_ref());
            let fail = |message: String| ExperimentError::key(self.place(&name.span()), &key, message);
            if prefix.is_empty() && name.get_ref() == SWEEP {
                continue;
            }
            if prefix.is_empty() && name.get_ref() == ROWS {
                let not_rows = || fail("expected [[row]] tables".into());
                let DeValue::Array(items) = value.get_ref() else { return Err(not_rows()) };
                let mut rows = Vec::new();
                for (index, item) in items.iter().enumerate() {
                    let DeValue::Table(table) = item.get_ref() else { return Err(not_rows()) };
                    let mut row = row_template.clone();
                    self.merge(&mut row, table, &format!("{ROWS}.{index}"), row_template)?;
                    rows.push(Value::Table(row));
                }
                into.insert(ROWS.to_owned(), Value::Array(rows));
                continue;
            }
            let Some(default) = into.get_mut(name.get_ref().as_ref()) else {
                return Err(fail(unknown_key(into, name.get_ref())));
            };
            match (default, value.get_ref()) {
                (Value::Table(inner), DeValue::Table(table)) => self.merge(inner, table, &key, row_template)?,
                (default, value) => *default = typed(default, owned(value)).map_err(fail)?,
            }
        }
        Ok(())
    }
}

fn owned(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(date) => Value::Datetime(*date),
        DeValue::Array(items) => Value::Array(items.iter().map(|item| owned(item.get_ref())).collect()),
        DeValue::Table(table) => Value::Table(
            table.iter().map(|(name, value)| (name.get_ref().to_string(), owned(value.get_ref()))).collect(),
        ),
        // The parser keeps numbers as text; numbers out of range stay text, and the check of types refuses them.
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::String(number.to_string()), Value::Integer),
        DeValue::Float(number) => {
            number.as_str().parse().map_or_else(|_| Value::String(number.as_str().to_owned()), Value::Float)
        }
    }
}

fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}.{name}") }
}
