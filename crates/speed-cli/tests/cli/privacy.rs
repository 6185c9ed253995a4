//! Figures of epsilon. Accounts, calibrations and audits: `tests/snapshots/privacy.trycmd`.

use crate::cli::bad_input::npy;
use crate::cli::common::Workplace;

#[test]
fn figures_are_drawn_and_not_overwritten() {
    let place = Workplace::new("");
    npy(&place.path("votes.npy"), "4, 3", &[240, 5, 5, 100, 90, 60, 0, 0, 250, 124, 125, 1]);
    for kind in ["gamma", "tau"] {
        let draw = format!("figure {kind} --votes votes.npy");
        place.succeeds(&draw);
        let read = |extension: &str| place.read(&format!("figure-{kind}.{extension}"));
        assert_eq!(read("csv").lines().count(), 61);
        assert!(read("csv").starts_with(&format!("{kind},paper,tight\n")));
        assert!(read("svg").starts_with("<svg") && read("svg").contains("epsilon of all queries"));
        place.fails(&draw, 4, &["already exists", "never overwritten"]);
        // `--out` may name either file.
        let named = place.json(&format!("{draw} --out {kind}.svg --json"));
        assert_eq!(named["csv"], format!("{kind}.csv"));
        assert!(place.path(&format!("{kind}.svg")).exists());
        let drawn = place.json(&format!("{draw} --out again-{kind} --json"));
        assert_eq!(drawn["curves"]["tight"].as_array().map(Vec::len), Some(60));
    }
}
