//! Text files as editors and spreadsheets save them.

use std::borrow::Cow;

/// The byte order mark, which Windows programs write at the beginning of UTF-8 files.
const MARK: char = '\u{feff}';

/// Bytes that are not UTF-8 text, with the next step.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TextError(String);

/// Decodes the bytes of a text file, without a byte order mark at its beginning.
///
/// # Errors
/// If the bytes are UTF-16, or not UTF-8.
///
/// ```
/// assert_eq!(speed_core::decode_text(b"\xef\xbb\xbfname = 1")?, "name = 1");
/// # Ok::<(), speed_core::TextError>(())
/// ```
pub fn decode_text(bytes: &[u8]) -> Result<&str, TextError> {
    // ASCII in UTF-16 without a mark has a zero in one of its first two bytes.
    if bytes.starts_with(&[0xff, 0xfe])
        || bytes.starts_with(&[0xfe, 0xff])
        || bytes.iter().take(2).any(|&byte| byte == 0)
    {
        let next = "save it as UTF-8 (in Excel \"CSV UTF-8\", in PowerShell -Encoding utf8)";
        return Err(TextError(format!("UTF-16 text, expected UTF-8: {next}")));
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.trim_start_matches(MARK)),
        Err(error) => {
            let line = 1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count();
            let next = "save it as UTF-8 (in Excel \"CSV UTF-8\")";
            Err(TextError(format!("line {line} is not UTF-8 text: {next}")))
        }
    }
}

/// Removes the byte order marks that begin a table or a comment of a TOML text, because `cat` keeps the mark of every
/// file that it joins.
///
/// ```
/// assert_eq!(speed_core::without_joined_marks("a = 1\n\u{feff}[b]\n"), "a = 1\n[b]\n");
/// ```
pub fn without_joined_marks(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| match line.trim_start_matches(MARK) {
        rest if rest.starts_with(['[', '#', '\r', '\n']) || rest.is_empty() => rest.to_owned(),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_left_out_and_other_encodings_named() {
        assert_eq!(decode_text("\u{feff}\u{feff}é".as_bytes()), Ok("é"));
        assert_eq!(decode_text(b""), Ok(""));
        let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
        let refused = |bytes: &[u8]| decode_text(bytes).expect_err("refused").to_string();
        assert!(refused(&wide("\u{feff}a")).starts_with("UTF-16 text"));
        assert!(refused(&wide("a")).starts_with("UTF-16 text"));
        assert!(refused(b"a\nb\xe9").starts_with("line 2 is not UTF-8 text"));
    }

    #[test]
    fn a_mark_within_a_line_stays() {
        assert_eq!(without_joined_marks("a = \"\u{feff}\"\n\u{feff}b = 2"), "a = \"\u{feff}\"\n\u{feff}b = 2");
        assert_eq!(without_joined_marks("x\r\n\u{feff}# card\r\n\u{feff}\r\n\u{feff}"), "x\r\n# card\r\n\r\n");
    }
}
