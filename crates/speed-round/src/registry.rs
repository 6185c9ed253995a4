//! The persistent memory of a party over all its rounds.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, ReadOnlyTable, ReadableDatabase as _, ReadableTable as _, TableDefinition,
    TableError, WriteTransaction,
};
use speed_aggregation::EncryptedAnswer;
use speed_aggregation::keys::KeyId;
use speed_aggregation::log::{LogEntry, LogEvent};
use speed_aggregation::protocol::{AnswerSeed, ExactCircuit, RoundId, TeacherStatus};
use speed_core::Digest;

use crate::error::Refused;
use crate::files::{NO_FILE, OTHER_CONTENT, beside, folder_of, sync_folder, temporary};

type Key = &'static [u8; 32];
type OfRound = TableDefinition<'static, Key, &'static [u8]>;
type InRound = TableDefinition<'static, (Key, u32), &'static [u8]>;

/// A teacher's messages, by its index.
const ANSWERED: InRound = TableDefinition::new("answered");
/// A server's messages of a round, by teacher.
const RECEIVED: InRound = TableDefinition::new("received");
/// The statuses of teachers whose messages a server refused, by teacher.
const REFUSED: InRound = TableDefinition::new("refused");
/// When a server first accepted messages of a round, in seconds since 1970.
const OPENED: OfRound = TableDefinition::new("opened");
/// A server's closed sums, until their answers are done.
const SUMS: OfRound = TableDefinition::new("sums");
/// The circuits and the seeds of a server's answers to its sums.
const SEEDS: OfRound = TableDefinition::new("seeds");
/// A server's answers to the stored sum, by query.
const ANSWERS: InRound = TableDefinition::new("answers");
/// A server's results.
const RESULTS: OfRound = TableDefinition::new("results");
/// Rounds whose student has the result.
const FETCHED: OfRound = TableDefinition::new("fetched");
/// An opener's parts of results.
const PARTS: OfRound = TableDefinition::new("parts");
/// The rounds that a teacher answered, by key, and the bits of the key that the labels of each may reveal.
const KEY_ROUNDS: TableDefinition<(Key, Key), f64> = TableDefinition::new("key_rounds");
/// A server's logs, by entry.
const LOG: InRound = TableDefinition::new("log");

/// The registry of a party: an embedded database of the rounds that it took part in, so that nothing is released twice
/// in different versions. A teacher keeps the message of every round, and an opener its part of the result. A server keeps the messages that came over a
/// network, the closed sum, its answers, the result and the log. Only one program at a time may open it. Everything in
/// it is encrypted under students' keys. With central noise the sum must still stay with the server, because the server
/// knows the noise.
#[derive(Debug)]
pub struct RoundRegistry {
    path: PathBuf,
    database: Database,
    changes: AtomicU64,
}

/// Returns the default registry of the party with this signing key: the key's name with the extension `registry`.
pub fn default_registry(signing_key: &Path) -> PathBuf {
    beside(signing_key, "registry")
}

impl RoundRegistry {
    /// Opens a registry. A missing one is created if it is `new`, and else refused: a key that answered elsewhere would give a second
    /// answer with other noise. Checks all of it against its checksums.
    ///
    /// # Errors
    /// If it is missing, another program has it open, it is damaged, or reading or writing fails.
    pub fn open(path: &Path, new: bool) -> Result<Self, Refused> {
        if std::fs::symlink_metadata(path).is_err() {
            if !new {
                return Err(Refused::results(
                    path,
                    "there is no registry here, so the answers of this key are unknown: a second answer to a round would have other noise. `keygen` made one beside the key: \
                     give it with --registry, or add --new-registry to `answer`, `aggregate` or `serve` for a key that never answered",
                ));
            }
            create(path)?;
        }
        let meta = std::fs::metadata(path).map_err(Refused::io("open", path))?;
        if !meta.is_file() {
            return Err(Refused::results(path, NO_FILE));
        }
        if meta.len() == 0 {
            return Err(Refused::results(path, OTHER_CONTENT));
        }
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(Refused::io("open", path))?;
        let database = database(file).map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => {
                Refused::results(path, "another program uses this registry: wait until it ends")
            }
            error => Refused::registry(path)(error),
        })?;
        Ok(Self { path: path.to_path_buf(), database, changes: AtomicU64::new(0) })
    }

    /// Returns the registry's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a teacher's message to a round, if it gave one.
    pub(crate) fn answered(&self, round: RoundId, teacher: u32) -> Result<Option<Vec<u8>>, Refused> {
        self.read(ANSWERED, None, |table| {
            Ok(table.get((round.as_bytes(), teacher))?.map(|bytes| bytes.value().to_vec()))
        })
    }

    /// Keeps a teacher's message and, in a real round, the round's key and the bits of it that the labels may reveal.
    pub(crate) fn keep_answered(
        &self,
        round: RoundId,
        teacher: u32,
        key: Option<(KeyId, f64)>,
        message: &[u8],
    ) -> Result<(), Refused> {
        self.write(|transaction| {
            transaction.open_table(ANSWERED)?.insert((round.as_bytes(), teacher), message)?;
            if let Some((key, bits)) = key {
                transaction.open_table(KEY_ROUNDS)?.insert((key.as_bytes(), round.as_bytes()), bits)?;
            }
            Ok(())
        })
    }

    /// Returns an opener's part of the result of a round, if it made one.
    pub(crate) fn part(&self, round: RoundId) -> Result<Option<Vec<u8>>, Refused> {
        self.get(PARTS, round)
    }

    /// Keeps an opener's part.
    pub(crate) fn keep_part(&self, round: RoundId, part: &[u8]) -> Result<(), Refused> {
        self.put(PARTS, round, part)
    }

    /// Returns another round of this key that a teacher answered, and the bits of the key that the labels of all such rounds may reveal.
    pub(crate) fn other_round(&self, key: KeyId, round: RoundId) -> Result<Option<(RoundId, f64)>, Refused> {
        self.read(KEY_ROUNDS, None, |table| {
            let (first, last) = ([0; 32], [255; 32]);
            let mut found = None;
            for entry in table.range((key.as_bytes(), &first)..=(key.as_bytes(), &last))? {
                let (at, bits) = entry?;
                let other = RoundId::from_bytes(*at.value().1);
                if other != round {
                    let (first, sum) = found.unwrap_or((other, 0.0));
                    found = Some((first, sum + bits.value()));
                }
            }
            Ok(found)
        })
    }

    /// Returns when messages of a round were first accepted, in seconds since 1970. If there is no such time yet,
    /// stores and returns `now`.
    pub(crate) fn opened(&self, round: RoundId, now: u64) -> Result<u64, Refused> {
        if let Some(bytes) = self.get(OPENED, round)?
            && let Ok(bytes) = bytes.try_into()
        {
            return Ok(u64::from_le_bytes(bytes));
        }
        self.put(OPENED, round, &now.to_le_bytes())?;
        Ok(now)
    }

    /// Keeps messages that came over a network, and statuses of teachers whose messages were refused, with the log
    /// entries about both. Replaces the stored message or status of the same teacher.
    pub(crate) fn receive(
        &self,
        round: RoundId,
        messages: &[(u32, &[u8])],
        refused: &[(u32, TeacherStatus)],
        entries: &[LogEntry],
    ) -> Result<(), Refused> {
        self.write_log(|transaction| {
            let mut table = transaction.open_table(RECEIVED)?;
            for (teacher, message) in messages {
                table.insert((round.as_bytes(), *teacher), *message)?;
            }
            let mut table = transaction.open_table(REFUSED)?;
            for (teacher, status) in refused {
                table.insert((round.as_bytes(), *teacher), [*status as u8].as_slice())?;
            }
            append(transaction, round, entries)
        })
    }

    /// Passes the messages that came over a network to `take`, one at a time, in the order of their teachers.
    pub(crate) fn for_each_received(&self, round: RoundId, take: &mut dyn FnMut(u32, &[u8])) -> Result<(), Refused> {
        self.for_each(RECEIVED, round, take)
    }

    /// Returns the statuses of teachers whose messages were refused when they came over a network.
    pub(crate) fn refused(&self, round: RoundId) -> Result<Vec<(u32, TeacherStatus)>, Refused> {
        let mut refused = Vec::new();
        self.for_each(REFUSED, round, &mut |teacher, status| {
            let status = status.first().and_then(|&status| TeacherStatus::ALL.get(usize::from(status)));
            refused.extend(status.map(|status| (teacher, *status)));
        })?;
        Ok(refused)
    }

    /// Returns the closed sum of a round, if its answers are not all done.
    pub(crate) fn sum(&self, round: RoundId) -> Result<Option<Vec<u8>>, Refused> {
        self.get(SUMS, round)
    }

    /// Keeps the closed sum, the circuit and the seed of its answers, and the log entries about it. After this, its noise
    /// is not drawn again and further messages are late.
    pub(crate) fn close(
        &self,
        round: RoundId,
        (sum, (circuit, seed)): (&[u8], (ExactCircuit, &AnswerSeed)),
        entries: &[LogEntry],
    ) -> Result<(), Refused> {
        let mut stored = zeroize::Zeroizing::new([circuit.code() as u8; 33]);
        stored[1..].copy_from_slice(seed.as_bytes());
        self.write_log(|transaction| {
            transaction.open_table(SUMS)?.insert(round.as_bytes(), sum)?;
            transaction.open_table(SEEDS)?.insert(round.as_bytes(), stored.as_slice())?;
            append(transaction, round, entries)
        })
    }

    /// Returns the circuit and the seed of the answers to a closed sum.
    pub(crate) fn answer_seed(&self, round: RoundId) -> Result<(ExactCircuit, AnswerSeed), Refused> {
        let stored = self.get(SEEDS, round)?.map(zeroize::Zeroizing::new);
        let read = stored.and_then(|stored| {
            let (code, seed) = stored.split_first()?;
            let circuit = ExactCircuit::ALL.into_iter().find(|circuit| circuit.code() == usize::from(*code))?;
            Some((circuit, AnswerSeed::from_bytes(seed.try_into().ok()?)))
        });
        let missing =
            "does not contain the seed of this round's answers: it is damaged. Restore it only in its last state";
        read.ok_or(missing).map_err(Refused::input(&self.path))
    }

    /// Returns, for each query, the stored answer to the closed sum. A stored value that is not an answer, or is of
    /// another round, counts as missing and is computed again.
    pub(crate) fn answers(&self, round: RoundId, queries: usize) -> Result<Vec<Option<EncryptedAnswer>>, Refused> {
        let mut answers = vec![None; queries];
        for bytes in self.range(ANSWERS, round)? {
            if let Ok(answer) = EncryptedAnswer::from_bytes(&bytes)
                && answer.round() == round
                && let Some(slot) = answers.get_mut(answer.query())
            {
                *slot = Some(answer);
            }
        }
        Ok(answers)
    }

    pub(crate) fn keep_answers(&self, round: RoundId, answers: &[EncryptedAnswer]) -> Result<(), Refused> {
        self.write(|transaction| {
            let mut table = transaction.open_table(ANSWERS)?;
            for answer in answers {
                let query = u32::try_from(answer.query()).unwrap_or(u32::MAX);
                table.insert((round.as_bytes(), query), answer.to_bytes().as_slice())?;
            }
            Ok(())
        })
    }

    pub(crate) fn result(&self, round: RoundId) -> Result<Option<Vec<u8>>, Refused> {
        self.get(RESULTS, round)
    }

    /// Keeps the result, which replaces the sum and its answers.
    pub(crate) fn finish(&self, round: RoundId, result: &[u8], entries: &[LogEntry]) -> Result<(), Refused> {
        self.write_log(|transaction| {
            transaction.open_table(RESULTS)?.insert(round.as_bytes(), result)?;
            transaction.open_table(SUMS)?.remove(round.as_bytes())?;
            transaction.open_table(ANSWERS)?.retain_in(whole(&round), |_, _| false)?;
            transaction.open_table(RECEIVED)?.retain_in(whole(&round), |_, _| false)?;
            transaction.open_table(REFUSED)?.retain_in(whole(&round), |_, _| false)?;
            append(transaction, round, entries)
        })
    }

    /// Returns whether the student of a round has the result.
    pub(crate) fn is_fetched(&self, round: RoundId) -> Result<bool, Refused> {
        Ok(self.get(FETCHED, round)?.is_some())
    }

    /// Records that the student of a round has the result.
    pub(crate) fn keep_fetched(&self, round: RoundId) -> Result<(), Refused> {
        self.put(FETCHED, round, &[])
    }

    /// Writes a change that adds log entries, and counts it.
    fn write_log(&self, write: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>) -> Result<(), Refused> {
        self.write(write)?;
        self.changes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Returns a number that differs after each change of a log.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(crate) fn log(&self, round: RoundId) -> Result<Vec<LogEntry>, Refused> {
        let entries = self.range(LOG, round)?;
        let read = entries.iter().map(|bytes| LogEntry::from_bytes(bytes)).collect::<Result<_, _>>();
        read.map_err(Refused::input(&self.path))
    }

    /// Returns the messages that are in the closed sum of a round, by teacher.
    pub(crate) fn counted(&self, round: RoundId) -> Result<HashMap<usize, Digest>, Refused> {
        let entries = self.log(round)?.into_iter().filter(|entry| entry.event() == LogEvent::Counted);
        Ok(entries.filter_map(|entry| Some((entry.teacher()?, entry.digest()))).collect())
    }

    fn get(&self, table: OfRound, round: RoundId) -> Result<Option<Vec<u8>>, Refused> {
        self.read(table, None, |table| Ok(table.get(round.as_bytes())?.map(|bytes| bytes.value().to_vec())))
    }

    fn put(&self, table: OfRound, round: RoundId, value: &[u8]) -> Result<(), Refused> {
        self.write(|transaction| {
            transaction.open_table(table)?.insert(round.as_bytes(), value)?;
            Ok(())
        })
    }

    fn range(&self, table: InRound, round: RoundId) -> Result<Vec<Vec<u8>>, Refused> {
        let mut values = Vec::new();
        self.for_each(table, round, &mut |_, value| values.push(value.to_vec()))?;
        Ok(values)
    }

    fn for_each(&self, table: InRound, round: RoundId, take: &mut dyn FnMut(u32, &[u8])) -> Result<(), Refused> {
        self.read(table, (), |table| {
            for entry in table.range(whole(&round))? {
                let (key, value) = entry?;
                take(key.value().1, value.value());
            }
            Ok(())
        })
    }

    /// Reads a table; `none` if nothing was stored in it yet.
    fn read<K: redb::Key + 'static, V: redb::Value + 'static, T>(
        &self,
        table: TableDefinition<'_, K, V>,
        none: T,
        read: impl FnOnce(ReadOnlyTable<K, V>) -> Result<T, redb::Error>,
    ) -> Result<T, Refused> {
        let read = || match self.database.begin_read()?.open_table(table) {
            Err(TableError::TableDoesNotExist(_)) => Ok(none),
            table => read(table?),
        };
        read().map_err(Refused::registry(&self.path))
    }

    /// Writes atomically and durably.
    fn write(&self, write: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>) -> Result<(), Refused> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            write(&transaction)?;
            Ok(transaction.commit()?)
        };
        write().map_err(Refused::registry(&self.path))
    }
}

/// Bytes of the database that are kept in memory.
const CACHE: usize = 64 << 20;

/// Opens the database in a file, and checks all of it.
fn database(file: File) -> Result<Database, DatabaseError> {
    let mut builder = Builder::new();
    builder.set_check_integrity_on_open(true).set_cache_size(CACHE).create_with_backend(FileBackend::new(file)?)
}

/// Creates an empty registry that only its owner can read. It is written under a temporary name and renamed when it is complete, so a kill
/// leaves no registry or a valid one.
pub(crate) fn create(path: &Path) -> Result<(), Refused> {
    let folder = folder_of(path);
    let file = temporary(0o600).tempfile_in(folder).map_err(Refused::io("create", path))?;
    let twin = file.reopen().map_err(Refused::io("create", path))?;
    let made = || -> Result<(), redb::Error> {
        let database = database(twin)?;
        // Creates a table, so that something is committed.
        let transaction = database.begin_write()?;
        transaction.open_table(ANSWERED)?;
        transaction.commit()?;
        Ok(())
    };
    made().map_err(Refused::registry(path))?;
    file.as_file().sync_all().map_err(Refused::io("create", path))?;
    match file.persist_noclobber(path) {
        // Another process created one meanwhile.
        Err(error) if error.error.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(Refused::io("create", path)(error.error))
        }
        _ => {
            sync_folder(folder);
            Ok(())
        }
    }
}

/// Returns the key range of a round.
fn whole(round: &RoundId) -> RangeInclusive<(&[u8; 32], u32)> {
    (round.as_bytes(), 0)..=(round.as_bytes(), u32::MAX)
}

fn append(transaction: &WriteTransaction, round: RoundId, entries: &[LogEntry]) -> Result<(), redb::Error> {
    let mut table = transaction.open_table(LOG)?;
    let mut next = match table.range(whole(&round))?.next_back() {
        Some(last) => last?.0.value().1.saturating_add(1),
        None => 0,
    };
    for entry in entries {
        table.insert((round.as_bytes(), next), entry.to_bytes().as_slice())?;
        next = next.saturating_add(1);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_start_of_a_round_stays_the_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("registry");
        let round = |name: &str| name.repeat(64).parse().expect("hexadecimal digits");
        for (name, now, expected) in [("a", 5, 5), ("b", 7, 7), ("a", 9, 5), ("b", 1, 7)] {
            let registry = RoundRegistry::open(&path, true).expect("free");
            assert_eq!(registry.opened(round(name), now).expect("writable"), expected, "{name} at {now}");
        }
    }
}
