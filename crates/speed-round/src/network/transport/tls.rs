//! TLS of server and clients: version 1.3 (RFC 8446), raw Ed25519 public keys on both sides (RFC 7250, RFC 8410),
//! X25519, no resumption.

use std::collections::HashSet;
use std::sync::Arc;

use ed25519_dalek::pkcs8::EncodePrivateKey as _;
use ed25519_dalek::{SigningKey, VerifyingKey};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, ProtocolVersion, ServerConfig};

use crate::network::transport::key::{PeerKey, encode_spki};
use crate::network::transport::verifier::{KnownClients, OneServer};

/// The application protocol negotiated in the handshake (RFC 7301, section 6).
const ALPN: &[u8] = b"http/1.1";

/// The reason why keys do not make a configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A peer's key that is not a point of the curve, or is a weak one, under which anyone can sign.
    #[error("expected an Ed25519 public key of a peer, found {found}, which is invalid or weak")]
    PeerKey {
        /// The 32 bytes.
        found: PeerKey,
    },
    /// A signing key that could not be encoded for the library.
    #[error("the signing key cannot be encoded as PKCS #8")]
    SigningKey,
    /// A refusal of the TLS library.
    #[error("the TLS library refused the signing key or the settings: {0}")]
    Library(#[from] rustls::Error),
}

/// Returns a server's TLS configuration: it proves that it holds `identity`, and accepts only clients that prove that
/// they hold one of the keys `clients`.
///
/// The TLS library keeps a copy of the signing key as long as the configuration exists, and does not wipe it from
/// memory.
///
/// # Errors
/// If one of `clients` is not an Ed25519 public key or is weak, or the library refuses the signing key.
pub fn server_config(identity: &SigningKey, clients: &HashSet<[u8; 32]>) -> Result<ServerConfig, TlsError> {
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
pub fn client_config(identity: &SigningKey, server: [u8; 32]) -> Result<ClientConfig, TlsError> {
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
fn check_strength(key: &[u8; 32]) -> Result<(), TlsError> {
    let is_strong = VerifyingKey::from_bytes(key).is_ok_and(|key| !key.is_weak());
    if is_strong { Ok(()) } else { Err(TlsError::PeerKey { found: PeerKey(*key) }) }
}

/// Returns the party's own key for the library. The PKCS #8 document (RFC 8410, section 7) is wiped on drop.
fn certified_key(identity: &SigningKey) -> Result<Arc<CertifiedKey>, TlsError> {
    let document = identity.to_pkcs8_der().map_err(|_| TlsError::SigningKey)?;
    let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(document.as_bytes()))?;
    let spki = encode_spki(identity.verifying_key().as_bytes());
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(spki.to_vec())], key)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(client_config(&identity, neutral).err(), Some(TlsError::PeerKey { found: PeerKey(neutral) }));
        let refused = server_config(&identity, &HashSet::from([neutral])).err();
        assert_eq!(refused, Some(TlsError::PeerKey { found: PeerKey(neutral) }));
    }
}
