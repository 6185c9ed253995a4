//! The teacher's program: votes and noise in, one message out.

use std::path::PathBuf;

use serde::Serialize;
use speed_aggregation::{NoisePlace, PublicKey, Teacher};
use zeroize::Zeroizing;

use crate::files::{Access, MAX_KEY, MAX_VOTES, expect_absent, read_input, write_new};
use crate::{Mechanism, RolesError, RoundFile, Simulation, parse_labels};

/// What a teacher is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// The student's public key.
    pub public_key: PathBuf,
    /// The round's file.
    pub round: PathBuf,
    /// The teacher's votes, one label a query.
    pub votes: PathBuf,
    /// The teacher's index, from 0.
    pub teacher: usize,
    /// The message to write.
    pub out: PathBuf,
    /// The mechanism that the teacher agrees to; a round with another is refused.
    pub mechanism: Option<Mechanism>,
    /// A seed instead of the operating system's generator.
    pub simulation: Option<Simulation>,
}

/// What a teacher did. No vote and no noise is in it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
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
    /// Whether noise and encryption come from a seed.
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
pub fn answer(options: &Options) -> Result<Report, RolesError> {
    expect_absent(&options.out)?;
    let input = |path: &PathBuf, message| RolesError::Input { path: path.clone(), message };
    let file = RoundFile::read(&options.round)?;
    file.check_simulation(options.simulation.is_some())?;
    if let Some(mechanism) = options.mechanism.filter(|mechanism| *mechanism != file.mechanism()) {
        let (asked, found) = (mechanism.description(), file.mechanism().description());
        return Err(RolesError::Options(format!("you ask for {asked}, the round has {found}")));
    }
    let round = file.round();
    if options.teacher >= round.teachers() {
        let last = round.teachers() - 1;
        return Err(RolesError::Options(format!("teacher {}: the round has teachers 0 to {last}", options.teacher)));
    }
    let key = PublicKey::from_bytes(&read_input(&options.public_key, MAX_KEY)?)
        .map_err(|error| input(&options.public_key, error.to_string()))?;
    file.check_key(&options.public_key, key.id())?;
    let votes = Zeroizing::new(read_input(&options.votes, MAX_VOTES)?);
    let labels = parse_labels(&votes, round.queries(), round.classes()).map(Zeroizing::new);
    let labels = labels.map_err(|message| input(&options.votes, message))?;

    let values = values(&file, &labels, options.teacher, options.simulation)?;
    let source = Simulation::key_source(options.simulation);
    let message = Teacher::new(options.teacher).answer(&key, round, &values, &source)?.to_bytes();
    write_new(&options.out, &message, Access::Shared)?;
    Ok(Report {
        round: file.id().to_hex(),
        name: file.name().to_owned(),
        teacher: options.teacher,
        queries: round.queries(),
        noise: (round.noise_place() == NoisePlace::Teachers).then(|| file.mechanism().description()),
        simulation: options.simulation.is_some(),
        out: options.out.clone(),
        bytes: message.len(),
    })
}

/// What a teacher encrypts: one-hot votes (queries x classes, row major), and its shares of the noise where the round has
/// the noise of the teachers.
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
    simulation: Option<Simulation>,
) -> Result<Zeroizing<Vec<i64>>, RolesError> {
    let round = file.round();
    assert_eq!(labels.len(), round.queries(), "one label a query");
    let mut values = match round.noise_place() {
        NoisePlace::Teachers => {
            let source = Simulation::teacher_noise(simulation, file.id(), teacher);
            file.mechanism().draw(round.teachers(), round.values(), source)?
        }
        NoisePlace::Server => Zeroizing::new(vec![0; round.values()]),
    };
    for (&label, values) in labels.iter().zip(values.chunks_exact_mut(round.classes())) {
        values[usize::from(label)] += 1;
    }
    Ok(values)
}
