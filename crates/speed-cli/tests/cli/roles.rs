//! Teacher, server and student as separate programs in directories that hold only their own files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use redb::{Database, ReadableDatabase as _, ReadableTableMetadata as _, TableDefinition};
use serde_json::Value;
use speed_aggregation::{Aggregator, ClearText, NoisyVotes};
use speed_core::fixture::{copy_folder, fixture};
use speed_core::{Vote, VoteShape};
use speed_round::{RoundFile, RoundRandomness, teacher};
use tempfile::TempDir;

use crate::cli::common::{check_failure, entries};

/// Directories of the parties. The test copies files between them, like a courier.
pub(crate) struct Parties(TempDir);

impl Parties {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, party: &str, file: &str) -> PathBuf {
        let folder = self.0.path().join(party);
        fs::create_dir_all(&folder).expect("a folder");
        folder.join(file)
    }

    pub(crate) fn send(&self, (from, file): (&str, &str), (to, name): (&str, &str)) {
        fs::copy(self.path(from, file), self.path(to, name)).expect("a copy");
    }

    /// Returns a command of a party, in its directory.
    pub(crate) fn command(&self, party: &str, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_speed"));
        command.args(line.split(' ')).current_dir(self.path(party, ""));
        command
    }

    pub(crate) fn run(&self, party: &str, line: &str) -> Output {
        self.command(party, line).output().expect("the binary starts")
    }

    #[track_caller]
    pub(crate) fn succeeds(&self, party: &str, line: &str) -> String {
        let output = self.run(party, line);
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Returns standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self, party: &str, line: &str) -> Value {
        serde_json::from_str(&self.succeeds(party, line)).expect("JSON")
    }

    /// Runs a party's command and expects this exit code and these words in one message.
    #[track_caller]
    pub(crate) fn fails(&self, party: &str, line: &str, code: i32, words: &[&str]) {
        check_failure(&self.run(party, line), code, words);
    }

    pub(crate) fn bytes(&self, party: &str, file: &str) -> Vec<u8> {
        fs::read(self.path(party, file)).unwrap_or_else(|error| panic!("{party}, {file}: {error}"))
    }

    pub(crate) fn read(&self, party: &str, file: &str) -> String {
        String::from_utf8(self.bytes(party, file)).expect("text")
    }

    pub(crate) fn write(&self, party: &str, file: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(party, file), content).expect(file);
    }

    /// Lets the server evaluate the messages, sends the result to the student, and returns the server's output.
    #[track_caller]
    pub(crate) fn aggregate(&self) -> String {
        let text = self.succeeds("server", AGGREGATE);
        self.send(("server", "result"), ("student", "result"));
        text
    }

    /// Lets the student open the result, and returns its report and the labels.
    #[track_caller]
    pub(crate) fn open(&self) -> (Value, String) {
        (self.json("student", OPEN), self.read("student", "labels.csv"))
    }

    /// Gives a party keys in its folder `keys`, as `student keygen` makes them with these options: once for a build of the
    /// program.
    #[track_caller]
    pub(crate) fn keygen(&self, party: &str, keys: &str, options: &str) {
        let program = Path::new(env!("CARGO_BIN_EXE_speed"));
        let made = fixture(program, &format!("keys{}", options.replace(' ', "")), |folder| {
            let mut command = Command::new(program);
            command.args(["student", "keygen", "--out"]).arg(folder).args(options.split_whitespace());
            let output = command.output().expect("the binary starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        });
        copy_folder(&made, &self.path(party, keys));
    }

    /// Lets server and teachers create their signing keys, and combines their cards in the student's roster.
    pub(crate) fn introduce(&self, teachers: usize) {
        let mut roster = String::new();
        let mut party = |role: &str, party: &str, name: &str| {
            self.succeeds(party, &format!("{role} --name {name} --out signing.key"));
            roster.push_str(&self.read(party, "signing.toml"));
        };
        party("student identity", "student", "student");
        party("server keygen", "server", "server");
        (0..teachers)
            .for_each(|teacher| party("teacher keygen", &format!("teacher {teacher}"), &format!("hospital-{teacher}")));
        self.write("student", "roster.toml", roster);
    }

    /// Creates keys and a round of four classes, and gives them to everyone.
    pub(crate) fn agree(&self, queries: usize, teachers: usize, terms: &str) {
        self.introduce(teachers);
        self.keygen("student", "", "--simulation 5");
        let classes = if terms.contains("--classes") { "" } else { " --classes 4" };
        let line =
            format!("{ROUND} --name test --queries {queries}{classes} --proofs off --simulation --out round.toml");
        self.succeeds("student", &format!("{line} {terms}"));
        self.announce(teachers);
    }

    /// Gives the student's keys and the round to server and teachers.
    fn announce(&self, teachers: usize) {
        self.send(("student", "evaluation.key"), ("server", "evaluation.key"));
        self.send(("student", "round.toml"), ("server", "round.toml"));
        for teacher in 0..teachers {
            let party = format!("teacher {teacher}");
            self.send(("student", "public.key"), (&party, "public.key"));
            self.send(("student", "round.toml"), (&party, "round.toml"));
        }
    }

    /// Gives a real round to server and teachers, who all answer with the same labels.
    pub(crate) fn agree_in_votes(&self, teachers: usize, labels: &[u8]) {
        self.announce(teachers);
        let votes: String = labels.iter().map(|label| format!("{label}\n")).collect();
        for teacher in 0..teachers {
            let party = format!("teacher {teacher}");
            self.write(&party, "votes.csv", &votes);
            let mut line = format!("{ANSWER} --max-epsilon 100 --out message");
            if self.path("student", "proof.key").exists() {
                self.send(("student", "proof.key"), (&party, "proof.key"));
                line += " --proof-key proof.key";
            }
            self.succeeds(&party, &line);
            self.send((&party, "message"), ("server/inbox", &format!("{teacher}")));
        }
    }

    /// Lets a teacher answer, and sends its message to the server.
    pub(crate) fn answer(&self, teacher: usize, labels: &[u8]) {
        let party = format!("teacher {teacher}");
        let votes: String = labels.iter().map(|label| format!("{label}\n")).collect();
        self.write(&party, "votes.csv", votes);
        let line = format!("{ANSWER} --simulation 8 --out message");
        assert!(self.succeeds(&party, &line).starts_with("SIMULATION"));
        self.send((&party, "message"), ("server/inbox", &format!("teacher-{teacher}.msg")));
    }
}

pub(crate) const ROUND: &str = "student round --accept-wrong-labels --public-key public.key --roster roster.toml";
pub(crate) const ANSWER: &str =
    "teacher answer --signing-key signing.key --public-key public.key --round round.toml --votes votes.csv";
pub(crate) const AGGREGATE: &str = "server aggregate --signing-key signing.key --evaluation-key evaluation.key --round round.toml --answers inbox --out result \
                         --simulation 13";

pub(crate) const OPEN: &str =
    "student open --secret-key secret.key --result result --round round.toml --out labels.csv --keep-keys --json";

pub(crate) fn labels(teacher: usize, queries: usize) -> Vec<u8> {
    (0..queries).map(|query| ((query * 5 + teacher * (query % 3)) % 4) as u8).collect()
}

/// One query and one teacher have only empty votes, and there are other empty votes. All messages have the same length.
#[test]
fn four_programs_give_the_labels_of_the_in_process_path_with_empty_votes() {
    let parties = Parties::new();
    parties.agree(4, 4, "--mechanism discrete-laplace --gamma 2 --threshold 2");
    assert!(parties.read("student", "round.toml").contains("\nthreshold = 2\n"));
    let votes: [[Vote; 4]; 4] =
        [[Some(1), Some(2), None, None], [Some(1), None, None, Some(3)], [Some(1), Some(2), None, Some(3)], [None; 4]];
    let answer = format!("{ANSWER} --simulation 8 --out message");
    for (file, words) in [
        (",,,\n", "line 1: a line of empty cells only: write NA for an empty vote, or remove the line"),
        ("0\n1\n2\nn/a\n", "line 4: expected the label of query 3"),
    ] {
        parties.write("teacher 0", "votes.csv", file);
        parties.fails("teacher 0", &answer, 3, &["votes.csv", words]);
    }
    let files = ["1\n2\nNA\n-1\n", "query,label\n3,3\n2,\n1,NA\n0,1\n", "1,2,,3\n", "NA\n-1\nNA\n-1\n"];
    let lengths = [0, 1, 2, 3].map(|teacher| {
        let party = format!("teacher {teacher}");
        parties.write(&party, "votes.csv", files[teacher]);
        parties.succeeds(&party, &answer);
        parties.send((&party, "message"), ("server/inbox", &format!("{teacher}.msg")));
        parties.bytes(&party, "message").len()
    });
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    let text = parties.aggregate();
    assert!(text.starts_with("SIMULATION") && text.contains("4 of 4 teachers"), "{text}");
    let (report, written) = parties.open();
    assert_eq!((&report["simulation"], &report["honest_ratio"]), (&true.into(), &1.0.into()));
    assert_eq!(written, in_process(&parties, &votes.map(|votes| votes.to_vec())));

    // Each party has only the files that it may have.
    for (party, own) in [
        (
            "student",
            "SIMULATION.txt evaluation.key labels.csv public.key result roster.toml round.toml secret.key signing.key signing.toml",
        ),
        ("server", "evaluation.key inbox result result.log round.toml signing.key signing.registry signing.toml"),
        ("teacher 1", "message public.key round.toml signing.key signing.registry signing.toml votes.csv"),
    ] {
        let mut names: Vec<_> = entries(&parties.path(party, ""))
            .iter()
            .filter_map(|path| path.file_name()?.to_str().map(str::to_owned))
            .collect();
        names.sort();
        assert_eq!(names.join(" "), own);
    }
    let secret = parties.bytes("student", "secret.key");
    let bits = &secret[secret.len() - 16 - 64..secret.len() - 16];
    for (party, file) in [
        ("student", "public.key"),
        ("server", "evaluation.key"),
        ("server", "result"),
        ("server/inbox", "1.msg"),
        ("student", "round.toml"),
    ] {
        let bytes = parties.bytes(party, file);
        assert!(!bytes.windows(bits.len()).any(|window| window == bits), "{file} holds bits of the secret key");
    }
}

/// Returns the label file for the votes and noise of the first teachers in one process, with other keys.
pub(crate) fn in_process<V: Copy + Into<Vote>>(parties: &Parties, votes: &[Vec<V>]) -> String {
    let file = RoundFile::read(&parties.path("student", "round.toml")).expect("a round");
    let values = votes.iter().enumerate().flat_map(|(teacher, votes)| {
        let values = teacher::values(&file, votes, teacher, RoundRandomness::simulation(8));
        values.expect("a simulation").to_vec()
    });
    let shape = file.round().shape();
    let shape = VoteShape::new(votes.len(), shape.queries(), shape.classes()).expect("a shape");
    let votes = NoisyVotes::new(shape, file.round().range().noise_bound(), values.collect()).expect("valid");
    let votes = file.round().threshold().into_iter().fold(votes, NoisyVotes::with_threshold);
    let winners = ClearText.aggregate(&votes, &|_, _| {}).expect("in range").labels();
    let label = |(query, label): (usize, &Option<u8>)| {
        format!("{query},{}\n", label.map_or_else(String::new, |label| label.to_string()))
    };
    let labels: String = winners.iter().enumerate().map(label).collect();
    format!("query,label\n{labels}")
}

/// Starts the server and kills it after `writes` writes to its registry, judged by the modification time. Returns
/// whether the server was still working: it may finish if this thread is not scheduled for too long.
fn kill_after(parties: &Parties, party: &str, writes: usize) -> bool {
    let registry = parties.path(party, "signing.registry");
    let changed = || fs::metadata(&registry).and_then(|meta| meta.modified()).ok();
    let mut child = parties
        .command(party, &format!("{AGGREGATE} --threads 1 --new-registry"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let (mut seen, mut last) = (0, changed());
    while seen < writes {
        if let Some(status) = child.try_wait().expect("a child") {
            let output = child.wait_with_output().expect("ended");
            assert!(status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
        let now = changed();
        seen += usize::from(now != last);
        last = now;
    }
    child.kill().expect("kill -9");
    child.wait().expect("ended");
    true
}

/// Starts and kills the server, later each time, until some but not all of its `queries` answers are stored, because
/// its progress at the first kills is unknown. Returns the number of stored answers, or `None` if the kill came too late.
fn kill_while_it_answers(parties: &Parties, party: &str, queries: usize) -> Option<usize> {
    for file in ["evaluation.key", "round.toml", "signing.key"] {
        parties.send(("server", file), (party, file));
    }
    for file in ["teacher-0.msg", "teacher-1.msg"] {
        parties.send(("server/inbox", file), (&format!("{party}/inbox"), file));
    }
    kill_after(parties, party, 0);
    let mut writes = 2;
    while kill_after(parties, party, writes) {
        if parties.path(party, "result").exists() {
            return None;
        }
        match answers_kept(parties, party) {
            0 => writes += 1,
            kept => return (kept < queries).then_some(kept),
        }
    }
    None
}

/// Returns the number of answers in a server's registry.
fn answers_kept(parties: &Parties, party: &str) -> usize {
    let answers: TableDefinition<'_, (&[u8; 32], u32), &[u8]> = TableDefinition::new("answers");
    let registry = Database::open(parties.path(party, "signing.registry")).expect("a registry");
    let table = registry.begin_read().expect("a registry").open_table(answers);
    table.map_or(0, |table| usize::try_from(table.len().expect("a table")).expect("few"))
}

#[test]
fn a_killed_server_resumes_to_the_same_bytes() {
    // More than the eight that are answered in lockstep.
    let queries = 12;
    let parties = Parties::new();
    parties.agree(queries, 3, "--min-teachers 2 --gamma 0.3 --noise server --threshold 2");
    for teacher in 0..2 {
        parties.answer(teacher, &labels(teacher, queries));
    }
    let undisturbed = parties.json("server", &format!("{AGGREGATE} --json"));
    assert_eq!(undisturbed["missing"], serde_json::json!([2]));
    let expected = parties.bytes("server", "result");

    let killed = |attempt: usize| {
        let party = format!("killed {attempt}");
        kill_while_it_answers(&parties, &party, queries).map(|kept| (party, kept))
    };
    // On a busy machine a server may be done before this thread is scheduled.
    let (killed, kept) = (0..10).find_map(killed).expect("one of ten servers is killed while it computes");
    // Messages that arrive now are late; all other results stay the same.
    parties.answer(2, &labels(2, queries));
    parties.send(("server/inbox", "teacher-2.msg"), (&format!("{killed}/inbox"), "teacher-2.msg"));
    let report = parties.json(&killed, &format!("{AGGREGATE} --json"));
    assert!(report["resumed"] == kept, "{report}");
    assert_eq!((&report["refused"][0]["teacher"], &report["refused"][0]["reason"]), (&2.into(), &"late".into()));
    assert!(parties.bytes(&killed, "result") == expected, "bytes differ");
}
