//! The memory of a party over all its rounds.

use std::fs::OpenOptions;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use redb::backends::FileBackend;
use redb::{
    Builder, Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, TableDefinition, TableError,
    WriteTransaction,
};
use speed_aggregation::{EncryptedAnswer, LogEntry, RoundId};

use crate::error::RolesError;
use crate::fault::ResultsFault;

type Key = &'static [u8; 32];
type OfRound = TableDefinition<'static, Key, &'static [u8]>;
type InRound = TableDefinition<'static, (Key, u32), &'static [u8]>;

/// A teacher's messages.
const ANSWERED: OfRound = TableDefinition::new("answered");
/// A server's messages of a round, by teacher.
const RECEIVED: InRound = TableDefinition::new("received");
/// A server's closed sums, as long as their answers are not done.
const SUMS: OfRound = TableDefinition::new("sums");
/// A server's answers to the sum that is kept, by query.
const ANSWERS: InRound = TableDefinition::new("answers");
/// A server's results.
const RESULTS: OfRound = TableDefinition::new("results");
/// A server's logs, by entry.
const LOG: InRound = TableDefinition::new("log");

/// The registry of a party: an embedded database of the rounds that it took part in, so that whatever was given away is given away once. A
/// teacher keeps the message of every round; a server the messages that came over a network, the closed sum, its answers, the result and the
/// log. One program at a time works with it. Everything in it is encrypted under students' keys; with central noise the sum is the server's
/// alone all the same, since the server knows the noise.
#[derive(Debug)]
pub struct Registry {
    path: PathBuf,
    database: Database,
}

/// Returns the registry of the party with this signing key if no other is named: the key's name with the extension `registry`.
#[must_use]
pub fn default_registry(signing_key: &Path) -> PathBuf {
    signing_key.with_extension("registry")
}

impl Registry {
    /// Opens a registry, or makes one that its owner alone can read. All of it is checked against its checksums.
    ///
    /// # Errors
    /// If another program works with it, or it is damaged, or reading or writing fails.
    pub fn open(path: &Path) -> Result<Self, RolesError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(RolesError::io("open", path))?;
        if !file.metadata().is_ok_and(|meta| meta.is_file()) {
            return Err(RolesError::results(path, ResultsFault::NoFile));
        }
        let open = || Builder::new().set_check_integrity_on_open(true).create_with_backend(FileBackend::new(file)?);
        let database = open().map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => RolesError::results(path, ResultsFault::RegistryInUse),
            error => RolesError::registry(path)(error),
        })?;
        Ok(Self { path: path.to_path_buf(), database })
    }

    /// Returns where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a teacher's message to a round, if it gave one.
    pub(crate) fn answered(&self, round: RoundId) -> Result<Option<Vec<u8>>, RolesError> {
        self.get(ANSWERED, round)
    }

    /// Keeps a teacher's message.
    pub(crate) fn keep_answered(&self, round: RoundId, message: &[u8]) -> Result<(), RolesError> {
        self.write(|transaction| {
            transaction.open_table(ANSWERED)?.insert(round.as_bytes(), message)?;
            Ok(())
        })
    }

    /// Keeps messages that came over a network, with their entries of the log. What is kept of a teacher already is replaced.
    pub(crate) fn receive(
        &self,
        round: RoundId,
        messages: &[(u32, &[u8])],
        entries: &[LogEntry],
    ) -> Result<(), RolesError> {
        self.write(|transaction| {
            let mut table = transaction.open_table(RECEIVED)?;
            for (teacher, message) in messages {
                table.insert((round.as_bytes(), *teacher), *message)?;
            }
            append(transaction, round, entries)
        })
    }

    /// Returns the messages that came over a network, in the order of their teachers.
    pub(crate) fn received(&self, round: RoundId) -> Result<Vec<Vec<u8>>, RolesError> {
        self.range(RECEIVED, round)
    }

    /// Returns the closed sum of a round, if its answers are not all done.
    pub(crate) fn sum(&self, round: RoundId) -> Result<Option<Vec<u8>>, RolesError> {
        self.get(SUMS, round)
    }

    /// Keeps the closed sum, and the entries of the log about it. From here on its noise is not drawn again, and late messages are late.
    pub(crate) fn close(&self, round: RoundId, sum: &[u8], entries: &[LogEntry]) -> Result<(), RolesError> {
        self.write(|transaction| {
            transaction.open_table(SUMS)?.insert(round.as_bytes(), sum)?;
            append(transaction, round, entries)
        })
    }

    /// Returns, for each query, the answer to the closed sum that is kept. What is none, or not this round's, is computed again.
    pub(crate) fn answers(&self, round: RoundId, queries: usize) -> Result<Vec<Option<EncryptedAnswer>>, RolesError> {
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

    /// Keeps answers.
    pub(crate) fn keep_answers(&self, round: RoundId, answers: &[EncryptedAnswer]) -> Result<(), RolesError> {
        self.write(|transaction| {
            let mut table = transaction.open_table(ANSWERS)?;
            for answer in answers {
                let query = u32::try_from(answer.query()).unwrap_or(u32::MAX);
                table.insert((round.as_bytes(), query), answer.to_bytes().as_slice())?;
            }
            Ok(())
        })
    }

    /// Returns the result of a round, if it was given.
    pub(crate) fn result(&self, round: RoundId) -> Result<Option<Vec<u8>>, RolesError> {
        self.get(RESULTS, round)
    }

    /// Keeps the result in the place of the sum and its answers.
    pub(crate) fn finish(&self, round: RoundId, result: &[u8], entries: &[LogEntry]) -> Result<(), RolesError> {
        self.write(|transaction| {
            transaction.open_table(RESULTS)?.insert(round.as_bytes(), result)?;
            transaction.open_table(SUMS)?.remove(round.as_bytes())?;
            transaction.open_table(ANSWERS)?.retain_in(whole(&round), |_, _| false)?;
            append(transaction, round, entries)
        })
    }

    /// Returns the log of a round.
    pub(crate) fn log(&self, round: RoundId) -> Result<Vec<LogEntry>, RolesError> {
        let entries = self.range(LOG, round)?;
        let read = entries.iter().map(|bytes| LogEntry::from_bytes(bytes)).collect::<Result<_, _>>();
        read.map_err(RolesError::input(&self.path))
    }

    fn get(&self, table: OfRound, round: RoundId) -> Result<Option<Vec<u8>>, RolesError> {
        let read = || -> Result<Option<Vec<u8>>, redb::Error> {
            match self.database.begin_read()?.open_table(table) {
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                table => Ok(table?.get(round.as_bytes())?.map(|bytes| bytes.value().to_vec())),
            }
        };
        read().map_err(RolesError::registry(&self.path))
    }

    fn range(&self, table: InRound, round: RoundId) -> Result<Vec<Vec<u8>>, RolesError> {
        let read = || -> Result<Vec<Vec<u8>>, redb::Error> {
            let table = match self.database.begin_read()?.open_table(table) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                table => table?,
            };
            let values = table.range(whole(&round))?.map(|entry| Ok(entry?.1.value().to_vec()));
            values.collect()
        };
        read().map_err(RolesError::registry(&self.path))
    }

    /// Writes all or nothing, durably.
    fn write(&self, write: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>) -> Result<(), RolesError> {
        let write = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            write(&transaction)?;
            Ok(transaction.commit()?)
        };
        write().map_err(RolesError::registry(&self.path))
    }
}

/// Returns the keys of all of a round.
fn whole(round: &RoundId) -> RangeInclusive<(&[u8; 32], u32)> {
    (round.as_bytes(), 0)..=(round.as_bytes(), u32::MAX)
}

/// Appends entries to the log of a round.
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
