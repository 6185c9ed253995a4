//! The images that students drew.

use maud::{Markup, html};

use super::frame::data_uri;
use crate::report::run::Report;

/// The maximum size of all pictures in a page, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The first bytes of every PNG file.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Returns the images drawn by the first student of each row, given the picture of a student's stage; `None` if no
/// student draws.
pub(super) fn drawn(report: &Report, picture: impl Fn(&str) -> Option<Vec<u8>>) -> Option<Markup> {
    let mut drawn: Vec<(&str, Vec<&str>, Vec<u8>)> = Vec::new();
    let mut bytes = 0;
    for row in &report.rows {
        let Some(student) = row.students.first() else { continue };
        if let Some((_, rows, _)) = drawn.iter_mut().find(|(stage, ..)| *stage == student.stage) {
            rows.push(&row.name);
            continue;
        }
        let picture = picture(&student.stage).filter(|png| png.starts_with(PNG));
        let Some(picture) = picture.filter(|png| bytes + png.len() <= MAX_BYTES) else { continue };
        bytes += picture.len();
        drawn.push((&student.stage, vec![&row.name], picture));
    }
    (!drawn.is_empty()).then(|| html! {
        p { "Images that the first student of a row drew after its last epoch, from noise alone." }
        div.drawn {
            @for (_, rows, png) in &drawn {
                figure {
                    img src=(data_uri("image/png", png)) alt={ "Images drawn by the student of " (rows.join(", ")) ", ten in a row" };
                    figcaption { (rows.join(", ")) }
                }
            }
        }
    })
}
