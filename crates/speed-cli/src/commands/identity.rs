//! Signing keys of the parties.

use speed_core::printable_path;
use speed_round::{Role, generate_party};

use super::{Failure, print, print_json};
use crate::options::IdentityOptions;

pub(super) fn generate(role: Role, options: &IdentityOptions, teachers: u64) -> Result<(), Failure> {
    let report = generate_party(role, &options.name, teachers, &options.out)?;
    if options.json {
        return print_json(&report);
    }
    let registry = report.registry.as_deref().map_or_else(String::new, |registry| {
        format!("{} stays beside it: it prevents a second answer to a round\n", printable_path(registry))
    });
    let teachers = if report.teachers > 1 { format!("{} teachers and ", report.teachers) } else { String::new() };
    print(&format!(
        "{} has {teachers}the key {}\n{} stays here\n{registry}{} goes into the student's roster; read the key to the other parties over another channel\n",
        report.name,
        report.key,
        printable_path(&report.signing_key),
        printable_path(&report.card),
    ))
}
