//! Signing keys of the parties.

use std::path::{Path, PathBuf};

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, KeypairBytes};
use ed25519_dalek::{Signer as _, SigningKey};
use serde::Serialize;
use speed_aggregation::protocol::Signature;
use speed_core::{Digest, Randomness, decode_text};
use zeroize::Zeroizing;

use crate::error::Refused;
use crate::file_kind::FileKind;
use crate::files::{Access, beside, decode_input, expect_absent, write_new};
use crate::party_key::PartyKey;
use crate::registry::{self, default_registry};
use crate::roster::{Party, Role};

/// The signing key of a party: an Ed25519 key (RFC 8032), stored as PKCS #8 in PEM (RFC 5958), as `openssl genpkey
/// -algorithm ed25519` writes it. Its holder can answer in the party's name. The key is neither `Clone` nor printable,
/// and is wiped from memory when dropped.
pub struct Identity(SigningKey);

impl Identity {
    fn generate() -> Result<Self, Refused> {
        Ok(Self(SigningKey::from_bytes(&*Randomness::OperatingSystem.key()?)))
    }

    #[cfg(test)]
    pub(crate) fn of_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&seed))
    }

    /// Reads the file of a signing key.
    ///
    /// # Errors
    /// If it cannot be read, or is not an Ed25519 key in PEM.
    pub fn read(path: &Path) -> Result<Self, Refused> {
        decode_input(path, FileKind::SIGNING_KEY, |bytes| {
            let key = decode_text(bytes).ok().and_then(|text| SigningKey::from_pkcs8_pem(text).ok());
            key.map(Self).ok_or(
                "not an Ed25519 signing key in PEM (PKCS #8), as `speed teacher keygen` and `openssl genpkey` write it",
            )
        })
    }

    /// Reads the signing key of a party with a role in a round. `role` returns it, and `is` describes a party without it.
    pub(crate) fn read_as<T>(
        path: &Path,
        role: impl FnOnce(PartyKey) -> Option<T>,
        is: &str,
    ) -> Result<(Self, T), Refused> {
        let identity = Self::read(path)?;
        match role(identity.key()) {
            Some(role) => Ok((identity, role)),
            None => Err(Refused::input(path)(format!("is the key of {}, which is {is}", identity.key()))),
        }
    }

    fn to_pem(&self) -> Zeroizing<String> {
        // Without the public half, as openssl writes it, because some programs do not read the newer form with both
        // halves.
        let pair = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
        pair.to_pkcs8_pem(LineEnding::LF).expect("a key of 32 bytes has a form in PEM")
    }

    /// Returns the key itself, for TLS.
    pub fn signing_key(&self) -> &SigningKey {
        &self.0
    }

    /// Returns the party's public key.
    pub fn key(&self) -> PartyKey {
        PartyKey(self.0.verifying_key())
    }

    /// Signs a digest. The caller is responsible for domain separation.
    pub fn sign(&self, digest: Digest) -> Signature {
        Signature::from_bytes(self.0.sign(digest.as_bytes()).to_bytes())
    }
}

speed_core::debug_as!(Identity, this => "Identity({})", this.key());

/// The report of a party that generated its signing key.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct IdentityReport {
    /// The party's name.
    pub name: String,
    /// The party's public key, in hexadecimal.
    pub key: String,
    /// Number of the party's teachers; 1 for a student or a server.
    pub teachers: u32,
    /// The classes that the card states, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<String>>,
    /// The signing key's file.
    pub signing_key: PathBuf,
    /// The card: the party's lines of a roster, with its name and public key.
    pub card: PathBuf,
    /// The empty registry of its rounds; a student has none.
    pub registry: Option<PathBuf>,
}

/// Generates the signing key of a teacher or a server in the file `out`, which only its owner can read. Writes the
/// party's card, which goes to the student and states the number of teachers if there are several, and the classes that it could diagnose if they
/// are given, beside it: `out` with the extension `toml`. A teacher or a server also gets its empty registry there.
///
/// # Errors
/// If the name is invalid, one of the files already exists, writing fails, or the operating system returns no
/// randomness.
pub fn generate_party(
    role: Role,
    name: &str,
    (teachers, classes): (u64, Option<&[String]>),
    out: &Path,
) -> Result<IdentityReport, Refused> {
    let card = beside(out, "toml");
    let registry = (role != Role::Student).then(|| default_registry(out));
    [out, &card].into_iter().chain(registry.as_deref()).try_for_each(expect_absent)?;
    let identity = Identity::generate()?;
    let party = Party::new(name, identity.key())?.with_teachers(teachers)?.with_classes(classes)?;
    // A key never exists without its registry.
    registry.as_deref().map_or(Ok(()), registry::create)?;
    write_new(out, identity.to_pem().as_bytes(), Access::Owner)?;
    write_new(&card, party.card(role).as_bytes(), Access::Shared)?;
    Ok(IdentityReport {
        name: name.to_owned(),
        key: identity.key().to_hex(),
        teachers: party.teachers(),
        classes: party.classes().map(<[String]>::to_vec),
        signing_key: out.to_path_buf(),
        card,
        registry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_openssl_wrote_is_read() {
        // The key pair of RFC 8032, section 7.1, test 1, as `openssl pkey` prints it.
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        let pem = "-----BEGIN PRIVATE KEY-----\n\
                   MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n\
                   -----END PRIVATE KEY-----\n";
        std::fs::write(file.path(), pem).expect("a file");
        let identity = Identity::read(file.path()).expect("a key");
        assert_eq!(identity.key().to_hex(), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
        assert_eq!(identity.to_pem().as_str(), pem);
        assert_eq!(format!("{identity:?}"), "Identity(d75a980182b10ab7)");
        std::fs::write(file.path(), &pem[..60]).expect("a file");
        let error = Identity::read(file.path()).expect_err("cut");
        assert_eq!(error.exit_code(), speed_core::ExitCode::Input, "{error}");
    }

    #[test]
    fn one_key_has_one_text_and_weak_ones_have_none() {
        let key = Identity::generate().expect("entropy").key();
        assert_eq!(key.to_hex().parse(), Ok(key));
        assert!(
            key.to_hex().to_uppercase().parse::<PartyKey>().is_err() || !key.to_hex().contains(char::is_alphabetic)
        );
        // The neutral element: every message has a valid signature under it.
        assert!(format!("01{}", "00".repeat(31)).parse::<PartyKey>().is_err());
        assert!("zz".parse::<PartyKey>().is_err());
    }
}
