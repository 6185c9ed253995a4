//! Signing keys of teachers and server.

use speed_roles::{Role, generate_identity};

use super::{Failure, print, print_json};
use crate::options::IdentityOptions;

pub(super) fn generate(role: Role, options: &IdentityOptions) -> Result<(), Failure> {
    let report = generate_identity(role, &options.name, &options.out)?;
    if options.json {
        return print_json(&report);
    }
    print(&format!(
        "{} is known by {}\n{} stays here\n{} goes to the student, who reads the key back to you by another way\n",
        report.name,
        report.key,
        report.signing_key.display(),
        report.card.display(),
    ))
}
