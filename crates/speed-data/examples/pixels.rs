//! Prints the bytes of every picture of a directory as hexadecimal digits, to compare them with those of other programs.
//!
//! ```console
//! $ cargo run --release -p speed-data --features dicom --example pixels -- FOLDER grey|colour
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example prints and reports errors")]

use std::error::Error;
use std::path::Path;

use speed_data::pictures::{Reading, load_unlabelled};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, colours] = &arguments[..] else {
        eprintln!("usage: pixels FOLDER grey|colour");
        return Ok(());
    };
    let reading = Reading { size: None, least_side: 1, is_colour: colours == "colour", max_values: 1 << 20 };
    let pictures = load_unlabelled(Path::new(folder), reading, 2)?;
    for (image, file) in pictures.files.iter().enumerate() {
        let digits: String = pictures.images.pixels(image).iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{} {digits}", file.display());
    }
    Ok(())
}
