//! The kinds of envelopes.

/// The kind of an envelope's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Message = 1,
    Answer = 2,
    AnswerList = 3,
    ServerState = 4,
    #[cfg(feature = "student")]
    SecretKey = 5,
    PublicKey = 6,
    EvaluationKey = 7,
    Submission = 8,
    SignedResult = 9,
    #[cfg(feature = "proofs")]
    ProofKey = 10,
    RoundLog = 11,
    Receipt = 12,
    RevealedSeed = 13,
    Verification = 14,
    #[cfg(feature = "student")]
    StudentShare = 15,
    OpenerShare = 16,
    OpeningPart = 17,
}

/// Returns the name of a kind, with the usual name of its file.
pub(super) fn kind_name(kind: u16) -> Option<&'static str> {
    const NAMES: [&str; 17] = [
        "a message without a signature",
        "an answer to one query",
        "a list of answers without a signature",
        "a server's state",
        "a secret key (secret.key)",
        "a public key (public.key)",
        "an evaluation key (evaluation.key)",
        "a teacher's message",
        "a round's result",
        "a proof key (proof.key)",
        "a round's log",
        "a receipt",
        "a revealed seed",
        "a verification of a result",
        "a student's share of a secret key (student.share)",
        "an opener's share of a secret key (opener.share)",
        "an opener's part of a result",
    ];
    NAMES.get(usize::from(kind).checked_sub(1)?).copied()
}
