//! A labelling round of teachers, a server and a student, each with only the files that it may hold.
//!
//! ```console
//! $ cargo run --release -p speed-round --example three_parties
//! ```
#![expect(clippy::print_stdout, reason = "a program that reports")]

use std::error::Error;
use std::fs;
use std::path::Path;

use speed_accountant::{Delta, PriceLimit};
use speed_aggregation::{Parameters, PrivacyNoise};
use speed_core::{Circuit, Classes, NoisePlacement, RandomnessKind};
use speed_round::server::{self, Progress, Refusal, ServerOptions};
use speed_round::student::{OpenOptions, RoundOptions};
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{Identity, LedgerOptions, Party, Role, Roster, RoundRandomness, Terms, generate_party, student};

const RANDOMNESS: RoundRandomness = RoundRandomness::OPERATING_SYSTEM;

/// Generates a party's signing key, which stays with the party, and returns the card that goes to the student.
fn introduce(folder: &Path, role: Role, name: &str) -> Result<Party, Box<dyn Error>> {
    let path = folder.join(format!("{name}.key"));
    generate_party(role, name, (1, None), &path)?;
    Ok(Party::new(name, Identity::read(&path)?.key())?)
}

/// The student generates keys, a round, and the key with which teachers prove that their messages are well formed.
/// `secret.key` stays with the student; all other files go to the other parties.
fn announce(folder: &Path, roster: Roster) -> Result<(), Box<dyn Error>> {
    student::keygen(folder, &Parameters::TOURNAMENT_128, RANDOMNESS)?;
    let terms = Terms {
        name: "three parties".into(),
        min_teachers: roster.teachers().len(),
        roster,
        queries: 2,
        classes: Classes::numbered(10)?,
        query_list: None,
        noise: PrivacyNoise::named("discrete-laplace", 1.0)?,
        placement: NoisePlacement::Distributed,
        threshold: None,
        proofs: None,
        evaluation_key: Some(student::evaluation_key_digest(
            &folder.join("evaluation.key"),
            &folder.join("public.key"),
        )?),
        opener: None,
        randomness: RandomnessKind::OperatingSystem,
    };
    let options = RoundOptions {
        public_key: folder.join("public.key"),
        proof_key: Some(folder.join("proof.key")),
        reuse_keys: false,
        out: folder.join("round.toml"),
        randomness: RANDOMNESS,
    };
    student::round(&terms, &options)?;
    Ok(())
}

/// A teacher encrypts its votes and its share of the noise into one message, proves that the message is well formed,
/// and signs it.
fn answer(folder: &Path, inbox: &Path, name: &str, votes: &str) -> Result<(), Box<dyn Error>> {
    let file = folder.join(format!("{name}.csv"));
    fs::write(&file, votes)?;
    let report = teacher::answer(&TeacherOptions {
        signing_key: folder.join(format!("{name}.key")),
        public_key: folder.join("public.key"),
        proof_key: Some(folder.join("proof.key")),
        round: folder.join("round.toml"),
        votes: file,
        form: None,
        out: inbox.join(name),
        query_list: None,
        mechanism: None,
        registry: folder.join(format!("{name}.registry")),
        new_registry: false,
        ledger: ledger(folder, name)?,
        limit: PriceLimit::default(),
        reuse_keys: false,
        randomness: RANDOMNESS,
    })?;
    println!("{name} sends {} bytes", report.bytes);
    Ok(())
}

/// A party's ledger of its rounds.
fn ledger(folder: &Path, name: &str) -> Result<LedgerOptions, Box<dyn Error>> {
    Ok(LedgerOptions { path: folder.join(format!("{name}.ledger")), delta: Delta::new(1e-5)? })
}

/// The server sums the messages and computes the winners, on ciphertexts only.
fn label(folder: &Path, inbox: &Path) -> Result<(), Box<dyn Error>> {
    let options = ServerOptions {
        signing_key: folder.join("server.key"),
        proof_key: Some(folder.join("proof.key")),
        evaluation_key: folder.join("evaluation.key"),
        round: folder.join("round.toml"),
        min_teachers: None,
        registry: folder.join("server.registry"),
        new_registry: false,
        ledger: ledger(folder, "server")?,
        circuit: Circuit::Tournament,
        threads: std::thread::available_parallelism()?,
        randomness: RANDOMNESS,
        copies: None,
    };
    let report = server::aggregate(&options, inbox, &folder.join("result"), &Shown)?;
    println!("the server counted {} of {} teachers", report.counted, report.teachers);
    Ok(())
}

/// Prints progress as lines.
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
    let hospitals = [("north", "7\n1\n"), ("south", "7\n2\n"), ("west", "7\n2\n")];
    let (asker, server) = (introduce(folder, Role::Student, "student")?, introduce(folder, Role::Server, "server")?);
    let teachers =
        hospitals.iter().map(|(name, _)| introduce(folder, Role::Teacher, name)).collect::<Result<_, _>>()?;
    announce(folder, Roster::new(asker, server, teachers)?)?;
    for (name, votes) in hospitals {
        answer(folder, &inbox, name, votes)?;
    }
    label(folder, &inbox)?;

    // The student decrypts only the labels.
    let labels = folder.join("labels.csv");
    let report = student::open(&OpenOptions {
        secret_key: folder.join("secret.key"),
        part: None,
        result: folder.join("result"),
        round: folder.join("round.toml"),
        verifications: Vec::new(),
        unverified: true,
        known: None,
        keep_keys: false,
        out: labels.clone(),
    })?;
    println!("{} of {} queries labelled:\n{}", report.labelled, report.queries, fs::read_to_string(labels)?);
    Ok(())
}
