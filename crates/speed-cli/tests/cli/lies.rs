//! A round whose result a teacher verifies before the student opens it.

use crate::cli::common::contains;
use crate::cli::json::documented;
use crate::cli::roles::Parties;

const AGGREGATE: &str = "server aggregate --signing-key signing.key --evaluation-key evaluation.key --round round.toml --answers inbox \
                         --out result --copy-messages copies";
const REVEAL: &str = "server reveal --signing-key signing.key --round round.toml";
const VERIFY: &str = "server verify --evaluation-key evaluation.key --round round.toml --result result --log log --seed seed \
                      --messages copies";
const OPEN: &str = "student open --secret-key secret.key --result result --round round.toml --out labels.csv --json";

/// A real round of one query and two teachers that the server evaluated. Teacher 1 gets the files of a verifier.
fn evaluated() -> Parties {
    let parties = Parties::new();
    parties.introduce(2);
    parties.keygen("student", "", "");
    let round = "student round --public-key public.key --name test --queries 1 --classes 4 --roster roster.toml --parties 2 --gamma 9 --max-epsilon 100 \
                 --proofs off --out round.toml";
    parties.succeeds("student", round);
    parties.agree_in_votes(2, &[3]);
    parties.succeeds("server", AGGREGATE);
    parties.send(("server", "result"), ("student", "result"));
    give_to_verifier(&parties);
    parties
}

/// Gives teacher 1 the public files of the server and the student, so that it can verify a round of two teachers.
pub(crate) fn give_to_verifier(parties: &Parties) {
    parties.send(("server", "result"), ("teacher 1", "result"));
    parties.send(("server", "result.log"), ("teacher 1", "log"));
    parties.send(("student", "evaluation.key"), ("teacher 1", "evaluation.key"));
    for teacher in 0..2 {
        let name = format!("teacher-{teacher}.message");
        parties.send(("server/copies", &name), ("teacher 1/copies", &name));
    }
}

#[test]
fn the_student_opens_a_result_only_after_a_teacher_computed_it_again() {
    let parties = evaluated();
    // Nothing vouches for the answers yet.
    parties.fails("student", OPEN, 2, &["no teacher verified", "speed server verify", "--unverified"]);
    assert!(!parties.path("student", "labels.csv").exists() && parties.path("student", "secret.key").exists());
    let revealed = documented(&parties.succeeds("server", &format!("{REVEAL} --out seed --json")));
    assert_eq!(revealed["out"], "seed");
    parties.fails("server", &format!("{REVEAL} --out seed"), 4, &["never overwritten"]);
    #[cfg(unix)]
    assert_eq!(crate::cli::common::mode(&parties.path("server", "seed")), 0o600);
    parties.send(("server", "seed"), ("teacher 1", "seed"));
    // Without a signature nothing is written.
    let text = parties.succeeds("teacher 1", VERIFY);
    assert!(text.contains("the server computed everything that it signed"), "{text}");
    let sign = "--signing-key signing.key --out verification --json";
    let report = documented(&parties.succeeds("teacher 1", &format!("{VERIFY} {sign}")));
    assert_eq!((&report["honest"], &report["verification"]), (&true.into(), &"verification".into()));
    assert_eq!(report["answers_differ"], serde_json::json!([]));
    parties.send(("teacher 1", "verification"), ("student", "verification"));
    let report = documented(&parties.succeeds("student", &format!("{OPEN} --verification verification")));
    assert_eq!((&report["verified_by"], &report["labelled"]), (&serde_json::json!([1]), &1.into()));
    assert_eq!(parties.read("student", "labels.csv"), "query,label\n0,3\n");
    assert!(!parties.path("student", "secret.key").exists());
}

#[test]
fn a_log_that_contradicts_the_result_convicts_the_server() {
    let parties = evaluated();
    parties.succeeds("server", &format!("{REVEAL} --out seed"));
    parties.send(("server", "seed"), ("teacher 1", "seed"));
    // A second evaluation with another registry: another result, signed by the same server.
    let again = AGGREGATE.replace("--out result", "--out again --new-registry --registry other --ledger other.ledger");
    parties.succeeds("server", &again.replace("copies", "others"));
    parties.send(("server", "again.log"), ("teacher 1", "log"));
    let output = parties.run("teacher 1", &format!("{VERIFY} --signing-key signing.key --out verification"));
    assert_eq!(output.status.code(), Some(3));
    let text = String::from_utf8_lossy(&output.stdout);
    contains(&text, &["a log and a result that contradict each other", "THE SERVER LIED"]);
    assert!(!parties.path("teacher 1", "verification").exists());
    // The second result is not the one of the seed.
    parties.send(("server", "again"), ("teacher 1", "result"));
    parties.fails("teacher 1", VERIFY, 3, &["seed", "is of the result"]);
}
