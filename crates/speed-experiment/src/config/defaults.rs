//! The keys of a config with their defaults.

use toml::{Table, Value};

/// The schema and its documentation in one place; `configs/default.toml` is a copy of it.
pub const DEFAULTS: &str = include_str!("default.toml");

/// The array of tables whose elements all have the keys of the first default element.
pub(super) const ROWS: &str = "row";

/// The table of a row whose keys the resolved row has with a prefix of their own: configs before it wrote them so, and the run's id
/// is made from that text.
pub(super) const PAPER: &str = "paper";
pub(super) const PAPER_PREFIX: &str = "paper_";

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

/// Returns the value, if it has the type of the default; a whole number stands for a float.
pub(super) fn typed(default: &Value, value: Value) -> Result<Value, String> {
    match (default, value) {
        #[expect(clippy::cast_precision_loss, reason = "a config's whole number that stands for a float is small")]
        (Value::Float(_), Value::Integer(whole)) => Ok(Value::Float(whole as f64)),
        (default, value) if default.same_type(&value) => Ok(value),
        (Value::Integer(_) | Value::Float(_), Value::String(text)) if is_number(&text) => {
            Err(format!("found {text}, expected a number of 64 bits"))
        }
        (Value::Integer(_), Value::Float(found)) => Err(format!("found {found:?}, expected a whole number")),
        (default, value) => Err(format!("expected {}, found {}", default.type_str(), value.type_str())),
    }
}

/// Returns whether a text that is no number of ours is one all the same, too large for instance.
fn is_number(text: &str) -> bool {
    let digits = text.trim_start_matches(['+', '-']);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
}
