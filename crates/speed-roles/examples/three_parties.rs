//! Teacher, server and student of a labelling round, each with the files that it may hold.
//!
//! ```console
//! $ cargo run --release -p speed-roles --example three_parties
//! ```
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;
use std::fs;
use std::path::Path;

use speed_aggregation::{Parameters, PrivacyNoise};
use speed_core::{Circuit, NoisePlacement, RandomnessKind, VoteShape};
use speed_roles::server::{self, Progress, Refusal, ServerOptions};
use speed_roles::teacher::{self, TeacherOptions};
use speed_roles::{RoundRandomness, Terms, student};

const RANDOMNESS: RoundRandomness = RoundRandomness::OPERATING_SYSTEM;

/// The student makes keys and a round: `secret.key` stays, everything else goes to the others.
fn announce(folder: &Path, shape: VoteShape) -> Result<(), Box<dyn Error>> {
    student::keygen(folder, &Parameters::TOURNAMENT_128, RANDOMNESS)?;
    let terms = Terms {
        name: "three parties".into(),
        shape,
        query_list: None,
        min_teachers: shape.teachers(),
        noise: PrivacyNoise::named("discrete-laplace", 1.0)?,
        placement: NoisePlacement::Distributed,
        threshold: None,
        randomness: RandomnessKind::OperatingSystem,
    };
    student::round(&terms, &folder.join("public.key"), &folder.join("round.toml"))?;
    Ok(())
}

/// A teacher encrypts its votes, with its share of the noise, into one message.
fn answer(folder: &Path, inbox: &Path, teacher: usize, votes: &str) -> Result<(), Box<dyn Error>> {
    let file = folder.join(format!("votes-{teacher}.csv"));
    fs::write(&file, votes)?;
    let report = teacher::answer(&TeacherOptions {
        public_key: folder.join("public.key"),
        round: folder.join("round.toml"),
        votes: file,
        teacher,
        out: inbox.join(format!("teacher-{teacher}.msg")),
        query_list: None,
        mechanism: None,
        randomness: RANDOMNESS,
    })?;
    println!("teacher {teacher} sends {} bytes", report.bytes);
    Ok(())
}

/// The server sums the messages and computes the winners, on ciphertexts only.
fn label(folder: &Path, inbox: &Path) -> Result<(), Box<dyn Error>> {
    let options = ServerOptions {
        evaluation_key: folder.join("evaluation.key"),
        round: folder.join("round.toml"),
        answers: inbox.to_path_buf(),
        out: folder.join("result"),
        min_teachers: None,
        state: None,
        circuit: Circuit::Tournament,
        threads: std::thread::available_parallelism()?,
        randomness: RANDOMNESS,
    };
    let report = server::aggregate(&options, &Shown)?;
    println!("the server counted {} of {} teachers", report.counted, report.teachers);
    Ok(())
}

/// Progress in lines.
struct Shown;

impl Progress for Shown {
    fn refused(&self, refusal: &Refusal) {
        println!("{refusal}");
    }

    fn begin(&self, queries: usize, done: usize) {
        println!("argmax of {} queries", queries - done);
    }

    fn advance(&self, _: usize) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (folder, inbox) = (folder.path(), folder.path().join("inbox"));
    fs::create_dir(&inbox)?;
    announce(folder, VoteShape::new(3, 2, 10)?)?;
    for (teacher, votes) in ["7\n1\n", "7\n2\n", "7\n2\n"].into_iter().enumerate() {
        answer(folder, &inbox, teacher, votes)?;
    }
    label(folder, &inbox)?;

    // The student decrypts the labels, and nothing but the labels.
    let labels = folder.join("labels.csv");
    let report =
        student::open(&folder.join("secret.key"), &folder.join("result"), &folder.join("round.toml"), &labels)?;
    println!("{} of {} queries labelled:\n{}", report.labelled, report.queries, fs::read_to_string(labels)?);
    Ok(())
}
