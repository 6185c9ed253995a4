//! The program of a joint round's opener: a teacher that verified the result makes its part of the opening.

use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_aggregation::OpenerShare;
use speed_aggregation::protocol::{OpeningPart, Verification};
use speed_core::Digest;

use crate::checks::{check_evaluation_key, read_signed_result};
use crate::error::{OptionsFault, RolesError};
use crate::fault::{InputFault, OpeningFault};
use crate::file_kind::FileKind;
use crate::files::{decode_input, destroy, is_destroyed, write_once};
use crate::identity::Identity;
use crate::key_bits::KeyBits;
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;
use crate::server::check_verification;
use crate::simulated_keys::check_share;

/// The options of an opener.
#[derive(Clone, Debug)]
pub struct OpenerOptions {
    /// The opener's signing key.
    pub signing_key: PathBuf,
    /// The opener's share of the secret key.
    pub share: PathBuf,
    /// The round's file.
    pub round: PathBuf,
    /// The server's result.
    pub result: PathBuf,
    /// The opener's own verification of the result.
    pub verification: PathBuf,
    /// The opener's registry, which holds its part of every round.
    pub registry: PathBuf,
    /// True if the share is kept after the part is written.
    pub keep_share: bool,
    /// True if a part may be made although the opener answered another round of the same key.
    pub reuse_keys: bool,
    /// The part's file to create.
    pub out: PathBuf,
}

/// The report of an opener.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OpenerReport {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// The opener's index.
    pub opener: usize,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// True if the part was made before. Then the stored part is written again.
    pub repeated: bool,
    /// What became of the share.
    pub share: ShareState,
    /// The part's file.
    pub out: PathBuf,
    /// The length of the part's file in bytes.
    pub bytes: usize,
}

/// What became of an opener's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ShareState {
    /// Its file was overwritten and removed.
    Destroyed,
    /// There was no file at its path: it was destroyed before, or is elsewhere.
    Missing,
    /// It was kept, as the options ask.
    Kept,
}

/// Makes the opener's part of a result that the opener verified. A part is made once for each round: it is stored in the
/// opener's registry before it is written, and every later call for the same result writes it again. Another result of
/// the round is refused: two signed results convict the server, and the part of a second one would tell more about the key.
///
/// The student may be the attacker, so the opener checks the round's terms itself: it answered the round, the labels cannot reveal too much
/// of the key, and it answered no other round of the key, unless `reuse_keys` is set.
///
/// Then the share is destroyed unless `keep_share` is set: its file is overwritten and removed. So the part of another
/// result cannot be made, even if the registry is lost.
///
/// # Errors
/// If the round has no opener, this party is not the opener or did not answer the round, an input is missing or damaged, the opener did not
/// verify this result, it made its part of another result of the round, or the key was used or is worn out.
pub fn part(options: &OpenerOptions) -> Result<OpenerReport, RolesError> {
    let file = RoundFile::read(&options.round)?;
    let (opener, party) = file.opener().ok_or(OptionsFault::NoOpener)?;
    let identity = Identity::read(&options.signing_key)?;
    if identity.key() != party.key() {
        let fault = InputFault::Party { found: identity.key().into(), is: "not the round's opener" };
        return Err(RolesError::input(&options.signing_key)(fault));
    }
    let (result, digest) = read_signed_result(&options.result, &file)?;
    check_own_verification(&options.verification, &file, (opener, digest))?;
    let registry = RoundRegistry::open(&options.registry, false)?;
    let kept = registry.part(file.id())?;
    let repeated = kept.is_some();
    let part = match kept {
        Some(kept) => {
            let expected = OpeningPart::from_bytes(&kept).map_err(RolesError::input(registry.path()))?.result();
            if expected != digest {
                let fault = OpeningFault::SecondResult { expected, found: digest };
                return Err(RolesError::input(&options.result)(InputFault::from(fault)));
            }
            kept
        }
        None => {
            let share = read_share(&options.share, &file)?;
            check_terms(&file, opener, &share, &registry, options.reuse_keys)?;
            let part = share.part(result.list(), (digest, opener), |digest| identity.sign(digest))?.to_bytes();
            registry.keep_part(file.id(), &part)?;
            part
        }
    };
    write_once(&options.out, &part)?;
    let share = if options.keep_share { ShareState::Kept } else { destroy_share(&options.share, &file)? };
    Ok(OpenerReport {
        round: file.id().to_hex(),
        name: file.name().to_owned(),
        opener,
        simulation: file.round().is_simulation(),
        queries: file.round().shape().queries(),
        repeated,
        share,
        out: options.out.clone(),
        bytes: part.len(),
    })
}

/// Reads the share of the round's key.
fn read_share(path: &Path, file: &RoundFile) -> Result<OpenerShare, RolesError> {
    let share = decode_input(path, FileKind::OPENER_SHARE, OpenerShare::from_bytes)?;
    check_share(path, share.is_simulation(), file)?;
    file.check_key(path, share.id())?;
    check_evaluation_key(file, share.evaluation_key()).map_err(RolesError::input(path))?;
    Ok(share)
}

/// Checks that the opener agreed to the round when it answered it, and that the key stays secure after the labels of this round and of the others
/// that the opener answered.
fn check_terms(
    file: &RoundFile,
    opener: usize,
    share: &OpenerShare,
    registry: &RoundRegistry,
    reuse_keys: bool,
) -> Result<(), RolesError> {
    KeyBits::check_rounds(file, share.parameters(), registry, reuse_keys)?;
    match registry.answered(file.id(), u32::try_from(opener).unwrap_or(u32::MAX))? {
        Some(_) => Ok(()),
        None => {
            let fault = OpeningFault::NotAnswered { round: file.id() };
            Err(RolesError::input(registry.path())(InputFault::from(fault)))
        }
    }
}

/// Checks that the opener itself verified the result with this SHA-256.
fn check_own_verification(path: &Path, file: &RoundFile, (opener, result): (usize, Digest)) -> Result<(), RolesError> {
    let verification = decode_input(path, FileKind::VERIFICATION, Verification::from_bytes)?;
    let found = check_verification(&verification, file, result).map_err(RolesError::input(path))?;
    if found == opener {
        return Ok(());
    }
    Err(RolesError::input(path)(InputFault::from(OpeningFault::OtherVerifier { expected: opener, found })))
}

/// Destroys the share of the round's key, if its file still exists.
fn destroy_share(path: &Path, file: &RoundFile) -> Result<ShareState, RolesError> {
    if let Err(error) = std::fs::symlink_metadata(path) {
        return match error.kind() {
            std::io::ErrorKind::NotFound => Ok(ShareState::Missing),
            _ => Err(RolesError::io("destroy", path)(error)),
        };
    }
    if !is_destroyed(path, FileKind::OPENER_SHARE) {
        // No other file is destroyed by mistake.
        let share = decode_input(path, FileKind::OPENER_SHARE, OpenerShare::from_bytes)?;
        file.check_key(path, share.id())?;
    }
    destroy(path)?;
    Ok(ShareState::Destroyed)
}
