//! A round of parties with several teachers. Their votes, cards and ledgers: `tests/snapshots/parties.trycmd`.

use std::fs;

use speed_aggregation::{Aggregator as _, ClearText, NoisyVotes};
use speed_core::VoteShape;
use speed_round::{RoundFile, RoundRandomness, teacher};

use crate::cli::common::contains;
use crate::cli::roles::Parties;
use crate::cli::verify::{draw_pool, forge};

const QUERIES: usize = 4;
const CLASSES: usize = 3;
/// Teachers of each party.
const TEACHERS: [usize; 3] = [3, 2, 1];
/// The condition on which the claim for one teacher is one for a person.
const ALONE: &str = "if every party gave all records of a person to the same teacher";
const ANSWER: &str =
    "teacher answer --signing-key signing.key --public-key public.key --round round.toml --simulation 8";

/// The label of a party's teacher for each query.
fn labels(party: usize, own: usize) -> Vec<usize> {
    (0..QUERIES).map(|query| (query + party * (own % 2)) % CLASSES).collect()
}

/// The counts of a party, queries x classes.
fn counts(party: usize) -> Vec<u32> {
    let mut counts = vec![0; QUERIES * CLASSES];
    for own in 0..TEACHERS[party] {
        labels(party, own).iter().enumerate().for_each(|(query, label)| counts[query * CLASSES + label] += 1);
    }
    counts
}

/// Creates keys, cards and a simulated round, of which four teachers must answer.
fn agreed() -> Parties {
    let parties = Parties::new();
    let mut roster = String::new();
    for (role, party, more) in [
        ("student identity", "student", ""),
        ("server keygen", "server", ""),
        ("teacher keygen", "teacher 0", " --teachers 3"),
        ("teacher keygen", "teacher 1", " --teachers 2"),
        ("teacher keygen", "teacher 2", ""),
    ] {
        let name = party.replace(' ', "-");
        parties.succeeds(party, &format!("{role} --name {name} --out signing.key{more}"));
        roster.push_str(&parties.read(party, "signing.toml"));
    }
    parties.write("student", "roster.toml", roster);
    parties.keygen("student", "", "--simulation 5");
    let line = "student round --public-key public.key --name parties --queries 4 --classes 3 --roster roster.toml --proofs off \
                --parties 3 --teachers 6 --min-teachers 4 --out round.toml --json --coins 2 --simulation";
    let round = parties.json("student", line);
    assert_eq!((&round["teachers"], &round["parties"]), (&6.into(), &3.into()));
    let of = &round["price"]["of"];
    assert_eq!((&of[0]["teachers"], &of[1]["teachers"]), (&6.into(), &4.into()), "{of}");
    assert_eq!(of[0]["party"]["teachers"], 3, "{of}");
    // A party compares the key that the round has with its own.
    let shown = parties.json("student", "round round.toml --json");
    let key = shown["teachers"][2]["key"].as_str().expect("a key");
    assert!(key.len() == 64 && parties.read("teacher 2", "signing.toml").contains(key), "{key}");
    parties.send(("student", "evaluation.key"), ("server", "evaluation.key"));
    for party in ["server", "teacher 0", "teacher 1", "teacher 2"] {
        parties.send(("student", "round.toml"), (party, "round.toml"));
        parties.send(("student", "public.key"), (party, "public.key"));
    }
    parties
}

#[test]
fn a_partys_message_is_the_sum_of_its_teachers_votes_and_noise() {
    let parties = agreed();
    // A folder with one file for each teacher, and a table of labels.
    for own in 0..3 {
        let votes = labels(0, own).iter().map(|label| format!("{label}\n")).collect::<String>();
        parties.write("teacher 0/votes", &format!("teacher-{own}.csv"), votes);
    }
    parties.write("teacher 1", "labels.csv", "0,1,2,0\n1,2,0,1\n");
    let text = parties.succeeds("teacher 0", &format!("{ANSWER} --votes votes --out message"));
    contains(&text, &["the votes and the shares of", "of its 3 teachers", "for all 3 teachers of one party", ALONE]);
    parties.succeeds("teacher 1", &format!("{ANSWER} --votes labels.csv --out message"));
    // The third party, with one teacher, does not answer.
    for party in 0..2 {
        parties.send((&format!("teacher {party}"), "message"), ("server/inbox", &format!("{party}.msg")));
    }
    let text = parties.aggregate();
    assert!(text.contains("5 of 6 teachers"), "{text}");
    let (report, written) = parties.open();
    assert_eq!((&report["teachers"], &report["counted"], &report["parties"]), (&6.into(), &5.into(), &3.into()));
    assert_eq!(report["honest_ratio"], 5.0 / 6.0);
    assert_eq!((&report["price"]["of"][0]["teachers"], &report["excluded"][0][0]), (&5.into(), &2.into()));

    check_card(&parties);
    // The same sums in one process, in clear text.
    let file = RoundFile::read(&parties.path("student", "round.toml")).expect("a round");
    let values = (0..2).flat_map(|party| {
        let values = teacher::party_values(&file, &counts(party), party, RoundRandomness::simulation(8));
        values.expect("a simulation").to_vec()
    });
    let shape = VoteShape::new(2, QUERIES, CLASSES).expect("a shape");
    let votes = NoisyVotes::new(shape, file.round().range().noise_bound(), values.collect()).expect("valid");
    let expected = ClearText.aggregate(&votes, &|_, _| {}).expect("in range").labels();
    let line = |(query, label): (usize, &Option<u8>)| format!("{query},{}\n", label.expect("a label"));
    let expected = "query,label\n".to_owned() + &expected.iter().enumerate().map(line).collect::<String>();
    assert_eq!(written, expected);
}

/// Trains a student on the labels, and checks that its card has the claim for a party and that no other is accepted.
fn check_card(parties: &Parties) {
    draw_pool(parties);
    let train = "student train --pool pool --labels labels.csv --round round.toml --result result --epochs 1 --seed 1 \
                 --out model.safetensors";
    parties.succeeds("student", train);
    let verify = "verify model-card.json --round round.toml --result result";
    let told = parties.succeeds("student", verify);
    contains(&told, &["for all votes of a party of 3 teachers", ALONE]);
    let path = parties.path("student", "model-card.json");
    let original = fs::read(&path).expect("a card");
    type Change = fn(&mut serde_json::Value);
    let changes: [(Change, &str); 2] = [
        (|card| card["privacy"]["party"]["teachers"] = 2.into(), "privacy.party.teachers: expected 3, found 2"),
        (|card| card["privacy"]["party"]["data_independent"] = 0.into(), "expected the card of a model"),
    ];
    for (change, words) in changes {
        forge(&path, change);
        parties.fails("student", verify, 3, &["model-card.json", words]);
        fs::write(&path, &original).expect("a card");
    }
}
