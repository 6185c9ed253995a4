//! Opening an answer.

use tfhe::core_crypto::prelude::{CiphertextModulus, LweCiphertext, decrypt_lwe_ciphertext};

use super::SecretKey;
use crate::answer::{EncryptedAnswer, OpenError, WORDS};
use crate::range::Encoding;

impl SecretKey {
    /// Decrypts an answer: the winning class.
    ///
    /// # Errors
    /// If the answer was made under another key, or decrypts to a class that the round does not have.
    pub fn open(&self, answer: &EncryptedAnswer) -> Result<u8, OpenError> {
        if answer.key != self.id {
            return Err(OpenError::Key { expected: self.id, found: answer.key });
        }
        let class = Encoding::outcome(answer.words.chunks_exact(WORDS).map(|words| self.phase(words)));
        match u8::try_from(class) {
            Ok(label) if class < answer.classes => Ok(label),
            _ => Err(OpenError::Class { query: answer.query, class, classes: answer.classes }),
        }
    }

    /// The decrypted phase: code and error.
    fn phase(&self, words: &[u64]) -> u64 {
        let ciphertext = LweCiphertext::from_container(words, CiphertextModulus::new_native());
        decrypt_lwe_ciphertext(&self.big, &ciphertext).0
    }
}
