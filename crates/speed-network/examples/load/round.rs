//! A round of many teachers, with all keys and messages.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use speed_accountant::Delta;
use speed_aggregation::log::RoundLog;
use speed_aggregation::{Parameters, PrivacyNoise};
use speed_core::{NoisePlacement, RandomnessKind};
use speed_network::{ClientOptions, NetworkError, SendReport, fetch_log, send};
use speed_roles::student::{RoundOptions, keygen, round};
use speed_roles::teacher::{TeacherOptions, answer};
use speed_roles::{Identity, LedgerOptions, Party, Role, Roster, RoundRandomness, Terms, generate_identity};

const RANDOMNESS: RoundRandomness = RoundRandomness::OPERATING_SYSTEM;
const QUERIES: usize = 100;

pub(crate) struct Round {
    pub(crate) folder: PathBuf,
    /// Honest teachers, which have the first indices.
    pub(crate) teachers: usize,
    pub(crate) hostile: usize,
}

impl Round {
    /// Creates keys, a roster, a round and the messages of the honest teachers, all in one directory.
    pub(crate) fn make(folder: &Path, teachers: usize, hostile: usize) -> Result<Self, Box<dyn Error>> {
        let made = Self { folder: folder.to_path_buf(), teachers, hostile };
        let party = |role, name: String| -> Result<Party, Box<dyn Error>> {
            let path = folder.join(format!("{name}.key"));
            generate_identity(role, &name, &path)?;
            Ok(Party::new(&name, Identity::read(&path)?.key())?)
        };
        let (student, server) = (party(Role::Student, "student".into())?, party(Role::Server, "server".into())?);
        let all = (0..teachers + hostile).map(|teacher| party(Role::Teacher, teacher.to_string()));
        let terms = Terms {
            name: "load".into(),
            roster: Roster::new(student, server, all.collect::<Result<_, _>>()?)?,
            queries: QUERIES,
            classes: 10,
            query_list: None,
            min_teachers: teachers,
            noise: PrivacyNoise::named("discrete-laplace", 0.1)?,
            placement: NoisePlacement::Distributed,
            threshold: None,
            proofs: None,
            evaluation_key: None,
            opener: None,
            randomness: RandomnessKind::OperatingSystem,
        };
        keygen(folder, &Parameters::WIDE_128, RANDOMNESS)?;
        let options = RoundOptions {
            public_key: folder.join("public.key"),
            proof_key: None,
            reuse_keys: false,
            out: folder.join("round.toml"),
            randomness: RANDOMNESS,
        };
        round(&terms, &options)?;
        fs::write(folder.join("votes.csv"), "3\n".repeat(QUERIES))?;
        (0..teachers).try_for_each(|teacher| made.answer(teacher))?;
        Ok(made)
    }

    fn answer(&self, teacher: usize) -> Result<(), Box<dyn Error>> {
        let path = |name: String| self.folder.join(name);
        answer(&TeacherOptions {
            signing_key: path(format!("{teacher}.key")),
            public_key: path("public.key".into()),
            proof_key: None,
            round: path("round.toml".into()),
            votes: path("votes.csv".into()),
            form: None,
            out: self.message(teacher),
            query_list: None,
            mechanism: None,
            registry: path(format!("{teacher}.registry")),
            ledger: LedgerOptions { path: path(format!("{teacher}.ledger")), delta: Delta::new(1e-5)? },
            randomness: RANDOMNESS,
        })?;
        Ok(())
    }

    pub(crate) fn message(&self, teacher: usize) -> PathBuf {
        self.folder.join(format!("{teacher}.message"))
    }

    pub(crate) fn client(&self, party: &str, address: &str, patience: Duration) -> ClientOptions {
        ClientOptions {
            signing_key: self.folder.join(format!("{party}.key")),
            round: self.folder.join("round.toml"),
            server: address.to_owned(),
            patience,
        }
    }

    /// Sends the message of a teacher.
    pub(crate) fn send(&self, teacher: usize, address: &str, run: &str) -> Result<SendReport, NetworkError> {
        let client = self.client(&teacher.to_string(), address, Duration::from_secs(120));
        send(&client, &self.message(teacher), &self.folder.join(format!("{teacher}.{run}.receipt")))
    }

    pub(crate) fn log(&self, address: &str, run: &str) -> Result<RoundLog, Box<dyn Error>> {
        let path = self.folder.join(format!("{run}.log"));
        fetch_log(&self.client("student", address, Duration::from_secs(60)), &path)?;
        Ok(RoundLog::from_bytes(&fs::read(path)?)?)
    }
}
