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
/// round's id and the number of bits of the secret key that a lying party could read out of its labels: at most the
/// information in the labels. Proofs do not change this number, because they bind teachers and not the server.
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

    /// Checks that the keys may be used for another round. Either no other round uses them or `reuse` allows it, and the
    /// keys stay secure after all that their labels could reveal ([`Parameters::leakage_bits`]). Keys of simulations are
    /// not checked, because they are public.
    pub(crate) fn check(&self, file: &RoundFile, parameters: &Parameters, reuse: bool) -> Result<(), OptionsFault> {
        if file.round().is_simulation() {
            return Ok(());
        }
        let others = || self.rounds.iter().filter(|(id, _)| *id != file.id());
        if let (Some((round, _)), false) = (others().next(), reuse) {
            return Err(OptionsFault::KeyUsed { round: *round });
        }
        let before = others().fold(0.0, |sum, (_, bits)| sum + bits);
        let (here, most) = (KeyBits::of(file), parameters.leakage_bits());
        // Not finite is refused as well.
        if before + here.labels <= f64::from(most) {
            return Ok(());
        }
        Err(OptionsFault::KeyWornOut {
            queries: here.queries,
            here: here.labels,
            before,
            most,
            serves: here.serves(most),
        })
    }

    /// Records a round durably before its file is given to anyone.
    pub(crate) fn note(&self, file: &RoundFile) -> Result<(), RolesError> {
        if file.round().is_simulation() || self.rounds.iter().any(|(id, _)| *id == file.id()) {
            return Ok(());
        }
        let bits = KeyBits::of(file).labels;
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

/// The bits of the secret key that the labels of a round may reveal.
struct KeyBits {
    /// Number of queries of the round.
    queries: usize,
    /// The logarithm of the number of outcomes of a query.
    each: f64,
    /// All bits of the round.
    labels: f64,
}

impl KeyBits {
    /// A label reveals at most the logarithm of the number of outcomes, whatever the server or a teacher sent.
    /// [`student::open`](crate::student::open) refuses a result with an answer that is not one of the outcomes, so a
    /// published label has no further value.
    fn of(file: &RoundFile) -> Self {
        let round = file.round();
        let (queries, each) = (round.shape().queries(), (round.outcomes().count() as f64).log2());
        Self { queries, each, labels: queries as f64 * each }
    }

    /// Returns the number of such queries that unused keys serve.
    fn serves(&self, most: u16) -> usize {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 333")]
        let queries = (f64::from(most) / self.each) as usize;
        queries
    }
}
