//! Server, teachers and student as processes over mutual TLS on loopback.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use speed_round::Identity;

use crate::cli::common::{check_failure, contains};
use crate::cli::roles::{ANSWER, Parties, ROUND, in_process, labels};

/// A server that is killed when the test ends.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    /// The lines read so far.
    log: String,
}

impl Server {
    /// Starts the server and waits until it listens.
    fn start(parties: &Parties, port: u16) -> Self {
        Self::start_as("server", parties, port, "info")
    }

    /// Starts the server in a party's directory, with this level of its log.
    fn start_as(party: &str, parties: &Parties, port: u16, level: &str) -> Self {
        let line = format!(
            "server serve --signing-key signing.key --evaluation-key evaluation.key --round round.toml --listen 127.0.0.1:{port} \
             --watch 127.0.0.1:0 --threads 1 --until-fetched --simulation 13 --json"
        );
        let mut command = parties.command(party, &line);
        command.env("SPEED_LOG", level).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut server = Self { child, stderr, log: String::new() };
        server.until("listening");
        server
    }

    /// Reads the log up to a line that contains these words.
    fn until(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let bytes = self.stderr.read_line(&mut line).expect("a log");
            assert_ne!(bytes, 0, "the server ended before it said {words:?}");
            self.log.push_str(&line);
        }
        line
    }

    /// Waits until the server ends by itself, and returns its report.
    fn ends(mut self) -> Value {
        let report = self.child.stdout.take().expect("piped");
        assert!(self.child.wait().expect("ended").success(), "the server ends once the student has the result");
        serde_json::from_reader(report).expect("json")
    }

    fn kill(mut self) {
        self.child.kill().expect("kill -9");
        self.child.wait().expect("ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// Returns a port that was free a moment ago; the longer ago, the likelier another test has it.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// Returns a party's client command.
fn ask(parties: &Parties, port: u16, party: &str, line: &str) -> Command {
    parties.command(party, &format!("{line} --signing-key signing.key --round round.toml --server 127.0.0.1:{port}"))
}

/// Runs a party's client command and expects success.
#[track_caller]
fn asks(parties: &Parties, port: u16, party: &str, line: &str) {
    let output = ask(parties, port, party, line).output().expect("the binary starts");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Runs a party's client command and expects a refusal with these words.
#[track_caller]
fn refused(parties: &Parties, port: u16, party: &str, line: &str, words: &[&str]) {
    check_failure(&ask(parties, port, party, line).output().expect("the binary starts"), 3, words);
}

/// Lets all teachers answer and send, and kills the server meanwhile. Returns the server that has all messages, and its port.
fn send_through_a_kill(parties: &Parties, teachers: usize) -> (Server, u16) {
    let port = free_port();
    let mut server = Server::start(parties, port);
    let send = |teacher: usize| {
        let mut command =
            ask(parties, port, &format!("teacher {teacher}"), "teacher send --message message --receipt receipt");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    };
    let mut sending: Vec<Child> = (0..teachers / 2).map(send).collect();
    server.until("messages kept");
    server.kill();
    sending.extend((teachers / 2..teachers).map(send));
    std::thread::sleep(Duration::from_millis(300));
    let server = Server::start(parties, port);
    for child in sending {
        let output = child.wait_with_output().expect("ended");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    (server, port)
}

#[test]
fn a_round_over_the_network_gives_the_labels_of_the_in_process_path_through_kills() {
    let (queries, teachers) = (6, 6);
    let parties = Parties::new();
    parties.agree(queries, teachers, "--mechanism discrete-laplace --gamma 0.4");
    (0..teachers).for_each(|teacher| parties.answer(teacher, &labels(teacher, queries)));
    let (mut server, port) = send_through_a_kill(&parties, teachers);
    // Kills it again while the winners are computed.
    server.until("answered");
    server.kill();
    let server = Server::start(&parties, port);

    // The same message again gets the same receipt, and the log says that it is in the sum.
    asks(&parties, port, "teacher 3", "teacher send --message message --receipt again");
    asks(&parties, port, "teacher 3", "teacher send --message message --receipt again");
    let [first, second] = ["receipt", "again"].map(|name| parties.bytes("teacher 3", name));
    assert_eq!(first, second);
    asks(&parties, port, "teacher 3", "teacher log --out log");
    let check = "teacher check --round round.toml --message message --receipt receipt --log log";
    let text = parties.succeeds("teacher 3", check);
    assert!(text.contains("the message of teacher 3 is in the sum of 6 messages"), "{text}");
    // A party that is not in the roster is refused; only the student gets the result.
    parties.send(("student", "round.toml"), ("stranger", "round.toml"));
    parties.succeeds("stranger", "teacher keygen --name stranger --out signing.key");
    for (party, line, words) in [
        ("stranger", "teacher log --out stolen", "roster does not have this client's key"),
        ("server", "student fetch --out stolen", "roster does not have this client's key"),
        ("teacher 1", "student fetch --out stolen", "403: the result is the student's"),
    ] {
        refused(&parties, port, party, line, &[words]);
    }

    asks(&parties, port, "student", "student fetch --out result");
    let report = server.ends();
    assert_eq!((&report["received"], &report["fetched"]), (&teachers.into(), &true.into()));
    let open = "student open --secret-key secret.key --result result --round round.toml --out labels.csv";
    parties.succeeds("student", open);
    let written = parties.read("student", "labels.csv");
    let votes: Vec<_> = (0..teachers).map(|teacher| labels(teacher, queries)).collect();
    assert_eq!(written, in_process(&parties, &votes));
    assert!(!parties.path("student", "secret.key").exists(), "keys live as long as a round");
}

/// Returns the metrics of a server that is listening, without the numbers of connections.
fn metrics(server: &Server) -> String {
    let listening = server.log.lines().find(|line| line.contains("listening")).expect("a line");
    let line: Value = serde_json::from_str(listening).expect("JSON");
    let mut stream = TcpStream::connect(line["fields"]["watchers"].as_str().expect("an address")).expect("a listener");
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("metrics");
    let lines = text.lines().filter(|line| line.contains("speed_") && !line.contains("connections"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Serves a round in which all teachers give the same labels, with noise from this seed. Returns the server's log, the lines
/// of the server about the round (without times, addresses and numbers of connections), the metrics and the labels.
fn observed(parties: &Parties, party: &str, seed: u64, votes: &str) -> (String, BTreeSet<String>, String, String) {
    let port = free_port();
    let mut server = Server::start_as(party, parties, port, "debug");
    server.until("\"teachers_received\":0");
    let answer = |teacher: &str, votes: &str, out: &str| {
        let _ = fs::remove_file(parties.path(teacher, out));
        parties.write(teacher, "votes.csv", votes);
        let options = format!("--simulation {seed} --new-registry --registry {party}-{out} --out {out}");
        parties.succeeds(teacher, &format!("{ANSWER} {options}"));
    };
    for teacher in 0..3 {
        let name = format!("teacher {teacher}");
        answer(&name, votes, "message");
        asks(parties, port, &name, &format!("teacher send --message message --receipt {party}.receipt"));
        server.until(&format!("\"teachers_received\":{}", teacher + 1));
        if teacher == 0 {
            // A second message, which is refused.
            answer(&name, &votes.replace(['0', '1'], "3"), "second");
            refused(parties, port, &name, "teacher send --message second --receipt none", &["duplicate"]);
        }
    }
    server.until("the result is there");
    let metrics = metrics(&server);
    let _ = fs::remove_file(parties.path("student", "result"));
    asks(parties, port, "student", "student fetch --out result");
    server.stderr.read_to_string(&mut server.log).expect("a log");
    let log = std::mem::take(&mut server.log);
    server.ends();
    let _ = fs::remove_file(parties.path("student", "labels.csv"));
    let open = "student open --secret-key secret.key --result result --round round.toml --out labels.csv --keep-keys";
    parties.succeeds("student", open);
    let labels = parties.read("student", "labels.csv");
    let of_round = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("JSON");
        let is_own = line["target"].as_str().expect("a target").starts_with("speed") && line["level"] != "DEBUG";
        for name in ["parties", "watchers", "open"] {
            line["fields"].as_object_mut().expect("fields").remove(name);
        }
        is_own.then(|| line["fields"].to_string())
    };
    let lines = log.lines().filter_map(of_round).collect();
    (log, lines, metrics, labels)
}

/// Votes, noise, messages and labels of the two rounds differ. The server's lines and its metrics are the same, so they tell
/// nothing about them.
#[test]
fn log_and_metrics_of_a_server_are_the_same_for_all_votes_and_contain_no_key() {
    let parties = Parties::new();
    parties.agree(4, 3, "--mechanism discrete-laplace --gamma 2");
    for file in ["evaluation.key", "round.toml", "signing.key", "signing.registry"] {
        parties.send(("server", file), ("other", file));
    }
    let (log, lines, metrics, labels) = observed(&parties, "server", 8, "0\n1\n0\n1\n");
    let message = parties.bytes("teacher 1", "message");
    let (other_log, other_lines, other_metrics, other_labels) = observed(&parties, "other", 9, "1\n1\n1\n0\n");
    // Three teachers and this noise: the labels are those of the votes but for one run in two million.
    assert_ne!(labels, other_labels);
    assert_ne!(message, parties.bytes("teacher 1", "message"));
    assert!(lines.len() > 6 && lines.iter().any(|line| line.contains("duplicate")), "{lines:#?}");
    assert_eq!(lines, other_lines);
    contains(&metrics, &["speed_queries_answered 4\n", "{reason=\"duplicate\"} 1\n"]);
    assert_eq!(metrics, other_metrics);

    let secret = parties.bytes("student", "secret.key");
    let mut secrets = vec![secret[100..116].to_vec(), message[100..116].to_vec()];
    for party in ["server", "student", "teacher 1"] {
        let pem = parties.read(party, "signing.key");
        let key = pem.lines().nth(1).expect("base64");
        assert!(!log.contains(key) && !other_log.contains(key), "the key of {party}");
        let key = Identity::read(&parties.path(party, "signing.key")).expect("a key");
        secrets.push(key.signing_key().to_bytes().to_vec());
    }
    for secret in secrets {
        let hexadecimal: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let list: Vec<String> = secret.iter().map(ToString::to_string).collect();
        for text in [&log, &other_log, &metrics, &other_metrics] {
            assert!(!text.to_lowercase().contains(&hexadecimal) && !text.contains(&list.join(", ")));
        }
    }
}

#[test]
fn a_client_sends_nothing_to_the_server_of_another_round() {
    let parties = Parties::new();
    parties.agree(2, 1, "--gamma 2");
    let port = free_port();
    let server = Server::start(&parties, port);
    // The same parties and keys.
    let terms = "--queries 2 --classes 4 --proofs off --simulation --gamma 2 --reuse-keys";
    parties.succeeds("student", &format!("{ROUND} --name other {terms} --out other.toml"));
    parties.send(("student", "other.toml"), ("teacher 0", "round.toml"));
    parties.write("teacher 0", "votes.csv", "1\n2\n");
    parties.succeeds("teacher 0", &format!("{ANSWER} --simulation 8 --out message"));
    for line in ["teacher send --message message --receipt receipt", "teacher log --out log"] {
        refused(&parties, port, "teacher 0", line, &[&format!("127.0.0.1:{port}: serves round"), "expected"]);
    }
    let metrics = metrics(&server);
    assert!(metrics.contains("speed_messages_received 0\n") && !metrics.contains("reason="), "{metrics}");
    // With the server's round the teacher is served.
    parties.send(("student", "round.toml"), ("teacher 0", "round.toml"));
    asks(&parties, port, "teacher 0", "teacher log --out log");
    server.kill();
}
