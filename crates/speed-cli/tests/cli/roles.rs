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

use crate::cli::common::check_failure;

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

    fn files(&self, party: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(party, "")).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
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

#[test]
fn four_programs_give_the_labels_of_the_in_process_path() {
    let (queries, teachers) = (4, 3);
    let parties = Parties::new();
    parties.agree(queries, teachers, "--mechanism discrete-laplace --gamma 0.4");
    for teacher in 0..teachers {
        parties.answer(teacher, &labels(teacher, queries));
    }
    let text = parties.aggregate();
    assert!(text.starts_with("SIMULATION") && text.contains("3 of 3 teachers"), "{text}");
    let (report, written) = parties.open();
    assert_eq!((&report["simulation"], &report["honest_ratio"]), (&true.into(), &1.0.into()));

    // Each party has only the files that it may have.
    let own = "SIMULATION.txt evaluation.key labels.csv public.key result roster.toml round.toml secret.key signing.key signing.toml";
    assert_eq!(parties.files("student").join(" "), own);
    assert_eq!(
        parties.files("server").join(" "),
        "evaluation.key inbox result result.log round.toml signing.key signing.registry signing.toml"
    );
    assert_eq!(
        parties.files("teacher 1").join(" "),
        "message public.key round.toml signing.key signing.registry signing.toml votes.csv"
    );
    let secret = parties.bytes("student", "secret.key");
    let bits = &secret[secret.len() - 16 - 64..secret.len() - 16];
    for (party, file) in [
        ("student", "public.key"),
        ("server", "evaluation.key"),
        ("server", "result"),
        ("server/inbox", "teacher-1.msg"),
        ("student", "round.toml"),
    ] {
        let bytes = parties.bytes(party, file);
        assert!(!bytes.windows(bits.len()).any(|window| window == bits), "{file} holds bits of the secret key");
    }

    let votes: Vec<_> = (0..teachers).map(|teacher| labels(teacher, queries)).collect();
    assert_eq!(written, in_process(&parties, &votes));
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

#[test]
fn a_round_has_a_price_for_all_who_take_part() {
    let parties = Parties::new();
    let terms = "--queries 3 --classes 4 --parties 4 --min-teachers 3 --proofs off --gamma 0.4";
    let round = format!("{ROUND} --name n {terms}");
    parties.introduce(4);
    parties.keygen("student", "", "");
    let text = parties.succeeds("student", &format!("{round} --out round.toml"));
    assert!(text.contains("the noise of 4 teachers is present and secret: epsilon 0.80 for one answer, 2.1"), "{text}");
    assert!(text.contains("the noise of 3 teachers"), "{text}");
    let json = parties.json("student", &format!("{round} --out other.toml --json"));
    let price = &json["price"]["of"];
    let epsilon = |of: usize, what: &str| price[of][what].as_f64().expect("an epsilon");
    assert!(epsilon(0, "one_answer") >= 0.8 && epsilon(0, "round") < 2.41 && epsilon(1, "round") > epsilon(0, "round"));
    // The price equals the result of the accountant alone.
    let account =
        "account --any-votes --queries 3 --classes 4 --teachers 4 --gamma 0.4 --honest-ratio 0.75 --delta 1e-5";
    let account = parties.json("student", &format!("{account} --json"));
    let alone = account["epsilon"].as_f64().expect("an epsilon");
    assert!((epsilon(1, "round") / alone - 1.0).abs() < 1e-6, "{alone} {price}");
    // A party reads the terms that were shown to the student.
    let shown = parties.succeeds("student", "round round.toml");
    let words = [
        "round \"n\"",
        "noise discrete-laplace gamma=0.4: each teacher adds a share",
        "3 of 4 teachers must answer",
        "teacher 3",
        "the noise of 3 teachers is present",
    ];
    assert!(words.iter().all(|word| shown.contains(word)), "{shown}");
    let shown = parties.json("student", "round other.toml --json");
    assert_eq!((&shown["price"], &shown["round"], &shown["minimum"]), (&json["price"], &json["round"], &3.into()));
    let card = parties.read("teacher 2", "signing.toml");
    let key = shown["teachers"][2]["key"].as_str().expect("a key");
    assert!(key.len() == 64 && card.contains(key), "{card}");
    // A teacher checks the round against its own limits before it reads any vote.
    parties.send(("student", "public.key"), ("teacher 0", "public.key"));
    parties.send(("student", "round.toml"), ("teacher 0", "round.toml"));
    let answer = format!("{ANSWER} --out m");
    parties.fails("teacher 0", &format!("{answer} --max-epsilon 1"), 2, &["may cost epsilon", "allowed is 1"]);
    parties.write("teacher 0", "votes.csv", "1\n2\n3\n");
    let text = parties.succeeds("teacher 0", &answer);
    assert!(text.contains("data-independent cost"), "{text}");
}

#[test]
fn mistakes_end_in_one_message_and_the_documented_code() {
    let parties = Parties::new();
    parties.agree(2, 2, "--gamma 1.0");
    let student = |line: &str, code, words: &[&str]| parties.fails("student", line, code, words);
    student("student keygen --out .", 4, &["secret.key", "already exists"]);
    let round = format!("{ROUND} --name n --queries 2 --classes 4 --parties 2 --proofs off --out other.toml");
    student(&format!("{round} --gamma 0"), 2, &["gamma is 0"]);
    student(&format!("{round} --gamma 1 --mechanism gaussian"), 2, &["gaussian", "discrete-laplace"]);
    student(&format!("{} --gamma 1", round.replace("roster.toml", "absent")), 3, &["absent", "cannot read"]);
    student(&format!("{round} --gamma 1 --min-teachers 3"), 2, &["3 teachers must answer"]);
    student(&format!("{round} --gamma 1 --threshold -999"), 2, &["threshold -999"]);
    student(&format!("{round} --gamma 0.01"), 2, &["keys for a wider range"]);
    student(&format!("{round} --gamma 1 --query-list absent"), 3, &["absent", "cannot read"]);
    parties.write("student", "list.csv", "name\na.png\nb.png\nc.png\n");
    student(&format!("{round} --gamma 1 --query-list list.csv"), 3, &["list.csv", "found 3 names"]);
    student(&round, 2, &["binomial needs --coins or --sigma, found no parameter"]);
    student(&format!("{round} --mechanism binomial --gamma 1"), 2, &["needs --coins or --sigma, found --gamma"]);
    student(&format!("{round} --mechanism discrete-laplace --coins 4"), 2, &["needs --gamma, found --coins"]);
    student(&format!("{round} --coins 4 --gamma 1"), 2, &["--coins", "cannot be used with"]);
    student(&format!("{round} --coins 65537"), 2, &["at most 65536"]);
    // A price above the limit.
    student(&format!("{round} --gamma 6 --max-epsilon 15"), 2, &["may cost epsilon 23", "allowed is 15"]);
    student(&format!("{round} --gamma 1 --max-epsilon 0"), 2, &["max-epsilon", "above 0"]);
    student(
        "student open --secret-key public.key --result x --round round.toml --out l",
        3,
        &["public.key", "a public key", "a secret key"],
    );
    student(
        "student open --secret-key secret.key --result round.toml --round round.toml --out l",
        3,
        &["round.toml", "a round's file", "a round's result"],
    );
    let votes = |text: &str| parties.write("teacher 0", "votes.csv", text);
    let answer = format!("{ANSWER} --out m");
    let teacher = |line: &str, code, words: &[&str]| parties.fails("teacher 0", line, code, words);
    votes("1\n9\n");
    teacher(&answer, 2, &["--simulation SEED"]);
    teacher(&format!("{answer} --simulation 1"), 3, &["votes.csv", "query 1: label 9, expected 0 to 3"]);
    votes("1\n3\n");
    let other = format!("{answer} --simulation 1 --mechanism discrete-laplace --gamma 0.5");
    teacher(&other, 2, &["gamma=0.5", "gamma=1"]);
    fs::create_dir(parties.path("server", "inbox")).expect("an inbox");
    parties.write("server/inbox", "teacher-1.msg", "nonsense");
    let too_few = parties.run("server", AGGREGATE);
    check_failure(&too_few, 3, &["0 of 2 teachers", "unknown sender refused as not-a-message"]);
    assert_eq!(String::from_utf8_lossy(&too_few.stderr).matches("refused as").count(), 1);
    assert!(!Path::new(&parties.path("server", "result")).exists());
}

/// The student's keys and file of a real round of one teacher.
fn real_round_of_one() -> Parties {
    let parties = Parties::new();
    parties.introduce(1);
    parties.keygen("student", "", "");
    let terms = "--queries 2 --classes 4 --parties 1 --proofs off --gamma 0.4";
    parties.succeeds("student", &format!("{ROUND} --name n {terms} --out round.toml"));
    parties
}

/// In a real round a seed would make the noise predictable, and a ledger limits the cost.
#[test]
fn a_real_round_refuses_seeds_and_costs_beyond_the_budget() {
    let parties = real_round_of_one();
    for (party, file) in [("teacher 0", "public.key"), ("server", "evaluation.key")] {
        parties.send(("student", file), (party, file));
        parties.send(("student", "round.toml"), (party, "round.toml"));
    }
    parties.write("teacher 0", "votes.csv", "1\n2\n");
    parties.fails(
        "teacher 0",
        &format!("{ANSWER} --simulation 8 --out message"),
        2,
        &["not a simulation", "remove --simulation"],
    );
    for (party, answer) in
        [("teacher 0", format!("{ANSWER} --out message")), ("server", AGGREGATE.replace(" --simulation 13", ""))]
    {
        let ledger = "ledger create signing.ledger --delta 1e-5 --epsilon";
        parties.succeeds(party, &format!("{ledger} 0.5"));
        if party == "server" {
            parties.send(("teacher 0", "message"), ("server/inbox", "0.msg"));
            parties.fails(party, AGGREGATE, 2, &["not a simulation", "remove --simulation"]);
        }
        parties.fails(party, &answer, 6, &["signing.ledger", "0.5"]);
        let out = if party == "server" { "result" } else { "message" };
        assert!(!parties.path(party, out).exists());
        assert!(!parties.succeeds(party, "ledger show signing.ledger --json").contains("\"noise\""));
        fs::remove_file(parties.path(party, "signing.ledger")).expect("a ledger");
        parties.succeeds(party, &format!("{ledger} 5"));
        parties.succeeds(party, &answer);
        assert!(parties.path(party, out).exists());
    }
}

/// A simulation protects nothing, so it may cost anything. A real round has a limit for the student and for every teacher, and
/// a seed on a command line does not make it a simulation.
#[test]
fn limits_on_the_price_of_a_round_exempt_simulations_and_no_real_round() {
    let parties = Parties::new();
    parties.introduce(2);
    parties.keygen("student", "", "--simulation 5");
    parties.keygen("student", "real", "");
    parties.write("teacher 0", "votes.csv", "1\n3\n");
    let answer = format!("{ANSWER} --out message");
    for (gamma, words) in [("6", "one answer may cost epsilon 12.00"), ("50", "no epsilon is known")] {
        let round = |keys: &str, name: &str, more: &str| {
            format!(
                "student round --accept-wrong-labels --public-key {keys}public.key --name {name} --queries 2 --classes 4 \
                 --roster roster.toml --parties 2 --proofs off --gamma {gamma} --out {name}.toml{more}"
            )
        };
        let give = |name: &str, keys: &str| {
            parties.send(("student", &format!("{name}.toml")), ("teacher 0", "round.toml"));
            parties.send((&format!("student/{keys}"), "public.key"), ("teacher 0", "public.key"));
            let _ = fs::remove_file(parties.path("teacher 0", "message"));
        };
        let (real, simulated) = (format!("real-{gamma}"), format!("simulated-{gamma}"));
        for limit in ["", " --max-epsilon 1"] {
            let refused = parties.run("student", &round("real/", &real, limit));
            check_failure(&refused, 2, &[if limit.is_empty() { words } else { "max-epsilon" }]);
        }
        assert!(!parties.path("student", &format!("{real}.toml")).exists());
        let text = parties.succeeds("student", &round("", &simulated, " --simulation --reuse-keys"));
        assert!(text.starts_with("SIMULATION"), "{text}");
        give(&simulated, "");
        parties.succeeds("teacher 0", &format!("{answer} --simulation 8"));
        // A real round whose student accepts any cost: teachers are asked too.
        parties.succeeds("student", &round("real/", &real, " --max-epsilon inf --reuse-keys"));
        give(&real, "real");
        parties.fails("teacher 0", &answer, 2, &[words]);
        parties.fails("teacher 0", &format!("{answer} --simulation 8"), 2, &["not a simulation"]);
        assert!(!parties.path("teacher 0", "message").exists());
        parties.succeeds("teacher 0", &format!("{answer} --max-epsilon inf --reuse-keys"));
    }
}

#[test]
fn a_missing_ledger_is_created_without_a_budget() {
    let parties = real_round_of_one();
    parties.agree_in_votes(1, &[1, 2]);
    parties.succeeds("server", &AGGREGATE.replace(" --simulation 13", ""));
    for party in ["teacher 0", "server"] {
        let ledger = parties.json(party, "ledger show signing.ledger --json");
        assert_eq!(
            (&ledger["budget"]["epsilon"], &ledger["queries"]),
            (&serde_json::Value::Null, &2.into()),
            "{ledger}"
        );
    }
}

#[test]
fn proofs_are_the_default() {
    let parties = Parties::new();
    // The label is wrong less than once in a million rounds: both teachers vote alike, and the noise must gain two votes.
    parties.agree(1, 2, "--gamma 9");
    parties.keygen("student", "keys", "--simulation 6");
    let round = "student round --accept-wrong-labels --public-key keys/public.key --name proven --queries 1 --classes 2 --roster roster.toml \
                 --gamma 9 --simulation --out proven/round.toml";
    fs::create_dir(parties.path("student", "proven")).expect("a folder");
    let text = parties.succeeds("student", round);
    assert!(text.contains("proof key in proven/proof.key") && !text.contains("without proofs"), "{text}");
    for party in ["teacher 0", "teacher 1", "server"] {
        for file in ["proven/round.toml", "proven/proof.key", "keys/public.key", "keys/evaluation.key"] {
            let (_, name) = file.split_once('/').expect("a folder");
            parties.send(("student", file), (party, name));
        }
    }
    for party in ["teacher 0", "teacher 1"] {
        parties.write(party, "votes.csv", "1\n");
        let answer = format!("{ANSWER} --simulation 8 --out message");
        parties.fails(party, &answer, 2, &["asks for proofs", "--proof-key"]);
        // Another file is refused before it is decoded.
        let mut other = parties.bytes(party, "proof.key");
        let middle = other.len() / 2;
        other[middle] ^= 1;
        parties.write(party, "other.key", other);
        parties.fails(party, &format!("{answer} --proof-key other.key"), 3, &["other.key", "the round's key"]);
        let text = parties.succeeds(party, &format!("{answer} --proof-key proof.key"));
        assert!(!text.contains("without proofs"), "{text}");
        parties.send((party, "message"), ("server/inbox", party));
    }
    parties.send(("teacher 0", "other.key"), ("server", "other.key"));
    parties.fails("server", &format!("{AGGREGATE} --proof-key other.key"), 3, &["other.key", "the round's key"]);
    let text = parties.succeeds("server", &format!("{AGGREGATE} --proof-key proof.key"));
    assert!(text.contains("2 of 2 teachers") && !text.contains("without proofs"), "{text}");
    parties.send(("server", "result"), ("student", "result"));
    let open = "student open --secret-key keys/secret.key --result result --round proven/round.toml --out labels.csv";
    parties.succeeds("student", open);
    assert_eq!(parties.read("student", "labels.csv"), "query,label\n0,1\n");
}

/// A query on which all votes are empty, a teacher whose votes are, and other empty votes. Labels are those of clear text, and messages have
/// one length.
#[test]
fn teachers_may_leave_votes_empty() {
    let (queries, teachers) = (4, 4);
    let parties = Parties::new();
    parties.agree(queries, teachers, "--mechanism discrete-laplace --gamma 2 --threshold 2");
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
        fs::metadata(parties.path(&party, "message")).expect("a message").len()
    });
    assert!(lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    parties.aggregate();
    let (_, written) = parties.open();
    assert_eq!(written, in_process(&parties, &votes.map(|votes| votes.to_vec())));
}
