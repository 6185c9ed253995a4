//! A complete round with a joint opening, with the real programs.

use std::fs;

use crate::cli::json::documented;
use crate::cli::lies::give_to_verifier;
use crate::cli::roles::Parties;

const LABELS: [u8; 2] = [0, 1];
const ROUND: &str = "student round --public-key public.key --name test --queries 2 --classes 2 --roster roster.toml --parties 2 --gamma 9 --max-epsilon 100 \
                     --out round.toml --json";
const VERIFY: &str = "server verify --evaluation-key evaluation.key --proof-key proof.key --round round.toml --result result --log log --seed seed \
                      --messages copies --signing-key signing.key --out verification";
const PART: &str = "teacher part --signing-key signing.key --opener-share opener.share --round round.toml --result result \
                    --verification verification --out part";
const OPEN: &str = "student open --secret-key student.share --result result --round round.toml --verification verification --out labels.csv";

/// A real round of two teachers that the server evaluated. Teacher 1 is the opener and has the files of a verifier.
fn evaluated() -> Parties {
    let parties = Parties::new();
    parties.introduce(2);
    let text = parties.succeeds("student", "student keygen --joint --out .");
    assert!(text.contains("opener.share (16516 bytes) goes to the opener over a confidential channel"), "{text}");
    assert!(!parties.path("student", "secret.key").exists());
    parties.fails("student", ROUND, 2, &["these keys are split", "--opener"]);
    for (option, words) in
        [("--noise server", "a joint opening needs noise"), ("--proofs off", "a joint opening needs proofs")]
    {
        parties.fails("student", &format!("{ROUND} --opener hospital-1 {option}"), 2, &[words]);
    }
    let report = documented(&parties.succeeds("student", &format!("{ROUND} --opener hospital-1")));
    assert_eq!(report["opener"], "hospital-1");
    let text = parties.succeeds("student", "round round.toml");
    assert!(text.contains("opens the result together with teacher 1, hospital-1 (key "), "{text}");
    // An epsilon of 36 does not protect against both together (smaller ones: `a_distance_adds_to_delta_by_one_and_the_factor_of_epsilon`).
    assert!(text.contains("against the student and the server together this epsilon protects nothing"), "{text}");
    assert_eq!(report["price"]["of"][0]["delta_of_student_and_server"], 1.0);
    assert_eq!(documented(&parties.succeeds("student", "round round.toml --json"))["opener"], "hospital-1");
    let toml = parties.read("student", "round.toml");
    assert!(toml.contains("opening = \"joint\"\nopener = \"hospital-1\"\n"), "{toml}");

    parties.agree_in_votes(2, &LABELS);
    parties.send(("student", "proof.key"), ("server", "proof.key"));
    parties.succeeds(
        "server",
        "server aggregate --signing-key signing.key --evaluation-key evaluation.key --proof-key proof.key --round round.toml --answers inbox --out result \
         --copy-messages copies",
    );
    parties.succeeds("server", "server reveal --signing-key signing.key --round round.toml --out seed");
    parties.send(("server", "result"), ("student", "result"));
    give_to_verifier(&parties);
    parties.send(("server", "seed"), ("teacher 1", "seed"));
    // The dealer gives the opener's share away and forgets it.
    fs::rename(parties.path("student", "opener.share"), parties.path("teacher 1", "opener.share")).expect("a share");
    parties
}

#[test]
fn a_hospital_and_the_student_open_a_round_together() {
    let parties = evaluated();
    // The opener verifies first.
    parties.fails("teacher 1", PART, 3, &["verification", "cannot read"]);
    parties.succeeds("teacher 1", VERIFY);
    parties.send(("teacher 1", "verification"), ("student", "verification"));
    parties.fails("student", OPEN, 2, &["opened jointly", "--part", "speed teacher part"]);
    // Another party is not the opener.
    for name in ["result", "verification", "opener.share"] {
        parties.send(("teacher 1", name), ("teacher 0", name));
    }
    parties.fails("teacher 0", PART, 3, &["signing.key", "not the round's opener"]);
    let other_registry = format!("{PART} --registry other.registry");
    parties.fails("teacher 1", &other_registry, 4, &["other.registry", "there is no registry here"]);

    let report = documented(&parties.succeeds("teacher 1", &format!("{PART} --json")));
    assert_eq!(
        (&report["opener"], &report["repeated"], &report["share"]),
        (&1.into(), &false.into(), &"destroyed".into())
    );
    assert_eq!(report["bytes"], 164 + 8 * LABELS.len());
    assert!(!parties.path("teacher 1", "opener.share").exists());
    // The same bytes again, and no second result.
    let part = parties.bytes("teacher 1", "part");
    let text = parties.succeeds("teacher 1", &PART.replace("--out part", "--out again"));
    assert!(text.contains("was made before") && text.contains("teacher 1 opens 2 queries"), "{text}");
    assert!(text.contains("there is no share at opener.share"), "{text}");
    assert_eq!(parties.bytes("teacher 1", "again"), part);

    parties.send(("teacher 1", "part"), ("student", "part"));
    parties.fails("student", &format!("{OPEN} --part verification"), 3, &["expected an opener's part of a result"]);
    assert!(!parties.path("student", "labels.csv").exists());
    let report = documented(&parties.succeeds("student", &format!("{OPEN} --part part --json")));
    assert_eq!(
        (&report["opener"], &report["labelled"], &report["key_destroyed"]),
        (&1.into(), &LABELS.len().into(), &true.into())
    );
    let written = parties.read("student", "labels.csv");
    assert_eq!(written, "query,label\n0,0\n1,1\n");
    assert!(!parties.path("student", "student.share").exists());
}
