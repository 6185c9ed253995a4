//! Test vectors of docs/protocol.md.
//!
//! Keys, encryption and the sum use integers only, so a simulation gives these bytes on every machine. (Answers do not,
//! because they depend on Fourier transforms in floating point.) If a vector changes, the format, a seed derivation or
//! a parameter has changed: raise the format's version, and update the document.

use std::fs;

use speed_aggregation::keys::SeededEvaluationKey;
use speed_aggregation::{Parameters, PublicKey, Round, RoundSpec, generate_keys};
use speed_core::{Digest, RandomnessKind};

use crate::protocol::common::{KEY_FILES, P, SOURCE, answer, key_folder, server_of, sha256, spec};

/// Returns a round of 3 queries, 4 classes and 2 teachers. The threshold and the list of queries affect only the id.
fn example() -> Round {
    Round::new(example_spec()).expect("valid")
}

fn example_spec() -> RoundSpec {
    RoundSpec {
        query_list: Some(Digest::from_bytes([7; 32])),
        threshold: Some(1),
        randomness: RandomnessKind::Simulation,
        ..spec("example", 2, 3, 4, 40)
    }
}

#[test]
fn the_documented_bytes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocol.md");
    let document = fs::read_to_string(path).expect("the repository's docs");
    let keys = generate_keys(&P, &SOURCE).expect("a simulation needs no entropy");
    let anew = [keys.secret.to_bytes().to_vec(), keys.public.to_bytes(), keys.evaluation.to_bytes()];
    for (name, bytes) in KEY_FILES.iter().zip(anew) {
        assert!(fs::read(key_folder(&P).join(name)).expect("a key") == bytes, "{name}: the other tests have old keys");
    }
    let round = example();
    let mut server = server_of(&round);
    let values = [[1, 0, 0, 0, -2, 1, 0, 3, 0, 0, 1, 0], [0, 1, 0, 0, 0, 1, 5, -9, 0, 0, 0, 1]];
    let messages = [0, 1].map(|teacher| answer(&round, teacher, &values[teacher]));
    messages.iter().for_each(|message| server.add(message).expect("valid"));
    server.close(2).expect("all");
    let (student, opener) =
        keys.secret.split(Digest::of(keys.evaluation.to_bytes()), &SOURCE).expect("a simulation needs no entropy");
    let joint =
        Round::new(RoundSpec { opener: Some(1), evaluation_key: Some(student.evaluation_key()), ..example_spec() })
            .expect("valid");
    let wide = generate_keys(&Parameters::WIDE_128, &SOURCE).expect("a simulation needs no entropy");
    // The sizes of files are known before the keys exist.
    for (parameters, keys) in [(&P, &keys), (&Parameters::WIDE_128, &wide)] {
        assert_eq!(keys.public.to_bytes().len(), PublicKey::file_size(parameters));
        assert_eq!(keys.evaluation.to_bytes().len(), SeededEvaluationKey::file_size(parameters));
    }
    let vectors = [
        ("key id", keys.public.id().to_hex()),
        ("round id", round.id(keys.public.id()).to_hex()),
        ("round id, opened jointly with teacher 1", joint.id(keys.public.id()).to_hex()),
        ("secret key", sha256(&keys.secret.to_bytes())),
        ("student's share", sha256(&student.to_bytes())),
        ("opener's share", sha256(&opener.to_bytes())),
        ("public key", sha256(&keys.public.to_bytes())),
        ("evaluation key", sha256(&keys.evaluation.to_bytes())),
        ("evaluation key, wide", sha256(&wide.evaluation.to_bytes())),
        ("message of teacher 0", sha256(&messages[0].to_bytes())),
        ("message of teacher 1", sha256(&messages[1].to_bytes())),
        ("state", sha256(&server.state().expect("closed"))),
    ];
    let lines = vectors.map(|(what, digest)| format!("| {what} | `{digest}` |"));
    let missing: Vec<String> = lines.into_iter().filter(|line| !document.contains(line)).collect();
    assert!(missing.is_empty(), "docs/protocol.md lacks:\n{}", missing.join("\n"));
}
