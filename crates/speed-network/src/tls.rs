//! Mutual TLS 1.3 with the keys of a round's parties.

use std::collections::HashSet;
use std::sync::Arc;

use speed_roles::{Identity, PartyKey};
use tokio_rustls::rustls::client::AlwaysResolvesClientRawPublicKeys;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key,
};
use tokio_rustls::rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use tokio_rustls::rustls::server::AlwaysResolvesServerRawPublicKeys;
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, CommonState, DigitallySignedStruct, DistinguishedName, Error, ServerConfig,
    SignatureScheme,
};

/// What precedes the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410, section 4).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Returns a server's side: it shows its own key, and lets in only clients that show one of these.
///
/// # Errors
/// If the signing key cannot be used.
pub(crate) fn server_config(identity: &Identity, clients: HashSet<[u8; 32]>) -> Result<Arc<ServerConfig>, Error> {
    let verifier = Arc::new(Parties::new(clients));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(verifier)
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(own_key(identity)?)));
    config.alpn_protocols = vec![HTTP.to_vec()];
    // Every connection proves its key anew.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Returns a client's side: it shows its own key, and talks only to a server that shows this one.
///
/// # Errors
/// If the signing key cannot be used.
pub(crate) fn client_config(identity: &Identity, server: PartyKey) -> Result<Arc<ClientConfig>, Error> {
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Parties::new(HashSet::from([*server.as_bytes()]))))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(own_key(identity)?)));
    config.alpn_protocols = vec![HTTP.to_vec()];
    config.resumption = tokio_rustls::rustls::client::Resumption::disabled();
    // The key says who the server is; its name says nothing.
    config.enable_sni = false;
    Ok(Arc::new(config))
}

/// The protocol inside of TLS.
const HTTP: &[u8] = b"http/1.1";

/// Returns the key that the other side of a finished handshake has shown.
pub(crate) fn peer(connection: &CommonState) -> Option<PartyKey> {
    let [key] = connection.peer_certificates()? else { return None };
    PartyKey::from_bytes(&raw_key(key)?)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn own_key(identity: &Identity) -> Result<Arc<CertifiedKey>, Error> {
    let pkcs8 = identity.to_pkcs8();
    let key = ring::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(pkcs8.as_slice()))?;
    let spki = [SPKI.as_slice(), identity.key().as_bytes()].concat();
    Ok(Arc::new(CertifiedKey::new(vec![CertificateDer::from(spki)], key)))
}

fn raw_key(spki: &CertificateDer<'_>) -> Option<[u8; 32]> {
    spki.strip_prefix(SPKI.as_slice())?.try_into().ok()
}

/// The check that the other side has one of these keys. Raw public keys (RFC 7250) come in the place of certificates.
#[derive(Debug)]
struct Parties {
    keys: HashSet<[u8; 32]>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Parties {
    fn new(keys: HashSet<[u8; 32]>) -> Self {
        Self { keys, algorithms: ring::default_provider().signature_verification_algorithms }
    }

    fn check(&self, key: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Error> {
        let is_known = others.is_empty() && raw_key(key).is_some_and(|key| self.keys.contains(&key));
        if is_known { Ok(()) } else { Err(CertificateError::ApplicationVerificationFailure.into()) }
    }

    fn check_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }
}

/// No version of TLS before 1.3 is offered.
fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(Error::General("TLS 1.2 is not offered".into()))
}

impl ServerCertVerifier for Parties {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(key, others).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Parties {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(key, others).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
