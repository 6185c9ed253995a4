//! Rounds with binomial noise, and proof keys of the wrong range.

use std::fs;
use std::path::Path;

use speed_aggregation::proofs::ProofKey;
use speed_aggregation::{PrivacyNoise, PublicKey};
use speed_core::{NoisePlacement, RandomnessKind};
use speed_round::{Roster, RoundFile, Terms, student};

use crate::cli::roles::{AGGREGATE, ANSWER, Parties, ROUND};

#[test]
fn odd_coins_of_a_teacher_are_refused_with_a_threshold() {
    let parties = Parties::new();
    parties.agree(1, 2, "--sigma 1.2 --threshold 2");
    // Without a threshold, three coins are enough for this deviation.
    let shown = parties.succeeds("student", "round round.toml");
    assert!(shown.contains("noise binomial coins=8 (4 of each teacher)"), "{shown}");
    let terms = "--queries 1 --classes 4 --proofs off --simulation --coins 3";
    let round = format!("{ROUND} --name odd {terms} --out odd.toml");
    for noise in ["teachers", "server"] {
        let line = format!("{round} --threshold 2 --noise {noise}");
        let words = ["--coins", "3 coins for each teacher", "with a threshold an even number is expected"];
        parties.fails("student", &line, 2, &words);
    }
    parties.succeeds("student", &round);
}

#[test]
fn a_teacher_agrees_to_coins() {
    let parties = Parties::new();
    parties.agree(2, 2, "--mechanism binomial --sigma 1.2");
    let shown = parties.succeeds("student", "round round.toml");
    // 1.2 votes need 2.88 coins each.
    assert!(shown.contains("noise binomial coins=6 (3 of each teacher): each teacher adds a share"), "{shown}");
    assert!(!shown.contains("can move"), "no teacher is proven: {shown}");
    parties.write("teacher 0", "votes.csv", "1\n2\n");
    let answer = format!("{ANSWER} --simulation 8 --mechanism binomial --out message");
    let fails = |line: &str, words: &[&str]| parties.fails("teacher 0", line, 2, words);
    fails(&format!("{answer} --coins 4"), &["coins=8", "coins=6"]);
    fails(&format!("{answer} --gamma 0.1"), &["needs --coins", "found --gamma"]);
    parties.succeeds("teacher 0", &format!("{answer} --coins 3"));
}

#[test]
fn a_proven_binomial_round_states_what_one_teacher_can_do() {
    let parties = Parties::new();
    parties.agree(1, 2, "--coins 4");
    let influence = "one dishonest teacher can move each noisy count by at most 3 votes, because its values are proven to \
                     be from -2 to 3";
    fs::create_dir(parties.path("student", "proven")).expect("a folder");
    let terms = "--queries 1 --classes 4 --coins 4 --simulation";
    let text = parties.succeeds("student", &format!("{ROUND} --name proven {terms} --out proven/round.toml"));
    assert!(text.contains(influence), "{text}");
    let text = parties.succeeds("student", "round proven/round.toml");
    assert!(text.contains(influence), "{text}");
    let json = parties.json("student", "round proven/round.toml --json");
    assert_eq!(
        json["one_teacher"],
        serde_json::json!({ "teachers": 1, "bits": 3, "least": -2, "most": 3, "moves": 3.0 })
    );
}

/// Writes the file of a round that names the proof key at `key`, as a student with a changed program could.
fn with_key(parties: &Parties, noise: PrivacyNoise, key: &Path) -> RoundFile {
    let proof_key = ProofKey::from_bytes(&fs::read(key).expect("a key")).expect("a proof key");
    let public_key = parties.bytes("student", "public.key");
    let terms = Terms {
        name: "other range".into(),
        roster: Roster::read(&parties.path("student", "roster.toml")).expect("a roster"),
        queries: 1,
        classes: speed_core::Classes::numbered(4).expect("four classes"),
        query_list: None,
        min_teachers: 2,
        noise,
        placement: NoisePlacement::Distributed,
        threshold: None,
        proofs: Some(proof_key.digest()),
        evaluation_key: None,
        opener: None,
        randomness: RandomnessKind::Simulation,
    };
    RoundFile::new(&terms, &PublicKey::from_bytes(&public_key).expect("a public key")).expect("valid")
}

#[test]
fn teacher_and_server_refuse_a_proof_key_of_another_range() {
    let parties = Parties::new();
    parties.agree(1, 2, "--coins 4");
    // A key that would let a teacher send much more. The teacher's error must not depend on its votes, so it comes before they are read.
    fs::create_dir(parties.path("student", "wide")).expect("a folder");
    let terms = "--queries 1 --classes 4 --gamma 0.5 --simulation";
    parties.succeeds("student", &format!("{ROUND} --name wide {terms} --out wide/round.toml"));
    let coins = PrivacyNoise::of_coins(4, 2).expect("valid");
    let file = with_key(&parties, coins, &parties.path("student", "wide/proof.key"));
    student::write_round(&file, &parties.path("student", "wide/other.toml")).expect("a new file");
    for party in ["teacher 0", "server"] {
        parties.send(("student", "wide/other.toml"), (party, "round.toml"));
        parties.send(("student", "wide/proof.key"), (party, "proof.key"));
    }
    let expected = format!("the values of this round have {} bits", file.round().proof_range().bits());
    let words = ["proof.key", "a proof key for values of ", &expected];
    let answer = format!("{ANSWER} --simulation 8 --out message --proof-key proof.key");
    parties.fails("teacher 0", &answer, 3, &words);
    fs::create_dir_all(parties.path("server", "inbox")).expect("an inbox");
    parties.fails("server", &format!("{AGGREGATE} --proof-key proof.key"), 3, &words);
}
