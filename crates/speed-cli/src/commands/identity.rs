//! Signing keys of the parties.

use std::path::PathBuf;

use clap::Args;
use speed_core::{class_list, printable_path};
use speed_round::{IdentityReport, Role, generate_party};

use super::{Failure, print_report};

#[derive(Debug, Args)]
pub(crate) struct IdentityOptions {
    /// Display name of this party
    #[arg(long)]
    name: String,
    /// The signing key to write (PEM, mode 0600); the card gets the same name with .toml, and the registry of a teacher or a server with .registry
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// `stated` are the facts about a party that answers: the number of its teachers, and the classes that it could diagnose.
pub(super) fn generate(role: Role, options: &IdentityOptions, stated: (u64, Option<&[String]>)) -> Result<(), Failure> {
    let report = generate_party(role, &options.name, stated, &options.out)?;
    print_report(options.json, &report, || text(&report))
}

fn text(report: &IdentityReport) -> String {
    let registry = report.registry.as_deref().map_or_else(String::new, |registry| {
        format!("{} stays beside it: it prevents a second answer to a round\n", printable_path(registry))
    });
    let teachers = if report.teachers > 1 { format!("{} teachers and ", report.teachers) } else { String::new() };
    let classes = report.classes.as_deref().map_or_else(String::new, |classes| {
        format!("the card states the classes {}, which all parties of a round read\n", class_list(classes))
    });
    format!(
        "{} has {teachers}the key {}\n{} stays here\n{registry}{classes}{} goes into the student's roster; read the key to the other parties over another channel\n",
        report.name,
        report.key,
        printable_path(&report.signing_key),
        printable_path(&report.card),
    )
}
