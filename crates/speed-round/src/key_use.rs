//! The rounds that use a student's keys, and the results that were opened with them.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use speed_aggregation::Parameters;
use speed_aggregation::protocol::RoundId;
use speed_core::{Digest, decode_text};

use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{beside, lock, read_input};
use crate::key_bits::KeyBits;
use crate::round_file::RoundFile;

/// The refusal of a list of a key's rounds that is damaged.
const NO_LINES: &str = "expected one line for each round of the key: its id, and a number of bits (.rounds) or the SHA-256 of what was opened (.opened)";

/// A result that a student opens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opened {
    pub(crate) round: RoundId,
    /// SHA-256 of the result.
    pub(crate) result: Digest,
    /// SHA-256 of the opener's part, in a joint opening.
    pub(crate) part: Option<Digest>,
}

/// Records durably that a result is opened with a secret key, in a text file beside the key with the extension `opened`: lines of a round's
/// id and SHA-256 of a result, and in a joint opening of the opener's part.
///
/// # Errors
/// If another result of the round was opened before: every opened result may tell a lying server as many bits of the key as the round's
/// labels have. If another part of the result was used before: from the student's refusals of parts that it changed, an opener would learn
/// labels. An error as well if the file is damaged or cannot be written.
pub(crate) fn note_opening(secret_key: &Path, opened: Opened) -> Result<(), Refused> {
    let path = beside(secret_key, "opened");
    let file = lock(&path)?;
    let (all, end) = read(&path, Opened::parse)?;
    let Some(first) = all.iter().find(|first| first.round == opened.round) else {
        return append(&file, &path, end, &opened.line());
    };
    match (first.part, opened.part) {
        _ if first.result != opened.result => Err(Refused::input(&path)(format!(
            "the result with SHA-256 {} of this round was opened before, and this is another one, {}: the server signed both, which \
             convicts it, and a second result could reveal more of the secret key",
            first.result, opened.result
        ))),
        // Lines of a joint opening have a part.
        (first, found) if first.is_some() != found.is_some() => Err(Refused::input(&path)(NO_LINES)),
        (Some(first), Some(found)) if first != found => Err(Refused::input(&path)(format!(
            "says that this result was opened with the part with SHA-256 {first}, and this part has {found}. An honest opener makes one part of a \
             result: two parts with the opener's signature convict it"
        ))),
        _ => Ok(()),
    }
}

impl Opened {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (round, result) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let part = words.next().map(str::parse).transpose().ok()?;
        words.next().is_none().then_some(Self { round, result, part })
    }

    fn line(&self) -> String {
        let part = self.part.map_or_else(String::new, |part| format!(" {}", part.to_hex()));
        format!("{} {}{part}\n", self.round.to_hex(), self.result.to_hex())
    }
}

/// Appends a line durably. Half a line that a crash left at the end is removed first.
fn append(mut file: &File, path: &Path, end: u64, line: &str) -> Result<(), Refused> {
    let mut write = || -> std::io::Result<()> {
        file.set_len(end)?;
        file.write_all(line.as_bytes())?;
        file.sync_all()
    };
    write().map_err(Refused::io("write", path))
}

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
    pub(crate) fn open(public_key: &Path) -> Result<Self, Refused> {
        let path = path_of(public_key);
        let file = lock(&path)?;
        let (rounds, end) = read(&path, round_and_bits)?;
        Ok(Self { path, rounds, end, file })
    }

    /// Checks that the keys may be used for another round. Either no other round uses them or `reuse` allows it, and the
    /// keys stay secure after all that their labels could reveal ([`Parameters::leakage_bits`]). Keys of simulations are
    /// not checked, because they are public ([`check_kind`]).
    pub(crate) fn check(&self, file: &RoundFile, parameters: &Parameters, reuse: bool) -> Result<(), Refused> {
        if file.round().is_simulation() {
            return Ok(());
        }
        let others = || self.rounds.iter().filter(|(id, _)| *id != file.id());
        if let (Some((round, _)), false) = (others().next(), reuse) {
            return Err(Refused::usage(format!(
                "these keys are already used for round {round}, and keys are for one round: generate new ones with `speed student keygen`, or give --reuse-keys"
            )));
        }
        KeyBits::check(file, parameters, others().fold(0.0, |sum, (_, bits)| sum + bits))
    }

    /// Records a round durably before its file is given to anyone.
    pub(crate) fn note(&self, file: &RoundFile) -> Result<(), Refused> {
        if file.round().is_simulation() || self.rounds.iter().any(|(id, _)| *id == file.id()) {
            return Ok(());
        }
        let bits = KeyBits::of(file).labels;
        let line = format!("{} {bits:.3}\n", file.id().to_hex());
        append(&self.file, &self.path, self.end, &line)
    }

    /// Removes the record of a round whose file could not be written, so that no party has it.
    pub(crate) fn undo(&self) -> Result<(), Refused> {
        append(&self.file, &self.path, self.end, "")
    }
}

/// Returns the number of other rounds of a public key. Returns `None` if the list is missing or lacks this round,
/// because it may then lack others too.
pub(crate) fn other_rounds(public_key: &Path, round: RoundId) -> Result<Option<usize>, Refused> {
    let path = path_of(public_key);
    let rounds = if path.exists() { read(&path, round_and_bits)?.0 } else { Vec::new() };
    let is_listed = rounds.iter().any(|(id, _)| *id == round);
    Ok(is_listed.then(|| rounds.iter().filter(|(id, _)| *id != round).count()))
}

fn path_of(public_key: &Path) -> PathBuf {
    beside(public_key, "rounds")
}

fn round_and_bits(line: &str) -> Option<(RoundId, f64)> {
    let (id, bits) = line.split_once(' ')?;
    Some((id.parse().ok()?, bits.parse().ok().filter(|bits: &f64| *bits >= 0.0)?))
}

/// Reads the complete lines of a list about a key's rounds, and returns their length in bytes.
fn read<T>(path: &Path, parse: fn(&str) -> Option<T>) -> Result<(Vec<T>, u64), Refused> {
    let bytes = read_input(path, FileKind::KEY_USE)?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let lines = decode_text(&bytes[..whole]).ok().and_then(|text| text.lines().map(parse).collect());
    let lines = lines.ok_or(NO_LINES).map_err(Refused::input(path))?;
    Ok((lines, whole as u64))
}
