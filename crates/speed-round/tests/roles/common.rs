//! Keys, made once for a build, and small simulated rounds.

use std::fmt::Debug;
use std::fs;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::EncodePrivateKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use speed_accountant::{Delta, PriceLimit};
use speed_aggregation::log::RoundLog;
use speed_aggregation::protocol::{RevealedSeed, Signature, SignedResult};
use speed_aggregation::{Parameters, PrivacyNoise};
use speed_core::fixture::{copy_folder, fixture_of_this_test};
use speed_core::{Circuit, Classes, Digest, NoisePlacement, RandomnessKind};
use speed_round::server::{self, Progress, Reception, Refusal, RoundServer, ServerOptions, ServerReport};
use speed_round::teacher::{self, TeacherOptions, TeacherReport};
use speed_round::{
    Identity, LedgerOptions, LogCheckOptions, Party, Refused, Roster, RoundFile, RoundRandomness, Terms, student,
};
use tempfile::TempDir;

pub(crate) const SEED: RoundRandomness = RoundRandomness::simulation(7);

pub(crate) const REAL: RoundRandomness = RoundRandomness::OPERATING_SYSTEM;

/// A directory with the student's keys.
pub(crate) fn keys() -> &'static Path {
    static KEYS: OnceLock<TempDir> = OnceLock::new();
    KEYS.get_or_init(|| {
        let made = fixture_of_this_test("keys", |folder| {
            student::keygen(folder, &Parameters::TOURNAMENT_128, SEED).expect("an empty folder");
        });
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy_folder(&made, folder.path());
        folder
    })
    .path()
}

/// Writes the proof key of a round to `out`, and returns the round that names it. The key is made once for a build.
fn proven(terms: &Terms, public: &Path, out: &Path) -> Result<RoundFile, Refused> {
    let unproven = student::terms(&Terms { proofs: None, ..terms.clone() }, public, out)?;
    let (shape, bits) = (unproven.round().shape(), unproven.round().proof_range().bits());
    let name = format!("proof-key-{}-{}-{bits}", shape.queries(), shape.classes());
    let made = fixture_of_this_test(&name, |folder| {
        let terms = Terms { opener: None, randomness: RandomnessKind::Simulation, ..terms.clone() };
        let options = round_options(public, &folder.join("round.toml"));
        let options = student::RoundOptions { proof_key: Some(folder.join("proof.key")), ..options };
        student::round(&terms, &options).expect("a proof key");
    });
    let key = fs::read(made.join("proof.key")).expect("a proof key");
    let file = student::terms(&Terms { proofs: Some(Digest::of(&key)), ..terms.clone() }, public, out)?;
    fs::write(out, key).expect("a copy");
    Ok(file)
}

/// Returns the file of a party's signing key, which is derived from its name, so rounds are the same in every run.
pub(crate) fn signing_key(name: &str) -> PathBuf {
    static IDENTITIES: OnceLock<TempDir> = OnceLock::new();
    let folder = IDENTITIES.get_or_init(|| tempfile::tempdir().expect("a temporary folder"));
    let path = folder.path().join(format!("{name}.key"));
    if !path.exists() {
        let key = SigningKey::from_bytes(Digest::of(name).as_bytes());
        let pem = key.to_pkcs8_pem(LineEnding::LF).expect("a key");
        // Other tests may write the same file at the same time.
        let mut file = tempfile::NamedTempFile::new_in(folder.path()).expect("a temporary file");
        file.write_all(pem.as_bytes()).and_then(|()| Ok(file.persist(&path)?)).expect("a file");
    }
    path
}

/// Returns the file of a teacher's signing key.
pub(crate) fn key_of(teacher: usize) -> PathBuf {
    signing_key(&format!("hospital {teacher}"))
}

/// Returns a teacher's identity.
pub(crate) fn identity(teacher: usize) -> Identity {
    Identity::read(&key_of(teacher)).expect("a key")
}

pub(crate) fn server_identity() -> Identity {
    Identity::read(&signing_key("server")).expect("a key")
}

/// Signs as the server.
pub(crate) fn as_server(digest: Digest) -> Signature {
    server_identity().sign(digest)
}

/// Gives a server a teacher's message as one that came over the network. Returns whether the server keeps it.
pub(crate) fn receive(server: &RoundServer, teacher: usize, message: Vec<u8>) -> bool {
    let message = server.check_message(message, identity(teacher).key()).expect("its own");
    Reception::open(server).expect("readable").keep(&[message], &[]).expect("decided")[0].is_ok()
}

fn party(name: &str) -> Party {
    Party::new(name, Identity::read(&signing_key(name)).expect("a key").key()).expect("a name")
}

/// A server and a number of teachers.
pub(crate) fn roster(teachers: usize) -> Roster {
    let teachers = (0..teachers).map(|teacher| party(&format!("hospital {teacher}"))).collect();
    Roster::new(party("student"), party("server"), teachers).expect("parties")
}

/// Returns the options of a round without proofs.
pub(crate) fn round_options(public_key: &Path, out: &Path) -> student::RoundOptions {
    let (public_key, out) = (public_key.to_path_buf(), out.to_path_buf());
    student::RoundOptions { public_key, proof_key: None, reuse_keys: false, out, randomness: SEED }
}

/// Creates discrete Laplace noise.
pub(crate) fn noise(gamma: f64) -> PrivacyNoise {
    PrivacyNoise::named("discrete-laplace", gamma).expect("valid")
}

/// Returns classes that are called by their numbers.
pub(crate) fn numbered(count: usize) -> Classes {
    Classes::numbered(count).expect("a number of classes")
}

/// Returns the terms of a simulated round of 3 classes in which one answer is enough.
pub(crate) fn terms(name: &str, queries: usize, teachers: usize) -> Terms {
    Terms {
        name: name.into(),
        roster: roster(teachers),
        queries,
        classes: numbered(3),
        query_list: None,
        min_teachers: 1,
        noise: noise(5.0),
        placement: NoisePlacement::Distributed,
        threshold: None,
        proofs: None,
        evaluation_key: Some(evaluation_key()),
        opener: None,
        randomness: RandomnessKind::Simulation,
    }
}

/// Returns SHA-256 of the evaluation key's file.
fn evaluation_key() -> Digest {
    static DIGEST: OnceLock<Digest> = OnceLock::new();
    *DIGEST.get_or_init(|| {
        let [evaluation, public] = ["evaluation.key", "public.key"].map(|name| keys().join(name));
        student::evaluation_key_digest(&evaluation, &public).expect("keys of one student")
    })
}

static CALLS: AtomicUsize = AtomicUsize::new(0);

/// A round's directory: its file, an inbox of messages, the server's result.
pub(crate) struct RoundFolder {
    folder: TempDir,
    pub(crate) file: RoundFile,
}

/// Ignores progress.
pub(crate) struct Silent;

impl Progress for Silent {
    fn refused(&self, _: &Refusal) {}
    fn begin(&self, _: usize, _: usize) {}
    fn advance(&self, _: usize) {}
}

/// Simulates a crash with a panic when the argmax begins, or when the first queries are answered.
pub(crate) enum Dies {
    AtBegin,
    AtAnswers,
}

impl Progress for Dies {
    fn refused(&self, _: &Refusal) {}
    fn begin(&self, _: usize, _: usize) {
        assert!(matches!(self, Self::AtAnswers), "interrupted");
    }
    fn advance(&self, _: usize) {
        panic!("interrupted");
    }
}

/// Expects a refusal with these words.
#[track_caller]
pub(crate) fn says<T: Debug>(result: Result<T, Refused>, words: &str) -> Refused {
    let error = result.expect_err(words);
    assert!(error.to_string().contains(words), "{error}");
    error
}

/// Expects a refusal with these words and this exit code.
#[track_caller]
pub(crate) fn refused<T: Debug>(result: Result<T, Refused>, code: u8, words: &str) -> Refused {
    let error = says(result, words);
    assert_eq!(error.exit_code().code(), code, "{error}");
    error
}

/// Expects the mode of a file or a folder, where there are modes.
#[track_caller]
pub(crate) fn assert_mode(path: &Path, mode: u32) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(fs::metadata(path).expect("a file").permissions().mode() & 0o777, mode, "{}", path.display());
    }
}

impl RoundFolder {
    pub(crate) fn new(terms: &Terms) -> Self {
        Self::make(terms, false)
    }

    pub(crate) fn with_proofs(terms: &Terms) -> Self {
        Self::make(terms, true)
    }

    fn make(terms: &Terms, proofs: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let [public, out, key] =
            [keys().join("public.key"), folder.path().join("round.toml"), folder.path().join("proof.key")];
        // Not with `student::round`, because all tests share these keys.
        let file = if proofs { proven(terms, &public, &key) } else { student::terms(terms, &public, &out) };
        let file = file.expect("valid");
        student::write_round(&file, &out).expect("a new file");
        fs::create_dir(folder.path().join("inbox")).expect("an inbox");
        Self { folder, file }
    }

    /// Returns a copy of the directory that `make` makes once for a build, without the teachers' registries.
    pub(crate) fn made_once(name: &str, make: impl FnOnce() -> Self) -> Self {
        let made = fixture_of_this_test(name, |folder| {
            let round = make();
            for entry in fs::read_dir(round.path("")).expect("a folder").map(|entry| entry.expect("an entry")) {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with("teacher-") && name.ends_with(".registry") {
                    fs::remove_file(entry.path()).expect("a registry");
                }
            }
            copy_folder(&round.path(""), folder);
        });
        let folder = tempfile::tempdir().expect("a temporary folder");
        copy_folder(&made, folder.path());
        let file = RoundFile::read(&folder.path().join("round.toml")).expect("a round");
        Self { folder, file }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn inbox(&self, name: &str) -> PathBuf {
        self.path("inbox").join(name)
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).expect("text")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect(name);
    }

    pub(crate) fn result(&self) -> SignedResult {
        SignedResult::from_bytes(&self.bytes("result")).expect("whole")
    }

    pub(crate) fn log(&self) -> RoundLog {
        RoundLog::from_bytes(&self.bytes("result.log")).expect("whole")
    }

    pub(crate) fn seed(&self) -> RevealedSeed {
        RevealedSeed::from_bytes(&self.bytes("seed")).expect("whole")
    }

    /// Returns the options that check this log as the teacher of a message of the inbox.
    pub(crate) fn log_check(&self, message: &str, log: &str) -> LogCheckOptions {
        let (round, message, log) = (self.path("round.toml"), self.inbox(message), self.path(log));
        LogCheckOptions { round, message, receipt: None, log, verification: None }
    }

    pub(crate) fn message(&self, teacher: usize, labels: &[u8]) -> Vec<u8> {
        let path = self.path("message");
        let _ = fs::remove_file(&path);
        self.answer(teacher, labels, &path);
        self.bytes("message")
    }

    /// Writes a teacher's message for this real round to the inbox.
    pub(crate) fn answer_really(&self, teacher: usize, votes: &str) {
        self.write("votes.csv", votes);
        let options = self.teacher_options(teacher, &self.inbox(&format!("{teacher}")));
        teacher::answer(&TeacherOptions { randomness: REAL, ..options }).expect("valid");
    }

    /// Writes a teacher's message for this round to `out`.
    pub(crate) fn answer(&self, teacher: usize, labels: &[u8], out: &Path) {
        self.try_answer(teacher, labels, out).expect("valid");
    }

    pub(crate) fn try_answer(&self, teacher: usize, labels: &[u8], out: &Path) -> Result<TeacherReport, Refused> {
        let votes = self.path("votes.csv");
        fs::write(&votes, labels.iter().map(|label| format!("{label}\n")).collect::<String>()).expect("votes");
        teacher::answer(&TeacherOptions { votes, ..self.teacher_options(teacher, out) })
    }

    pub(crate) fn teacher_options(&self, teacher: usize, out: &Path) -> TeacherOptions {
        let proof_key = self.path("proof.key");
        TeacherOptions {
            signing_key: key_of(teacher),
            public_key: keys().join("public.key"),
            proof_key: proof_key.exists().then_some(proof_key),
            round: self.path("round.toml"),
            votes: self.path("votes.csv"),
            form: None,
            out: out.to_path_buf(),
            query_list: None,
            mechanism: None,
            // A new registry for each call, so a teacher can answer twice.
            registry: self.path(&format!("teacher-{}.registry", CALLS.fetch_add(1, Ordering::Relaxed))),
            new_registry: true,
            ledger: self.ledger(&format!("teacher-{teacher}")),
            // Rounds of few teachers have little noise.
            limit: PriceLimit::UNLIMITED,
            reuse_keys: false,
            randomness: SEED,
        }
    }

    pub(crate) fn ledger(&self, party: &str) -> LedgerOptions {
        LedgerOptions { path: self.path(&format!("{party}.ledger")), delta: Delta::new(1e-5).expect("valid") }
    }

    pub(crate) fn options(&self) -> ServerOptions {
        let proof_key = self.path("proof.key");
        ServerOptions {
            signing_key: signing_key("server"),
            proof_key: proof_key.exists().then_some(proof_key),
            evaluation_key: keys().join("evaluation.key"),
            round: self.path("round.toml"),
            min_teachers: None,
            registry: self.path("server.registry"),
            new_registry: true,
            ledger: self.ledger("server"),
            circuit: Circuit::Tournament,
            threads: NonZeroUsize::new(2).expect("not zero"),
            randomness: SEED,
            copies: None,
        }
    }

    pub(crate) fn aggregate(&self) -> Result<ServerReport, Refused> {
        self.aggregate_with(&self.options(), &Silent)
    }

    pub(crate) fn aggregate_with(
        &self,
        options: &ServerOptions,
        progress: &dyn Progress,
    ) -> Result<ServerReport, Refused> {
        server::aggregate(options, &self.path("inbox"), &self.path("result"), progress)
    }

    /// Returns the options that decrypt the unverified result with the secret key and keep the key.
    pub(crate) fn open_options(&self) -> student::OpenOptions {
        student::OpenOptions {
            secret_key: keys().join("secret.key"),
            part: None,
            result: self.path("result"),
            round: self.path("round.toml"),
            verifications: Vec::new(),
            unverified: true,
            known: None,
            keep_keys: true,
            out: self.path("labels.csv"),
        }
    }

    /// Decrypts a result and keeps the key.
    pub(crate) fn open(&self, secret_key: &Path, result: &str, out: &Path) -> Result<student::OpenReport, Refused> {
        let (secret_key, out) = (secret_key.to_path_buf(), out.to_path_buf());
        student::open(&student::OpenOptions { secret_key, result: self.path(result), out, ..self.open_options() })
    }

    /// Returns the labels of the result, as written to their file.
    pub(crate) fn labels(&self) -> String {
        let out = self.path("labels.csv");
        let _ = fs::remove_file(&out);
        self.open(&keys().join("secret.key"), "result", &out).expect("a result");
        fs::read_to_string(out).expect("labels")
    }
}

/// Returns teacher and reason of every refusal, in order.
pub(crate) fn reasons(report: &ServerReport) -> Vec<(Option<usize>, &'static str)> {
    report.refused.iter().map(|refusal| (refusal.teacher, refusal.reason)).collect()
}
