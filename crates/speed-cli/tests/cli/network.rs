//! Server, teachers and student as processes over mutual TLS on loopback.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use crate::common::check_failure;
use crate::roles::{ANSWER, Parties, in_process, labels};

/// A server that is killed when the test ends.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Server {
    /// Starts the server and waits until it listens.
    fn start(parties: &Parties, port: u16) -> Self {
        let line = format!(
            "server serve --signing-key signing.key --evaluation-key evaluation.key --round round.toml --listen 127.0.0.1:{port} \
             --watch 127.0.0.1:0 --threads 1 --until-fetched --simulation 13 --json"
        );
        let mut command = parties.command("server", &line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut server = Self { child, stderr };
        server.until("listening");
        server
    }

    /// Reads the log up to a line that contains these words.
    fn until(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert_ne!(
                self.stderr.read_line(&mut line).expect("a log"),
                0,
                "the server ended before it said {words:?}"
            );
        }
        line
    }

    /// Waits until the server ends by itself, and returns its report.
    fn ends(mut self) -> serde_json::Value {
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

/// Returns a port that was free a moment ago.
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

/// Lets all teachers answer and send, and kills the server meanwhile. Returns the server that has all messages.
fn send_through_a_kill(parties: &Parties, port: u16, teachers: usize) -> Server {
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
    server
}

#[test]
fn a_round_over_the_network_gives_the_labels_of_the_in_process_path_through_kills() {
    let (queries, teachers) = (6, 20);
    let (parties, port) = (Parties::new(), free_port());
    parties.agree(queries, teachers, "--mechanism discrete-laplace --gamma 0.4");
    for teacher in 0..teachers {
        let party = format!("teacher {teacher}");
        let votes: String = labels(teacher, queries).iter().map(|label| format!("{label}\n")).collect();
        fs::write(parties.path(&party, "votes.csv"), votes).expect("votes");
        parties.succeeds(&party, &format!("{ANSWER} --simulation 8 --out message"));
    }
    let mut server = send_through_a_kill(&parties, port, teachers);
    // Kills it again while the winners are computed.
    server.until("answered");
    server.kill();
    let server = Server::start(&parties, port);

    // The same message again gets the same receipt, and the log says that it is in the sum.
    asks(&parties, port, "teacher 3", "teacher send --message message --receipt again");
    asks(&parties, port, "teacher 3", "teacher send --message message --receipt again");
    let [first, second] =
        ["receipt", "again"].map(|name| fs::read(parties.path("teacher 3", name)).expect("a receipt"));
    assert_eq!(first, second);
    asks(&parties, port, "teacher 3", "teacher log --out log");
    let check = "teacher check --round round.toml --message message --receipt receipt --log log";
    let text = parties.succeeds("teacher 3", check);
    assert!(text.contains("the message of teacher 3 is in the sum of 20 messages"), "{text}");
    // A party that is not in the roster is refused; only the student gets the result.
    parties.send(("student", "round.toml"), ("stranger", "round.toml"));
    parties.succeeds("stranger", "teacher keygen --name stranger --out signing.key");
    for (party, line, words) in [
        ("stranger", "teacher log --out stolen", "roster does not have this client's key"),
        ("server", "student fetch --out stolen", "roster does not have this client's key"),
        ("teacher 1", "student fetch --out stolen", "403: the result is the student's"),
    ] {
        check_failure(&ask(&parties, port, party, line).output().expect("the binary starts"), 3, &[words]);
    }

    asks(&parties, port, "student", "student fetch --out result");
    let report = server.ends();
    assert_eq!((&report["received"], &report["fetched"]), (&teachers.into(), &true.into()));
    let open = "student open --secret-key secret.key --result result --round round.toml --out labels.csv";
    parties.succeeds("student", open);
    let written = fs::read_to_string(parties.path("student", "labels.csv")).expect("labels");
    assert_eq!(written, in_process(&parties, queries, teachers));
    assert!(!parties.path("student", "secret.key").exists(), "keys live as long as a round");
}
