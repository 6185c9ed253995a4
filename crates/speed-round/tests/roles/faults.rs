//! Every fault of a message is refused with the teacher's name, and the round continues with the other messages.

use std::fs;

use speed_aggregation::PrivacyNoise;
use speed_aggregation::protocol::Submission;
use speed_core::NoisePlacement;
use speed_mechanism::{BinomialShare, Mechanism, NoiseGenerator};
use speed_round::server::ServerOptions;
use speed_round::teacher::{self, TeacherOptions};
use speed_round::{RoundRandomness, student};

use crate::attacks::resigned;
use crate::common::{RoundFolder, SEED, Silent, keys, noise, reasons, refused, round_options, says, terms};

/// Replaces the checksum by the correct one.
pub(crate) fn seal(bytes: &mut [u8]) {
    use sha2::{Digest, Sha256};
    let end = bytes.len() - 16;
    let digest = Sha256::digest(&bytes[..end]);
    bytes[end..].copy_from_slice(&digest[..16]);
}

/// Creates a message of a teacher in this directory's round.
fn good(folder: &RoundFolder, teacher: usize) -> Vec<u8> {
    folder.message(teacher, &[2, 1])
}

/// Creates another message of the same teacher.
fn another(folder: &RoundFolder, teacher: usize) -> Vec<u8> {
    folder.message(teacher, &[0, 0])
}

/// Creates a valid message and changes it.
fn changed(folder: &RoundFolder, teacher: usize, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = good(folder, teacher);
    change(&mut bytes);
    bytes
}

/// Creates a valid message, changes it as a forger would, and corrects the checksum.
fn forged(folder: &RoundFolder, teacher: usize, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    changed(folder, teacher, |bytes| {
        change(bytes);
        seal(bytes);
    })
}

/// Teacher 8 answers under another student's key.
fn answer_under_another_key(folder: &RoundFolder) {
    let other_keys = folder.path("other keys");
    student::keygen(&other_keys, &speed_aggregation::Parameters::TOURNAMENT_128, RoundRandomness::simulation(77))
        .expect("an empty folder");
    let (round, public_key) = (folder.path("other-round.toml"), other_keys.join("public.key"));
    student::round(&terms("faults", 2, 20), &round_options(&public_key, &round)).expect("valid");
    let options = folder.teacher_options(8, &folder.inbox("teacher-08.msg"));
    teacher::answer(&TeacherOptions { public_key, round, ..options }).expect("valid");
}

/// Fills the inbox: teachers 0, 1, 2, 3 and 19 answer correctly, and most others each with a different fault. File
/// names are arbitrary.
fn fill_inbox(folder: &RoundFolder) {
    let put = |name: &str, bytes: &[u8]| fs::write(folder.inbox(name), bytes).expect("inbox");
    put("teacher-00.msg", &good(folder, 0));
    put("teacher-01.msg", &good(folder, 1));
    // 2: before its message, a copy of teacher 0's message with the number 2, so that it would count twice and the
    // honest one would be refused.
    put("teacher-02-a.msg", &forged(folder, 0, |bytes| bytes[76] = 2));
    put("teacher-02-b.msg", &good(folder, 2));
    // 3: two answers.
    put("teacher-03.msg", &good(folder, 3));
    put("teacher-03-again.msg", &another(folder, 3));
    // 4: replayed from an earlier round, unchanged and with this round's id.
    let earlier = RoundFolder::new(&terms("earlier round", 2, 20));
    earlier.answer(4, &[2, 1], &folder.inbox("teacher-04.msg"));
    let id = *folder.file.id().as_bytes();
    put("teacher-04-b.msg", &forged(&earlier, 4, |bytes| bytes[44..76].copy_from_slice(&id)));
    // 5: truncated. 6: one bit flipped in a ciphertext; 7: in the header's teacher.
    put("teacher-05.msg", &changed(folder, 5, |bytes| bytes.truncate(bytes.len() - 1)));
    put("teacher-06.msg", &changed(folder, 6, |bytes| bytes[9_999] ^= 8));
    put("teacher-07.msg", &changed(folder, 7, |bytes| bytes[76] ^= 1));
    // 8: encrypted for another key.
    answer_under_another_key(folder);
    // 9: oversized by one byte; 10: hugely oversized and sparse, so that reading it would take much time and memory.
    put("teacher-09.msg", &changed(folder, 9, |bytes| bytes.push(0)));
    put("teacher-10.msg", &good(folder, 10));
    let file = fs::File::options().append(true).open(folder.inbox("teacher-10.msg")).expect("the message");
    file.set_len(1 << 40).expect("a sparse file");
    // 11: another shape of the same length, signed.
    let submission = Submission::from_bytes(&good(folder, 11)).expect("a submission");
    let other_shape = |bytes: &mut [u8]| {
        bytes[80..84].copy_from_slice(&3_u32.to_le_bytes());
        bytes[84..88].copy_from_slice(&2_u32.to_le_bytes());
    };
    put("teacher-11.msg", &resigned(&submission, 11, other_shape));
    // 12: unreadable, because it is a directory. 13: not a message. 14: empty. 15: a file of the protocol, but of
    // another kind.
    fs::create_dir(folder.inbox("teacher-12.msg")).expect("a folder");
    put("teacher-13.msg", b"dear server, here is my answer");
    put("teacher-14.msg", b"");
    put("teacher-15.msg", &fs::read(keys().join("secret.key")).expect("a key"));
    // 16: another message of teacher 1 under the name of teacher 16. 17: a header beyond its limits.
    put("teacher-16.msg", &another(folder, 1));
    put("teacher-17.msg", &forged(folder, 17, |bytes| bytes[80..84].copy_from_slice(&u32::MAX.to_le_bytes())));
    // 18: an unknown version. 19: valid under an arbitrary name, and the same file again, which is not a second
    // message.
    put("teacher-18.msg", &changed(folder, 18, |bytes| bytes[8] = 9));
    put("hospital.msg", &good(folder, 19));
    put("hospital-copy.msg", &good(folder, 19));
    // A teacher beyond the round's teachers; and a hidden file, such as an unfinished upload, which is ignored.
    put("teacher-20.msg", &forged(folder, 0, |bytes| bytes[76] = 20));
    put(".writing-xyz", b"unfinished");
}

#[test]
fn every_fault_is_refused_and_the_round_continues() {
    let folder = RoundFolder::new(&terms("faults", 2, 20));
    fill_inbox(&folder);
    let report = folder.aggregate().expect("enough teachers");
    let expected = [
        (None, "forged"),
        (Some(3), "duplicate"),
        (None, "forged"),
        (Some(4), "wrong-round"),
        (None, "truncated"),
        (None, "damaged"),
        (None, "damaged"),
        (Some(8), "wrong-key"),
        (None, "oversized"),
        (None, "oversized"),
        (Some(11), "wrong-shape"),
        (None, "unreadable"),
        (None, "not-a-message"),
        (None, "truncated"),
        (None, "not-a-message"),
        (Some(1), "duplicate"),
        (None, "damaged"),
        (None, "not-a-message"),
        (None, "unknown-teacher"),
    ];
    assert_eq!(reasons(&report), expected, "{:#?}", report.refused);
    // A teacher without a message with its signature is missing, even if others sent messages in its name.
    let missing = [5, 6, 7, 9, 10, 12, 13, 14, 15, 16, 17, 18];
    assert_eq!((report.counted, report.teachers, &report.missing[..]), (5, 20, &missing[..]));
    assert_eq!(report.honest_ratio, 0.25);
    let forged = report.refused[0].to_string();
    assert!(forged.contains("claims to come from teacher 2, \"hospital 2\", but does not have"), "{forged}");
    assert_eq!(folder.labels(), "query,label\n0,2\n1,1\n");

    // The student reads the same counts from the result.
    let open = folder.open(&keys().join("secret.key"), "result", &folder.path("labels-2.csv")).expect("a result");
    assert_eq!((open.counted, open.honest_ratio, open.simulation), (5, 0.25, true));
    let mut excluded: Vec<_> = missing.map(|teacher| (teacher, "missing")).to_vec();
    excluded.extend([(4, "wrong-round"), (8, "wrong-key"), (11, "wrong-shape")]);
    excluded.sort_unstable();
    assert_eq!(open.excluded, excluded);
}

#[test]
fn too_few_answers_close_nothing_and_name_the_refused() {
    let mut terms = terms("too few", 1, 3);
    terms.min_teachers = 2;
    let folder = RoundFolder::new(&terms);
    folder.answer(0, &[1], &folder.inbox("teacher-0.msg"));
    fs::write(folder.inbox("teacher-1.msg"), b"SPEEDAGG but cut").expect("inbox");
    let error = refused(folder.aggregate(), 3, "").to_string();
    assert_eq!(error, "1 of 3 teachers gave a usable answer, at least 2 must");

    // A valid answer comes, and a larger minimum is respected; a minimum below the round's is refused.
    fs::remove_file(folder.inbox("teacher-1.msg")).expect("removed");
    folder.answer(1, &[1], &folder.inbox("teacher-1.msg"));
    let with = |min_teachers| {
        let options = ServerOptions { min_teachers: Some(min_teachers), ..folder.options() };
        folder.aggregate_with(&options, &Silent)
    };
    for (minimum, words) in [
        (3, "2 of 3 teachers gave a usable answer, at least 3 must"),
        (1, "--min-teachers 1: "),
        (4, "--min-teachers 4: "),
    ] {
        assert!(says(with(minimum), words).to_string().starts_with(words));
    }
    let report = with(2).expect("enough");
    assert_eq!((report.counted, &report.missing[..]), (2, &[2][..]));
    assert_eq!(folder.labels(), "query,label\n0,1\n");

    // The sum is closed, so these are too late; another message of a counted teacher is a duplicate.
    folder.answer(2, &[0], &folder.inbox("teacher-2.msg"));
    folder.answer(0, &[0], &folder.inbox("teacher-0-again.msg"));
    let before = folder.bytes("result");
    let report = with(2).expect("done already");
    assert_eq!(reasons(&report), [(Some(0), "duplicate"), (Some(2), "late")]);
    assert_eq!((report.counted, report.resumed), (2, 1));
    assert_eq!(folder.bytes("result"), before);
}

#[test]
fn central_noise_is_drawn_by_the_server_and_decides() {
    // Noise so wide that it decides nearly every query, and votes that all agree. Binomial noise of deviation 10, with
    // a threshold.
    let coins = PrivacyNoise::of_coins(200, 2).expect("valid");
    for (noise, threshold) in [(noise(0.05), None), (coins, Some(8))] {
        let mut terms = terms("central", 8, 2);
        (terms.placement, terms.noise, terms.threshold) = (NoisePlacement::Central, noise, threshold);
        let folder = RoundFolder::new(&terms);
        for teacher in 0..2 {
            folder.answer(teacher, &[1; 8], &folder.inbox(&format!("teacher-{teacher}.msg")));
        }
        let report = folder.aggregate().expect("all");
        assert!(report.noise_by_server);
        assert_eq!(report.honest_ratio, 1.0);
        let seed = SEED.server_noise(folder.file.id());
        let drawn = match noise.mechanism() {
            // The heads of all coins, less half of the coins.
            Mechanism::Binomial { coins } => {
                let mut generator = NoiseGenerator::new(&seed).expect("a simulation");
                let share = BinomialShare::new(coins, 1).expect("one party");
                (0..24).map(|_| share.sample(&mut generator) - 200).collect()
            }
            _ => noise.share_of(1).expect("one party").draw(24, &seed).expect("a simulation").to_vec(),
        };
        let labels = |drawn: &[i64]| {
            let line = |(query, noise): (usize, &[i64])| {
                let counts = [noise[0], noise[1] + 2, noise[2]];
                let best = (0..3).rev().max_by_key(|&class| counts[class]).expect("three classes");
                let label = threshold.is_none_or(|least| counts[best] >= least).then(|| best.to_string());
                format!("{query},{}\n", label.unwrap_or_default())
            };
            "query,label\n".to_owned() + &drawn.chunks(3).enumerate().map(line).collect::<String>()
        };
        let expected = labels(&drawn);
        assert_eq!(folder.labels(), expected);
        assert_ne!(expected, labels(&[0; 24]), "the noise decided nothing");
        assert_eq!(expected.contains(",\n"), threshold.is_some(), "{expected}");
    }
}
