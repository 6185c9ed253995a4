//! File access: reads have a size limit, writes are atomic, and nothing is overwritten.

use std::fs::{self, File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use speed_core::Digest;
use speed_core::vote_files::NamedQueries;
use zeroize::Zeroizing;

use crate::error::RolesError;
use crate::fault::{InputFault, ReadFault, ResultsFault};
use crate::file_kind::FileKind;

/// The readers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Its owner only.
    Owner,
    /// Everyone whom the user's umask allows.
    Shared,
}

/// Reads a regular file of at most `max` bytes. Its length is checked before anything is read, and again while reading,
/// because the file may grow.
pub(crate) fn read_up_to(path: &Path, max: u64) -> Result<Vec<u8>, ReadFault> {
    let length = regular_length(path)?;
    if length > max {
        return Err(ReadFault::TooLong { found: length, max });
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    File::open(path).and_then(|file| file.take(max + 1).read_to_end(&mut bytes))?;
    let found = bytes.len() as u64;
    if found > max { Err(ReadFault::TooLong { found, max }) } else { Ok(bytes) }
}

/// Returns the length of a regular file. (Opening a pipe or a device could block forever.)
fn regular_length(path: &Path) -> Result<u64, ReadFault> {
    let meta = fs::metadata(path)?;
    if meta.is_file() { Ok(meta.len()) } else { Err(ReadFault::NotRegular) }
}

/// Reads like [`read_up_to`], with an error for the user.
pub(crate) fn read_input(path: &Path, kind: FileKind) -> Result<Vec<u8>, RolesError> {
    let read = || -> Result<Vec<u8>, ReadFault> {
        if kind.is_secret() {
            expect_private(path)?;
        }
        read_up_to(path, kind.max)
    };
    read().map_err(|fault| refused(path, kind, fault))
}

/// Refuses a file that users outside its group can read or change, or that its group can change. The group may read it,
/// because a service manager may give a service its key so.
#[cfg(unix)]
fn expect_private(path: &Path) -> Result<(), ReadFault> {
    use std::os::unix::fs::PermissionsExt as _;
    let found = fs::metadata(path)?.permissions().mode() & 0o777;
    if found & 0o027 == 0 { Ok(()) } else { Err(ReadFault::Exposed { found }) }
}

#[cfg(not(unix))]
fn expect_private(_: &Path) -> Result<(), ReadFault> {
    Ok(())
}

/// Reads a file with a decoder.
pub(crate) fn decode_input<T, F: Into<InputFault>>(
    path: &Path,
    kind: FileKind,
    decode: impl FnOnce(&[u8]) -> Result<T, F>,
) -> Result<T, RolesError> {
    decode(&Zeroizing::new(read_input(path, kind)?)).map_err(|fault| refused(path, kind, fault))
}

/// Returns the error about a file. If the file is of another kind than expected, that is the reported fault.
pub(crate) fn refused(path: &Path, kind: FileKind, fault: impl Into<InputFault>) -> RolesError {
    match kind.other(path) {
        Some(found) => RolesError::input(path)(InputFault::OtherKind { expected: kind.name, found }),
        None => RolesError::input(path)(fault),
    }
}

/// Returns SHA-256 of a regular file of at most `max` bytes.
///
/// # Errors
/// If it is longer or cannot be read.
pub fn hash_file(path: &Path, max: u64) -> Result<Digest, RolesError> {
    read_up_to(path, max).map(Digest::of).map_err(RolesError::input(path))
}

/// Returns SHA-256 of a list of `queries` queries. A list of names must have this number of queries; other formats are accepted as
/// they are.
///
/// # Errors
/// If it cannot be read, is too large, or has another number of names or groups.
pub fn hash_query_list(path: &Path, queries: usize) -> Result<Digest, RolesError> {
    let bytes = read_input(path, FileKind::QUERY_LIST)?;
    if let Ok(list) = NamedQueries::parse(&bytes) {
        list.expect_count(queries).map_err(RolesError::input(path))?;
    }
    Ok(Digest::of(&bytes))
}

/// Returns the path of a file that belongs to a key: the key's, with this extension in place of `key` or `share`. Another name keeps its end, so
/// that `st.a` and `st.b` have different files.
pub(crate) fn beside(key: &Path, extension: &str) -> PathBuf {
    if key.extension().is_some_and(|found| found == "key" || found == "share") {
        return key.with_extension(extension);
    }
    let mut path = key.as_os_str().to_owned();
    path.push(".");
    path.push(extension);
    path.into()
}

/// Refuses a path at which something exists.
pub(crate) fn expect_absent(path: &Path) -> Result<(), RolesError> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(exists(path)),
        Err(_) => Ok(()),
    }
}

/// Lists the files of a directory in the order of their names, without hidden ones (such as unfinished temporary files).
///
/// # Errors
/// If the directory cannot be read.
pub(crate) fn visible_files(folder: &Path) -> Result<Vec<PathBuf>, RolesError> {
    let list = || -> std::io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if !entry.file_name().as_encoded_bytes().starts_with(b".") {
                files.push(entry.path());
            }
        }
        files.sort_unstable();
        Ok(files)
    };
    list().map_err(InputFault::Folder).map_err(RolesError::input(folder))
}

fn exists(path: &Path) -> RolesError {
    RolesError::results(path, ResultsFault::Exists)
}

/// Writes a new file atomically: through a temporary file in the same directory that is synced before it gets its name.
/// After a kill or a full disk, the file is complete or absent. If the file system allows it, the temporary file has no name on Linux, so
/// that a kill does not leave a part of a secret.
///
/// # Errors
/// If something has that name already, or writing fails.
pub(crate) fn write_new(path: &Path, bytes: &[u8], access: Access) -> Result<(), RolesError> {
    expect_absent(path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    #[cfg(target_os = "linux")]
    match write_unnamed(folder, path, bytes, access) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists(path)),
        // Not every file system has files without names; the other way reports all other failures.
        Err(_) => {}
    }
    let write = || -> std::io::Result<Result<(), tempfile::PersistError>> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".writing-");
        #[cfg(unix)]
        {
            let mode = if access == Access::Owner { 0o600 } else { 0o666 };
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
        }
        let mut file = builder.tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        let persisted = file.persist_noclobber(path).map(drop);
        sync_folder(folder);
        Ok(persisted)
    };
    let persisted = write().map_err(RolesError::io("write", path))?;
    persisted.map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => RolesError::io("write", path)(error.error),
    })
}

/// Writes a file that gets its name when it is complete, and had none before.
#[cfg(target_os = "linux")]
fn write_unnamed(folder: &Path, path: &Path, bytes: &[u8], access: Access) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    let mode = if access == Access::Owner { 0o600 } else { 0o666 };
    let mut file =
        File::from(open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(mode))?);
    file.write_all(bytes)?;
    file.sync_all()?;
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, opened.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW)?;
    sync_folder(folder);
    Ok(())
}

/// Syncs a directory, because a new name is durable only once its directory is. Where a directory cannot be synced, the
/// file's content is still durable.
pub(crate) fn sync_folder(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        drop(folder.sync_all());
    }
}

/// Writes a file, unless it exists with the same bytes.
///
/// # Errors
/// If something else has that name, or writing fails.
pub fn write_once(path: &Path, bytes: &[u8]) -> Result<(), RolesError> {
    write_once_for(path, bytes, Access::Shared)
}

/// Like [`write_once`], for these readers.
pub(crate) fn write_once_for(path: &Path, bytes: &[u8], access: Access) -> Result<(), RolesError> {
    if !path.is_file() {
        return write_new(path, bytes, access);
    }
    let is_same = read_up_to(path, bytes.len() as u64).is_ok_and(|found| found == bytes);
    if is_same { Ok(()) } else { Err(RolesError::results(path, ResultsFault::Other)) }
}

/// Returns whether a secret's file contains only zeros, which is the state after a kill in the middle of [`destroy`].
pub(crate) fn is_destroyed(path: &Path, kind: FileKind) -> bool {
    read_up_to(path, kind.max).is_ok_and(|bytes| !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0))
}

/// Overwrites a secret's file with zeros and removes it, also if `path` is a symbolic link to it. The link is removed too.
pub(crate) fn destroy(path: &Path) -> Result<(), RolesError> {
    let overwrite = || -> std::io::Result<()> {
        let (target, is_link) = (fs::canonicalize(path)?, fs::symlink_metadata(path)?.is_symlink());
        let mut file = fs::OpenOptions::new().write(true).open(&target)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        file.write_all(&vec![0; length])?;
        file.sync_all()?;
        fs::remove_file(&target)?;
        if is_link { fs::remove_file(path) } else { Ok(()) }
    };
    overwrite().map_err(RolesError::io("destroy", path))
}

/// Locks a file, creating it if necessary, until it is dropped.
pub(crate) fn lock(path: &Path) -> Result<File, RolesError> {
    let file = File::options().create(true).append(true).open(path).map_err(RolesError::io("open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(RolesError::results(path, ResultsFault::InUse)),
        Err(TryLockError::Error(error)) => Err(RolesError::io("lock", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_ending_of_a_key_is_replaced() {
        let of = |key: &str| beside(Path::new(key), "registry").to_string_lossy().into_owned();
        assert_eq!(
            ["a/st.key", "a/st.a", "st.b", "st"].map(of),
            ["a/st.registry", "a/st.a.registry", "st.b.registry", "st.registry"]
        );
    }

    #[test]
    fn files_are_read_up_to_their_limit_and_never_overwritten() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        write_new(&path, b"12345", Access::Owner).expect("new");
        assert!(matches!(write_new(&path, b"6", Access::Shared), Err(RolesError::Results { .. })));
        assert_eq!(read_up_to(&path, 5).expect("short"), b"12345");
        assert!(matches!(read_up_to(&path, 4), Err(ReadFault::TooLong { found: 5, max: 4 })));
        assert!(matches!(read_up_to(folder.path(), 4), Err(ReadFault::NotRegular)));
        assert!(matches!(read_up_to(&folder.path().join("absent"), 4), Err(ReadFault::Io(_))));
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 1, "no temporary file is left");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).expect("file").permissions().mode() & 0o777, 0o600);
        }
    }

    #[cfg(unix)]
    #[test]
    fn secrets_that_others_can_read_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("signing.key");
        write_new(&path, b"12345", Access::Owner).expect("new");
        // On the commit before, 0644 was read without a word.
        for (mode, is_read) in
            [(0o600, true), (0o400, true), (0o440, true), (0o644, false), (0o620, false), (0o601, false)]
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("permissions");
            let read = read_input(&path, FileKind::SIGNING_KEY);
            assert_eq!(read.is_ok(), is_read, "{mode:o}: {read:?}");
            assert!(read_input(&path, FileKind::PUBLIC_KEY).is_ok());
        }
        let error = read_input(&path, FileKind::SIGNING_KEY).expect_err("exposed").to_string();
        assert!(error.contains("mode 0601") && error.contains("chmod 600"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_secret_behind_a_link_is_destroyed_with_the_link() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (path, link) = (folder.path().join("secret.key"), folder.path().join("link"));
        write_new(&path, b"12345", Access::Owner).expect("new");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        destroy(&link).expect("writable");
        assert!(!path.exists() && fs::symlink_metadata(&link).is_err());
    }

    #[test]
    fn a_lock_is_held_by_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        let held = lock(&path).expect("free");
        assert!(matches!(lock(&path), Err(RolesError::Results { .. })));
        drop(held);
        lock(&path).expect("free again");
    }
}
