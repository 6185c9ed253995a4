//! The program of a joint round's opener: a teacher that verified the result makes its part of the opening.

use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_aggregation::OpenerShare;
use speed_aggregation::protocol::{OpeningPart, SignedResult, Verification};
use speed_core::Digest;

use crate::checks::{check_evaluation_key, read_signed_result};
use crate::error::{OptionsFault, RolesError};
use crate::fault::{InputFault, OpeningFault};
use crate::file_kind::FileKind;
use crate::files::{decode_input, destroy, is_destroyed, write_once};
use crate::identity::Identity;
use crate::randomness::RoundRandomness;
use crate::registry::RoundRegistry;
use crate::round_file::RoundFile;
use crate::server::check_verification;

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
    /// The part's file to create.
    pub out: PathBuf,
    /// The source of the part's flooding.
    pub randomness: RoundRandomness,
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
    /// True if the flooding comes from a seed.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// True if the part was made before. Then the stored part is written again.
    pub repeated: bool,
    /// True if the share was destroyed.
    pub share_destroyed: bool,
    /// The part's file.
    pub out: PathBuf,
    /// The length of the part's file in bytes.
    pub bytes: usize,
}

/// Makes the opener's part of a result that the opener verified. A part is made once for each round: it is stored in the
/// opener's registry before it is written, and every later call for the same result writes it again. Another result of
/// the round is refused, because the flooding of two parts would not hide the errors of their answers, and the answers of a
/// second result may be chosen by an attacker.
///
/// Then the share is destroyed unless `keep_share` is set: its file is overwritten and removed. So the part of another
/// result cannot be made, even if the registry is lost.
///
/// # Errors
/// If the round has no opener, this party is not the opener, an input is missing or damaged, the opener did not verify
/// this result, or it made its part of another result of the round.
pub fn part(options: &OpenerOptions) -> Result<OpenerReport, RolesError> {
    let file = RoundFile::read(&options.round)?;
    let (opener, party) = file.opener().ok_or(OptionsFault::NoOpener)?;
    file.check_randomness(options.randomness.kind())?;
    let identity = Identity::read(&options.signing_key)?;
    if identity.key() != party.key() {
        let fault = InputFault::Party { found: identity.key().into(), is: "not the round's opener" };
        return Err(RolesError::input(&options.signing_key)(fault));
    }
    let (result, digest) = read_signed_result(&options.result, &file)?;
    check_own_verification(&options.verification, &file, (opener, digest))?;
    let registry = RoundRegistry::open(&options.registry)?;
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
            let part = make(options, &file, (&result, digest), (opener, &identity))?;
            registry.keep_part(file.id(), &part)?;
            part
        }
    };
    write_once(&options.out, &part)?;
    let share_destroyed = !options.keep_share && destroy_share(&options.share, &file)?;
    Ok(OpenerReport {
        round: file.id().to_hex(),
        name: file.name().to_owned(),
        opener,
        simulation: options.randomness.is_simulation(),
        queries: file.round().shape().queries(),
        repeated,
        share_destroyed,
        out: options.out.clone(),
        bytes: part.len(),
    })
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

/// Makes and signs the part.
fn make(
    options: &OpenerOptions,
    file: &RoundFile,
    (result, digest): (&SignedResult, Digest),
    (opener, identity): (usize, &Identity),
) -> Result<Vec<u8>, RolesError> {
    let share = decode_input(&options.share, FileKind::OPENER_SHARE, OpenerShare::from_bytes)?;
    file.check_key(&options.share, share.id())?;
    check_evaluation_key(file, share.evaluation_key()).map_err(RolesError::input(&options.share))?;
    let randomness = options.randomness.opener_flooding(file.id());
    let part = share.part(result.list(), (digest, opener), &randomness, |digest| identity.sign(digest))?;
    Ok(part.to_bytes())
}

/// Destroys the share of the round's key, if its file still exists.
fn destroy_share(path: &Path, file: &RoundFile) -> Result<bool, RolesError> {
    if !path.exists() {
        return Ok(true);
    }
    if !is_destroyed(path, FileKind::OPENER_SHARE) {
        // No other file is destroyed by mistake.
        let share = decode_input(path, FileKind::OPENER_SHARE, OpenerShare::from_bytes)?;
        file.check_key(path, share.id())?;
    }
    destroy(path)?;
    Ok(true)
}
