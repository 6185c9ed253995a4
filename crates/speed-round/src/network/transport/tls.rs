//! TLS of server and clients: version 1.3 (RFC 8446), raw Ed25519 public keys on both sides (RFC 7250, RFC 8410),
//! X25519, no resumption.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use ed25519_dalek::pkcs8::EncodePrivateKey as _;
use ed25519_dalek::{SigningKey, VerifyingKey};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    PeerMisbehaved, ProtocolVersion, ServerConfig, SignatureScheme,
};
use speed_core::ExitCode;

use crate::Refused;

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
fn encode_spki(key: &[u8; 32]) -> SubjectPublicKeyInfoDer<'static> {
    [PREFIX.as_slice(), key].concat().into()
}

/// Returns the key of a SubjectPublicKeyInfo, or `None` if it is not exactly that of an Ed25519 key.
fn decode_spki(spki: &[u8]) -> Option<[u8; 32]> {
    spki.strip_prefix(&PREFIX)?.try_into().ok()
}

/// The server's check: the client has one of these keys.
#[derive(Debug)]
struct KnownClients {
    keys: HashSet<[u8; 32]>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// The client's check: the server has this key.
#[derive(Debug)]
struct OneServer {
    key: [u8; 32],
    algorithms: WebPkiSupportedAlgorithms,
}

/// A server other than the expected one.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("expected the key {expected}, found {found}")]
pub(crate) struct OtherServer {
    expected: PeerKey,
    found: PeerKey,
}

/// Returns the key of a peer's certificate message, which contains exactly one SubjectPublicKeyInfo (RFC 8446, section
/// 4.4.2).
fn only_key(first: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<[u8; 32], Error> {
    let key = if others.is_empty() { decode_spki(first) } else { None };
    key.ok_or(Error::InvalidCertificate(CertificateError::BadEncoding))
}

/// Checks that the peer holds the private key of `spki`, by its Ed25519 signature of the handshake (RFC 8446, section
/// 4.4.3).
fn check_signature(
    message: &[u8],
    spki: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    if signature.scheme != SignatureScheme::ED25519 {
        return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
    }
    verify_tls13_signature_with_raw_key(message, &SubjectPublicKeyInfoDer::from(&**spki), signature, algorithms)
}

/// The methods that the checks of both sides share: raw public keys, and Ed25519 signatures of TLS 1.3 only.
macro_rules! raw_ed25519_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &CertificateDer<'_>,
            _signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("expected TLS 1.3, found a signature of TLS 1.2".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            check_signature(message, cert, signature, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ClientCertVerifier for KnownClients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let key = only_key(end_entity, intermediates)?;
        if !self.keys.contains(&key) {
            // The client receives the alert "access_denied" (RFC 8446, section 6.2), by which it distinguishes this
            // refusal from others.
            tracing::debug!(key = %PeerKey(key), "refused a client that is not on the roster");
            return Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure));
        }
        Ok(ClientCertVerified::assertion())
    }

    raw_ed25519_keys!();
}

impl ServerCertVerifier for OneServer {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = only_key(end_entity, intermediates)?;
        if found != self.key {
            let other = OtherServer { expected: PeerKey(self.key), found: PeerKey(found) };
            return Err(Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(other)))));
        }
        Ok(ServerCertVerified::assertion())
    }

    raw_ed25519_keys!();
}

/// The application protocol negotiated in the handshake (RFC 7301, section 6).
const ALPN: &[u8] = b"http/1.1";

/// Returns the error of keys that do not make a configuration.
fn refused(fault: impl std::fmt::Display) -> Refused {
    Refused::new(ExitCode::Computation, format_args!("cannot use the keys for TLS: {fault}"))
}

impl From<rustls::Error> for Refused {
    fn from(error: rustls::Error) -> Self {
        refused(format_args!("the TLS library refused the signing key or the settings: {error}"))
    }
}

/// Returns a server's TLS configuration: it proves that it holds `identity`, and accepts only clients that prove that
/// they hold one of the keys `clients`.
///
/// The TLS library keeps a copy of the signing key as long as the configuration exists, and does not wipe it from
/// memory.
///
/// # Errors
/// If one of `clients` is not an Ed25519 public key or is weak, or the library refuses the signing key.
pub fn server_config(identity: &SigningKey, clients: &HashSet<[u8; 32]>) -> Result<ServerConfig, Refused> {
    clients.iter().try_for_each(check_strength)?;
    let provider = provider();
    let verifier = KnownClients { keys: clients.clone(), algorithms: provider.signature_verification_algorithms };
    let own_key = AlwaysResolvesServerRawPublicKeys::new(certified_key(identity)?);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(own_key));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // Every connection proves both keys anew, because a session ticket would outlive a change of the roster.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(config)
}

/// Returns a client's TLS configuration: it proves that it holds `identity`, and accepts only the server that proves
/// that it holds the key `server`. Names and addresses are not checked, and no name is sent.
///
/// The TLS library keeps a copy of the signing key as long as the configuration exists, and does not wipe it from
/// memory.
///
/// # Errors
/// If `server` is not an Ed25519 public key or is weak, or the library refuses the signing key.
pub fn client_config(identity: &SigningKey, server: [u8; 32]) -> Result<ClientConfig, Refused> {
    check_strength(&server)?;
    let provider = provider();
    let verifier = OneServer { key: server, algorithms: provider.signature_verification_algorithms };
    let own_key = AlwaysResolvesClientRawPublicKeys::new(certified_key(identity)?);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_client_cert_resolver(Arc::new(own_key));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    config.enable_sni = false;
    Ok(config)
}

/// Returns ring's algorithms without those of TLS 1.2, which another user of rustls in the same program may have
/// compiled in, and with a single key exchange: both sides are this crate, so a choice would only expose more code to
/// strangers.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| suite.version().version == ProtocolVersion::TLSv1_3);
    provider.kx_groups = vec![ring::kx_group::X25519];
    Arc::new(provider)
}

/// Refuses bytes that are not an Ed25519 public key, and keys of small order, under which a signature may be valid for
/// any message (RFC 8032, section 8.8, leaves the check to the application).
fn check_strength(key: &[u8; 32]) -> Result<(), Refused> {
    let is_strong = VerifyingKey::from_bytes(key).is_ok_and(|key| !key.is_weak());
    if is_strong {
        return Ok(());
    }
    let found = PeerKey(*key);
    Err(refused(format!("expected an Ed25519 public key of a peer, found {found}, which is invalid or weak")))
}

/// Returns the party's own key for the library. The PKCS #8 document (RFC 8410, section 7) is wiped on drop.
fn certified_key(identity: &SigningKey) -> Result<Arc<CertifiedKey>, Refused> {
    let document = identity.to_pkcs8_der().map_err(|_| refused("the signing key cannot be encoded as PKCS #8"))?;
    let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(document.as_bytes()))?;
    let spki = encode_spki(identity.verifying_key().as_bytes());
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(spki.to_vec())], key)))
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

    #[test]
    fn only_version_1_3_and_ed25519_are_left() {
        let provider = provider();
        assert!(!provider.cipher_suites.is_empty());
        assert!(provider.cipher_suites.iter().all(|suite| suite.tls13().is_some()));
        let identity = SigningKey::from_bytes(&[1; 32]);
        let server = server_config(&identity, &HashSet::new()).expect("a configuration");
        assert_eq!((server.send_tls13_tickets, server.max_early_data_size), (0, 0));
        assert!(!server.ticketer.enabled() && !server.session_storage.can_cache());
        let client = client_config(&identity, *identity.verifying_key().as_bytes()).expect("a configuration");
        assert!(!client.enable_sni && !client.enable_early_data);
    }

    #[test]
    fn a_weak_key_of_a_peer_is_refused() {
        let identity = SigningKey::from_bytes(&[1; 32]);
        let mut neutral = [0; 32];
        neutral[0] = 1;
        let of_client = client_config(&identity, neutral).expect_err("weak");
        let of_server = server_config(&identity, &HashSet::from([neutral])).expect_err("weak");
        assert!(of_client.to_string().contains("invalid or weak") && of_client == of_server, "{of_client}");
    }
}
