//! One teacher's votes in every form that is read.

use npyz::WriterBuilder as _;

use super::*;

fn question(queries: usize, classes: usize) -> Question<'static> {
    let classes = Box::leak(Box::new(Classes::numbered(classes).expect("a number of classes")));
    Question { queries, classes, form: None, names: QueryNames::NoList }
}

fn array(shape: &[u64], values: &[i32]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer =
        npyz::WriteOptions::new().default_dtype().shape(shape).writer(&mut bytes).begin_nd().expect("memory");
    writer.extend(values.iter().copied()).expect("memory");
    writer.finish().expect("memory");
    bytes
}

#[test]
fn labels_come_as_text_with_or_without_queries_and_header() {
    for text in [
        "0\n2\n1\n",
        "label\n0\n2\n1",
        "query,label\n0,0\n1,2\n2,1\n",
        "0,0\r\n1,2\r\n2, 1\r\n\r\n",
        "2,1\n0,0\n1,2\n",
        "\u{feff}0;2;1",
        "1;0;0\n0;0;1\n0;1;0\n",
        ",label\n0,0\n1,2\n2,1\n",
    ] {
        assert_eq!(parse_answer(text.as_bytes(), &question(3, 3)).expect(text), [0, 2, 1].map(Some), "{text:?}");
    }
}

#[test]
fn empty_votes_are_minus_one_an_empty_cell_or_na() {
    let expected = [None, Some(2), None];
    for text in [
        "-1\n2\nNA\n",
        "NA\n2\n-1\n",
        "label\nNA\n2\n-1",
        "query,label\n0,NA\n1,2\n2,\n",
        "0,\r\n1,2\r\n2, NA\r\n\r\n",
        "2,-1\n0,\n1,2\n",
        "-1;2;-1",
        ";2;",
        "NA,2.0,-1.0",
        "0;0;0\n0;0;1\n0;0;0\n",
        ",label\n0,NA\n1,2\n2,\n",
    ] {
        assert_eq!(parse_answer(text.as_bytes(), &question(3, 3)).expect(text), expected, "{text:?}");
    }
    for (shape, values) in
        [(&[3][..], &[-1, 2, -1][..]), (&[3, 1], &[-1, 2, -1]), (&[3, 3], &[0, 0, 0, 0, 0, 1, 0, 0, 0])]
    {
        assert_eq!(parse_answer(&array(shape, values), &question(3, 3)).expect("votes"), expected, "{shape:?}");
    }
    // By name, also if the first line is a name with an empty vote.
    let names = ["a", "b", "c"].map(str::to_owned);
    let named = Question { names: QueryNames::Known(&names), ..question(3, 3) };
    for text in ["a,\nb,2\nc,NA\n", "name,label\nc,\nb,2\na,-1\n", "b,2\na,NA\nc,\n"] {
        assert_eq!(parse_answer(text.as_bytes(), &named).expect(text), expected, "{text:?}");
    }
    // A class may have the name of an empty vote; then an empty cell is one.
    let classes = Classes::named(["NA", "b", "c"].map(str::to_owned).to_vec()).expect("names");
    let of = Question { classes: &classes, ..question(3, 3) };
    let votes = parse_answer(b"query,label\n0,NA\n1,\n2,-1\n", &of).expect("names");
    assert_eq!(votes, [Some(0), None, None]);
}

#[test]
fn all_votes_may_be_empty() {
    for bytes in [
        b"NA\n-1\nNA\n".to_vec(),
        b"query,label\n0,\n1,\n2,\n".to_vec(),
        b"0,0,0\n0,0,0\n0,0,0\n".to_vec(),
        array(&[3], &[-1; 3]),
        array(&[3, 3], &[0; 9]),
    ] {
        assert_eq!(parse_answer(&bytes, &question(3, 3)).expect("empty votes"), [None; 3]);
    }
}

#[test]
fn labels_come_as_arrays() {
    for (shape, values) in [
        (&[3][..], &[0, 2, 1][..]),
        (&[1, 3], &[0, 2, 1]),
        (&[3, 1], &[0, 2, 1]),
        (&[3, 3], &[1, 0, 0, 0, 0, 1, 0, 1, 0]),
    ] {
        let bytes = array(shape, values);
        assert_eq!(parse_answer(&bytes, &question(3, 3)).expect("labels"), [0, 2, 1].map(Some), "{shape:?}");
        for length in 0..bytes.len() {
            assert!(parse_answer(&bytes[..length], &question(3, 3)).is_err(), "{shape:?} cut to {length}");
        }
    }
    let fails = |shape: &[u64], values: &[i32]| {
        parse_answer(&array(shape, values), &question(3, 3)).expect_err("refused").to_string()
    };
    assert!(fails(&[3, 3], &[1, 0, 0, 0, 1, 1, 0, 1, 0]).contains("row 1: expected a one-hot histogram"));
    assert!(fails(&[2, 3], &[0; 6]).contains("found shape [2, 3], expected 3 labels, or 3 x 3 one-hot histograms"));
    assert!(fails(&[4], &[0; 4]).contains("4 labels, the round has 3 queries"));
}

#[test]
fn every_fault_is_named() {
    let fails = |text: &str| parse_answer(text.as_bytes(), &question(3, 3)).expect_err("refused").to_string();
    assert_eq!(fails("0\n1\n"), "2 labels, the round has 3 queries");
    assert_eq!(fails(""), "0 labels, the round has 3 queries");
    assert_eq!(fails("0\n1\n3\n"), "query 2: label 3, expected 0 to 2");
    assert_eq!(fails("0\n-2\n3\n"), format!("query 1: label -2, expected 0 to 2: {UNSURE}"));
    assert_eq!(
        fails("0\r\n1\r\nx\r\n"),
        format!("line 3: expected the label of query 2, the number of a class from 0 to 2: {UNSURE}")
    );
    for unsure in ["0,na\n1,2\n2,0\n", "0,?\n1,2\n2,0\n", "1,2\n2,0\n0,nan\n"] {
        let error = fails(unsure);
        assert!(
            error.contains("the label of query 0") && error.contains("leave its vote empty"),
            "{unsure:?}: {error}"
        );
    }
    assert_eq!(fails("0,1\n2,1\n2,1\n"), "line 3: query 2 has a label already, on line 2");
    assert_eq!(fails("0,1\n2,1\n3,1\n"), "line 3: \"3\" is not a query: expected 0 to 2; names need --query-list");
    assert!(parse_answer(&[0xff, 0xfe], &question(3, 3)).expect_err("refused").to_string().contains("UTF-16"));
    assert!(parse_answer(b"\x93NUMPY rubbish", &question(3, 3)).expect_err("refused").to_string().contains(".npy"));
}

#[test]
fn pairs_of_two_classes_are_read_in_one_way_or_refused() {
    let read = |text: &str, queries| parse_answer(text.as_bytes(), &question(queries, 2));
    assert_eq!(read("0,1\n1,0\n", 2).expect("both readings agree"), [1, 0].map(Some));
    assert!(matches!(read("1,0\n0,1\n", 2), Err(AnswerError::Undecided)));
    assert!(matches!(read("1,1\n0,0\n", 2), Err(AnswerError::Undecided)));
    assert_eq!(read("query,label\n1,1\n0,0\n", 2).expect("by query"), [0, 1].map(Some));
    assert_eq!(read("2,1\n0,0\n1,1\n", 3).expect("by query"), [0, 1, 1].map(Some));
    assert_eq!(read("1,0\n0,1\n1,0\n", 3).expect("histograms"), [0, 1, 0].map(Some));
    let given = |form| Question { form: Some(form), ..question(2, 2) };
    assert_eq!(parse_answer(b"1,0\n0,1\n", &given(VotesForm::Histograms)).expect("histograms"), [0, 1].map(Some));
    assert_eq!(parse_answer(b"1,0\n0,1\n", &given(VotesForm::Labels)).expect("by query"), [1, 0].map(Some));
}

#[test]
fn numbers_are_not_queries_if_they_may_be_names_that_cannot_be_read() {
    let read = |text: &str, names| parse_answer(text.as_bytes(), &Question { names, ..question(3, 4) });
    let names = ["2", "0", "1"].map(str::to_owned);
    for text in ["2,3\n0,0\n1,1\n", "name,label\n2,3\n0,0\n1,1\n"] {
        assert!(matches!(read(text, QueryNames::Unreadable), Err(AnswerError::UnreadableNames(_))), "{text:?}");
    }
    assert_eq!(read("name,label\n2,3\n0,0\n1,1\n", QueryNames::Known(&names)).expect("names"), [3, 0, 1].map(Some));
    let unclear = read("2,1\n0,2\n1,3\n", QueryNames::Known(&names)).expect_err("refused").to_string();
    assert!(unclear.contains("line 1: \"2\" is the number of one query and the name of another"), "{unclear}");
    for text in ["query,label\n2,3\n0,0\n1,1\n", "0\n1\n3\n", "1,0,0,0\n0,1,0,0\n0,0,0,1\n"] {
        assert_eq!(read(text, QueryNames::Unreadable).expect("labels"), [0, 1, 3].map(Some), "{text:?}");
    }
}

#[test]
fn classes_with_names_are_read_by_their_names_only() {
    let names = |names: &[&str]| Classes::named(names.iter().map(|&name| name.to_owned()).collect()).expect("names");
    let (kinds, shifted) = (names(&["benign", "malignant, early", "unclear"]), names(&["1", "2", "3"]));
    let of = |classes, text: &str| parse_answer(text.as_bytes(), &Question { classes, ..question(3, 3) });
    for text in [
        "query,label\n2,\"malignant, early\"\n0,benign\n1,unclear\n",
        "Label\nbenign\nunclear\n\"malignant, early\"\n",
        "benign,\"malignant, early\",unclear\n1,0,0\n0,0,1\n0,1,0\n",
    ] {
        assert_eq!(of(&kinds, text).expect(text), [0, 2, 1].map(Some), "{text:?}");
    }
    // Numbers of a program that counts from 1 are names here, and those of one that counts from 0 are refused.
    assert_eq!(of(&shifted, "query,label\n0,1\n1,3\n2,2\n").expect("names"), [0, 2, 1].map(Some));
    assert_eq!(of(&shifted, "1,2,3\n1,0,0\n0,0,1\n0,1,0\n").expect("names"), [0, 2, 1].map(Some));
    let columns = "line 1: expected the names of columns";
    for (text, words) in [
        (
            "query,label\n0,0\n1,2\n2,1\n",
            "line 2: the label of query 0 is not the name of a class of the round: expected benign,",
        ),
        ("query,label\n0,Benign\n1,unclear\n2,unclear\n", "line 2: the label of query 0"),
        ("query,label\n0,benign\n1,na\n2,unclear\n", "line 3: the label of query 1"),
        ("benign\nunclear\nbenign\n", columns),
        ("0,benign\n1,unclear\n2,benign\n", columns),
        ("unclear,benign,\"malignant, early\"\n1,0,0\n0,0,1\n0,1,0\n", columns),
        ("1,0,0\n0,0,1\n0,1,0\n", columns),
    ] {
        let error = of(&kinds, text).expect_err("refused").to_string();
        assert!(error.contains(words) && !error.contains("unclear,benign"), "{text:?}: {error}");
    }
    // A data frame writes its own numbers before the columns.
    let named = |text: &str| {
        let names = ["p1", "p2", "p3"].map(str::to_owned);
        parse_answer(text.as_bytes(), &Question { names: QueryNames::Known(&names), ..question(3, 3) })
            .map_err(|error| error.to_string())
    };
    for text in [
        ",name,label\n0,p3,0\n1,p1,1\n2,p2,2\n",
        "label,confidence,name\n0,0,p3\n1,1,p1\n2,2,p2\n",
        "id,label,query\n0,0,2\n1,1,0\n2,2,1\n",
    ] {
        assert_eq!(named(text).expect(text), [1, 2, 0].map(Some), "{text:?}");
    }
    for text in [
        "query,name,label\n0,p1,0\n1,p2,1\n2,p3,2\n",
        "name,label,label\np1,0,1\np2,1,1\np3,2,2\n",
        "a,b,label\n0,p1,0\n1,p2,1\n2,p3,2\n",
    ] {
        assert_eq!(
            named(text).expect_err(text),
            "line 1: expected one column query or name, and one column label",
            "{text:?}"
        );
    }
    for classes in [&kinds, &shifted] {
        let error = parse_answer(&array(&[3], &[0, 2, 1]), &Question { classes, ..question(3, 3) })
            .expect_err("numbers")
            .to_string();
        assert!(error.contains("an array has no names"), "{error}");
    }
    // As many cells as queries, but one vote.
    let two = Question { queries: 3, ..question(3, 3) };
    let error = parse_answer(b"1,0,0\n", &Question { form: Some(VotesForm::Histograms), ..two })
        .expect_err("one vote")
        .to_string();
    assert!(error.contains("1 labels, the round has 3 queries"), "{error}");
    of(&kinds, "benign,\"malignant, early\",unclear\n1,0,0\n").expect_err("one vote");
}
