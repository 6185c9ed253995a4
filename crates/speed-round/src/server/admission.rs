//! Admission of untrusted bytes to the sum: every check of a message, in one place.

use speed_aggregation::error::{DecodeError, ServerError};
use speed_aggregation::proofs::{ProofKey, Proofs};
use speed_aggregation::protocol::{Submission, TeacherStatus};
use speed_aggregation::{Message, PublicKey, Server};

use crate::refusal::Refusal;
use crate::round_file::RoundFile;

/// The checks of messages for a round. In order: an envelope of this version and kind; its checksum; the limits of its
/// fields; a teacher of the round; that teacher's signature over all of it; the round's key, id and shape; that it is
/// the teacher's first message and that the sum is open; and the proofs if the round requires them.
#[derive(Clone, Copy)]
pub(super) struct Admission<'a> {
    pub(super) file: &'a RoundFile,
    /// `None` once the result exists: then no message passes.
    pub(super) checks: Option<&'a ProofChecks>,
}

/// The keys with which proofs are checked.
pub(super) struct ProofChecks {
    /// The round's.
    pub(super) public_key: PublicKey,
    /// Present if the round requires proofs.
    pub(super) proof_key: Option<ProofKey>,
}

impl Admission<'_> {
    /// Reads a message, adds it to the sum, and returns its teacher. If `is_proven`, its proofs were checked before the
    /// registry stored it.
    pub(super) fn admit(&self, server: &mut Server, bytes: &[u8], is_proven: bool) -> Result<usize, Refusal> {
        let submission = self.authenticate(bytes)?;
        let message = submission.message();
        // Cheap checks first: whether the message counts at all, and only then its proofs.
        let by_server = |error| Refusal::by_server(message.teacher(), error);
        server.check(message).map_err(by_server)?;
        if !is_proven {
            self.check_proofs(&submission)?;
        }
        server.add_checked(message).map_err(by_server)?;
        Ok(message.teacher())
    }

    /// Checks that a message is for the round.
    pub(super) fn check_terms(&self, message: &Message) -> Result<(), Refusal> {
        let ids = (self.file.key(), self.file.id());
        let checked = message.check_terms(ids, self.file.round());
        checked.map_err(|error| Refusal::by_server(message.teacher(), error))
    }

    /// Checks the proofs of a message, if the round requires them. Takes about a tenth of a core-second for a thousand
    /// values.
    pub(super) fn check_proofs(&self, submission: &Submission) -> Result<(), Refusal> {
        let message = submission.message();
        let Some(ProofChecks { public_key, proof_key }) = self.checks else {
            let teacher = message.teacher();
            return Err(Refusal::by_server(teacher, ServerError::Late { teacher }));
        };
        let Some(key) = proof_key else { return Ok(()) };
        let checked = Proofs::from_bytes(submission.proofs())
            .and_then(|proofs| key.verify(public_key, self.file.round(), message, &proofs));
        checked.map_err(|fault| Refusal::of_status(message.teacher(), TeacherStatus::Unproven, fault))
    }

    /// Reads a message and checks that it is signed by the teacher that it names.
    pub(super) fn authenticate(&self, bytes: &[u8]) -> Result<Submission, Refusal> {
        let submission = Submission::from_bytes(bytes).map_err(|error| self.unreadable(bytes, error))?;
        let (teacher, teachers) = (submission.message().teacher(), self.file.roster().teachers());
        let Some(party) = teachers.get(teacher) else {
            let error = ServerError::UnknownTeacher { teacher, teachers: teachers.len() };
            return Err(Refusal { teacher: None, ..Refusal::by_server(teacher, error) });
        };
        let (digest, signature) = submission.signed();
        if !party.key().verifies(digest, signature) {
            let name = party.name();
            let message =
                format!("claims to come from teacher {teacher}, {name:?}, but does not have that party's signature");
            return Err(Refusal::of_stranger("forged", message));
        }
        Ok(submission)
    }

    /// Distinguishes files that were truncated or damaged in transit from files that never were messages.
    fn unreadable(&self, bytes: &[u8], error: DecodeError) -> Refusal {
        let least = Submission::min_size(self.file.round());
        match error {
            // A file that ends within the magic bytes must be a prefix of them.
            _ if !Message::MAGIC.starts_with(&bytes[..bytes.len().min(Message::MAGIC.len())]) => {
                Refusal::of_stranger("not-a-message", DecodeError::Magic)
            }
            DecodeError::Magic | DecodeError::Version { .. } | DecodeError::Kind { .. } => {
                Refusal::of_stranger("not-a-message", error)
            }
            // The end of a truncated file is read as its checksum.
            DecodeError::Length { .. } | DecodeError::Checksum if bytes.len() < least => {
                let found = bytes.len();
                let message = format!("{found} bytes, a message of this round has at least {least}");
                Refusal::of_stranger("truncated", message)
            }
            error => Refusal::of_stranger("damaged", error),
        }
    }
}
