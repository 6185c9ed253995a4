//! The rounds that use a student's keys.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use speed_aggregation::Parameters;
use speed_aggregation::protocol::RoundId;
use speed_core::decode_text;

use crate::error::{OptionsFault, RolesError};
use crate::fault::InputFault;
use crate::file_kind::FileKind;
use crate::files::{lock, read_input};
use crate::round_file::RoundFile;

/// The rounds of a key set: a text file beside the public key, with the extension `rounds`. Each line contains a
/// round's id and the number of bits of the secret key that a teacher could read out of its labels: 0 if messages are
/// proved, otherwise at most the information in the labels.
pub(crate) struct KeyUse {
    path: PathBuf,
    rounds: Vec<(RoundId, f64)>,
    /// Number of bytes of the complete lines.
    end: u64,
    /// Locked, so no other program records a round meanwhile.
    file: File,
}

impl KeyUse {
    /// Reads the rounds of a public key, and locks the list until it is dropped.
    pub(crate) fn open(public_key: &Path) -> Result<Self, RolesError> {
        let path = path_of(public_key);
        let file = lock(&path)?;
        let (rounds, end) = read(&path)?;
        Ok(Self { path, rounds, end, file })
    }

    /// Checks that the keys may be used for another round, with or without proofs. Either no other round uses them or
    /// `reuse` allows it, and the keys stay secure after all that could be learnt about them without proofs
    /// ([`Parameters::leakage_bits`]). Keys of simulations are not checked, because they are public.
    pub(crate) fn check(
        &self,
        file: &RoundFile,
        proofs: bool,
        parameters: &Parameters,
        reuse: bool,
    ) -> Result<(), OptionsFault> {
        if file.round().is_simulation() {
            return Ok(());
        }
        let others = || self.rounds.iter().filter(|(id, _)| *id != file.id());
        if let (Some((round, _)), false) = (others().next(), reuse) {
            return Err(OptionsFault::KeyUsed { round: *round });
        }
        let before: f64 = others().map(|(_, bits)| bits).sum();
        let (here, most) = (readable_bits(file), f64::from(parameters.leakage_bits()));
        if !proofs && before + here > most { Err(OptionsFault::KeyWornOut { before, here, most }) } else { Ok(()) }
    }

    /// Records a round durably before its file is given to anyone.
    pub(crate) fn note(&self, file: &RoundFile) -> Result<(), RolesError> {
        if file.round().is_simulation() || self.rounds.iter().any(|(id, _)| *id == file.id()) {
            return Ok(());
        }
        let bits = if file.round().proofs().is_some() { 0.0 } else { readable_bits(file) };
        let line = format!("{} {bits:.3}\n", file.id().to_hex());
        let append = || -> std::io::Result<()> {
            // Half a line left by a crash: its round's file was never written.
            self.file.set_len(self.end)?;
            (&self.file).write_all(line.as_bytes())?;
            self.file.sync_all()
        };
        append().map_err(RolesError::io("write", &self.path))
    }
}

/// Returns the number of other rounds of a public key. Returns `None` if the list is missing or lacks this round,
/// because it may then lack others too.
pub(crate) fn other_rounds(public_key: &Path, round: RoundId) -> Result<Option<usize>, RolesError> {
    let path = path_of(public_key);
    let rounds = if path.exists() { read(&path)?.0 } else { Vec::new() };
    let is_listed = rounds.iter().any(|(id, _)| *id == round);
    Ok(is_listed.then(|| rounds.iter().filter(|(id, _)| *id != round).count()))
}

fn path_of(public_key: &Path) -> PathBuf {
    public_key.with_extension("rounds")
}

/// Reads the complete lines of a list of rounds, and returns their length in bytes.
fn read(path: &Path) -> Result<(Vec<(RoundId, f64)>, u64), RolesError> {
    let bytes = read_input(path, FileKind::KEY_USE)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let round = |line: &str| -> Option<(RoundId, f64)> {
        let (id, bits) = line.split_once(' ')?;
        Some((id.parse().ok()?, bits.parse().ok().filter(|bits: &f64| *bits >= 0.0)?))
    };
    let rounds = decode_text(&bytes[..whole]).ok().and_then(|text| text.lines().map(round).collect());
    let rounds = rounds.ok_or(InputFault::KeyUse).map_err(RolesError::input(path))?;
    Ok((rounds, whole as u64))
}

/// Returns the number of bits of the secret key that a teacher could read out of the labels of a round without proofs:
/// per label, at most the logarithm of the number of outcomes.
fn readable_bits(file: &RoundFile) -> f64 {
    let round = file.round();
    let outcomes = round.shape().classes() + usize::from(round.threshold().is_some());
    round.shape().queries() as f64 * (outcomes as f64).log2()
}
