//! The student's programs: keys, rounds, and the opening of results.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use speed_aggregation::{
    AnswerList, OpenError, Outcome, Parameters, ProofKey, PublicKey, SecretKey, SignedResult, TeacherStatus, generate_keys,
};
use speed_core::NoisePlacement;

use crate::error::RolesError;
use crate::fault::InputFault;
use crate::files::{Access, MAX_KEY, decode_input, expect_absent, write_new};
use crate::proofs;
use crate::randomness::RoundRandomness;
use crate::round_file::RoundFile;
use crate::terms::Terms;

/// The names of the files that [`keygen`] writes: the student's, the teachers' and the server's.
pub const KEY_FILES: [&str; 3] = ["secret.key", "public.key", "evaluation.key"];

/// The report of a generation of keys.
#[derive(Clone, Debug, Serialize)]
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

/// Generates the keys of the three roles into `folder`, which is made if it is not there. The secret key's file can be read
/// by its owner only.
///
/// # Errors
/// If one of the files is there already, writing fails, or the operating system gives no randomness.
pub fn keygen(folder: &Path, parameters: &Parameters, randomness: RoundRandomness) -> Result<KeygenReport, RolesError> {
    let paths = KEY_FILES.map(|name| folder.join(name));
    paths.iter().try_for_each(|path| expect_absent(path))?;
    fs::create_dir_all(folder).map_err(RolesError::io("create", folder))?;
    let keys = generate_keys(parameters, &randomness.keys())?;
    let [secret, public, evaluation] = &paths;
    if randomness.is_simulation() {
        let text = b"SIMULATION: these keys come from a seed. Whoever knows it knows the secret key.\n";
        write_new(&folder.join("SIMULATION.txt"), text, Access::Shared)?;
    }
    let mut files = Vec::new();
    let mut write = |path: &PathBuf, bytes: &[u8], access| {
        files.push((path.clone(), bytes.len()));
        write_new(path, bytes, access)
    };
    write(secret, &keys.secret.to_bytes(), Access::Owner)?;
    write(public, &keys.public.to_bytes(), Access::Shared)?;
    write(evaluation, &keys.evaluation.to_bytes(), Access::Shared)?;
    Ok(KeygenReport {
        key: keys.public.id().to_hex(),
        parameters: parameters.name(),
        simulation: randomness.is_simulation(),
        files,
    })
}

/// Makes the round of these terms under a public key, to be written to `out`.
///
/// # Errors
/// If the terms make no round under this key, or the file is there already.
pub fn terms(terms: &Terms, public_key: &Path, out: &Path) -> Result<RoundFile, RolesError> {
    expect_absent(out)?;
    RoundFile::new(terms, &decode_input(public_key, MAX_KEY, PublicKey::from_bytes)?)
}

/// Writes the file of a round under a public key. Without a file for a proof key the round asks for no proofs, unless its terms name a key.
///
/// # Errors
/// Those of [`terms`](self::terms()), [`write_proof_key`] and [`write_round`].
pub fn round(
    terms: &Terms,
    public_key: &Path,
    proof_key: Option<&Path>,
    out: &Path,
    randomness: RoundRandomness,
) -> Result<RoundFile, RolesError> {
    let file = self::terms(terms, public_key, out)?;
    let file = match proof_key {
        Some(path) => write_proof_key(terms, public_key, path, randomness)?,
        None => file,
    };
    write_round(&file, out)?;
    Ok(file)
}

/// Generates the proof key of a round, with which teachers prove that their messages are well formed, and returns the round that names it.
/// Takes about 20 core-seconds for a thousand values. Whoever generates a proof key could forge proofs: the student, never a teacher.
///
/// # Errors
/// If the terms make no round under this key, the file is there already, writing fails, or the operating system gives no randomness.
pub fn write_proof_key(
    terms: &Terms,
    public_key: &Path,
    out: &Path,
    randomness: RoundRandomness,
) -> Result<RoundFile, RolesError> {
    expect_absent(out)?;
    let public = decode_input(public_key, MAX_KEY, PublicKey::from_bytes)?;
    let unproven = RoundFile::new(&Terms { proofs: None, ..terms.clone() }, &public)?;
    let key: ProofKey = proofs::generate(&unproven, public.parameters(), &randomness.keys())?;
    write_new(out, key.to_bytes(), Access::Shared)?;
    RoundFile::new(&Terms { proofs: Some(key.digest()), ..terms.clone() }, &public)
}

/// Writes the file of a round.
///
/// # Errors
/// If the file is there already, or writing fails.
pub fn write_round(file: &RoundFile, out: &Path) -> Result<(), RolesError> {
    write_new(out, file.to_toml().as_bytes(), Access::Shared)
}

/// The report of a student that opened a result.
#[derive(Clone, Debug, Serialize)]
pub struct OpenReport {
    /// The round's id.
    pub round: String,
    /// True if the round is a simulation.
    pub simulation: bool,
    /// Number of queries.
    pub queries: usize,
    /// Number of queries with a label; the others got no answer, or one that is undecodable.
    pub labelled: usize,
    /// Queries whose answer does not decrypt to an outcome of the round.
    pub undecodable: Vec<usize>,
    /// Number of teachers of the round.
    pub teachers: usize,
    /// Number of teachers in the sum.
    pub counted: usize,
    /// The largest honest ratio that an accountant may use: see [`AnswerList::honest_ratio`].
    pub honest_ratio: f64,
    /// True if the server added the noise.
    pub noise_by_server: bool,
    /// Teachers that are not in the sum, and why.
    pub excluded: Vec<(usize, &'static str)>,
    /// The labels' file.
    pub out: PathBuf,
}

/// Opens a round's result and writes `query,label` lines, with an empty label where there is none: no answer, or an answer that does not
/// decrypt to an outcome of the round, which the report names. The labels' file can be read by its owner only.
///
/// # Errors
/// If an input is missing or damaged, the result is not for this key or round, or the labels are there already.
pub fn open(secret_key: &Path, result: &Path, round: &Path, out: &Path) -> Result<OpenReport, RolesError> {
    expect_absent(out)?;
    let key = decode_input(secret_key, MAX_KEY, SecretKey::from_bytes)?;
    let signed = decode_input(result, SignedResult::MAX_BYTES as u64, SignedResult::from_bytes)?;
    check_result(&signed, &RoundFile::read(round)?).map_err(RolesError::input(result))?;
    let list = signed.list();
    let Opened { text, labelled, undecodable } = open_all(list, &key).map_err(RolesError::input(result))?;
    write_new(out, text.as_bytes(), Access::Owner)?;
    let excluded = list.statuses().iter().enumerate().filter(|(_, status)| **status != TeacherStatus::Counted);
    Ok(OpenReport {
        round: list.round().to_hex(),
        simulation: list.is_simulation(),
        queries: list.shape().queries(),
        labelled,
        undecodable,
        teachers: list.shape().teachers(),
        counted: list.counted(),
        honest_ratio: list.honest_ratio(),
        noise_by_server: list.placement() == NoisePlacement::Central,
        excluded: excluded.map(|(teacher, status)| (teacher, status.name())).collect(),
        out: out.to_path_buf(),
    })
}

/// Checks that a result is the round's, and signed by its server.
fn check_result(result: &SignedResult, file: &RoundFile) -> Result<(), InputFault> {
    let (list, server) = (result.list(), file.roster().server());
    if list.round() != file.id() {
        return Err(InputFault::OtherRound { expected: file.id(), found: list.round() });
    }
    let (digest, signature) = result.signed();
    if !server.key().verifies(digest, signature) {
        return Err(InputFault::Unsigned { server: server.name().to_owned() });
    }
    if list.agrees_with(file.round()) { Ok(()) } else { Err(InputFault::Contradiction) }
}

/// All answers, decrypted.
struct Opened {
    /// The labels' file.
    text: String,
    /// The number of labels in it.
    labelled: usize,
    /// Queries whose answer is none.
    undecodable: Vec<usize>,
}

/// Decrypts all answers. One that is none hides no other.
fn open_all(list: &AnswerList, key: &SecretKey) -> Result<Opened, OpenError> {
    let mut opened = Opened { text: String::from("query,label\n"), labelled: 0, undecodable: Vec::new() };
    for answer in list.answers() {
        let label = match key.open(&answer) {
            Ok(Outcome::Label(label)) => label.to_string(),
            Ok(Outcome::NoAnswer) => String::new(),
            Err(OpenError::Outcome { query, .. }) => {
                opened.undecodable.push(query);
                String::new()
            }
            Err(error) => return Err(error),
        };
        opened.labelled += usize::from(!label.is_empty());
        opened.text.push_str(&format!("{},{label}\n", answer.query()));
    }
    Ok(opened)
}
