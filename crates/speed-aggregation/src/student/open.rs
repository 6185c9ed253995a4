//! Opening an answer.

use tfhe::core_crypto::prelude::{CiphertextModulus, LweCiphertext, decrypt_lwe_ciphertext};

use super::SecretKey;
use crate::answer::{EncryptedAnswer, OpenError, WORDS};
use crate::outcome::Outcome;
use crate::range::Encoding;

impl SecretKey {
    /// Decrypts an answer.
    ///
    /// # Errors
    /// If the answer was made under another key, or decrypts to an outcome that the round does not have.
    pub fn open(&self, answer: &EncryptedAnswer) -> Result<Outcome, OpenError> {
        if answer.key != self.id {
            return Err(OpenError::Key { expected: self.id, found: answer.key });
        }
        let code = Encoding::outcome(answer.words.chunks_exact(WORDS).map(|words| self.phase(words)));
        let (query, outcomes) = (answer.query, answer.outcomes.count());
        answer.outcomes.from_code(code).ok_or(OpenError::Outcome { query, code, outcomes })
    }

    /// The decrypted phase: code and error.
    fn phase(&self, words: &[u64]) -> u64 {
        let ciphertext = LweCiphertext::from_container(words, CiphertextModulus::new_native());
        decrypt_lwe_ciphertext(&self.big, &ciphertext).0
    }
}
