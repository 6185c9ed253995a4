//! Incomplete uploads, and messages that wait for their check.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use speed_core::Digest;

/// Message bytes in memory, limited in total: at most one unfinished upload of each party, and complete messages until
/// they are released. A party whose connection broke resumes its upload. A killed server loses all uploads, so its
/// clients start again.
pub(crate) struct Uploads {
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Bytes allocated for all uploads.
    held: usize,
    /// Bytes of complete messages.
    whole: usize,
    of: HashMap<[u8; 32], Upload>,
    /// The number of write requests so far.
    writers: u64,
}

struct Upload {
    digest: Digest,
    length: usize,
    bytes: Vec<u8>,
    /// Bytes allocated for this upload.
    held: usize,
    began: Instant,
    /// The request that is writing to it.
    writer: Option<u64>,
}

/// The reason why bytes are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// The upload already has this number of bytes.
    At(usize),
    /// Another connection writes to this upload.
    InUse,
    /// There is currently no memory for these bytes.
    Full,
    /// These bytes exceed the announced length of the file.
    TooMany,
    /// The file is complete, but too many others wait for their check.
    Waiting,
}

/// The time after which a slow upload may be evicted: before that, it has no measurable rate.
const GRACE: Duration = Duration::from_secs(2);
/// Initial allocation of an upload, in bytes.
const FIRST: usize = 16 << 10;

impl Inner {
    /// Makes room for more bytes of a party's upload, and returns whether it succeeded. If the limit is reached, it
    /// evicts uploads one after another: first uploads without a writer, then the slowest of the others. It evicts
    /// nothing if this would not free enough memory. So a party that sends slowly on purpose does not block others.
    fn make_room(&mut self, party: [u8; 32], more: usize, most: usize, now: Instant) -> bool {
        let others = self.of.iter().filter(|(other, upload)| **other != party && upload.held > 0);
        let mut may_go: Vec<_> =
            others.filter_map(|(other, upload)| Some((upload.rank(now)?, *other, upload.held))).collect();
        let room: usize = may_go.iter().map(|(_, _, held)| held).sum();
        if self.held - room + more > most {
            return false;
        }
        may_go.sort_by(|(one, ..), (other, ..)| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
        for (_, other, _) in may_go {
            if self.held + more <= most {
                break;
            }
            self.forget(other);
        }
        self.held += more;
        true
    }

    fn forget(&mut self, party: [u8; 32]) {
        self.held -= self.of.remove(&party).map_or(0, |upload| upload.held);
    }
}

impl Upload {
    /// Returns the key of the eviction order: uploads without a writer (false) come first, then slower uploads. The
    /// rate is in bytes per second since the start of the upload, regardless of the number of requests. `None` if the
    /// upload has just started and may not be evicted.
    fn rank(&self, now: Instant) -> Option<(bool, f64)> {
        let time = now.saturating_duration_since(self.began);
        let rate = self.bytes.len() as f64 / time.as_secs_f64().max(GRACE.as_secs_f64());
        (self.writer.is_none() || time >= GRACE).then_some((self.writer.is_some(), rate))
    }
}

impl Uploads {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, inner: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of bytes of a file that have arrived.
    pub(crate) fn offset(&self, party: [u8; 32], digest: Digest) -> usize {
        self.lock().of.get(&party).filter(|upload| upload.digest == digest).map_or(0, |upload| upload.bytes.len())
    }

    /// Starts to write at an offset. An incomplete upload of another file by the same party is discarded. Memory is
    /// allocated for received bytes, not for announced bytes.
    pub(crate) fn open(
        self: &Arc<Self>,
        party: [u8; 32],
        digest: Digest,
        (length, offset): (usize, usize),
        now: Instant,
    ) -> Result<Writer, NotNow> {
        let mut inner = self.lock();
        let found = inner.of.get(&party);
        if found.is_some_and(|upload| upload.writer.is_some()) {
            return Err(NotNow::InUse);
        }
        let same = found.filter(|upload| (upload.digest, upload.length) == (digest, length));
        let has = same.map_or(0, |upload| upload.bytes.len());
        if has != offset {
            return Err(NotNow::At(has));
        }
        if has == 0 {
            inner.forget(party);
        }
        inner.writers += 1;
        let writer = inner.writers;
        let fresh = || Upload { digest, length, bytes: Vec::new(), held: 0, began: now, writer: None };
        inner.of.entry(party).or_insert_with(fresh).writer = Some(writer);
        Ok(Writer { uploads: self.clone(), party, writer })
    }
}

/// A request that writes to an upload.
pub(crate) struct Writer {
    uploads: Arc<Uploads>,
    party: [u8; 32],
    writer: u64,
}

impl Inner {
    /// Returns the upload of a writer, unless it was evicted.
    fn of_writer(&mut self, writer: &Writer) -> Option<&mut Upload> {
        self.of.get_mut(&writer.party).filter(|upload| upload.writer == Some(writer.writer))
    }
}

impl Writer {
    /// Appends bytes.
    pub(crate) fn append(&self, bytes: &[u8], now: Instant) -> Result<(), NotNow> {
        let mut inner = self.uploads.lock();
        let upload = inner.of_writer(self).ok_or(NotNow::Full)?;
        let (length, held) = (upload.bytes.len() + bytes.len(), upload.held);
        if length > upload.length {
            return Err(NotNow::TooMany);
        }
        if length > held {
            let whole = length.max(2 * held).max(FIRST).min(upload.length);
            if !inner.make_room(self.party, whole - held, self.uploads.most, now) {
                return Err(NotNow::Full);
            }
            if let Some(upload) = inner.of_writer(self) {
                upload.held = whole;
                upload.bytes.reserve_exact(whole - upload.bytes.len());
            }
        }
        inner.of_writer(self).ok_or(NotNow::Full)?.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Returns the complete file and removes the upload.
    pub(crate) fn finish(self) -> Result<Whole, NotNow> {
        let mut inner = self.uploads.lock();
        let upload = inner.of_writer(&self).ok_or(NotNow::At(0))?;
        if upload.bytes.len() < upload.length {
            return Err(NotNow::At(upload.bytes.len()));
        }
        let held = upload.held;
        if inner.whole + held > self.uploads.most / 2 {
            return Err(NotNow::Waiting);
        }
        inner.whole += held;
        let bytes = inner.of.remove(&self.party).map_or_else(Vec::new, |upload| upload.bytes);
        Ok(Whole { held: ReservedMemory { uploads: self.uploads.clone(), bytes: held }, bytes })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let uploads = self.uploads.clone();
        if let Some(upload) = uploads.lock().of_writer(self) {
            upload.writer = None;
        }
    }
}

/// A complete file. Its memory counts as used until `held` is dropped.
pub(crate) struct Whole {
    pub(crate) bytes: Vec<u8>,
    pub(crate) held: ReservedMemory,
}

/// Memory held for uploaded bytes.
pub(crate) struct ReservedMemory {
    uploads: Arc<Uploads>,
    bytes: usize,
}

impl Drop for ReservedMemory {
    fn drop(&mut self) {
        let mut inner = self.uploads.lock();
        inner.held -= self.bytes;
        inner.whole -= self.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 32] = [1; 32];

    fn held(uploads: &Uploads) -> usize {
        uploads.lock().held
    }

    #[test]
    fn an_upload_resumes_at_its_offset() {
        let (uploads, digest, now) = (Uploads::new(100), Digest::of("file"), Instant::now());
        let open = |length, offset| uploads.open(ONE, digest, (length, offset), now);
        let writer = open(10, 0).unwrap_or_else(|_| panic!("new"));
        assert_eq!(writer.append(b"01234", now), Ok(()));
        assert_eq!(open(10, 5).err(), Some(NotNow::InUse));
        assert_eq!(writer.finish().err(), Some(NotNow::At(5)));
        assert_eq!((uploads.offset(ONE, digest), uploads.offset([2; 32], digest)), (5, 0));
        assert_eq!(open(10, 0).err(), Some(NotNow::At(5)));
        let writer = open(10, 5).unwrap_or_else(|_| panic!("the rest"));
        assert_eq!(writer.append(b"567890", now), Err(NotNow::TooMany));
        assert_eq!(writer.append(b"56789", now), Ok(()));
        let whole = writer.finish().unwrap_or_else(|_| panic!("whole"));
        assert_eq!(whole.bytes, b"0123456789");
        // The memory of the file counts as used until the guard is dropped.
        assert_eq!(held(&uploads), 10);
        let Whole { held: guard, .. } = whole;
        drop(guard);
        assert_eq!(held(&uploads), 0);
    }

    #[test]
    fn all_of_them_stay_within_the_limit() {
        let (uploads, start) = (Uploads::new(100), Instant::now());
        let open = |party: u8, length, now| {
            uploads.open([party; 32], Digest::of("a"), (length, 0), now).unwrap_or_else(|_| panic!("free"))
        };
        // Announced bytes do not count.
        let idle: Vec<_> = (0..10).map(|party| open(party, usize::MAX / 2, start)).collect();
        assert_eq!(held(&uploads), 0);
        drop(idle);
        let writers: Vec<_> = (0..10).map(|party| open(party, 10, start)).collect();
        for (bytes, writer) in writers.iter().enumerate() {
            assert_eq!(writer.append(&vec![0; bytes.min(9)], start), Ok(()));
        }
        // Nine uploads hold ten bytes each, and none has existed long enough to be slow.
        let (last, later) = (open(20, 20, start), start + GRACE);
        assert_eq!(last.append(&[0; 20], start), Err(NotNow::Full));
        // Uploads are not evicted if that would not free enough.
        let whole = open(30, 11, later);
        assert_eq!((whole.append(&[0; 11], start), held(&uploads)), (Err(NotNow::Full), 90));
        drop(whole);
        // The slowest upload is evicted, and its writer gets an error; then there is room.
        assert_eq!(last.append(&[0; 20], later), Ok(()));
        assert_eq!(writers[1].append(&[0; 1], later), Err(NotNow::Full));
        assert_eq!(writers[2].append(&[0; 1], later), Ok(()));
        assert_eq!(held(&uploads), 100);
        // A complete file is not evicted.
        let whole = last.finish().unwrap_or_else(|_| panic!("whole"));
        let other = open(21, 90, later);
        assert_eq!(other.append(&[0; 90], later), Err(NotNow::Full));
        assert_eq!(held(&uploads), 100);
        drop(whole);
        assert_eq!(other.append(&[0; 90], later + GRACE), Ok(()));
        // Another file of a party replaces its first; an upload without a writer makes room.
        drop(other);
        assert_eq!(held(&uploads), 100);
        assert!(uploads.open([21; 32], Digest::of("b"), (5, 0), later).is_ok());
        assert_eq!(held(&uploads), 10);
    }

    #[test]
    fn complete_uploads_take_half_the_memory_and_the_next_one_waits() {
        let (uploads, now) = (Uploads::new(100), Instant::now());
        let whole = |party: u8| {
            let writer = uploads.open([party; 32], Digest::of("a"), (30, 0), now).unwrap_or_else(|_| panic!("free"));
            assert_eq!(writer.append(&[0; 30], now), Ok(()));
            writer.finish()
        };
        let first = whole(1).unwrap_or_else(|_| panic!("whole"));
        assert_eq!(whole(2).err(), Some(NotNow::Waiting));
        drop(first);
        // All bytes have arrived and need not be sent again.
        let writer = uploads.open([2; 32], Digest::of("a"), (30, 30), now).unwrap_or_else(|_| panic!("there"));
        assert!(writer.finish().is_ok());
        assert_eq!(held(&uploads), 0);
    }

    #[test]
    fn another_request_does_not_extend_the_grace() {
        let (uploads, start) = (Uploads::new(100), Instant::now());
        let slow = |at| uploads.open([1; 32], Digest::of("a"), (100, at), start).unwrap_or_else(|_| panic!("free"));
        assert_eq!(slow(0).append(&[0; 60], start), Ok(()));
        // It sends no more bytes, but makes request after request.
        let later = start + GRACE;
        let again = uploads.open([1; 32], Digest::of("a"), (100, 60), later).unwrap_or_else(|_| panic!("there"));
        let honest = uploads.open([2; 32], Digest::of("b"), (60, 0), later).unwrap_or_else(|_| panic!("free"));
        assert_eq!(honest.append(&[0; 60], later), Ok(()));
        assert_eq!(again.append(&[0; 1], later), Err(NotNow::Full));
    }
}
