//! Rounds of parties with several teachers.

use std::fs;

use speed_aggregation::{Aggregator as _, ClearText, NoisyVotes};
use speed_core::VoteShape;
use speed_round::{Party, RoundFile, RoundRandomness, teacher};

use crate::cli::common::{check_failure, contains};
use crate::cli::roles::Parties;
use crate::cli::verify::{draw_pool, forge};

const QUERIES: usize = 4;
const CLASSES: usize = 3;
/// Teachers of each party.
const TEACHERS: [usize; 3] = [3, 2, 1];
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

fn csv<T: ToString>(rows: impl Iterator<Item = Vec<T>>) -> String {
    let line = |row: Vec<T>| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") + "\n";
    rows.map(line).collect()
}

/// Creates keys, cards and a simulated round, of which four teachers must answer.
fn agreed() -> Parties {
    agreed_with("--coins 2 --simulation", " --simulation 5")
}

/// Creates keys with the options `keys`, cards, and a round with the options `noise`, of which four teachers must answer.
fn agreed_with(noise: &str, keys: &str) -> Parties {
    let parties = Parties::new();
    let mut roster = String::new();
    for (role, party, more) in [
        ("student identity", "student", String::new()),
        ("server keygen", "server", String::new()),
        ("teacher keygen", "teacher 0", " --teachers 3".into()),
        ("teacher keygen", "teacher 1", " --teachers 2".into()),
        ("teacher keygen", "teacher 2", String::new()),
    ] {
        let name = party.replace(' ', "-");
        parties.succeeds(party, &format!("{role} --name {name} --out signing.key{more}"));
        roster.push_str(&parties.read(party, "signing.toml"));
    }
    assert_eq!(roster.matches("teachers = ").count(), 2, "{roster}");
    parties.write("student", "roster.toml", roster);
    parties.keygen("student", "", keys.trim());
    let line = format!(
        "student round --public-key public.key --name parties --queries 4 --classes 3 --roster roster.toml --proofs off \
         --parties 3 --teachers 6 --min-teachers 4 --out round.toml --json {noise}"
    );
    let round = parties.json("student", &line);
    assert_eq!((&round["teachers"], &round["parties"]), (&6.into(), &3.into()));
    let of = &round["price"]["of"];
    assert_eq!((&of[0]["teachers"], &of[1]["teachers"]), (&6.into(), &4.into()), "{of}");
    assert_eq!(of[0]["party"]["teachers"], 3, "{of}");
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
    parties.write("teacher 1", "labels.csv", csv((0..2).map(|own| labels(1, own))));
    let text = parties.succeeds("teacher 0", &format!("{ANSWER} --votes votes --out message"));
    assert!(text.contains("the votes and the shares of") && text.contains("of its 3 teachers"), "{text}");
    assert!(text.contains("for all 3 teachers of one party"), "{text}");
    assert!(text.contains("if every party gave all records of a person to the same teacher"), "{text}");
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
    for words in
        ["for all votes of a party of 3 teachers", "if every party gave all records of a person to the same teacher"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
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

#[test]
fn labels_and_counts_of_a_party_give_the_same_message() {
    let parties = agreed();
    parties.write("teacher 1", "labels.csv", csv((0..2).map(|own| labels(1, own))));
    let table = counts(1);
    let rows = || table.chunks_exact(CLASSES).map(<[u32]>::to_vec);
    parties.write("teacher 1", "counts.csv", csv(rows()));
    // The same with empty votes: of one teacher, and of both on the last query.
    parties.write("teacher 1", "some.csv", "0,,2,NA\n1,2,-1,-1\n");
    parties.write("teacher 1", "fewer.csv", "1,1,0\n0,0,1\n0,0,1\n0,0,0\n");
    parties.write("teacher 1/folder", "a.csv", "query,label\n3,\n0,0\n2,2\n1,NA\n");
    parties.write("teacher 1/folder", "b.csv", "1\n2\nNA\n-1\n");
    // No vote at all.
    parties.write("teacher 1", "zeros.csv", "0,0,0\n".repeat(4));
    parties.write("teacher 1", "nothing.csv", "-1,NA,-1,NA\n-1,,-1,-1\n");
    for name in ["a.csv", "b.csv"] {
        parties.write("teacher 1/none", name, "NA\n".repeat(4));
    }
    let message = |votes: &str| {
        let answer = format!("{ANSWER} --votes {votes} --new-registry --out message-{votes}");
        parties.succeeds("teacher 1", &answer);
        fs::remove_file(parties.path("teacher 1", "signing.registry")).expect("a registry");
        parties.bytes("teacher 1", &format!("message-{votes}"))
    };
    let (labels, counts) = (message("labels.csv"), message("counts.csv"));
    assert!(labels == counts, "labels and counts");
    let (some, fewer, folder) = (message("some.csv"), message("fewer.csv"), message("folder"));
    assert!(some == fewer && some == folder, "empty votes in three forms");
    let (zeros, nothing, none) = (message("zeros.csv"), message("nothing.csv"), message("none"));
    assert!(zeros == nothing && zeros == none, "no vote in three forms");
    assert!(some != labels && none != some, "the votes differ");
    assert!(some.len() == labels.len() && none.len() == labels.len(), "a message shows no empty vote");
}

#[test]
fn votes_that_are_not_those_of_a_partys_teachers_are_refused() {
    let parties = agreed();
    let labels = |rows: usize| csv((0..rows).map(|own| labels(1, own)));
    for (name, votes, words) in [
        ("three.csv", labels(3), "expected"),
        (
            "sums.csv",
            "2,0,0\n0,2,0\n1,1,1\n1,1,0\n".to_owned(),
            "line 3 sums to 3, expected at most the number of teachers, 2",
        ),
        ("negative.csv", "3,-1,0\n0,2,0\n0,1,1\n1,1,0\n".to_owned(), "expected a count of votes, found -1"),
        ("blank.csv", "0,1,2,0\n,,,\n".to_owned(), "line 2: a line of empty cells only"),
        ("text.csv", "0,n/a,1,2\n1,1,1,1\n".to_owned(), "line 1, column 2: expected an integer, found \"n/a\""),
        ("long.csv", "2,0,0\n0,2,0\n0,1,1\n1,1,0\n1,1,0\n".to_owned(), "5 queries, the round has 4"),
        ("class.csv", "3,1,2,0\n0,1,2,0\n".to_owned(), "expected 0 to 2"),
    ] {
        parties.write("teacher 1", name, votes);
        let output = parties.run("teacher 1", &format!("{ANSWER} --votes {name} --out message"));
        check_failure(&output, 3, &[words, name]);
    }
    for own in 0..3 {
        parties.write("teacher 1/many", &format!("{own}.csv"), "0\n1\n2\n0\n");
    }
    let output = parties.run("teacher 1", &format!("{ANSWER} --votes many --out message"));
    check_failure(&output, 3, &["3 files of votes, expected one for each of the party's 2 teachers"]);
    // A party of one teacher has no folder.
    parties.path("teacher 2/votes", "none");
    parties.fails("teacher 2", &format!("{ANSWER} --votes votes --out message"), 3, &["votes"]);
    assert!(!parties.path("teacher 1", "message").exists());
    for teachers in ["0", "16385"] {
        let line = format!("teacher keygen --name many --out many.key --teachers {teachers}");
        parties.fails("teacher 0", &line, 2, &["expected 1 to 16384"]);
    }
}

/// Cards may state the classes of a party's records: the plan and the round say how many parties can vote for each.
#[test]
fn parties_that_can_vote_for_a_class_are_counted_and_a_class_of_no_party_is_refused() {
    let parties = Parties::new();
    parties.keygen("student", "", "--simulation 5");
    let cards = parties.path("student", "cards");
    fs::create_dir_all(&cards).expect("a folder");
    let introduce = |role: &str, party: &str, more: &str| {
        let _ = fs::remove_file(parties.path(party, "signing.key"));
        let _ = fs::remove_file(parties.path(party, "signing.toml"));
        let _ = fs::remove_file(parties.path(party, "signing.registry"));
        let said = parties.succeeds(party, &format!("{role} --name {party} --out signing.key{more}"));
        fs::copy(parties.path(party, "signing.toml"), cards.join(format!("{party}.toml"))).expect("a card");
        said
    };
    introduce("student identity", "student", "");
    introduce("server keygen", "server", "");
    let said = introduce("teacher keygen", "north", " --classes benign,malignant");
    contains(&said, &["the card states the classes benign, malignant, which all parties of a round read"]);
    introduce("teacher keygen", "south", " --classes benign");
    introduce("teacher keygen", "west", "");
    let round = |classes: &str, out: &str| {
        format!(
            "student round --public-key public.key --name classes --queries 4 --classes {classes} --roster cards --proofs off --parties 3 \
             --coins 2 --simulation --out {out}"
        )
    };
    let line = "parties that can vote for each class, of 3, as their cards state: benign 3, malignant 2, other 1; 1 of them state no classes and count for all\n";
    let said = parties.succeeds("student", &round("benign,malignant,other", "round.toml"));
    assert!(said.contains(line), "{said}");
    assert!(parties.succeeds("student", "round round.toml").contains(line));
    let shown = parties.json("student", "round round.toml --json");
    assert_eq!(shown["voters"], serde_json::json!([3, 2, 1]));
    let stated: Vec<_> =
        shown["teachers"].as_array().expect("teachers").iter().map(|party| &party["classes"]).collect();
    assert_eq!(serde_json::json!(stated), serde_json::json!([["benign", "malignant"], ["benign"], null]));
    // The id covers them.
    let text = parties.read("student", "round.toml");
    let changed = text.replacen("classes = [\"benign\"]", "classes = [\"other\"]", 1);
    assert_ne!(changed, text);
    parties.write("student", "changed.toml", changed);
    parties.fails("student", "round changed.toml", 2, &["changed.toml", "was changed"]);
    // The plan does the same before there are keys.
    let plan = |classes: u8| {
        format!(
            "plan --teachers 3 --agreement 0.9 --classes {classes} --queries 4 --mechanism binomial --coins 40 --without-times --roster cards"
        )
    };
    let said = parties.succeeds("student", &plan(3));
    contains(&said, &["parties that can vote for each class that a card states: benign 3, malignant 2\n"]);
    parties.fails("student", &plan(3).replace("--teachers 3", "--teachers 4"), 3, &["cards", "3 teachers, expected 4"]);
    // A class that the round lacks, and a class that no party has.
    parties.fails("student", &round("benign,other", "wrong.toml"), 2, &["north", "found malignant"]);
    introduce("teacher keygen", "west", " --classes malignant");
    let refused = parties.run("student", &round("benign,malignant,other", "wrong.toml"));
    check_failure(&refused, 2, &["the class other", "all 3 cards state other classes"]);
    parties.fails("student", &plan(3), 2, &["--classes", "the cards state 2 classes"]);
}

#[test]
fn a_round_whose_noise_outweighs_a_unanimous_vote_needs_a_flag() {
    let parties = Parties::new();
    parties.introduce(3);
    parties.keygen("student", "", "");
    let line = "student round --public-key public.key --name wide --queries 2 --classes 4 --roster roster.toml --parties 3 --proofs off \
                --coins 62 --out round.toml";
    let refused = parties.run("student", line);
    check_failure(&refused, 2, &["even a unanimous vote gives only", "--accept-wrong-labels"]);
    assert!(!parties.path("student", "round.toml").exists());
    let text = parties.succeeds("student", &format!("{line} --accept-wrong-labels"));
    assert!(text.contains("forecast of a unanimous vote: "), "{text}");
}

#[test]
fn a_plan_of_parties_has_both_epsilons() {
    let parties = Parties::new();
    let plan = "plan --teachers 250 --parties 10 --agreement 0.95 --classes 10 --queries 100 --epsilon 1 --mechanism binomial \
                --without-times --json";
    let plan = parties.json("student", plan);
    let (one, party) = (&plan["account"]["epsilon"], &plan["party_account"]["epsilon"]);
    assert!(one.as_f64() <= Some(1.0) && party.as_f64() > Some(10.0), "{one} and {party}");
    assert_eq!((&plan["parties"], &plan["party_account"]["party_teachers"]), (&10.into(), &25.into()));
    assert!(plan["forecasts"][0]["right_share"].as_f64() > Some(0.98), "{}", plan["forecasts"]);
    let (message, all) = (&plan["cost"]["message_bytes"], &plan["cost"]["all_message_bytes"]);
    assert_eq!(all.as_u64(), message.as_u64().map(|bytes| 10 * bytes));
    let too_many =
        "plan --teachers 5 --parties 6 --agreement 0.9 --classes 4 --queries 2 --coins 4 --mechanism binomial";
    parties.fails("student", too_many, 2, &["--parties", "found 6, expected 1 to the number of teachers, 5"]);
}

/// A hospital's card decides its index and its number of votes, so it must be one card. Before this check, a card with six
/// `[[teacher]]` blocks got six seats.
#[test]
fn a_card_that_takes_several_seats_or_more_teachers_is_refused() {
    let parties = Parties::new();
    parties.introduce(3);
    parties.keygen("student", "", "");
    let cards = |file: &str| parties.path("student/cards", file);
    fs::create_dir(parties.path("student", "cards")).expect("a folder");
    for (party, file) in [
        ("student", "u.toml"),
        ("server", "s.toml"),
        ("teacher 0", "a.toml"),
        ("teacher 1", "b.toml"),
        ("teacher 2", "c.toml"),
    ] {
        fs::copy(parties.path(party, "signing.toml"), cards(file)).expect("a card");
    }
    let round = |roster: &str, more: &str| {
        let line = format!(
            "student round --public-key public.key --name r --queries 2 --classes 4 --roster {roster} --proofs off --gamma 3 --out \
             round.toml {more}"
        );
        parties.run("student", &line)
    };
    check_failure(&round("cards", "--json"), 2, &["--parties"]);
    check_failure(&round("cards", "--parties 2"), 3, &["cards", "3 parties that answer, expected 2"]);

    // Six seats in one card.
    let card = fs::read_to_string(cards("b.toml")).expect("a card");
    let seats: String = (0..5)
        .map(|seat| {
            parties.succeeds("teacher 1", &format!("teacher keygen --name seat-{seat} --out seat-{seat}.key"));
            parties.read("teacher 1", &format!("seat-{seat}.toml"))
        })
        .collect();
    fs::write(cards("b.toml"), format!("{card}{seats}")).expect("a card");
    check_failure(&round("cards", "--parties 3"), 3, &["b.toml", "names 6 parties"]);
    let joined: String = ["u", "s", "a", "b", "c"]
        .map(|name| fs::read_to_string(cards(&format!("{name}.toml"))).expect("a card"))
        .concat();
    parties.write("student", "joined.toml", joined);
    check_failure(&round("joined.toml", "--parties 3"), 3, &["joined.toml", "8 parties that answer, expected 3"]);

    // More teachers than agreed.
    fs::write(cards("b.toml"), format!("{}teachers = 9\n", card.trim_end().to_owned() + "\n")).expect("a card");
    check_failure(&round("cards", "--parties 3"), 3, &["cards", "11 teachers, expected 3"]);
    check_failure(&round("cards", "--parties 3 --teachers 10"), 3, &["11 teachers, expected 10"]);

    // A second card, and missing cards.
    fs::copy(cards("u.toml"), cards("b.toml")).expect("a card");
    check_failure(&round("cards", "--parties 3"), 3, &["u.toml", "second card of a student"]);
    fs::write(cards("b.toml"), card).expect("a card");
    fs::rename(cards("s.toml"), cards(".s.toml")).expect("hidden");
    check_failure(&round("cards", "--parties 3"), 3, &["cards", "the cards of the student, the server"]);
    fs::rename(cards(".s.toml"), cards("s.toml")).expect("visible");
    assert!(!parties.path("student", "round.toml").exists());

    let output = round("cards", "--parties 3 --json");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let file = RoundFile::read(&parties.path("student", "round.toml")).expect("a round");
    let names: Vec<&str> = file.roster().teachers().iter().map(Party::name).collect();
    assert_eq!(names, ["hospital-0", "hospital-1", "hospital-2"]);
}

#[test]
fn a_partys_ledger_states_the_cost_for_one_teacher_and_for_all_its_votes() {
    let parties = agreed_with("--coins 400 --accept-wrong-labels", "");
    let answer =
        "teacher answer --signing-key signing.key --public-key public.key --round round.toml --votes labels.csv";
    for party in [0, 2] {
        let name = format!("teacher {party}");
        let rows = (0..TEACHERS[party]).map(|own| labels(party, own));
        parties.write(&name, "labels.csv", csv(rows));
        parties.succeeds(&name, &format!("{answer} --out message"));
    }
    let json = |party: &str, line: &str| -> serde_json::Value { parties.json(party, line) };
    let shown = json("teacher 0", "ledger show signing.ledger --json");
    let charge = &shown["charges"][0];
    assert_eq!((&charge["party_teachers"], &charge["teachers"]), (&3.into(), &6.into()), "{charge}");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    // The price of the round at the smallest number of teachers, which the ledger charges with a thousandth of delta less.
    let price = json("teacher 0", &format!("{answer} --out again --json"));
    let price = &price["price"]["of"][1];
    for (ledger, price) in
        [(&shown["fixed_epsilon"], &price["round"]), (&shown["party"]["fixed_epsilon"], &price["party"]["round"])]
    {
        let (ledger, price) = (number(ledger), number(price));
        assert!(ledger >= price && ledger < 1.01 * price, "{ledger} {price}");
    }
    assert!(number(&shown["party"]["spent_epsilon"]) > 2.0 * number(&shown["spent_epsilon"]), "{shown}");
    let text = parties.succeeds("teacher 0", "ledger show signing.ledger");
    for words in [
        "3 of 6",
        "for one teacher",
        "for all votes of the party of up to 3 teachers",
        "if every party gave all records",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // A party with one teacher has a ledger of one claim, as before.
    let one = json("teacher 2", "ledger show signing.ledger --json");
    assert!(one.get("party").is_none() && one["charges"][0].get("party_teachers").is_none(), "{one}");
    // A changed number of teachers is found.
    let path = parties.path("teacher 0", "signing.ledger");
    let good = fs::read_to_string(&path).expect("a ledger");
    fs::write(&path, good.replace("\"party_teachers\":3", "\"party_teachers\":2")).expect("a ledger");
    parties.fails("teacher 0", "ledger show signing.ledger", 3, &["line 2", "checksum"]);
}
