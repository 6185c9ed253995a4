//! Comma-separated values as in RFC 4180, with a header line; each line ends with a line feed.

use csv::{ReaderBuilder, Writer};

/// Writes a table whose lines may differ in length.
pub fn write<H, R, C>(head: H, rows: R) -> String
where
    H: IntoIterator<Item: AsRef<str>>,
    R: IntoIterator<Item = C>,
    C: IntoIterator<Item: AsRef<str>>,
{
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    line(&mut writer, head);
    rows.into_iter().for_each(|row| line(&mut writer, row));
    let bytes = writer.into_inner().expect("memory takes every byte");
    String::from_utf8(bytes).expect("a table of text")
}

fn line(writer: &mut Writer<Vec<u8>>, cells: impl IntoIterator<Item: AsRef<str>>) {
    for cell in cells {
        writer.write_field(cell.as_ref()).expect("memory takes every byte");
    }
    writer.write_record(None::<&[u8]>).expect("memory takes every byte");
}

/// Reads the lines of a table, header first; lines may differ in length.
pub fn read(text: &str) -> Vec<Vec<String>> {
    let mut reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let lines = reader.records().filter_map(Result::ok);
    lines.map(|line| line.iter().map(str::to_owned).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_published_files_and_are_read_back() {
        // As in the runs in results/: quotes only where needed, empty cells bare, a lone empty cell in quotes.
        assert_eq!(write(["a", "b"], [["1", ""], ["", ""]]), "a,b\n1,\n,\n");
        assert_eq!(write(["a"], [vec![""], vec!["1", "2"]]), "a\n\"\"\n1,2\n");
        assert_eq!(write(["a b", "c'd"], [["0.5 ± 0.1", "#1"]]), "a b,c'd\n0.5 ± 0.1,#1\n");
        assert_eq!(write(["ε"], Vec::<[&str; 1]>::new()), "ε\n");
        let long = "x\"".repeat(300);
        let rows = [["a,b", "é", ""], [&long, "line\nfeed", "|"]];
        let text = write(["one", "two", "three"], rows);
        assert!(text.starts_with("one,two,three\n\"a,b\",é,\n\"x\"\"x"), "{text}");
        assert_eq!(read(&text)[1..], rows.map(|row| row.map(str::to_owned).to_vec()));
        assert_eq!(read("a,b\n1"), [vec!["a".to_owned(), "b".to_owned()], vec!["1".to_owned()]]);
        assert!(read("").is_empty());
    }
}
