//! Public keys of peers, and their encoding in a handshake.

use std::fmt;

use rustls::CommonState;
use rustls::pki_types::SubjectPublicKeyInfoDer;

/// The bytes before the 32 bytes of an Ed25519 public key in a DER-encoded SubjectPublicKeyInfo (RFC 8410, section 4):
/// the encoding is unique.
const PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The Ed25519 public key that a peer has proved to hold. [`serve`](crate::network::transport::serve) adds the client's key to the
/// extensions of each request. Its text form is the first 16 of its 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PeerKey(pub [u8; 32]);

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0[..8]))
    }
}

speed_core::debug_as!(PeerKey, this => "PeerKey({this})");

/// Returns the public key that the peer of a connection has proved to hold, or `None` before the end of the handshake.
pub(crate) fn peer_key(connection: &CommonState) -> Option<[u8; 32]> {
    match connection.peer_certificates()? {
        [spki] => decode_spki(spki),
        _ => None,
    }
}

/// Returns the SubjectPublicKeyInfo of a key (RFC 8410, section 4).
pub(crate) fn encode_spki(key: &[u8; 32]) -> SubjectPublicKeyInfoDer<'static> {
    [PREFIX.as_slice(), key].concat().into()
}

/// Returns the key of a SubjectPublicKeyInfo, or `None` if it is not exactly that of an Ed25519 key.
pub(crate) fn decode_spki(spki: &[u8]) -> Option<[u8; 32]> {
    spki.strip_prefix(&PREFIX)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_form_and_no_other_is_read() {
        let spki = encode_spki(&[7; 32]);
        assert_eq!(spki.len(), 44);
        assert_eq!(decode_spki(&spki), Some([7; 32]));
        assert_eq!(decode_spki(&spki[..43]), None);
        assert_eq!(decode_spki(&[&spki[..], &[0]].concat()), None);
        for at in 0..PREFIX.len() {
            let mut other = spki.to_vec();
            other[at] ^= 1;
            assert_eq!(decode_spki(&other), None, "byte {at}");
        }
    }

    #[test]
    fn the_form_is_that_of_the_rfc() {
        // RFC 8410, section 10.1.
        let example = [
            0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00, 0x19, 0xbf, 0x44, 0x09, 0x69, 0x84,
            0xcd, 0xfe, 0x85, 0x41, 0xba, 0xc1, 0x67, 0xdc, 0x3b, 0x96, 0xc8, 0x50, 0x86, 0xaa, 0x30, 0xb6, 0xb6, 0xcb,
            0x0c, 0x5c, 0x38, 0xad, 0x70, 0x31, 0x66, 0xe1,
        ];
        let key = decode_spki(&example).expect("a key");
        assert_eq!(&*encode_spki(&key), &example);
        assert_eq!(PeerKey(key).to_string(), "19bf44096984cdfe");
        assert_eq!(format!("{:?}", PeerKey(key)), "PeerKey(19bf44096984cdfe)");
    }
}
