//! The keys of a config with their defaults.

use toml::{Table, Value};

/// The schema and its documentation; `configs/default.toml` is a copy.
pub(crate) const DEFAULTS: &str = include_str!("default.toml");

/// The array of tables whose elements all have the keys of the first default element.
pub(super) const ROWS: &str = "row";

/// Returns the defaults; keys that a row lacks have the values of the first row.
pub(super) fn defaults() -> Table {
    let mut defaults: Table = DEFAULTS.parse().expect("the embedded defaults are parsed by a test");
    if let Some(Value::Array(rows)) = defaults.get_mut(ROWS) {
        let template = rows[0].as_table().cloned().unwrap_or_default();
        for row in rows.iter_mut().filter_map(Value::as_table_mut) {
            for (key, value) in &template {
                row.entry(key).or_insert_with(|| value.clone());
            }
        }
    }
    defaults
}

/// Returns the value if it has the type of the default; an integer is accepted as a float, and a list of numbers as a text,
/// because some keys have a name or a list.
pub(super) fn typed(default: &Value, value: Value) -> Result<Value, String> {
    match (default, value) {
        #[expect(clippy::cast_precision_loss, reason = "an integer in place of a float is small")]
        (Value::Float(_), Value::Integer(whole)) => Ok(Value::Float(whole as f64)),
        (Value::String(_), Value::Array(list))
            if list.iter().all(|one| matches!(one, Value::Float(_) | Value::Integer(_))) =>
        {
            Ok(Value::Array(list))
        }
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
