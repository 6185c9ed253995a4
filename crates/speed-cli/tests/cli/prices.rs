//! The price of answers with real noise: one rule for runs, shards, clusters, rounds and ledgers.

use crate::cli::budget::{REAL, RUN, charged};
use crate::cli::common::{Workplace, sets};

/// The first rows of [`REAL`], with too little noise to hide anything.
fn config() -> String {
    let rows = REAL.find("[[row]]\nname = \"甲\"").expect("a row");
    REAL[..rows].replace("gamma = 0.5", "gamma = 200.0").replace("count = 4", "count = 1")
}

#[test]
fn a_run_with_a_large_epsilon_requires_confirmation_before_any_charge() {
    let place = Workplace::new(&config());
    let refused = |arguments: &str, words: &[&str]| {
        place.fails(&format!("{RUN} {arguments}"), 2, words);
        assert!(!place.path("results").exists(), "a refused run leaves nothing");
    };
    refused("", &["no epsilon is known of the run", "no limit but inf", "--max-epsilon"]);
    refused("--set noise.gamma=6.0", &["one answer may cost epsilon", "--max-epsilon", "hides next to nothing"]);
    refused("--set noise.gamma=6.0 --stage votes", &["hides next to nothing"]);
    refused("--set noise.gamma=6.0 --stage aggregate --shard 1/2", &["hides next to nothing"]);
    refused("--set noise.gamma=6.0 --max-epsilon 20", &["the run may cost epsilon", "allowed is 20"]);
    refused("--max-epsilon 0", &["--max-epsilon", "above 0"]);
    refused("--max-epsilon -1e-5", &["--max-epsilon", "above 0"]);
    let dry = place.succeeds(&format!("{RUN} --set noise.gamma=6.0 --dry-run"));
    assert!(dry.contains("# REFUSED for its privacy cost: ") && dry.contains("no meaningful protection"), "{dry}");
    place.fails("submit config.toml --slurm --dry-run --set noise.gamma=6.0", 2, &["hides next to nothing"]);
    let swept = format!("{}\n[sweep]\ngamma = [0.5, 6.0]\n", config());
    place.write("swept.toml", swept);
    place.fails("run swept.toml", 2, &["hides next to nothing"]);
    assert!(!place.path("results").exists(), "no setting before the dear one is answered");
}

#[test]
fn a_confirmed_run_is_done_and_not_asked_again() {
    let place = Workplace::new(&config());
    let six = format!("{RUN} --set noise.gamma=6.0");
    place.succeeds(&format!("{six} --max-epsilon 1000"));
    assert_eq!(charged(&place), 2);
    let table = place.succeeds(&six);
    assert!(table.contains("no meaningful protection"), "{table}");
    // A simulation costs nothing.
    place.succeeds(&format!("{RUN} --set noise.source=simulation --set name=simulated"));
}

#[test]
fn a_large_charge_to_a_ledger_requires_confirmation() {
    let place = Workplace::new("");
    place.succeeds("ledger create ledger --epsilon 1000 --delta 1e-5");
    let charge = "ledger charge ledger --queries 2 --gamma 6";
    place.fails(&charge, 2, &["one answer may cost epsilon 12.00", "--max-epsilon"]);
    place.fails(&format!("{charge} --max-epsilon 15"), 2, &["the charge may cost epsilon", "allowed is 15"]);
    place.succeeds(&format!("{charge} --max-epsilon 30"));
    place.succeeds("ledger charge ledger --queries 2 --gamma 0.1");
    let ledger = place.json("ledger show ledger --json");
    assert_eq!(ledger["queries"], 4);
}

/// Covers every reason for a missing data-independent epsilon: the cell shows it, and a line gives the reason and the
/// remedy.
#[test]
fn a_missing_epsilon_is_none_with_its_reason() {
    let place = Workplace::new(&config());
    // With little noise, delta does not cover the sampler at such an epsilon. The second delta is too small to ever cover it.
    for (index, change) in [["noise.gamma=200.0"; 2], ["noise.gamma=2.0", "privacy.delta=1e-60"]].iter().enumerate() {
        let name = format!("name=none{index}");
        let changes = sets(&["noise.source=simulation", change[0], change[1], &name]);
        let table = place.succeeds(&format!("{RUN}{changes}"));
        let row = table.lines().find(|line| line.starts_with("a b ")).expect("a row");
        assert!(table.contains("ε data-independent") && row.ends_with(" none"), "{table}");
        let why = table.lines().find(|line| line.starts_with("ε data-independent is none for a b")).expect("a reason");
        assert!(why.contains("noise.gamma") && why.contains("privacy.delta"), "{why}");
        assert!(place.succeeds(&["show", &name[5..]]).contains(" none "));
        let list = place.succeeds("list");
        assert!(list.lines().any(|line| line.contains(&name[5..]) && line.contains(" none ")), "{list}");
    }
    place.write("swept.toml", format!("{}\n[sweep]\ngamma = [0.5, 200.0]\n", config()));
    let changes = "--set noise.source=simulation --set name=swept";
    let table = place.succeeds(&format!("run swept.toml {changes}"));
    assert!(table.contains(" none ") && table.contains("is none for a b"), "{table}");
}
