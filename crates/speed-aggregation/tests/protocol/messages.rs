//! Messages on the wire.

use speed_aggregation::error::DecodeError;
use speed_aggregation::{EncryptedAnswer, Message};

use crate::protocol::common::{SOURCE, message, protocol, sealed, with_field};

#[test]
fn a_message_has_its_fields_and_the_documented_size() {
    let original = message("wire", 1);
    let read = Message::from_bytes(&original.to_bytes()).expect("intact");
    assert_eq!((read.teacher(), read.queries(), read.classes(), read.round()), (1, 2, 3, original.round()));
    assert_eq!(read.key(), protocol().public_key().id());
    let sizes = [1, 100, 300].map(|queries| Message::size(queries, 10));
    assert_eq!(sizes, [16_568, 24_488, 104 + 2 * 8 * 2048 + 8 * 3000]);
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = message("damage", 0).to_bytes();
    for length in [0, 1, 8, 12, 27, 28, 60, 87, 88, bytes.len() - 17, bytes.len() - 1] {
        assert!(Message::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    let longer = [bytes.clone(), vec![0]].concat();
    assert!(matches!(Message::from_bytes(&longer), Err(DecodeError::Checksum)));
    // One flipped bit in every header byte, and in some of the other bytes.
    for position in (0..88).chain((88..bytes.len()).step_by(997)).chain([bytes.len() - 1]) {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1 << (position % 8);
        assert!(Message::from_bytes(&damaged).is_err(), "byte {position}");
    }
    assert!(matches!(EncryptedAnswer::from_bytes(&bytes), Err(DecodeError::Kind { expected: 2, found: 1 })));
    for version in [3, 5] {
        let mut other = bytes.clone();
        other[8] = version;
        let error = Message::from_bytes(&other).expect_err("another version");
        assert!(matches!(error, DecodeError::Version { expected: 4, found } if found == u16::from(version)), "{error}");
    }
}

#[test]
fn a_lying_header_with_a_correct_checksum_is_refused_without_allocating() {
    let bytes = message("header", 0).to_bytes();
    for (field, value) in
        [(76, u32::MAX), (80, u32::MAX), (80, 0), (80, 1 << 16), (80, 3), (84, 257), (84, 0), (84, 256)]
    {
        let error = Message::from_bytes(&with_field(&bytes, field, value)).expect_err("forged");
        assert!(matches!(error, DecodeError::Field { .. } | DecodeError::Length { .. }), "{field}: {error}");
    }
}

#[test]
fn errors_state_the_length_of_the_complete_message() {
    let bytes = message("length", 0).to_bytes();
    let expected = bytes.len();
    let longer = sealed([&bytes[..expected - 16], &[0; 24]].concat());
    let shorter = sealed(bytes[..expected - 8].to_vec());
    for (bytes, found) in [(longer, expected + 8), (shorter, expected - 8)] {
        let error = Message::from_bytes(&bytes).expect_err("of another length");
        assert_eq!(error, DecodeError::Length { expected, found });
    }
}

#[test]
fn secrets_are_not_printed() {
    let keys = protocol();
    assert!(format!("{:?}", keys.secret_key()).ends_with(", ..)"));
    assert_eq!(format!("{SOURCE:?}"), "Simulation(..)");
    for text in [format!("{:?}", message("debug", 0)), format!("{:?}", protocol())] {
        assert!(text.len() < 200, "{text}");
    }
}
