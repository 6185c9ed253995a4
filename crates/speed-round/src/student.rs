//! The student's programs: key generation, rounds, and decryption of results.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_aggregation::error::OpenError;
use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::proofs::ProofKey;
use speed_aggregation::protocol::{AnswerList, OpeningPart, SignedResult, TeacherStatus, Verification};
use speed_aggregation::{
    EncryptedAnswer, KeySet, Outcome, Parameters, PublicKey, SecretKey, StudentShare, generate_keys,
};
use speed_core::vote_files::csv_cell;
use speed_core::{Digest, NoisePlacement, read_regular};

use crate::checks::{check_evaluation_key, expect_result, expect_round, read_signed_result};
use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{Access, decode_input, destroy, expect_absent, is_destroyed, write_new};
use crate::key_use::{KeyUse, Opened, note_opening, other_rounds};
use crate::known_answers::KnownAnswers;
pub use crate::known_answers::{KnownOptions, KnownReport, MixOptions, MixReport, mix};
use crate::randomness::RoundRandomness;
use crate::roster::Party;
use crate::round_file::RoundFile;
use crate::server::check_verification;
use crate::simulated_keys::{SIMULATION, are_simulated, check_kind, check_share};
use crate::terms::Terms;

/// The names of the files that [`keygen`] writes, for the student, the teachers and the server.
pub(crate) const KEY_FILES: [&str; 3] = ["secret.key", "public.key", "evaluation.key"];

/// The names of the files that [`keygen_joint`] writes, for the student, the opener, the teachers and the server.
pub const JOINT_KEY_FILES: [&str; 4] = ["student.share", "opener.share", KEY_FILES[1], KEY_FILES[2]];

/// The report of a key generation.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct KeygenReport {
    /// The identifier of the key set.
    pub key: String,
    /// The name of its parameter set.
    pub parameters: &'static str,
    /// True if the keys come from a seed.
    pub simulation: bool,
    /// Files and their lengths in bytes.
    pub files: Vec<(PathBuf, usize)>,
}

/// Generates the keys of the three roles in `folder`, which is created if necessary. Only its owner can read the secret
/// key's file.
///
/// # Errors
/// If one of the files already exists, writing fails, or the operating system returns no randomness.
pub fn keygen(folder: &Path, parameters: &Parameters, randomness: RoundRandomness) -> Result<KeygenReport, Refused> {
    generate(folder, parameters, randomness, false)
}

/// Generates keys like [`keygen`] for rounds with a joint opening: instead of the secret key, it writes the student's and the
/// opener's share of it. The secret key itself is never written and is wiped from memory. The party that runs this holds both shares
/// until the opener's is given away: key generation is trusted.
///
/// # Errors
/// The errors of [`keygen`].
pub fn keygen_joint(
    folder: &Path,
    parameters: &Parameters,
    randomness: RoundRandomness,
) -> Result<KeygenReport, Refused> {
    generate(folder, parameters, randomness, true)
}

/// Generates keys and writes their files, with the secret key as it is or as two shares.
fn generate(
    folder: &Path,
    parameters: &Parameters,
    randomness: RoundRandomness,
    is_joint: bool,
) -> Result<KeygenReport, Refused> {
    let names: &[&str] = if is_joint { &JOINT_KEY_FILES } else { &KEY_FILES };
    let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
    paths.iter().try_for_each(|path| expect_absent(path))?;
    fs::create_dir_all(folder).map_err(Refused::io("create", folder))?;
    let KeySet { secret, public, evaluation } = generate_keys(parameters, &randomness.keys())?;
    let shared = [public.to_bytes(), evaluation.to_bytes()];
    let secrets = if is_joint {
        let (student, opener) = secret.split(Digest::of(&shared[1]), &randomness.keys())?;
        vec![student.to_bytes(), opener.to_bytes()]
    } else {
        vec![secret.to_bytes()]
    };
    if randomness.is_simulation() {
        let text = b"SIMULATION: these keys come from a seed. Anyone who knows the seed knows the secret key.\n";
        write_new(&folder.join(SIMULATION), text, Access::Shared)?;
    }
    let contents = secrets.iter().map(|bytes| (bytes.as_slice(), Access::Owner));
    let contents = contents.chain(shared.iter().map(|bytes| (bytes.as_slice(), Access::Shared)));
    let mut files = Vec::new();
    for (path, (bytes, access)) in paths.into_iter().zip(contents) {
        write_new(&path, bytes, access)?;
        files.push((path, bytes.len()));
    }
    Ok(KeygenReport {
        key: public.id().to_hex(),
        parameters: parameters.name(),
        simulation: randomness.is_simulation(),
        files,
    })
}

/// Creates the round with these terms under a public key. It is not written yet.
///
/// # Errors
/// If the terms are invalid under this key, or the file `out` already exists.
pub fn terms(terms: &Terms, public_key: &Path, out: &Path) -> Result<RoundFile, Refused> {
    expect_absent(out)?;
    RoundFile::new(terms, &decode_input(public_key, FileKind::PUBLIC_KEY, PublicKey::from_bytes)?)
}

/// Returns SHA-256 of an evaluation key's file, for the terms of a round under this public key.
///
/// # Errors
/// If one of the files is missing or damaged, or they belong to different keys.
pub fn evaluation_key_digest(evaluation_key: &Path, public_key: &Path) -> Result<Digest, Refused> {
    let public = decode_input(public_key, FileKind::PUBLIC_KEY, PublicKey::from_bytes)?;
    decode_input(evaluation_key, FileKind::EVALUATION_KEY, |bytes| -> Result<Digest, Refused> {
        let (expected, found) = (public.id(), SeededEvaluationKey::from_bytes(bytes)?.id());
        if found == expected {
            return Ok(Digest::of(bytes));
        }
        Err(Refused::fault(format!("is key {found}, the round is for key {expected}")))
    })
}

/// The options of a round besides its terms.
#[derive(Clone, Debug)]
pub struct RoundOptions {
    /// The student's public key.
    pub public_key: PathBuf,
    /// The proof key's file to create. Without it, the round requires no proofs.
    pub proof_key: Option<PathBuf>,
    /// True if keys may be used that another round uses.
    pub reuse_keys: bool,
    /// The round's file to create.
    pub out: PathBuf,
    /// The source of the proof key's randomness.
    pub randomness: RoundRandomness,
}

/// Writes the file of a round, and records beside the public key that the round uses the key. A key is for one round.
/// The number of labels is limited so that the key stays secure if the server or a teacher lies.
///
/// # Errors
/// The errors of [`terms`](self::terms()), and an error if the keys may not be used for the round, or the proof key's file exists or
/// cannot be written.
pub fn round(terms: &Terms, options: &RoundOptions) -> Result<RoundFile, Refused> {
    prepare(terms, options)?.write()
}

/// A round whose file is not written yet. Its keys are locked for other rounds.
pub(crate) struct PreparedRound {
    file: RoundFile,
    key_use: Option<KeyUse>,
    out: PathBuf,
}

impl PreparedRound {
    /// Records the use of the keys, and writes the round's file.
    pub(crate) fn write(self) -> Result<RoundFile, Refused> {
        if let Some(key_use) = &self.key_use {
            key_use.note(&self.file)?;
        }
        if let Err(error) = write_round(&self.file, &self.out) {
            self.key_use.as_ref().map_or(Ok(()), KeyUse::undo)?;
            return Err(error);
        }
        Ok(self.file)
    }
}

/// Checks the keys of a round, and writes its proof key.
pub(crate) fn prepare(terms: &Terms, options: &RoundOptions) -> Result<PreparedRound, Refused> {
    expect_absent(&options.out)?;
    let key = decode_input(&options.public_key, FileKind::PUBLIC_KEY, PublicKey::from_bytes)?;
    let file = RoundFile::new(terms, &key)?;
    check_kind(&options.public_key, &file)?;
    check_split(&file, &options.public_key)?;
    if options.proof_key.is_none() && file.opener().is_some() && !file.round().is_simulation() {
        return Err(Refused::usage(
            "a joint opening needs proofs: without them a student that colludes with the server and one teacher can read other teachers' votes, or \
             the complete secret key, from the labels",
        ));
    }
    // Keys of simulations are public, so their use is not recorded. Checked before the slow generation of the proof
    // key, and locked until the round is recorded.
    let key_use = if file.round().is_simulation() { None } else { Some(KeyUse::open(&options.public_key)?) };
    if let Some(key_use) = &key_use {
        key_use.check(&file, key.parameters(), options.reuse_keys)?;
    }
    let file = match &options.proof_key {
        Some(path) => proven(terms, &key, path, options.randomness)?,
        None => file,
    };
    Ok(PreparedRound { file, key_use, out: options.out.clone() })
}

/// Checks, as far as the files beside the public key tell it, that the keys of a joint round are split and others are not.
fn check_split(file: &RoundFile, public_key: &Path) -> Result<(), Refused> {
    let exists = |name: &str| public_key.with_file_name(name).exists();
    match file.opener() {
        Some(_) if exists(KEY_FILES[0]) => Err(Refused::usage(
            "secret.key is beside the public key: these keys are not split. A joint opening needs keys of `speed student keygen --joint`",
        )),
        None if exists(JOINT_KEY_FILES[0]) && !exists(KEY_FILES[0]) => Err(Refused::usage(
            "student.share is beside the public key: these keys are split. Name the holder of opener.share with --opener",
        )),
        _ => Ok(()),
    }
}

/// Generates the proof key of a round, with which teachers prove that their messages are well formed, and returns the
/// round that names it. The generator of a proof key could forge proofs, so the student generates it, never a teacher.
fn proven(terms: &Terms, public: &PublicKey, out: &Path, randomness: RoundRandomness) -> Result<RoundFile, Refused> {
    expect_absent(out)?;
    let unproven = RoundFile::new(&Terms { proofs: None, ..terms.clone() }, public)?;
    let key = ProofKey::generate(public.parameters(), unproven.round(), &randomness.keys())?;
    write_new(out, key.to_bytes(), Access::Shared)?;
    RoundFile::new(&Terms { proofs: Some(key.digest()), ..terms.clone() }, public)
}

/// Writes the file of a round.
///
/// # Errors
/// If the file already exists, or writing fails.
pub fn write_round(file: &RoundFile, out: &Path) -> Result<(), Refused> {
    write_new(out, file.to_toml().as_bytes(), Access::Shared)
}

/// The report of a student that decrypted a result.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct OpenReport {
    /// The round's id.
    pub round: String,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// Number of queries with a label. The others have no answer, or are known answers.
    pub labelled: usize,
    /// Number of teachers of the round.
    pub teachers: usize,
    /// Number of teachers in the sum. A party counts with all its teachers.
    pub counted: usize,
    /// Number of parties of the round, each of which sends one message for its teachers.
    pub parties: usize,
    /// The largest honest ratio that an accountant may use: see
    /// [`AnswerList::honest_ratio`](speed_aggregation::protocol::AnswerList::honest_ratio).
    pub honest_ratio: f64,
    /// True if the server added the noise.
    pub noise_by_server: bool,
    /// Indices of the parties that are not in the sum, with the reasons.
    pub excluded: Vec<(usize, &'static str)>,
    /// The teachers that computed the result again, in ascending order. If there are none, only the server's signature
    /// vouches for the answers.
    pub verified_by: Vec<usize>,
    /// The party that made its part of a joint opening; `None` if the student opened the result alone.
    pub opener: Option<usize>,
    /// The comparison of the known answers, if there are any.
    pub known_answers: Option<KnownReport>,
    /// True if the secret key, or the student's share of it, was destroyed.
    pub key_destroyed: bool,
    /// Number of other rounds of the key, whose results cannot be decrypted without it. `None` if it is unknown,
    /// because the list of the key's rounds is missing.
    pub other_rounds: Option<usize>,
    /// The labels' file.
    pub out: PathBuf,
}

/// The options for decrypting a result.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The student's secret key; in a joint opening the student's share of it.
    pub secret_key: PathBuf,
    /// The opener's part of the result, in a joint opening.
    pub part: Option<PathBuf>,
    /// The server's result.
    pub result: PathBuf,
    /// The round's file.
    pub round: PathBuf,
    /// Verifications of the result by teachers, all of which must hold.
    pub verifications: Vec<PathBuf>,
    /// True if the result is opened without a verification. Simulations need none.
    pub unverified: bool,
    /// Known answers, which are compared before any label is written.
    pub known: Option<KnownOptions>,
    /// True if the secret key is kept after the labels are written.
    pub keep_keys: bool,
    /// The labels' file to create.
    pub out: PathBuf,
}

/// Decrypts a round's result and writes `query,label` lines with the names of the classes. Queries without an answer, and known answers, have an empty label.
/// Only its owner can read the labels' file. All answers are decrypted and checked before any label is written.
///
/// Then the secret key is destroyed, unless other rounds need it: its file is overwritten and removed. (This does not
/// affect copies elsewhere, in backups or on disks that relocate overwritten blocks.) If it is killed in between and
/// called again, it finds the same labels and resumes.
///
/// # Errors
/// If an input is missing or damaged, the result is not for this key or round, no teacher verified it, an answer is not an
/// outcome of the round, or other labels already exist.
pub fn open(options: &OpenOptions) -> Result<OpenReport, Refused> {
    let OpenOptions { secret_key, result, round, keep_keys, out, .. } = options;
    if is_destroyed(secret_key, FileKind::SECRET_KEY) && out.is_file() {
        fs::remove_file(secret_key).map_err(Refused::io("remove", secret_key))?;
        return Err(Refused::input(secret_key)(
            "was destroyed when its labels were written; the labels are in the output file",
        ));
    }
    let file = RoundFile::read(round)?;
    let key = Opening::read(options, &file)?;
    let (signed, digest) = read_signed_result(result, &file)?;
    key.check(options, &file, digest)?;
    let verified_by = verified_by(options, &file, digest)?;
    let list = signed.list();
    let known = options.known.as_ref().map(|known| KnownAnswers::read(known, &file)).transpose()?;
    // Before anything is decrypted: a refused result tells something as well.
    if !key.is_simulated(secret_key) {
        note_opening(secret_key, Opened { round: file.id(), result: digest, part: key.part_digest() })?;
    }
    let mut labels = decrypted(&key, list).map_err(Refused::input(result))?;
    let known = known.map(|known| known.check(&mut labels)).transpose().map_err(Refused::input(result))?;
    let labelled = labels.iter().flatten().count();
    let name = |label: u8| csv_cell(&file.classes().name(usize::from(label)));
    let label = |label: Option<u8>| label.map_or_else(String::new, name);
    let lines = labels.iter().enumerate().map(|(query, answer)| format!("{query},{}\n", label(*answer)));
    let text: String = std::iter::once("query,label\n".to_owned()).chain(lines).collect();
    let is_there = read_regular(out, text.len() as u64).is_ok_and(|found| found == text.as_bytes());
    if !is_there {
        write_new(out, text.as_bytes(), Access::Owner)?;
    }
    // Keys of simulations are public, and their rounds are not recorded.
    let other_rounds = match key.is_simulated(secret_key) {
        true => Some(0),
        false => other_rounds(&secret_key.with_file_name(KEY_FILES[1]), list.round())?,
    };
    let destroys = !keep_keys && other_rounds == Some(0);
    if destroys {
        destroy(secret_key)?;
    }
    let excluded = list.statuses().iter().enumerate().filter(|(_, status)| **status != TeacherStatus::Counted);
    Ok(OpenReport {
        round: list.round().to_hex(),
        simulation: list.is_simulation(),
        queries: list.shape().queries(),
        labelled,
        teachers: file.round().shape().teachers(),
        counted: file.round().teachers_counted(list.statuses()),
        parties: file.round().parties(),
        honest_ratio: list.honest_ratio(file.round()),
        noise_by_server: list.placement() == NoisePlacement::Central,
        excluded: excluded.map(|(teacher, status)| (teacher, status.name())).collect(),
        verified_by,
        opener: file.opener().map(|(index, _)| index),
        known_answers: known,
        key_destroyed: destroys,
        other_rounds,
        out: out.clone(),
    })
}

/// Decrypts all answers: the label of each query, or none if it has no answer. An answer that is not an outcome of the
/// round refuses all of them. The circuit makes none, so the server did not compute it, or a teacher sent values beyond
/// the round's range; and each would be one more outcome by which labels could reveal the key.
fn decrypted(key: &Opening, list: &AnswerList) -> Result<Vec<Option<u8>>, Refused> {
    let (mut labels, mut undecodable) = (Vec::new(), Vec::new());
    for answer in list.answers() {
        labels.push(match key.open(&answer) {
            Ok(Outcome::Label(label)) => Some(label),
            Ok(Outcome::NoAnswer) => None,
            // `Reached` is not an outcome of a round with labels.
            Ok(Outcome::Reached) | Err(OpenError::Outcome { .. }) => {
                undecodable.push(answer.query());
                None
            }
            Err(error) => return Err(Refused::fault(error)),
        });
    }
    match undecodable.first() {
        None => Ok(labels),
        Some(first) => Err(Refused::fault(format!(
            "{} of its answers are not outcomes of the round, the first for query {first}: the server did not compute them, a \
             teacher sent values beyond the round's range, or the opener of a joint round changed its part. No label was written",
            undecodable.len()
        ))),
    }
}

/// Checks the verifications of the result with this SHA-256, and returns their teachers in ascending order. Labels of answers that no teacher
/// computed again may be bits of the secret key, so a round that is not a simulation needs a verification unless the
/// student waives it.
fn verified_by(options: &OpenOptions, file: &RoundFile, result: Digest) -> Result<Vec<usize>, Refused> {
    let OpenOptions { verifications, unverified, .. } = options;
    if verifications.is_empty() {
        if *unverified || file.round().is_simulation() {
            return Ok(Vec::new());
        }
        return Err(Refused::usage(
            "no teacher verified this result: a lying server can make labels that are bits of the secret key. Give --verification FILE, \
             which a teacher makes with `speed server verify`, or --unverified to trust the server",
        ));
    }
    let mut teachers = BTreeSet::new();
    for path in verifications {
        let verification = decode_input(path, FileKind::VERIFICATION, Verification::from_bytes)?;
        let teacher = check_verification(&verification, file, result).map_err(Refused::input(path))?;
        teachers.insert(teacher);
    }
    Ok(teachers.into_iter().collect())
}

/// Reads the result of a round and checks that its server signed it, for enough teachers.
///
/// # Errors
/// If the file is missing or damaged, or not the result of this round.
pub fn read_result(path: &Path, file: &RoundFile) -> Result<SignedResult, Refused> {
    Ok(read_signed_result(path, file)?.0)
}

/// The secrets that decrypt answers.
enum Opening {
    /// The student's secret key.
    Alone(SecretKey),
    /// The student's share of it, and the opener's part of the result.
    Joint(Box<StudentShare>, OpeningPart),
}

impl Opening {
    /// Reads the secret key of a round that the student opens alone, or the student's share and the opener's part.
    fn read(options: &OpenOptions, file: &RoundFile) -> Result<Self, Refused> {
        let OpenOptions { secret_key, part, .. } = options;
        match (file.opener(), part) {
            (None, None) => {
                if file.round().is_simulation() {
                    check_kind(secret_key, file)?;
                }
                decode_input(secret_key, FileKind::SECRET_KEY, SecretKey::from_bytes).map(Self::Alone)
            }
            (None, Some(_)) => Err(Refused::usage("the student opens this round alone: remove --part")),
            (Some(_), None) => Err(Refused::usage(
                "this round is opened jointly: give --part FILE, which the round's opener makes with `speed teacher part`",
            )),
            (Some(_), Some(path)) => {
                let share = decode_input(secret_key, FileKind::STUDENT_SHARE, StudentShare::from_bytes)?;
                check_share(secret_key, share.is_simulation(), file)?;
                check_evaluation_key(file, share.evaluation_key()).map_err(Refused::input(secret_key))?;
                let part = decode_input(path, FileKind::OPENING_PART, OpeningPart::from_bytes)?;
                Ok(Self::Joint(Box::new(share), part))
            }
        }
    }

    /// Checks that the opener's part, if there is one, is of the result with this SHA-256.
    fn check(&self, options: &OpenOptions, file: &RoundFile, result: Digest) -> Result<(), Refused> {
        match (self, file.opener(), &options.part) {
            (Self::Joint(_, part), Some(opener), Some(path)) => {
                check_part(part, file, opener, result).map_err(Refused::input(path))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the key comes from a seed. A share says so itself, a secret key has a file beside it.
    fn is_simulated(&self, secret_key: &Path) -> bool {
        match self {
            Self::Alone(_) => are_simulated(secret_key),
            Self::Joint(share, _) => share.is_simulation(),
        }
    }

    /// Returns SHA-256 of the opener's part, in a joint opening.
    fn part_digest(&self) -> Option<Digest> {
        match self {
            Self::Alone(_) => None,
            Self::Joint(_, part) => Some(Digest::of(part.to_bytes())),
        }
    }

    fn open(&self, answer: &EncryptedAnswer) -> Result<Outcome, OpenError> {
        match self {
            Self::Alone(key) => key.open(answer),
            Self::Joint(share, part) => share.open(answer, part),
        }
    }
}

/// Checks that the opener signed a part of the result with this SHA-256, with a word for each ciphertext.
fn check_part(
    part: &OpeningPart,
    file: &RoundFile,
    (index, opener): (usize, &Party),
    result: Digest,
) -> Result<(), Refused> {
    expect_round(file, part.round())?;
    expect_result(result, part.result())?;
    let (digest, signature) = part.signed();
    Refused::unless(part.teacher() == index && opener.key().verifies(digest, signature), || {
        format!("is not signed by the round's opener {:?}: it was changed, or another party made it", opener.name())
    })?;
    Refused::unless(part.agrees_with(file.round()), || {
        let (round, found) = (file.round(), part.words().len());
        let expected = round.shape().queries() * round.outcomes().digits();
        format!("has {found} words, the answers of the round need {expected}")
    })
}
