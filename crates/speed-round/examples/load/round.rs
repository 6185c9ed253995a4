//! A round of many teachers, with all keys and messages.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use speed_aggregation::log::RoundLog;
use speed_aggregation::proofs::ProofKey;
use speed_aggregation::protocol::Submission;
use speed_aggregation::{Parameters, PrivacyNoise, PublicKey, Teacher};
use speed_core::{Classes, NoisePlacement, RandomnessKind};
use speed_round::network::{ClientOptions, SendReport, fetch_log, send};
use speed_round::student::{RoundOptions, keygen, round};
use speed_round::teacher::values;
use speed_round::{Identity, Party, Refused, Role, Roster, RoundFile, RoundRandomness, Terms, generate_party};
use tempfile::TempDir;

const RANDOMNESS: RoundRandomness = RoundRandomness::OPERATING_SYSTEM;
const CLASSES: usize = 10;
/// The vote of every teacher on every query.
const VOTE: u8 = 3;
/// Coins of a teacher in a round with proofs.
const COINS: u64 = 2;

pub(crate) struct Round {
    /// The keys, the round and the messages.
    pub(crate) folder: PathBuf,
    /// The registries, receipts and logs of this test.
    pub(crate) runs: TempDir,
    /// Honest teachers, which have the first indices.
    pub(crate) teachers: usize,
    pub(crate) hostile: usize,
    /// Whether messages have proofs.
    pub(crate) proofs: bool,
}

/// The round and the keys that all teachers share.
struct Keys<'a> {
    file: &'a RoundFile,
    public: PublicKey,
    proof: Option<ProofKey>,
}

impl Round {
    /// Creates keys, a roster, a round and the messages of the honest teachers, all in one directory. Files of an earlier
    /// test with the same numbers are used again.
    pub(crate) fn make(
        folder: &Path,
        [teachers, hostile, queries]: [usize; 3],
        proofs: bool,
    ) -> Result<Self, Box<dyn Error>> {
        fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?;
        let made = Self { runs: tempfile::tempdir_in(&folder)?, folder, teachers, hostile, proofs };
        let path = made.folder.join("round.toml");
        if !path.exists() {
            made.agree(queries)?;
        }
        let file = RoundFile::read(&path)?;
        let shape = file.round().shape();
        let found = (shape.teachers(), shape.queries(), file.round().min_teachers(), file.round().proofs().is_some());
        if found != (teachers + hostile, queries, teachers, proofs) {
            return Err(format!("{}: expected the round of the same options, found another", path.display()).into());
        }
        made.answer_all(&file)?;
        Ok(made)
    }

    /// Creates keys, a roster and a round.
    fn agree(&self, queries: usize) -> Result<(), Box<dyn Error>> {
        let folder = &self.folder;
        let party = |role, name: String| -> Result<Party, Box<dyn Error>> {
            let path = folder.join(format!("{name}.key"));
            generate_party(role, &name, (1, None), &path)?;
            Ok(Party::new(&name, Identity::read(&path)?.key())?)
        };
        let (student, server) = (party(Role::Student, "student".into())?, party(Role::Server, "server".into())?);
        let teachers = self.teachers + self.hostile;
        let all = (0..teachers).map(|teacher| party(Role::Teacher, teacher.to_string()));
        let terms = Terms {
            name: "load".into(),
            roster: Roster::new(student, server, all.collect::<Result<_, _>>()?)?,
            queries,
            classes: Classes::numbered(CLASSES)?,
            query_list: None,
            min_teachers: self.teachers,
            noise: if self.proofs {
                PrivacyNoise::of_coins(COINS, teachers)?
            } else {
                PrivacyNoise::named("discrete-laplace", 0.1)?
            },
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
            proof_key: self.proof_key(),
            reuse_keys: false,
            out: folder.join("round.toml"),
            randomness: RANDOMNESS,
        };
        round(&terms, &options)?;
        Ok(())
    }

    /// Creates the messages of the honest teachers that are missing, on all cores: what `speed teacher answer` sends, except that the
    /// keys are read once for all teachers.
    fn answer_all(&self, file: &RoundFile) -> Result<(), Box<dyn Error>> {
        let missing: Vec<usize> = (0..self.teachers).filter(|teacher| !self.message(*teacher).exists()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let public = PublicKey::from_bytes(&fs::read(self.folder.join("public.key"))?)?;
        let proof_key = self.proof_key().map(fs::read).transpose()?;
        let keys = Keys { file, public, proof: proof_key.map(|bytes| ProofKey::from_bytes(&bytes)).transpose()? };
        let (next, begun) = (AtomicUsize::new(0), Instant::now());
        let threads = std::thread::available_parallelism()?.get();
        std::thread::scope(|scope| {
            let work = || {
                while let Some(teacher) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                    self.answer(*teacher, &keys).map_err(|error| format!("teacher {teacher}: {error}"))?;
                }
                Ok::<_, String>(())
            };
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("messages are made"))
        })?;
        eprintln!("{} messages in {:.0} s", missing.len(), begun.elapsed().as_secs_f64());
        Ok(())
    }

    fn answer(&self, teacher: usize, keys: &Keys<'_>) -> Result<(), Box<dyn Error>> {
        let Keys { file, public, proof } = keys;
        let (round, random) = (file.round(), RANDOMNESS.keys());
        let values = values(file, &vec![VOTE; round.shape().queries()], teacher, RANDOMNESS)?;
        let (message, proofs) = match proof {
            None => (Teacher::new(teacher).answer(public, round, &values, &random)?, Vec::new()),
            Some(key) => {
                let (message, proofs) =
                    Teacher::new(teacher).answer_with_proof(public, round, &values, key, &random)?;
                (message, proofs.to_bytes()?)
            }
        };
        let identity = Identity::read(&self.folder.join(format!("{teacher}.key")))?;
        let bytes = Submission::new(message, proofs, |digest| identity.sign(digest)).to_bytes();
        // Written under another name first, so that an interrupted test leaves no part of a message.
        let unfinished = self.folder.join(format!("{teacher}.unfinished"));
        fs::write(&unfinished, bytes)?;
        Ok(fs::rename(unfinished, self.message(teacher))?)
    }

    /// Returns the path of the proof key, if messages have proofs.
    pub(crate) fn proof_key(&self) -> Option<PathBuf> {
        self.proofs.then(|| self.folder.join("proof.key"))
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
    pub(crate) fn send(&self, teacher: usize, address: &str, run: &str) -> Result<SendReport, Refused> {
        let client = self.client(&teacher.to_string(), address, Duration::from_secs(120));
        send(&client, &self.message(teacher), &self.runs.path().join(format!("{teacher}.{run}.receipt")))
    }

    pub(crate) fn log(&self, address: &str, run: &str) -> Result<RoundLog, Box<dyn Error>> {
        let path = self.runs.path().join(format!("{run}.log"));
        fetch_log(&self.client("student", address, Duration::from_secs(60)), &path)?;
        Ok(RoundLog::from_bytes(&fs::read(path)?)?)
    }
}
