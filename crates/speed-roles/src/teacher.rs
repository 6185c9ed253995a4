//! The teacher's program: votes and privacy noise in, one message out.

use std::path::PathBuf;

use serde::Serialize;
use speed_aggregation::{PublicKey, Teacher, teacher_values};
use speed_core::{Digest, NoisePlacement};
use speed_mechanism::{Mechanism, MechanismError};
use zeroize::Zeroizing;

use crate::error::{OptionsFault, RolesError};
use crate::fault::InputFault;
use crate::files::{Access, MAX_KEY, MAX_VOTES, decode_input, expect_absent, hash_file, write_new};
use crate::labels::parse_labels;
use crate::randomness::RoundRandomness;
use crate::round_file::RoundFile;

/// The options of a teacher.
#[derive(Clone, Debug)]
pub struct TeacherOptions {
    /// The student's public key.
    pub public_key: PathBuf,
    /// The round's file.
    pub round: PathBuf,
    /// The teacher's votes, one label per query.
    pub votes: PathBuf,
    /// The teacher's index, from 0.
    pub teacher: usize,
    /// The message to write.
    pub out: PathBuf,
    /// The list of queries that the teacher voted on; a round with another, or without one, is refused.
    pub query_list: Option<PathBuf>,
    /// The mechanism that the teacher agrees to; a round with another is refused.
    pub mechanism: Option<Mechanism>,
    /// The origin of noise and encryption.
    pub randomness: RoundRandomness,
}

/// The report of a teacher. No vote and no noise is in it.
#[derive(Clone, Debug, Serialize)]
pub struct TeacherReport {
    /// The round's id.
    pub round: String,
    /// The round's name.
    pub name: String,
    /// The teacher.
    pub teacher: usize,
    /// Number of queries answered.
    pub queries: usize,
    /// The mechanism of the noise that is in the message, or none where the server adds it.
    pub noise: Option<String>,
    /// True if noise and encryption come from a seed.
    pub simulation: bool,
    /// The message.
    pub out: PathBuf,
    /// Its length.
    pub bytes: usize,
}

/// Encrypts a teacher's votes, with its share of the noise where the round asks for it, into one message.
///
/// # Errors
/// If an input is missing, damaged or does not fit the round, or the message is there already.
pub fn answer(options: &TeacherOptions) -> Result<TeacherReport, RolesError> {
    expect_absent(&options.out)?;
    let file = RoundFile::read(&options.round)?;
    check(options, &file)?;
    if let Some(list) = &options.query_list {
        check_queries(file.round().query_list(), hash_file(list)?).map_err(RolesError::input(list))?;
    }
    let shape = file.round().shape();
    let key = decode_input(&options.public_key, MAX_KEY, PublicKey::from_bytes)?;
    file.check_key(&options.public_key, key.id())?;
    let labels =
        decode_input(&options.votes, MAX_VOTES, |votes| parse_labels(votes, shape.queries(), shape.classes()))?;
    let labels = Zeroizing::new(labels);

    let values = values(&file, &labels, options.teacher, options.randomness)?;
    let teacher = Teacher::new(options.teacher);
    let message = teacher.answer(&key, file.round(), &values, &options.randomness.keys())?.to_bytes();
    write_new(&options.out, &message, Access::Shared)?;
    Ok(TeacherReport {
        round: file.id().to_hex(),
        name: file.name().to_owned(),
        teacher: options.teacher,
        queries: shape.queries(),
        noise: (file.round().placement() == NoisePlacement::Distributed).then(|| file.noise().mechanism().identifier()),
        simulation: options.randomness.is_simulation(),
        out: options.out.clone(),
        bytes: message.len(),
    })
}

/// Checks that the teacher and what it agrees to are the round's.
fn check(options: &TeacherOptions, file: &RoundFile) -> Result<(), OptionsFault> {
    file.check_randomness(options.randomness.kind())?;
    let found = file.noise().mechanism();
    if let Some(asked) = options.mechanism.filter(|asked| *asked != found) {
        return Err(OptionsFault::Mechanism { asked, found });
    }
    let (teacher, teachers) = (options.teacher, file.round().shape().teachers());
    if teacher >= teachers { Err(OptionsFault::Teacher { teacher, teachers }) } else { Ok(()) }
}

/// Checks that the queries that the teacher voted on are the round's.
fn check_queries(expected: Option<Digest>, found: Digest) -> Result<(), InputFault> {
    match expected {
        Some(expected) if expected == found => Ok(()),
        Some(expected) => Err(InputFault::QueryList { expected, found }),
        None => Err(InputFault::NoQueryList),
    }
}

/// Returns the values that a teacher of the round encrypts: one-hot votes (queries x classes, row major), and its shares of
/// the noise where the teachers add it.
///
/// # Errors
/// If the noise cannot be drawn.
///
/// # Panics
/// If there is not one label below the number of classes for each query.
pub fn values(
    file: &RoundFile,
    labels: &[u8],
    teacher: usize,
    randomness: RoundRandomness,
) -> Result<Zeroizing<Vec<i64>>, MechanismError> {
    let shape = file.round().shape();
    let values = match file.round().placement() {
        NoisePlacement::Distributed => {
            let share = file.noise().share_of(shape.teachers())?;
            teacher_values(shape, labels, Some((&share, &randomness.teacher_noise(file.id(), teacher))))
        }
        NoisePlacement::Central => teacher_values(shape, labels, None),
    };
    Ok(values?)
}
