//! Admission of untrusted bytes to the sum: every check of a message, in one place.

use speed_aggregation::error::{DecodeError, ServerError};
use speed_aggregation::proofs::{ProofKey, Proofs};
use speed_aggregation::protocol::{Submission, TeacherStatus};
use speed_aggregation::{Message, PublicKey, Server};

use crate::refusal::{MessageFault, Rejection};
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
    pub(super) fn admit(&self, server: &mut Server, bytes: &[u8], is_proven: bool) -> Result<usize, Rejection> {
        let submission = self.authenticate(bytes)?;
        let message = submission.message();
        // Cheap checks first: whether the message counts at all, and only then its proofs.
        let by_server = |error| Rejection::by_server(message.teacher(), error);
        server.check(message).map_err(by_server)?;
        if !is_proven {
            self.check_proofs(&submission)?;
        }
        server.add_checked(message).map_err(by_server)?;
        Ok(message.teacher())
    }

    /// Checks that a message is for the round.
    pub(super) fn check_terms(&self, message: &Message) -> Result<(), Rejection> {
        let (file, teacher) = (self.file, message.teacher());
        let (shape, found) = (file.round().shape(), (message.queries(), message.classes()));
        let expected = (shape.queries(), shape.classes());
        let error = if message.key() != file.key() {
            ServerError::WrongKey { teacher, expected: file.key(), found: message.key() }
        } else if message.round() != file.id() {
            ServerError::WrongRound { teacher, expected: file.id(), found: message.round() }
        } else if expected != found {
            ServerError::Shape { teacher, expected, found }
        } else {
            return Ok(());
        };
        Err(Rejection::by_server(teacher, error))
    }

    /// Checks the proofs of a message, if the round requires them. Takes about a tenth of a core-second for a thousand
    /// values.
    pub(super) fn check_proofs(&self, submission: &Submission) -> Result<(), Rejection> {
        let message = submission.message();
        let Some(ProofChecks { public_key, proof_key }) = self.checks else {
            let teacher = message.teacher();
            return Err(Rejection::by_server(teacher, ServerError::Late { teacher }));
        };
        let Some(key) = proof_key else { return Ok(()) };
        let checked = Proofs::from_bytes(submission.proofs())
            .and_then(|proofs| key.verify(public_key, self.file.round(), message, &proofs));
        checked.map_err(|fault| Rejection {
            teacher: Some(message.teacher()),
            reason: TeacherStatus::Unproven.name(),
            fault: MessageFault::Proof(Box::new(fault)),
            status: Some(TeacherStatus::Unproven),
        })
    }

    /// Reads a message and checks that it is signed by the teacher that it names.
    pub(super) fn authenticate(&self, bytes: &[u8]) -> Result<Submission, Rejection> {
        let submission = Submission::from_bytes(bytes).map_err(|error| self.unreadable(bytes, error))?;
        let (teacher, teachers) = (submission.message().teacher(), self.file.roster().teachers());
        let Some(party) = teachers.get(teacher) else {
            let error = ServerError::UnknownTeacher { teacher, teachers: teachers.len() };
            return Err(Rejection { teacher: None, ..Rejection::by_server(teacher, error) });
        };
        let (digest, signature) = submission.signed();
        if !party.key().verifies(digest, signature) {
            let fault = MessageFault::Signature { teacher, name: party.name().to_owned() };
            return Err(Rejection { teacher: None, reason: "forged", fault, status: None });
        }
        Ok(submission)
    }

    /// Distinguishes files that were truncated or damaged in transit from files that never were messages.
    fn unreadable(&self, bytes: &[u8], error: DecodeError) -> Rejection {
        let least = Submission::min_size(self.file.round());
        let (reason, fault) = match error {
            // A file that ends within the magic bytes must be a prefix of them.
            _ if !Message::MAGIC.starts_with(&bytes[..bytes.len().min(Message::MAGIC.len())]) => {
                ("not-a-message", DecodeError::Magic.into())
            }
            DecodeError::Magic | DecodeError::Version { .. } | DecodeError::Kind { .. } => {
                ("not-a-message", error.into())
            }
            // The end of a truncated file is read as its checksum.
            DecodeError::Length { .. } | DecodeError::Checksum if bytes.len() < least => {
                ("truncated", MessageFault::Length { min: least, found: bytes.len() as u64 })
            }
            error => ("damaged", error.into()),
        };
        Rejection { teacher: None, reason, fault, status: None }
    }
}
