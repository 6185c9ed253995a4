//! Comma-separated values as in RFC 4180, with a head line, each line ended by a line feed.
//!
//! By `csv-core`, the state machines of `csv`: the crate around them would change the features of `serde` for the whole workspace.

use csv_core::{ReadFieldResult, Reader, WriteResult, Writer};

/// Writes a table.
pub(crate) fn write<H, R, C>(head: H, rows: R) -> String
where
    H: IntoIterator<Item: AsRef<str>>,
    R: IntoIterator<Item = C>,
    C: IntoIterator<Item: AsRef<str>>,
{
    let mut output = Output { writer: Writer::new(), bytes: Vec::new() };
    output.line(head);
    rows.into_iter().for_each(|row| output.line(row));
    String::from_utf8_lossy(&output.bytes).into_owned()
}

struct Output {
    writer: Writer,
    bytes: Vec<u8>,
}

impl Output {
    fn line(&mut self, cells: impl IntoIterator<Item: AsRef<str>>) {
        for (column, cell) in cells.into_iter().enumerate() {
            if column > 0 {
                self.repeat(|writer, buffer| writer.delimiter(buffer));
            }
            let mut rest = cell.as_ref().as_bytes();
            self.repeat(|writer, buffer| {
                let (result, read, written) = writer.field(rest, buffer);
                rest = &rest[read..];
                (result, written)
            });
        }
        self.repeat(|writer, buffer| writer.terminator(buffer));
    }

    /// Calls a step of the state machine until it has written everything.
    fn repeat(&mut self, mut step: impl FnMut(&mut Writer, &mut [u8]) -> (WriteResult, usize)) {
        let mut buffer = [0; 256];
        loop {
            let (result, written) = step(&mut self.writer, &mut buffer);
            self.bytes.extend_from_slice(&buffer[..written]);
            if result == WriteResult::InputEmpty {
                return;
            }
        }
    }
}

/// Reads the lines of a table, its head first; lines may differ in length.
pub(crate) fn read(text: &str) -> Vec<Vec<String>> {
    let (mut reader, mut rest, mut buffer) = (Reader::new(), text.as_bytes(), [0; 256]);
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        let (result, read, written) = reader.read_field(rest, &mut buffer);
        rest = &rest[read..];
        cell.extend_from_slice(&buffer[..written]);
        match result {
            // The next call has nothing left to read, and ends the table.
            ReadFieldResult::InputEmpty | ReadFieldResult::OutputFull => {}
            ReadFieldResult::Field { record_end } => {
                row.push(String::from_utf8_lossy(&std::mem::take(&mut cell)).into_owned());
                if record_end {
                    rows.push(std::mem::take(&mut row));
                }
            }
            ReadFieldResult::End => return rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_survive() {
        let long = "x\"".repeat(300);
        let rows = [["a,b", "é", ""], [&long, "line\nfeed", "|"]];
        let text = write(["one", "two", "three"], rows);
        assert!(text.starts_with("one,two,three\n\"a,b\",é,\n\"x\"\"x"), "{text}");
        assert_eq!(read(&text)[1..], rows.map(|row| row.map(str::to_owned).to_vec()));
        assert_eq!(read("a,b\n1"), [vec!["a".to_owned(), "b".to_owned()], vec!["1".to_owned()]]);
        assert!(read("").is_empty());
    }
}
