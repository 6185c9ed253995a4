//! Signing keys of the parties.

use speed_core::printable_path;
use speed_roles::{Role, generate_identity};

use super::{Failure, print, print_json};
use crate::options::IdentityOptions;

pub(super) fn generate(role: Role, options: &IdentityOptions) -> Result<(), Failure> {
    let report = generate_identity(role, &options.name, &options.out)?;
    if options.json {
        return print_json(&report);
    }
    print(&format!(
        "{} has the key {}\n{} stays here\n{} goes into the student's roster; read the key to the other parties over another channel\n",
        report.name,
        report.key,
        printable_path(&report.signing_key),
        printable_path(&report.card),
    ))
}
