//! Checks of a peer's raw public key during the handshake (RFC 7250; RFC 8446, section 4.4).

use std::collections::HashSet;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerMisbehaved, SignatureScheme,
};

use crate::network::transport::key::{PeerKey, decode_spki};

/// The server's check: the client has one of these keys.
#[derive(Debug)]
pub(crate) struct KnownClients {
    pub(crate) keys: HashSet<[u8; 32]>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

/// The client's check: the server has this key.
#[derive(Debug)]
pub(crate) struct OneServer {
    pub(crate) key: [u8; 32],
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
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
