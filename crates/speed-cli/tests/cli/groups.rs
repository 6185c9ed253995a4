//! Groups of images as the queries of a round: the list, the votes, the labels, the student's model.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use serde_json::json;

use crate::cli::common::{Workplace, has};
use crate::cli::roles::{ANSWER, OPEN, Parties};
use crate::cli::way::{picture, place, train};

/// A list of queries as the test itself reads it: the groups in order, each with its images.
fn groups(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in text.lines().skip(1) {
        let (name, group) = line.split_once(',').expect("two columns");
        match found.iter_mut().find(|(other, _)| other == group) {
            Some((_, images)) => images.push(name.to_owned()),
            None => found.push((group.to_owned(), vec![name.to_owned()])),
        }
    }
    found
}

fn labels(text: &str) -> BTreeMap<String, usize> {
    let line = |line: &str| {
        let (name, label) = line.rsplit_once(',').expect("two columns");
        (name.to_owned(), label.parse().expect("a label"))
    };
    text.lines().skip(1).map(line).collect()
}

/// The class with most of the labels; the lowest on a tie.
fn plurality(labels: impl Iterator<Item = usize>) -> usize {
    let mut counts = [0; 10];
    labels.for_each(|label| counts[label] += 1);
    (0..10).rev().max_by_key(|&class| counts[class]).expect("ten classes")
}

const QUERIES: &str = "student queries --pool trial/public --count 12 --seed 2";

#[test]
fn twelve_groups_of_the_example_become_a_model() {
    let place = Workplace::new("");
    place.succeeds("data example --out trial");
    let text = place.succeeds(&format!("{QUERIES} --groups --grey --out groups.csv"));
    let list = groups(&place.read("groups.csv"));
    let images: Vec<&String> = list.iter().flat_map(|(_, images)| images).collect();
    assert!(text.contains(&format!("12 queries, groups with {} of 400 images, seed 2", images.len())), "{text}");
    assert_eq!(list.iter().map(|(group, _)| group.as_str()).next_back(), Some("group-12"));
    assert!(list.len() == 12 && list.iter().all(|(_, images)| !images.is_empty()));
    assert!(images.iter().all(|name| place.path("trial/public").join(name).is_file()));
    // --groups implies --clusters, and threads do not change a byte.
    place.succeeds(&format!("{QUERIES} --groups --clusters --grey --threads 1 --out again.csv"));
    assert_eq!(place.read("again.csv"), place.read("groups.csv"));

    // Every teacher also votes on the images alone, from which the test computes its answers to the groups.
    let alone: String = images.iter().fold("name\n".to_owned(), |text, name| text + name + "\n");
    place.write("images.csv", alone);
    let mut answers: BTreeMap<&String, Vec<usize>> = BTreeMap::new();
    for name in ["north", "east", "south"] {
        let (model, folder) = (format!("{name}.safetensors"), format!("trial/{name}"));
        let train = format!("teacher train --images {folder} --grey --seed 1 --quiet --set teacher.steps=40");
        place.succeeds(&format!("{train} --out {model}"));
        let vote = format!("teacher vote --model {model} --images trial/public --json --query-list");
        let (votes, single) = (format!("{name}.csv"), format!("{name}-images.csv"));
        let report = place.json(&format!("{vote} groups.csv --out {votes}"));
        has(&report, &json!({ "queries": 12, "images": images.len() }));
        place.succeeds(&format!("{vote} images.csv --out {single}"));
        let (votes, single) = (labels(&place.read(&votes)), labels(&place.read(&single)));
        assert_eq!((votes.len(), single.len()), (12, images.len()));
        for (group, images) in &list {
            assert_eq!(votes[group], plurality(images.iter().map(|image| single[image])), "{name}, {group}");
            answers.entry(group).or_default().push(votes[group]);
        }
    }

    let count = "student plurality --query-list groups.csv --classes 10 --out labels.csv";
    let text = place.succeeds(&format!("{count} --votes north.csv east.csv south.csv"));
    assert!(text.contains("12 queries labelled by the plurality of 3 teachers"), "{text}");
    let labels = labels(&place.read("labels.csv"));
    let of_group = |number: usize| labels[&number.to_string()];
    for (number, (group, _)) in list.iter().enumerate() {
        assert_eq!(of_group(number), plurality(answers[group].iter().copied()), "{group}");
    }

    // The same training from labels by number, by the name of the group, and by the name of every image.
    let (mut by_group, mut by_image) = ("name,label\n".to_owned(), "name,label\n".to_owned());
    for (number, (group, images)) in list.iter().enumerate() {
        let _ = writeln!(by_group, "{group},{}", of_group(number));
        by_image.extend(images.iter().map(|image| format!("{image},{}\n", of_group(number))));
    }
    place.write("by-group.csv", by_group);
    place.write("by-image.csv", by_image);
    let student = "student train --pool trial/public --grey --seed 1 --quiet";
    let student = format!("{student} --test trial/test --epochs 1");
    let groups = "--query-list groups.csv";
    let report = place.json(&format!("{student} {groups} --labels labels.csv --json --out number"));
    has(&report, &json!({ "labelled": 12, "unanswered": 0, "labelled_images": images.len() }));
    let text = place.succeeds(&format!("{student} {groups} --labels by-group.csv --out group"));
    assert!(text.contains(&format!("12 labels of groups with {} of 400 images", images.len())), "{text}");
    place.succeeds(&format!("{student} --labels by-image.csv --out image"));
    let [number, group, image] = ["number", "group", "image"].map(|name| place.bytes(name));
    assert!(number == group && number == image);
}

#[test]
fn typical_images_are_a_list_of_pictures() {
    let place = place();
    let queries = "student queries --pool public --count 6 --seed 4 --features pixels";
    let text = place.succeeds(&format!("{queries} --clusters --out typical.csv"));
    assert!(text.contains("6 queries, the typical images of 6 clusters of 30 images, seed 4"), "{text}");
    let list = place.read("typical.csv");
    let names: Vec<&str> = list.lines().collect();
    assert_eq!((names[0], names.len()), ("name", 7));
    // Without labels, every one of the three kinds of pictures has a typical one.
    let kinds: std::collections::BTreeSet<usize> =
        names[1..].iter().map(|name| name[..2].parse::<usize>().expect("a number") % 3).collect();
    assert_eq!(kinds.len(), 3, "{list}");
    place.succeeds(&format!("{queries} --clusters --size 8x8 --grey --out small.csv"));

    let fails = |more: &str, words: &[&str]| {
        place.fails(&format!("student queries --pool public --out list.csv {more}"), 3, words);
    };
    fails("--count 0 --groups", &["public", "1 to 30 queries"]);
    fails("--count 31 --clusters", &["public", "1 to 30 queries of 30 images, found 31"]);
    place.write("public/x.png", b"\x89PNG\r\n\x1a\n");
    fails("--count 3 --clusters", &["x.png"]);
    fs::remove_file(place.path("public/x.png")).expect("a file");
    picture(&place.path("public/a;b.png"), 0, 0);
    fails("--count 31", &["public", "a;b.png", "can hold"]);
    place.fails(&format!("{queries} --clusters --out typical.csv"), 4, &["never overwritten"]);
    assert!(!place.path("list.csv").exists());
}

#[test]
fn hostile_lists_are_refused_by_every_program() {
    let place = place();
    place.succeeds(&train("north", "model", "--quiet"));
    let list = |text: &str| place.write("list.csv", text);
    let vote = "teacher vote --model model --images public --query-list list.csv --out out.csv";
    let student = "student train --pool public --labels labels.csv --query-list list.csv";
    let student = format!("{student} --classes 0,1,2 --grey --epochs 1 --out out");
    let count = "student plurality --votes labels.csv --query-list list.csv --classes 3";
    let count = format!("{count} --out out.csv");
    place.write("labels.csv", "query,label\n0,1\n");
    for (text, words) in [
        ("name,group\n00.png,one\n01.png,two\n00.png,two\n", "line 4: \"00.png\" occurs on line 2 already"),
        ("name,group\n00.png,../../etc/passwd\n", "line 2: expected a legible group name"),
        ("name,groups\n00.png,one\n", "found the column \"groups\""),
    ] {
        list(text);
        for command in [vote, &student[..], &count[..]] {
            place.fails(command, 3, &["list.csv", words]);
        }
    }
    list("name,group\n00.png,one\nabsent.png,one\n");
    place.fails(&vote, 3, &["list.csv", "\"absent.png\""]);
    place.fails(&student, 3, &["list.csv", "\"absent.png\""]);

    // Labels of groups refer to groups.
    list("name,group\n00.png,one\n01.png,two\n02.png,one\n");
    for (labels, words) in [
        ("name,label\none,1\nthree,0\n", "line 3: expected the name of a query of list.csv, found \"three\""),
        ("name,label\n00.png,1\n", "found \"00.png\""),
        ("query,label\n0,1\n2,0\n", "line 3: expected a query from 0 to 1, found \"2\""),
        ("query,label\n0,1\n1,3\n", "line 3: expected a class (0, 1, 2) or no label, found \"3\""),
        ("name,label\none,\ntwo,\n", "at least one query with a label, found 2 without an answer"),
    ] {
        place.write("labels.csv", labels);
        place.fails(&student, 3, &["labels.csv", words]);
    }
    assert!(!place.path("out").exists() && !place.path("out.csv").exists());
    place.write("labels.csv", "name,label\ntwo,\none,1\n");
    let text = place.succeeds(&student);
    assert!(text.contains("1 labels of groups with 2 of 30 images, 1 queries without an answer"), "{text}");
}

/// Two teachers and gamma 9: a label differs from the votes in one run of seven million.
#[test]
fn an_encrypted_round_labels_groups_with_classes_by_name() {
    let parties = Parties::new();
    for number in 0..30_u8 {
        picture(&parties.path("student/pool", &format!("{number:02}.png")), usize::from(number) % 3, number);
    }
    let list = "name,group\n04.png,right\n00.png,left\n01.png,right\n03.png,left\n02.png,7\n05.png,7\n08.png,7\n";
    parties.write("student", "queries.csv", list);
    parties.agree(3, 2, "--gamma 9 --query-list queries.csv --classes a,b,c,d");
    for (teacher, votes) in
        ["name,label\n7,c\nleft,a\nright,b\n", "name,label\nright,b\nleft,a\n7,c\n"].into_iter().enumerate()
    {
        let party = format!("teacher {teacher}");
        parties.send(("student", "queries.csv"), (&party, "queries.csv"));
        let answer = format!("{ANSWER} --simulation 8 --out message --query-list queries.csv");
        // An image is not a query of this round.
        for (wrong, words) in [
            ("name,label\n04.png,b\n00.png,a\n02.png,c\n", ["line 2", "04.png", "not a query"]),
            // Numbers could count from 0 or from 1.
            ("name,label\nleft,0\nright,1\n7,2\n", ["line 2", "query \"left\"", "expected a, b, c, d"]),
            ("name,label\nleft,a\nright,B\n7,c\n", ["line 3", "query \"right\"", "expected a, b, c, d"]),
            ("right,b\nleft,a\n7,c\n", ["line 1", "expected the names of columns", "(a, b, c, d)"]),
        ] {
            parties.write(&party, "votes.csv", wrong);
            parties.fails(&party, &answer, 3, &words);
        }
        parties.write(&party, "votes.csv", votes);
        assert!(parties.succeeds(&party, &answer).contains("classes in the order of their numbers: a,b,c,d"));
        parties.send((&party, "message"), ("server/inbox", &format!("teacher-{teacher}.msg")));
    }
    parties.aggregate();
    // An answer that the student knows.
    parties.write("student", "known.csv", "name,label\nleft,0\n");
    let known = format!("{OPEN} --known known.csv --query-list queries.csv");
    parties.fails("student", &known, 3, &["known.csv", "line 2: expected a class of the round (a, b, c, d)"]);
    let (report, labels) = parties.open();
    assert_eq!(report["labelled"], 3);
    assert_eq!(labels, "query,label\n0,b\n1,a\n2,c\n", "right, left, 7");

    let train = "student train --pool pool --labels labels.csv --query-list queries.csv --round round.toml --result result \
                 --grey --seed 1 --epochs 1 --out student.safetensors --quiet";
    let text = parties.succeeds("student", train);
    assert!(text.contains("3 labels of groups with 7 of 30 images, 0 queries without an answer"), "{text}");
    let order = format!("{train} --classes a,b,d,c").replace("student.safetensors", "other");
    let words = ["labels.csv", "the round's classes a, b, c, d in this order, found a, b, d, c"];
    parties.fails("student", &order, 3, &words);
    parties.write("student", "queries.csv", list.replace("05.png,7", "05.png,left"));
    let other = train.replace("student.safetensors", "other");
    parties.fails("student", &other, 3, &["queries.csv", "SHA-256"]);
}
