//! Reads files in SVHN's format (scripts/svhn-like generates such files) and prints the time taken.
//!
//! ```console
//! $ cargo run --release -p speed-data --example read-mat -- FOLDER
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example")]

use std::path::Path;
use std::time::Instant;

fn main() {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let start = Instant::now();
    match speed_data::load_svhn_like(Path::new(&folder)) {
        Ok(data) => {
            println!("{} and {} images in {:.2} s", data.train.len(), data.test.len(), start.elapsed().as_secs_f64());
        }
        Err(error) => eprintln!("{error}"),
    }
}
