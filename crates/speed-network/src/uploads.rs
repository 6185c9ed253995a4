//! Uploads that are not complete yet.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use speed_core::Digest;

/// Unfinished uploads, at most one of each party, within a limit on all of them. A party whose connection broke goes on where it was; a server that was
/// killed has none, and its clients begin again.
pub(crate) struct Uploads {
    most: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Bytes that all of them may grow to.
    reserved: usize,
    of: HashMap<[u8; 32], Upload>,
}

impl Inner {
    /// Forgets all uploads that nobody writes to: their parties begin again.
    fn forget_idle(&mut self) {
        self.of.retain(|_, upload| upload.is_open);
        self.reserved = self.of.values().map(|upload| upload.length).sum();
    }
}

struct Upload {
    digest: Digest,
    length: usize,
    bytes: Vec<u8>,
    /// Whether a request is writing to it.
    is_open: bool,
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
}

impl Uploads {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, inner: Mutex::default() }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how many bytes of a file are there.
    pub(crate) fn offset(&self, party: [u8; 32], digest: Digest) -> usize {
        self.lock().of.get(&party).filter(|upload| upload.digest == digest).map_or(0, |upload| upload.bytes.len())
    }

    /// Begins to write at an offset. Another file of the party is forgotten.
    pub(crate) fn open(
        &self,
        party: [u8; 32],
        digest: Digest,
        length: usize,
        offset: usize,
    ) -> Result<Writer<'_>, NotNow> {
        let mut inner = self.lock();
        let found = inner.of.get(&party);
        if found.is_some_and(|upload| upload.is_open) {
            return Err(NotNow::InUse);
        }
        let same = found.filter(|upload| (upload.digest, upload.length) == (digest, length));
        let has = same.map_or(0, |upload| upload.bytes.len());
        if has != offset {
            return Err(NotNow::At(has));
        }
        let (mut upload, before) = match inner.of.remove(&party) {
            Some(upload) if has > 0 => (upload, length),
            other => {
                let before = other.map_or(0, |upload| upload.length);
                (Upload { digest, length, bytes: Vec::new(), is_open: false }, before)
            }
        };
        inner.reserved -= before;
        if inner.reserved + length > self.most {
            inner.forget_idle();
        }
        if inner.reserved + length > self.most {
            return Err(NotNow::Full);
        }
        inner.reserved += length;
        upload.is_open = true;
        inner.of.insert(party, upload);
        Ok(Writer { uploads: self, party, is_done: false })
    }
}

/// A request that writes to an upload.
pub(crate) struct Writer<'a> {
    uploads: &'a Uploads,
    party: [u8; 32],
    /// Whether the upload is this writer's no more.
    is_done: bool,
}

impl Writer<'_> {
    /// Appends bytes; returns false if they are more than the file has.
    pub(crate) fn append(&self, bytes: &[u8]) -> bool {
        let mut inner = self.uploads.lock();
        let Some(upload) = inner.of.get_mut(&self.party) else { return false };
        if upload.length - upload.bytes.len() < bytes.len() {
            return false;
        }
        upload.bytes.extend_from_slice(bytes);
        true
    }

    /// Takes the whole file away, or says how much of it is there.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, usize> {
        let mut inner = self.uploads.lock();
        match inner.of.get(&self.party) {
            Some(upload) if upload.bytes.len() < upload.length => Err(upload.bytes.len()),
            _ => {
                self.is_done = true;
                let upload = inner.of.remove(&self.party);
                let bytes = upload.map_or_else(Vec::new, |upload| upload.bytes);
                inner.reserved -= bytes.len();
                Ok(bytes)
            }
        }
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        if !self.is_done
            && let Some(upload) = self.uploads.lock().of.get_mut(&self.party)
        {
            upload.is_open = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: [u8; 32] = [1; 32];

    #[test]
    fn an_upload_goes_on_where_it_was() {
        let (uploads, digest) = (Uploads::new(100), Digest::of("file"));
        let writer = uploads.open(ONE, digest, 10, 0).expect("new");
        assert!(writer.append(b"01234"));
        assert_eq!(uploads.open(ONE, digest, 10, 5).err(), Some(NotNow::InUse));
        assert_eq!(writer.finish(), Err(5));
        assert_eq!((uploads.offset(ONE, digest), uploads.offset([2; 32], digest)), (5, 0));
        assert_eq!(uploads.open(ONE, digest, 10, 0).err(), Some(NotNow::At(5)));
        let writer = uploads.open(ONE, digest, 10, 5).expect("the rest");
        assert!(!writer.append(b"567890"), "longer than it said");
        assert!(writer.append(b"56789"));
        assert_eq!(writer.finish(), Ok(b"0123456789".to_vec()));
        assert_eq!(uploads.lock().reserved, 0);
    }

    #[test]
    fn all_of_them_stay_within_the_limit() {
        let uploads = Uploads::new(100);
        let mut open: Vec<_> =
            (0..10).map(|party| uploads.open([party; 32], Digest::of("a"), 10, 0).expect("room")).collect();
        assert_eq!(uploads.open([10; 32], Digest::of("a"), 10, 0).err(), Some(NotNow::Full));
        drop(open.pop());
        // What nobody writes to makes room.
        assert!(uploads.open([10; 32], Digest::of("a"), 10, 0).is_ok());
        assert_eq!(uploads.open([11; 32], Digest::of("a"), 11, 0).err(), Some(NotNow::Full));
        drop(open);
        // Another file of a party takes the place of the first.
        assert!(uploads.open([3; 32], Digest::of("b"), 100, 0).is_ok());
    }
}
