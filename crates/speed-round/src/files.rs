//! File access: reads have a size limit, writes are atomic, and nothing is overwritten.

use std::fmt::Display;
use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use speed_core::vote_files::NamedQueries;
use speed_core::{Digest, read_regular};
use zeroize::Zeroizing;

use crate::error::Refused;
use crate::file_kind::FileKind;

/// The refusal of a path with a different file.
pub(crate) const OTHER_CONTENT: &str = "already exists with other content: move it away, or give another name";

/// The refusal of a place that has a directory or a dangling link.
pub(crate) const NO_FILE: &str = "already exists and is not a file: move it away, or give another --out";

/// The readers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Owner,
    /// Everyone whom the user's umask allows.
    Shared,
}

impl Access {
    fn mode(self) -> u32 {
        match self {
            Self::Owner => 0o600,
            Self::Shared => 0o666,
        }
    }
}

/// Returns the message about a file that could not be read.
pub(crate) fn unreadable(error: &std::io::Error) -> String {
    match error.kind() {
        // The two messages of `read_regular`.
        ErrorKind::FileTooLarge | ErrorKind::InvalidInput => error.to_string(),
        _ => format!("cannot read: {error}"),
    }
}

/// Reads a regular file of at most the bytes of its kind. A secret must be private.
pub(crate) fn read_input(path: &Path, kind: FileKind) -> Result<Vec<u8>, Refused> {
    let private = if kind.is_secret() { expect_private(path) } else { Ok(()) };
    let read = private.and_then(|()| read_regular(path, kind.max).map_err(|error| unreadable(&error)));
    read.map_err(|fault| refused(path, kind, fault))
}

/// Refuses a file that users outside its group can read or change, or that its group can change. The group may read it,
/// because a service manager may give a service its key so.
#[cfg(unix)]
fn expect_private(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt as _;
    let found = fs::metadata(path).map_err(|error| unreadable(&error))?.permissions().mode() & 0o777;
    if found & 0o027 == 0 {
        return Ok(());
    }
    Err(format!("a secret that other users can read or change: mode {found:04o}, expected 0600 (chmod 600)"))
}

#[cfg(not(unix))]
fn expect_private(_: &Path) -> Result<(), String> {
    Ok(())
}

/// Reads a file with a decoder.
pub(crate) fn decode_input<T, F: Display>(
    path: &Path,
    kind: FileKind,
    decode: impl FnOnce(&[u8]) -> Result<T, F>,
) -> Result<T, Refused> {
    decode(&Zeroizing::new(read_input(path, kind)?)).map_err(|fault| refused(path, kind, fault))
}

/// Returns the error about a file. If the file is of another kind than expected, that is the reported fault.
pub(crate) fn refused(path: &Path, kind: FileKind, fault: impl Display) -> Refused {
    Refused::input(path)(match kind.other(path) {
        Some(found) => format!("is {found}, expected {}: check which file each option names", kind.name),
        None => fault.to_string(),
    })
}

/// Returns SHA-256 of a regular file of at most `max` bytes.
///
/// # Errors
/// If it is longer or cannot be read.
pub fn hash_file(path: &Path, max: u64) -> Result<Digest, Refused> {
    read_regular(path, max).map(Digest::of).map_err(|error| Refused::input(path)(unreadable(&error)))
}

/// Returns SHA-256 of a list of `queries` queries. A list of names must have this number of queries; other formats are accepted as
/// they are.
///
/// # Errors
/// If it cannot be read, is too large, or has another number of names or groups.
pub fn hash_query_list(path: &Path, queries: usize) -> Result<Digest, Refused> {
    let bytes = read_input(path, FileKind::QUERY_LIST)?;
    if let Ok(list) = NamedQueries::parse(&bytes) {
        list.expect_count(queries).map_err(Refused::input(path))?;
    }
    Ok(Digest::of(&bytes))
}

/// Returns the path of a file that belongs to a key: the key's, with this extension in place of `key` or `share`. Another name keeps its end, so
/// that `st.a` and `st.b` have different files.
pub(crate) fn beside(key: &Path, extension: &str) -> PathBuf {
    if key.extension().is_some_and(|found| found == "key" || found == "share") {
        return key.with_extension(extension);
    }
    key.with_added_extension(extension)
}

/// Refuses a path at which something exists.
pub(crate) fn expect_absent(path: &Path) -> Result<(), Refused> {
    match fs::symlink_metadata(path) {
        Ok(_) => Err(exists(path)),
        Err(_) => Ok(()),
    }
}

/// Lists the files of a directory in the order of their names, without hidden ones (such as unfinished temporary files).
pub(crate) fn visible_files(folder: &Path) -> Result<Vec<PathBuf>, Refused> {
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
    list().map_err(|error| Refused::input(folder)(format!("cannot read the folder: {error}")))
}

fn exists(path: &Path) -> Refused {
    Refused::results(path, "already exists and is never overwritten: move it away, or give another name")
}

/// Returns the directory of a path.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// Prepares a hidden temporary file or folder with this mode, where there are modes.
pub(crate) fn temporary(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".writing-");
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder
}

/// Writes a new file atomically: through a temporary file in the same directory that is synced before it gets its name.
/// After a kill or a full disk, the file is complete or absent. If the file system allows it, the temporary file has no name on Linux, so
/// that a kill does not leave a part of a secret.
pub(crate) fn write_new(path: &Path, bytes: &[u8], access: Access) -> Result<(), Refused> {
    expect_absent(path)?;
    let folder = folder_of(path);
    #[cfg(target_os = "linux")]
    match write_unnamed(folder, path, bytes, access) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(exists(path)),
        // Not every file system has files without names; the other way reports all other failures.
        Err(_) => {}
    }
    let write = || -> std::io::Result<Result<(), tempfile::PersistError>> {
        let mut file = temporary(access.mode()).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        let persisted = file.persist_noclobber(path).map(drop);
        sync_folder(folder);
        Ok(persisted)
    };
    let persisted = write().map_err(Refused::io("write", path))?;
    persisted.map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => exists(path),
        _ => Refused::io("write", path)(error.error),
    })
}

/// Writes a file that gets its name when it is complete, and had none before.
#[cfg(target_os = "linux")]
fn write_unnamed(folder: &Path, path: &Path, bytes: &[u8], access: Access) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};
    let (flags, mode) = (OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(access.mode()));
    let mut file = File::from(open(folder, flags, mode)?);
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
pub fn write_once(path: &Path, bytes: &[u8]) -> Result<(), Refused> {
    write_once_for(path, bytes, Access::Shared)
}

/// Like [`write_once`], for these readers.
pub(crate) fn write_once_for(path: &Path, bytes: &[u8], access: Access) -> Result<(), Refused> {
    if !path.is_file() {
        return write_new(path, bytes, access);
    }
    let is_same = read_regular(path, bytes.len() as u64).is_ok_and(|found| found == bytes);
    if is_same { Ok(()) } else { Err(Refused::results(path, OTHER_CONTENT)) }
}

/// Returns whether a secret's file contains only zeros, which is the state after a kill in the middle of [`destroy`].
pub(crate) fn is_destroyed(path: &Path, kind: FileKind) -> bool {
    read_regular(path, kind.max).is_ok_and(|bytes| !bytes.is_empty() && bytes.iter().all(|byte| *byte == 0))
}

/// Overwrites a secret's file with zeros and removes it, also if `path` is a symbolic link to it. The link is removed too.
pub(crate) fn destroy(path: &Path) -> Result<(), Refused> {
    let overwrite = || -> std::io::Result<()> {
        let (target, is_link) = (fs::canonicalize(path)?, fs::symlink_metadata(path)?.is_symlink());
        let mut file = fs::OpenOptions::new().write(true).open(&target)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        file.write_all(&vec![0; length])?;
        file.sync_all()?;
        fs::remove_file(&target)?;
        if is_link { fs::remove_file(path) } else { Ok(()) }
    };
    overwrite().map_err(Refused::io("destroy", path))
}

/// Locks a file, creating it if necessary, until it is dropped.
pub(crate) fn lock(path: &Path) -> Result<File, Refused> {
    let file = File::options().create(true).append(true).open(path).map_err(Refused::io("open", path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Refused::results(path, "another program uses it")),
        Err(TryLockError::Error(error)) => Err(Refused::io("lock", path)(error)),
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
    fn a_new_file_replaces_no_file_and_leaves_no_temporary_one() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        write_new(&path, b"12345", Access::Owner).expect("new");
        let error = write_new(&path, b"6", Access::Shared).expect_err("there already");
        assert_eq!(error.exit_code().code(), 4, "{error}");
        assert_eq!(fs::read(&path).expect("a file"), b"12345");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
        // Another program may have written it since the check.
        #[cfg(target_os = "linux")]
        assert!(write_unnamed(folder.path(), &path, b"6", Access::Shared).is_err());
        assert_eq!(fs::read(&path).expect("a file"), b"12345");
    }

    #[cfg(unix)]
    #[test]
    fn secrets_that_others_can_read_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("signing.key");
        write_new(&path, b"12345", Access::Owner).expect("new");
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
}
