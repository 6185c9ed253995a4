//! The log of a round: the messages that the server received and the results it derived from them.

use sha2::{Digest as _, Sha256};
use speed_core::Digest;

use crate::codec::{Decode, DecodeError, Encode, FixedLength, Limits, Reader, Writer, in_envelope, in_order, of_byte};
use crate::getters::getters;
use crate::ids::RoundId;
use crate::signature::Signature;

/// An event in the log of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogEvent {
    /// A teacher's message was received and kept.
    Received = 0,
    /// A message with a teacher's valid signature was refused because of its content, or came too late.
    Refused = 1,
    /// A teacher's message was added to the sum.
    Counted = 2,
    /// The sum was closed; the digest is that of the server's state.
    Closed = 3,
    /// The result was computed.
    Result = 4,
    /// A second, different message with a teacher's signature came after one was kept, and was refused.
    Duplicate = 5,
}

impl LogEvent {
    /// All events, in the order of their bytes.
    pub(crate) const ALL: [Self; 6] =
        [Self::Received, Self::Refused, Self::Counted, Self::Closed, Self::Result, Self::Duplicate];
}

speed_core::named!(LogEvent:
    Received = "received",
    Refused = "refused",
    Counted = "counted",
    Closed = "closed",
    Result = "result",
    Duplicate = "duplicate",
);

/// An entry of the log of a round: 37 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    event: LogEvent,
    teacher: Option<usize>,
    digest: Digest,
}

impl LogEntry {
    /// The number of bytes of an entry.
    pub(crate) const LENGTH: usize = 1 + usize::LENGTH + Digest::LENGTH;
    /// The teacher number of an entry that concerns no teacher.
    const NO_TEACHER: u32 = u32::MAX;

    /// Creates an entry about a teacher's message, with the SHA-256 of all its bytes.
    pub fn of_message(event: LogEvent, teacher: usize, message: Digest) -> Self {
        Self { event, teacher: Some(teacher), digest: message }
    }

    /// Creates an entry about the round, with the SHA-256 of the state or the result.
    pub fn of_round(event: LogEvent, digest: Digest) -> Self {
        Self { event, teacher: None, digest }
    }

    getters! {
        /// Returns the event.
        event: LogEvent,
        /// Returns the teacher whose message the entry is about, if any.
        teacher: Option<usize>,
        /// Returns the SHA-256 of the message, the closed sum or the result.
        digest: Digest,
    }

    /// Returns the encoded bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = Writer::with_capacity(Self::LENGTH);
        self.encode(&mut writer);
        writer.into_bytes()
    }

    /// Reads an entry.
    ///
    /// # Errors
    /// If the bytes are not exactly one entry.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, 0);
        let entry = reader.read()?;
        reader.end()?;
        Ok(entry)
    }
}

impl Encode for LogEntry {
    fn encode(&self, writer: &mut Writer) {
        writer.bytes(&[self.event as u8]);
        let teacher = self.teacher.and_then(|teacher| u32::try_from(teacher).ok());
        writer.bytes(&teacher.unwrap_or(Self::NO_TEACHER).to_le_bytes());
        self.digest.encode(writer);
    }
}

impl Decode for LogEntry {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let [found] = reader.array()?;
        let event = of_byte(&LogEvent::ALL, "event", found)?;
        let teacher = u32::from_le_bytes(reader.array()?);
        let teacher = (teacher != Self::NO_TEACHER).then_some(teacher as usize);
        Ok(Self { event, teacher, digest: reader.read()? })
    }
}

/// The log of a round on the wire: every entry so far, signed by the server. The log is append-only: as in a hash
/// chain, the signed head commits the server to all earlier entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundLog {
    round: RoundId,
    entries: Vec<LogEntry>,
    signature: Signature,
}

impl RoundLog {
    /// The largest number of entries.
    pub const MAX_ENTRIES: usize = 1 << 18;
    /// The number of bytes of the longest log.
    pub const MAX_BYTES: usize = 256 + Self::MAX_ENTRIES * LogEntry::LENGTH;

    /// Signs a log.
    pub fn new(round: RoundId, entries: Vec<LogEntry>, sign: impl FnOnce(Digest) -> Signature) -> Self {
        let signature = sign(LogHead::after(round, &entries).to_sign());
        Self { round, entries, signature }
    }

    getters! {
        /// Returns the round.
        round: RoundId,
        /// Returns the entries. They are unauthenticated until the signature is checked.
        entries: &[LogEntry],
    }

    /// Returns the digest that the server signed, and its signature.
    pub fn signed(&self) -> (Digest, &Signature) {
        (LogHead::after(self.round, &self.entries).to_sign(), &self.signature)
    }

    /// Returns the head after the first `count` entries, or `None` if there are fewer.
    pub fn head(&self, count: usize) -> Option<LogHead> {
        self.entries.get(..count).map(|entries| LogHead::after(self.round, entries))
    }
}

impl Encode for RoundLog {
    fn encode(&self, writer: &mut Writer) {
        self.round.encode(writer);
        self.entries.len().encode(writer);
        self.entries.iter().for_each(|entry| entry.encode(writer));
        self.signature.encode(writer);
    }
}

impl Decode for RoundLog {
    fn decode(reader: &mut Reader<'_>, (): ()) -> Result<Self, DecodeError> {
        let round = reader.read()?;
        let count: usize = reader.read_with(Limits { field: "entries of the log", min: 0, max: Self::MAX_ENTRIES })?;
        // Reads all entries at once: the length is compared with the available bytes before anything is allocated.
        let bytes = reader.take(count * LogEntry::LENGTH)?;
        let entries = bytes.chunks_exact(LogEntry::LENGTH).map(LogEntry::from_bytes).collect::<Result<_, _>>()?;
        Ok(Self { round, entries, signature: reader.read()? })
    }
}

in_envelope!(RoundLog, RoundLog, "log");

/// The head of a log: the number of its entries, and the last link of their hash chain. The first link is the SHA-256
/// of "speed/log/v3" and the round id; each further link is the SHA-256 of the previous link and an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogHead {
    round: RoundId,
    entries: usize,
    link: Digest,
}

impl LogHead {
    /// Returns the head of a round's empty log.
    pub fn empty(round: RoundId) -> Self {
        let link = Sha256::new_with_prefix(b"speed/log/v3").chain_update(round.as_bytes());
        Self { round, entries: 0, link: Digest::from_bytes(link.finalize().into()) }
    }

    /// Returns the head after one more entry.
    #[must_use]
    pub fn then(self, entry: &LogEntry) -> Self {
        let link = Sha256::new_with_prefix(self.link.as_bytes()).chain_update(entry.to_bytes());
        Self { entries: self.entries + 1, link: Digest::from_bytes(link.finalize().into()), ..self }
    }

    fn after(round: RoundId, entries: &[LogEntry]) -> Self {
        entries.iter().fold(Self::empty(round), Self::then)
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the digest that the server signs: SHA-256 of "speed/log-head/v3", the round id, the number of entries (8 bytes) and the link.
    pub fn to_sign(&self) -> Digest {
        self.signed_as(b"speed/log-head/v3")
    }

    /// Returns the digest of a receipt. Its prefix differs from that of a log head, so the signature of a log is not a
    /// receipt for its last entry.
    fn received_to_sign(&self) -> Digest {
        self.signed_as(b"speed/receipt/v3")
    }

    fn signed_as(&self, what: &[u8]) -> Digest {
        let hash = Sha256::new_with_prefix(what).chain_update(self.round.as_bytes());
        let hash = hash.chain_update((self.entries as u64).to_le_bytes()).chain_update(self.link.as_bytes());
        Digest::from_bytes(hash.finalize().into())
    }

    fn then_received(self, teacher: usize, message: Digest) -> Self {
        self.then(&LogEntry::of_message(LogEvent::Received, teacher, message))
    }
}

/// A signed receipt: entry `entry` of the round's log, which follows the link `before`, records this message as
/// received. The receipt names neither teacher nor message: the verifier supplies both, and the signature is valid for
/// no others. A later log without that entry at that position proves that the server cheated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    round: RoundId,
    entry: usize,
    before: Digest,
    signature: Signature,
}

in_order!(Receipt:
    round,
    entry = Limits { field: "entry of the log", min: 0, max: RoundLog::MAX_ENTRIES - 1 },
    before,
    signature,
);

impl Receipt {
    /// The number of bytes of a receipt.
    pub const BYTES: usize = crate::codec::ENVELOPE + 2 * Digest::LENGTH + usize::LENGTH + Signature::LENGTH;

    /// Signs that a teacher's message (its SHA-256) was received directly after `before`.
    pub fn new(before: LogHead, teacher: usize, message: Digest, sign: impl FnOnce(Digest) -> Signature) -> Self {
        let signature = sign(before.then_received(teacher, message).received_to_sign());
        Self { round: before.round, entry: before.entries, before: before.link, signature }
    }

    /// Returns the head of the log directly after the message, if this is the receipt of this teacher's message.
    pub fn head(&self, teacher: usize, message: Digest) -> LogHead {
        let before = LogHead { round: self.round, entries: self.entry, link: self.before };
        before.then_received(teacher, message)
    }

    getters! {
        /// Returns the index of the message's entry in the log, from 0.
        entry: usize,
        /// Returns the round.
        round: RoundId,
    }

    /// Returns the digest that the server signed if this is the receipt of this teacher's message, and its signature.
    pub fn signed(&self, teacher: usize, message: Digest) -> (Digest, &Signature) {
        (self.head(teacher, message).received_to_sign(), &self.signature)
    }
}

in_envelope!(Receipt, Receipt, "receipt");

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> RoundLog {
        let entry = |event, teacher| LogEntry::of_message(event, teacher, Digest::from_bytes([teacher as u8; 32]));
        let entries = vec![
            entry(LogEvent::Received, 3),
            entry(LogEvent::Refused, 1),
            entry(LogEvent::Counted, 3),
            LogEntry::of_round(LogEvent::Closed, Digest::of("sum")),
        ];
        RoundLog::new(RoundId::new(Digest::of("round")), entries, sign)
    }

    fn sign(digest: Digest) -> Signature {
        Signature::from_bytes([*digest.as_bytes(); 2].concat().try_into().expect("64 bytes"))
    }

    #[test]
    fn a_receipt_is_bound_to_one_message_of_one_teacher() {
        let log = log();
        let (teacher, message) = (3, Digest::from_bytes([3; 32]));
        let receipt = Receipt::new(log.head(0).expect("none"), teacher, message, sign);
        let holds = |receipt: &Receipt, teacher, message| {
            let (digest, signature) = receipt.signed(teacher, message);
            *signature == sign(digest)
        };
        assert!(holds(&receipt, teacher, message));
        assert_eq!(Some(receipt.head(teacher, message)), log.head(1));
        assert!(!holds(&receipt, 2, message) && !holds(&receipt, teacher, Digest::of("another")));
        // Neither the signature of a log nor the position and link of another receipt make a valid receipt.
        let of_log =
            Receipt { signature: *RoundLog::new(log.round, log.entries[..1].to_vec(), sign).signed().1, ..receipt };
        let elsewhere = Receipt { entry: 1, ..receipt };
        let after = Receipt { before: Digest::of("link"), ..receipt };
        for forged in [of_log, elsewhere, after] {
            assert!(!holds(&forged, teacher, message), "{forged:?}");
        }
    }

    #[test]
    fn a_log_head_is_bound_to_its_entries() {
        let log = log();
        assert_eq!(log.head(4).map(|head| head.to_sign()), Some(log.signed().0));
        assert_eq!(log.head(5), None);
        let mut heads: Vec<Digest> = (0..=4).filter_map(|count| Some(log.head(count)?.to_sign())).collect();
        let entry = |teacher| LogEntry::of_message(LogEvent::Received, teacher, Digest::from_bytes([3; 32]));
        let round = RoundId::new(Digest::of("round"));
        heads.push(LogHead::empty(round).then(&entry(2)).to_sign());
        heads.push(LogHead::empty(RoundId::new(Digest::of("another"))).to_sign());
        assert_eq!(heads[1], LogHead::empty(round).then(&entry(3)).to_sign());
        for (index, head) in heads.iter().enumerate() {
            assert!(!heads[..index].contains(head), "head {index}");
        }
    }
}
