//! `speed server reveal`: the seed of a result, for a verifier.

use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_aggregation::protocol::RevealedSeed;
use speed_core::Digest;

use crate::error::Refused;
use crate::files::{Access, write_new};
use crate::identity::Identity;
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;

/// The options of a server that reveals the seed of a result.
#[derive(Clone, Debug)]
pub struct RevealOptions {
    /// The server's signing key.
    pub signing_key: PathBuf,
    /// The server's registry, which has the result.
    pub registry: PathBuf,
    /// The round's file.
    pub round: PathBuf,
    /// The revealed seed to create.
    pub out: PathBuf,
}

/// The report of a server that revealed a seed.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct RevealReport {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// SHA-256 of the result.
    pub result: String,
    /// The revealed seed's file.
    pub out: PathBuf,
}

/// Signs the seed of a round's result and writes it to a file that only its owner can read. It goes to a verifier
/// ([`verify`](super::verify())) and never to the student.
///
/// # Errors
/// If a file is missing or not the round's, the round has no result yet, or the file exists.
pub fn reveal(options: &RevealOptions) -> Result<RevealReport, Refused> {
    let file = RoundFile::read(&options.round)?;
    let identity = server_identity(&options.signing_key, &file)?;
    let registry = RoundRegistry::open(&options.registry, false)?;
    let no_result = "does not contain the result of this round: wait until it exists, or give the right --registry";
    let bytes = registry.result(file.id())?.ok_or_else(|| Refused::results(&options.registry, no_result))?;
    let seed = registry.answer_seed(file.id())?;
    let result = Digest::of(&bytes);
    let revealed = RevealedSeed::new(file.id(), result, seed, |digest| identity.sign(digest));
    write_new(&options.out, &revealed.to_bytes(), Access::Owner)?;
    Ok(RevealReport {
        round: file.id().to_hex(),
        name: file.name().to_owned(),
        simulation: file.round().is_simulation(),
        result: result.to_hex(),
        out: options.out.clone(),
    })
}

/// Reads the signing key of the round's server.
pub(super) fn server_identity(path: &Path, file: &RoundFile) -> Result<Identity, Refused> {
    let is_server = |key| (key == file.roster().server().key()).then_some(());
    Ok(Identity::read_as(path, is_server, "not the round's server")?.0)
}
