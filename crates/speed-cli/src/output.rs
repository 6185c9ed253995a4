//! Results on standard output, and failures on standard error: text for people, or JSON for programs.

use std::io::Write;

use serde::Serialize;
use serde_json::json;
use speed_core::{ExitCode, printable};
use speed_experiment::ExperimentError;
use speed_experiment::model::Description;
use speed_experiment::report::Versioned;
use speed_round::Influence;

use crate::bar;
use crate::failure::Failure;

/// The line above the text of every simulated output.
pub(crate) const SIMULATION: &str = "SIMULATION: keys or noise come from a seed, no privacy\n";

pub(crate) const WITHOUT_PROOFS: &str =
    "without proofs: a teacher that sees the labels can read the secret key out of them (docs/threat-models.md)\n";

/// Returns the mark of a simulation, or an empty text.
pub(crate) fn mark(simulation: bool) -> &'static str {
    if simulation { SIMULATION } else { "" }
}

/// Returns a warning about a model that must not be published, with its predictions and its forms for other programs.
pub(crate) fn not_public(model: &Description) -> Option<&'static str> {
    if model.is_teacher() {
        return Some("a teacher's weights and predictions reveal its private images: do not publish them");
    }
    model.is_private().then_some(
        "no finite data-independent claim covers this student's labels: do not publish it or its predictions",
    )
}

/// Returns the sentence about the influence of one proven teacher, or an empty text in a round without proofs.
pub(crate) fn influence(of: Option<Influence>) -> String {
    of.map_or_else(String::new, |influence| format!("{influence}\n"))
}

/// Returns an object in one line, with the version of its format.
pub(crate) fn versioned_line(value: &serde_json::Value) -> String {
    // An object of texts and numbers can always be written as JSON.
    serde_json::to_string(&Versioned::new(value)).unwrap_or_default()
}

pub(crate) fn print(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes())
}

/// Writes a binary result to standard output.
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => Failure::OUTPUT_CLOSED,
        _ => ExperimentError::io("write", "standard output")(error).into(),
    })
}

/// Writes one of several results as JSON, in one line.
pub(crate) fn print_json_line(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(&Versioned::new(value)).map_err(unwritten)?;
    print(&format!("{text}\n"))
}

/// Writes a result: as JSON, an object of these fields and the version of its format, or else as text.
pub(crate) fn print_report(json: bool, report: &impl Serialize, text: impl FnOnce() -> String) -> Result<(), Failure> {
    print(&if json { to_json(report)? } else { text() })
}

/// Returns a result as JSON: an object of these fields and the version of its format.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(&Versioned::new(value)).map_err(unwritten)?;
    Ok(format!("{text}\n"))
}

fn unwritten(error: serde_json::Error) -> Failure {
    ExperimentError::io("write", "standard output")(error.into()).into()
}

/// Reports on standard error why a program ends with `code`.
pub(crate) fn report(code: ExitCode, message: &str, json: bool) {
    if json {
        let error = json!({ "code": code.code(), "kind": code.kind(), "message": message });
        bar::line(&versioned_line(&json!({ "error": error })));
    } else {
        bar::line(&format!("error: {}", shown(message)));
    }
}

/// Returns a message escaped for terminal output, because parts of it may be untrusted; line breaks stay.
fn shown(message: &str) -> String {
    message.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}
