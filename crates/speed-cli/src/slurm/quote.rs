//! Quoting of texts as words of bash.

/// Returns any text as one word of one line of bash, even if the text has several lines.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    if !text.contains(char::is_control) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for c in text.chars() {
        match c {
            '\\' | '\'' => word.extend(['\\', c]),
            c if c.is_control() => {
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().for_each(|byte| word.push_str(&format!("\\x{byte:02x}")));
            }
            c => word.push(c),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn bash_reads_quoted_text_back_unchanged() {
        let odd = [
            "plain/path-1.toml",
            "",
            "with space",
            "it's",
            "$(touch harm) `id` \"$HOME\" \\ ! * ? ~ # ; & | < > {a,b}",
            "two\nlines\tand a tab, it's \\x41",
            "bell \u{7} and C1 \u{85}3 and Straße 日本",
            "-dash",
        ];
        for text in odd {
            let word = quoted(text);
            assert!(!word.contains('\n'), "{word}");
            let script = format!("printf %s {word}");
            let output = Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output().expect("bash");
            assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{word}");
        }
        assert_eq!(quoted("plain/path-1.toml"), "plain/path-1.toml");
    }
}
