//! The keys of a config with their defaults.

use toml::{Table, Value};

/// The schema and its documentation; `configs/default.toml` is a copy.
pub const DEFAULTS: &str = include_str!("default.toml");

/// The array of tables whose elements all have the keys of the first default element.
pub(super) const ROWS: &str = "row";

/// The subtable of a row that the resolved row stores as keys with a prefix. Earlier configs wrote the keys that way,
/// and the run's id is the digest of the resolved text.
pub(super) const PAPER: &str = "paper";
pub(super) const PAPER_PREFIX: &str = "paper_";

/// The section of students, and its subtable for the GANs. The resolved config stores the keys of the subtable in the
/// section itself, for the same reason: earlier configs wrote them there, where they are still read.
pub(super) const STUDENT: &str = "student";
pub(super) const GAN: &str = "gan";

/// Returns the key of the defaults for a key that a config may set: `student.gan.epochs` for `student.epochs`.
pub(super) fn documented_key(key: &str) -> String {
    let is_gan_key = |name: &str| defaults().get(STUDENT).and_then(|student| student.get(GAN)?.get(name)).is_some();
    match key.split_once('.') {
        Some((STUDENT, name)) if is_gan_key(name) => format!("{STUDENT}.{GAN}.{name}"),
        _ => key.to_owned(),
    }
}

/// Returns the key of the resolved config for a key of the defaults: `student.epochs` for `student.gan.epochs`.
pub(super) fn stored_key(key: &str) -> String {
    let name = key.strip_prefix(STUDENT).and_then(|rest| rest.strip_prefix('.')?.strip_prefix(GAN)?.strip_prefix('.'));
    name.map_or_else(|| key.to_owned(), |name| format!("{STUDENT}.{name}"))
}

/// Returns the table of the key `name` that a config sets in the section `section`, whose table is `table`: the same
/// table, or the subtable for the GANs.
pub(super) fn table_of_key<'a>(section: &str, table: &'a mut Table, name: &str) -> &'a mut Table {
    let is_gan_key =
        section == STUDENT && !table.contains_key(name) && table.get(GAN).is_some_and(|gan| gan.get(name).is_some());
    if is_gan_key {
        return table.get_mut(GAN).and_then(Value::as_table_mut).expect("a table, because it has the key");
    }
    table
}

/// Moves the keys of the subtable for the GANs to the section of students.
pub(super) fn store_gan_keys(merged: &mut Table) {
    let Some(Value::Table(student)) = merged.get_mut(STUDENT) else { return };
    if let Some(Value::Table(keys)) = student.remove(GAN) {
        student.extend(keys);
    }
}

/// Returns the defaults as a document.
pub(super) fn defaults() -> Table {
    let mut defaults: Table = DEFAULTS.parse().expect("the embedded defaults are parsed by a test");
    let Some(Value::Array(rows)) = defaults.get_mut(ROWS) else { return defaults };
    for row in rows.iter_mut().filter_map(Value::as_table_mut) {
        if let Some(Value::Table(figures)) = row.remove(PAPER) {
            row.extend(figures.into_iter().map(|(name, value)| (format!("{PAPER_PREFIX}{name}"), value)));
        }
    }
    defaults
}

/// Returns the value if it has the type of the default; an integer is accepted as a float.
pub(super) fn typed(default: &Value, value: Value) -> Result<Value, String> {
    match (default, value) {
        #[expect(clippy::cast_precision_loss, reason = "an integer in place of a float is small")]
        (Value::Float(_), Value::Integer(whole)) => Ok(Value::Float(whole as f64)),
        (default, value) if default.same_type(&value) => Ok(value),
        (Value::Integer(_) | Value::Float(_), Value::String(text)) if is_number(&text) => {
            Err(format!("found {text}, expected a number of 64 bits"))
        }
        (Value::Integer(_), Value::Float(found)) => Err(format!("found {found:?}, expected an integer")),
        (default, value) => Err(format!("expected {}, found {}", default.type_str(), value.type_str())),
    }
}

/// Returns whether a text that could not be parsed is a number, for example one out of range.
fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}
