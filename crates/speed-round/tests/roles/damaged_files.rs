//! Every decoder takes its valid files, and those of files with a checksum refuse damaged ones. All stay within their memory.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use speed_aggregation::log::Receipt;
use speed_aggregation::protocol::Submission;
use speed_aggregation::{PrivacyNoise, Server, Teacher};
use speed_core::{Classes, Digest, Randomness};
use speed_round::opener::{self, OpenerOptions};
use speed_round::{Role, Terms};

use crate::common::{RoundFolder, as_server, keys, roster, terms};
use crate::decoders;
use crate::faults::seal;
use crate::joint::options;
use crate::opener::real_round;

/// Returns valid files of every decoder, by its name.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let folder = real_round();
    opener::part(&OpenerOptions { keep_share: true, ..options(&folder) }).expect("answered and verified");
    let mut files: Vec<_> = [
        ("message", "inbox/0"),
        ("result", "result"),
        ("revealed-seed", "seed"),
        ("verification", "verification"),
        ("student-share", "student.share"),
        ("opener-share", "opener.share"),
        ("part", "part"),
        ("log", "result.log"),
        ("proof-key", "proof.key"),
        ("round-file", "round.toml"),
    ]
    .map(|(name, file)| (name, folder.bytes(file)))
    .into();
    let key = |name: &str| fs::read(keys().join(name)).expect(name);
    files.extend(["secret-key", "public-key", "evaluation-key"].map(|name| (name, key(&name.replace('-', ".")))));
    let proofs = Submission::from_bytes(&folder.bytes("inbox/0")).expect("a submission").proofs().to_vec();
    let answer = folder.result().list().answers().next().expect("one").to_bytes();
    let receipt =
        Receipt::new(folder.log().head(0).expect("no entry"), 3, Digest::of("a message"), as_server).to_bytes();
    files.extend([("proofs", proofs), ("answer", answer), ("receipt", receipt), ("state", state())]);
    let other = Terms {
        classes: Classes::named(vec!["left".into(), "right".into()]).expect("names"),
        query_list: Some(Digest::of("queries")),
        noise: PrivacyNoise::of_coins(4, 3).expect("valid"),
        threshold: Some(-1),
        ..terms("other", 100, 3)
    };
    files.push(("round-file", RoundFolder::new(&other).bytes("round.toml")));
    let roster = roster(20);
    let cards = roster.teachers().iter().map(|party| party.card(Role::Teacher));
    let others = [roster.server().card(Role::Server), roster.student().card(Role::Student)];
    files.push(("roster", cards.chain(others).collect::<String>().into_bytes()));
    let head = format!("{:<117}\n", "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }");
    let labels = [0_i32, 2, 1, 1].map(i32::to_le_bytes).concat();
    files.push(("votes", [b"\x93NUMPY\x01\x00\x76\x00", head.as_bytes(), &labels].concat()));
    for (name, text) in [
        ("votes", "0\n2\n1\n1\n"),
        ("votes", "query,label\n0,0\n1,2\n2,1\n3,1\n"),
        ("votes", "\u{feff}\"name\";label\r\nb;1\r\n\"a\";0\r\nd;1\r\nc;2\r\n"),
        ("votes", "1,0,0\n0,0,1\n0,1,0\n0,1,0\n"),
        ("query-list", "a\nb\nc\n"),
        ("query-list", "\u{feff}Name\r\n\"a, left\"\r\nb\r\n"),
        ("query-list", "name,group\na,x\nb,y\nc,x\n"),
        ("query-list", "\"group\";name\r\nward 7;d\r\nward 7;e\r\n"),
        ("query-list", &format!("name,encoder\na,{0}\nb,{0}\n", "0f".repeat(32))),
    ] {
        files.push((name, text.as_bytes().to_vec()));
    }
    files
}

/// Returns the state of a server with one message.
fn state() -> Vec<u8> {
    let (key, round) = &*decoders::STATE;
    let mut server = Server::new(key.clone(), round.clone()).expect("valid");
    let values = vec![1; round.values()];
    let message = Teacher::new(0).answer(key.public_key(), round, &values, &Randomness::OperatingSystem);
    server.add(&message.expect("valid")).expect("valid");
    server.close(1).expect("enough");
    server.state().expect("closed")
}

/// Returns the places of fields, such as versions and lengths.
fn fields(name: &str, file: &[u8]) -> Vec<usize> {
    // The only fields of this large file are its version and kind, and its parameter set.
    if name == "evaluation-key" {
        return vec![8, 12];
    }
    let mut places: Vec<_> = (0..file.len().min(128) - 3).step_by(4).collect();
    if name == "proof-key" {
        // The lengths of both lists of points, of which the first has twice as many, and of the first number of each list.
        let place =
            |wanted: &[u8]| file.windows(wanted.len()).position(|bytes| bytes == wanted).expect("bytes of the key");
        let first = place(b"zk::CompactPkeCrs") + 33;
        let points = u64::from_le_bytes(*file[first..].first_chunk().expect("a length"));
        let second = place(&(points / 2).to_le_bytes());
        places.extend([first, first + 20, second, second + 24]);
    }
    places
}

/// With `SPEED_FUZZ_CORPUS`, the valid files are written to this folder, for `fuzz/`.
#[test]
fn decoders_take_whole_files_only_and_no_more_memory_than_documented() {
    let corpus = std::env::var_os("SPEED_FUZZ_CORPUS");
    let mut seen = BTreeSet::new();
    for (number, (name, file)) in files().into_iter().enumerate() {
        let decoder = decoders::ALL.iter().find(|decoder| decoder.name == name).expect("a decoder");
        assert!(decoder.accepts(&file), "{name}: a valid file is refused");
        seen.insert(name);
        if let Some(corpus) = &corpus {
            let folder = Path::new(corpus).join(name);
            fs::create_dir_all(&folder).expect("a folder");
            fs::write(folder.join(number.to_string()), &file).expect("a file");
        }
        let places = ((4 << 20) / file.len()).clamp(2, 64);
        for place in (0..places).map(|place| place * file.len() / places) {
            let is_cut_taken = decoder.accepts(&file[..place]);
            let mut damaged = file.clone();
            damaged[place] ^= 1 << (place % 8);
            let is_damaged_taken = decoder.accepts(&damaged);
            if decoder.is_sealed {
                assert!(!is_cut_taken && !is_damaged_taken, "{name}: byte {place}");
                // So that the later checks are reached.
                seal(&mut damaged);
                decoder.accepts(&damaged);
            }
        }
        for place in fields(name, &file) {
            let field = u32::from_le_bytes(*file[place..].first_chunk().expect("four bytes"));
            for value in [0, 1, 1 << 16, 1 << 20, u32::MAX, field.wrapping_add(1), field.wrapping_sub(1)] {
                let mut damaged = file.clone();
                damaged[place..place + 4].copy_from_slice(&value.to_le_bytes());
                if decoder.is_sealed {
                    seal(&mut damaged);
                }
                decoder.accepts(&damaged);
            }
        }
    }
    assert_eq!(seen.len(), decoders::ALL.len(), "{seen:?}");
}
