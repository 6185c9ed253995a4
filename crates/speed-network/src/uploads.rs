//! Uploads that are not complete yet, and messages that wait for their check.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use speed_core::Digest;

/// Bytes of messages in memory, within a limit on all of them: unfinished uploads, at most one of each party, and whole messages until they are let
/// go. A party whose connection broke goes on where it was; a server that was killed has none, and its clients begin again.
pub(crate) struct Uploads {
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Bytes that are allocated for all of them.
    held: usize,
    of: HashMap<[u8; 32], Upload>,
    /// The number of requests that wrote so far.
    writers: u64,
}

struct Upload {
    digest: Digest,
    length: usize,
    bytes: Vec<u8>,
    /// The request that is writing to it.
    writing: Option<Writing>,
}

struct Writing {
    writer: u64,
    since: Instant,
    /// Bytes that were there before.
    from: usize,
}

/// The reason why bytes are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotNow {
    /// There are so many bytes already.
    At(usize),
    /// Another connection writes to this upload.
    InUse,
    /// There is no memory for it now.
    Full,
    /// They are more than the file has.
    TooMany,
}

/// The time after which an upload can be thrown out for its pace: before, it has none.
const GRACE: Duration = Duration::from_secs(2);
/// Bytes that an upload begins with.
const FIRST: usize = 64 << 10;

impl Inner {
    /// Makes room for more bytes of a party's upload. When there is none, uploads that nobody writes to are forgotten, and then the slowest of the others:
    /// whoever sends slowly on purpose keeps nobody out.
    fn make_room(&mut self, party: [u8; 32], more: usize, most: usize, now: Instant) -> bool {
        if self.held + more > most {
            self.of.retain(|other, upload| {
                let stays = *other == party || upload.writing.is_some();
                self.held -= if stays { 0 } else { upload.bytes.capacity() };
                stays
            });
        }
        while self.held + more > most {
            let others = self.of.iter().filter(|(other, _)| **other != party);
            let slowest = others
                .filter_map(|(other, upload)| Some((*other, upload.pace(now)?)))
                .min_by(|(_, one), (_, other)| one.total_cmp(other));
            let Some((slowest, _)) = slowest else { return false };
            self.forget(slowest);
        }
        self.held += more;
        true
    }

    fn forget(&mut self, party: [u8; 32]) {
        self.held -= self.of.remove(&party).map_or(0, |upload| upload.bytes.capacity());
    }
}

impl Upload {
    /// Returns the bytes a second of the request that writes to it, if it has for a while.
    fn pace(&self, now: Instant) -> Option<f64> {
        let writing = self.writing.as_ref()?;
        let time = now.saturating_duration_since(writing.since);
        (time >= GRACE).then(|| (self.bytes.len() - writing.from) as f64 / time.as_secs_f64())
    }
}

impl Uploads {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, inner: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many bytes of a file are there.
    pub(crate) fn offset(&self, party: [u8; 32], digest: Digest) -> usize {
        self.lock().of.get(&party).filter(|upload| upload.digest == digest).map_or(0, |upload| upload.bytes.len())
    }

    /// Begins to write at an offset. Another file of the party is forgotten. Memory is taken for bytes that are there, not for those announced.
    pub(crate) fn open(
        self: &Arc<Self>,
        party: [u8; 32],
        digest: Digest,
        (length, offset): (usize, usize),
        now: Instant,
    ) -> Result<Writer, NotNow> {
        let mut inner = self.lock();
        let found = inner.of.get(&party);
        if found.is_some_and(|upload| upload.writing.is_some()) {
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
        let fresh = || Upload { digest, length, bytes: Vec::new(), writing: None };
        inner.of.entry(party).or_insert_with(fresh).writing = Some(Writing { writer, since: now, from: has });
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
    /// Returns the upload of a writer, unless it was thrown out.
    fn of_writer(&mut self, writer: &Writer) -> Option<&mut Upload> {
        let is_writing = |upload: &&mut Upload| matches!(&upload.writing, Some(of) if of.writer == writer.writer);
        self.of.get_mut(&writer.party).filter(is_writing)
    }
}

impl Writer {
    /// Appends bytes.
    ///
    /// # Errors
    /// [`NotNow`]: they are more than the file has, there is no memory for them, or the upload was thrown out for its pace.
    pub(crate) fn append(&self, bytes: &[u8], now: Instant) -> Result<(), NotNow> {
        let mut inner = self.uploads.lock();
        let upload = inner.of_writer(self).ok_or(NotNow::Full)?;
        let (length, capacity) = (upload.bytes.len() + bytes.len(), upload.bytes.capacity());
        if length > upload.length {
            return Err(NotNow::TooMany);
        }
        if length > capacity {
            let whole = length.max(2 * capacity).max(FIRST).min(upload.length);
            if !inner.make_room(self.party, whole - capacity, self.uploads.most, now) {
                return Err(NotNow::Full);
            }
            if let Some(upload) = inner.of_writer(self) {
                upload.bytes.reserve_exact(whole - upload.bytes.len());
            }
        }
        inner.of_writer(self).ok_or(NotNow::Full)?.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Takes the whole file away, or says how much of it is there.
    pub(crate) fn finish(self) -> Result<Whole, usize> {
        let mut inner = self.uploads.lock();
        let upload = inner.of_writer(&self).ok_or(0_usize)?;
        if upload.bytes.len() < upload.length {
            return Err(upload.bytes.len());
        }
        let upload = inner.of.remove(&self.party);
        let bytes = upload.map_or_else(Vec::new, |upload| upload.bytes);
        Ok(Whole { held: Held { uploads: self.uploads.clone(), bytes: bytes.capacity() }, bytes })
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let uploads = self.uploads.clone();
        if let Some(upload) = uploads.lock().of_writer(self) {
            upload.writing = None;
        }
    }
}

/// A whole file, which counts as held until its last part is dropped.
pub(crate) struct Whole {
    pub(crate) bytes: Vec<u8>,
    pub(crate) held: Held,
}

/// Memory for bytes that were uploaded.
pub(crate) struct Held {
    uploads: Arc<Uploads>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.uploads.lock().held -= self.bytes;
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
    fn an_upload_goes_on_where_it_was() {
        let (uploads, digest, now) = (Uploads::new(100), Digest::of("file"), Instant::now());
        let open = |length, offset| uploads.open(ONE, digest, (length, offset), now);
        let writer = open(10, 0).unwrap_or_else(|_| panic!("new"));
        assert_eq!(writer.append(b"01234", now), Ok(()));
        assert_eq!(open(10, 5).err(), Some(NotNow::InUse));
        assert_eq!(writer.finish().err(), Some(5));
        assert_eq!((uploads.offset(ONE, digest), uploads.offset([2; 32], digest)), (5, 0));
        assert_eq!(open(10, 0).err(), Some(NotNow::At(5)));
        let writer = open(10, 5).unwrap_or_else(|_| panic!("the rest"));
        assert_eq!(writer.append(b"567890", now), Err(NotNow::TooMany));
        assert_eq!(writer.append(b"56789", now), Ok(()));
        let whole = writer.finish().unwrap_or_else(|_| panic!("whole"));
        assert_eq!(whole.bytes, b"0123456789");
        // It counts until it was checked and kept.
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
        // What is announced takes no place.
        let idle: Vec<_> = (0..10).map(|party| open(party, usize::MAX / 2, start)).collect();
        assert_eq!(held(&uploads), 0);
        drop(idle);
        let writers: Vec<_> = (0..10).map(|party| open(party, 10, start)).collect();
        for (bytes, writer) in writers.iter().enumerate() {
            assert_eq!(writer.append(&vec![0; bytes.min(9)], start), Ok(()));
        }
        // Nine of them have a place of ten bytes, and none of them had time to be slow.
        let (last, later) = (open(20, 20, start), start + GRACE);
        assert_eq!(last.append(&[0; 20], start), Err(NotNow::Full));
        // The slowest goes, and hears of it; then there is room.
        assert_eq!(last.append(&[0; 20], later), Ok(()));
        assert_eq!(writers[1].append(&[0; 1], later), Err(NotNow::Full));
        assert_eq!(writers[2].append(&[0; 1], later), Ok(()));
        assert_eq!(held(&uploads), 100);
        // A whole one is not thrown out.
        let whole = last.finish().unwrap_or_else(|_| panic!("whole"));
        let other = open(21, 90, later);
        assert_eq!(other.append(&[0; 90], later), Err(NotNow::Full));
        assert_eq!(held(&uploads), 20);
        drop(whole);
        assert_eq!(other.append(&[0; 90], later), Ok(()));
        // Another file of a party takes the place of the first; what nobody writes to makes room.
        drop(other);
        assert!(uploads.open([21; 32], Digest::of("b"), (5, 0), later).is_ok());
        assert_eq!(held(&uploads), 0);
    }
}
