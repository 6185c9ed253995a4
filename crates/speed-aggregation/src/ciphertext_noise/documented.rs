//! The bounds that docs/homomorphic-argmax.md states, computed.

use std::path::Path;

use super::CiphertextNoise;
use crate::exact_circuit::ExactCircuit;
use crate::layout::Layout;
use crate::parameters::Parameters;
use crate::range::VoteRange;

/// The rows of the table with these first lines, cell by cell.
fn table(page: &str, head: &str) -> Vec<Vec<String>> {
    let start = page.find(head).unwrap_or_else(|| panic!("no table {head:?}"));
    let lines = page[start..].lines().take_while(|line| line.starts_with('|'));
    let rows =
        lines.skip(2).map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().replace("**", "")).collect());
    rows.collect()
}

/// Fails unless a cell prints this value, or two to the power of it, to its last digit.
#[track_caller]
fn holds(what: &str, cell: &str, value: f64) {
    let digits = cell.strip_prefix("2^").unwrap_or(cell);
    let decimals = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let unit = 10_f64.powi(-i32::try_from(decimals).expect("few digits"));
    let over = digits.parse::<f64>().expect("a number") - value;
    assert!(over.abs() <= 0.501 * unit, "docs/homomorphic-argmax.md, {what}: {cell}, computed {value}");
}

fn with<T>(p: &Parameters, outcomes: usize, range: VoteRange, f: impl Fn(&CiphertextNoise<'_>) -> T) -> T {
    f(&CiphertextNoise::new(p, Layout::new(p, outcomes, range).expect("in range"), range))
}

#[test]
fn the_documented_bounds_hold() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/homomorphic-argmax.md");
    // A crate from a registry comes without the repository's documents.
    let Ok(page) = std::fs::read_to_string(path) else { return };
    let [narrow, wide] = Parameters::ALL;
    let rounds = [
        (narrow, 10, VoteRange::new(250, 513)),
        (wide, 10, VoteRange::new(5000, 500)),
        (narrow, 100, VoteRange::new(2544, 0)),
    ];

    let deviations = table(&page, "| | `TOURNAMENT_128` | `WIDE_128` |\n|---|---|---|\n| modulus switch");
    for (column, (p, outcomes, range)) in rounds[..2].iter().enumerate() {
        let values = with(p, *outcomes, *range, deviations_of);
        let last =
            with(p, 128, *range, |model| model.match_input(model.layout.scales().next().expect("a scale"), 6).sqrt());
        let cells = deviations.iter().flat_map(|row| row[column + 1].split(' ').map(|cell| (&row[0], cell)));
        let mut values = values.into_iter();
        for (name, cell) in cells {
            let value = if name.contains("round 7") { last } else { values.next().expect("a value for every cell") };
            holds(name, cell, value);
        }
        assert_eq!(values.next(), None);
    }

    let failures = table(&page, "| round | circuit |");
    assert_eq!(failures.len(), 2 * rounds.len());
    for (rows, (p, outcomes, range)) in failures.chunks(2).zip(&rounds) {
        let bound = range.noise_bound();
        let noise = if bound == 0 { "no noise".to_owned() } else { format!("noise bound {bound}") };
        let title = format!("{outcomes} classes, {} teachers, {noise}", range.teachers());
        assert!(rows[0][0].starts_with(&title), "{} is not {title}", rows[0][0]);
        for (row, circuit) in rows.iter().zip([ExactCircuit::Tournament, ExactCircuit::AllPairs]) {
            let guarantee = with(p, *outcomes, *range, |model| model.guarantee(circuit));
            assert!(
                guarantee.query_log2 < -128.0 && guarantee.query_log2 >= guarantee.comparison_log2,
                "{guarantee:?}"
            );
            holds(&title, &row[2], guarantee.comparison_log2);
            holds(&title, &row[3], guarantee.read_out_log2);
            holds(&title, &row[4], guarantee.query_log2);
        }
    }

    let distances = table(&page, "| stage | error, standard deviation |");
    let (narrow, wide) = (rounds[0], rounds[1]);
    let stages = with(&narrow.0, narrow.1, narrow.2, |model| {
        let deviations =
            [model.winner(ExactCircuit::Tournament), model.bootstrap(model.p.select), model.bootstrap(model.p.select)];
        let lengths = [model.p.read_out_flooding_log, model.p.read_out_flooding_log, model.p.flooding_log]
            .map(|log| f64::from(log + 1));
        let logs = deviations.map(|variance| variance.sqrt().log2());
        [0, 1, 2].map(|stage| {
            [logs[stage], lengths[stage], logs[stage] - lengths[stage] + (2.0 / std::f64::consts::PI.sqrt()).log2()]
        })
    });
    for (row, values) in distances.iter().zip(stages) {
        row[1..].iter().zip(values).for_each(|(cell, value)| holds(&row[0], cell, value));
    }
    let two_digits = "For a hundred classes (seven rounds) the sum is ";
    let sum = page.split(two_digits).nth(1).and_then(|rest| rest.split(';').next()).expect("the sum of two digits");
    let (p, outcomes, range) = rounds[2];
    holds(two_digits, sum, with(&p, outcomes, range, |model| model.guarantee(ExactCircuit::Tournament).distance_log2));
    let product = &distances[3][3];
    let distance = |(p, outcomes, range): (Parameters, usize, VoteRange)| {
        with(&p, outcomes, range, |model| model.guarantee(ExactCircuit::Tournament).distance_log2)
    };
    let joint = table(&page, "| round, joint opening |");
    let joint_rounds = [narrow, (narrow.0, 2, narrow.2), wide, rounds[2]];
    assert_eq!(joint.len(), joint_rounds.len());
    for (row, (p, outcomes, range)) in joint.iter().zip(&joint_rounds) {
        let set = p.name();
        assert!(
            row[0].starts_with(&format!("{outcomes} classes")) && row[0].ends_with(&format!("`{set}`")),
            "{}",
            row[0]
        );
        let guarantee = with(p, *outcomes, *range, |model| model.joint_guarantee(ExactCircuit::Tournament));
        holds(&row[0], &row[1], guarantee.margin.log2());
        holds(&row[0], &row[2], guarantee.query_log2);
        holds(&row[0], &row[3], guarantee.distance_log2);
        holds(&row[0], &row[4], guarantee.excess_log2);
        let answers = (f64::from(p.leakage_bits()) / (*outcomes as f64).log2()).floor();
        holds(&row[0], &row[5], guarantee.distance_log2 + answers.log2());
        holds(&row[0], &row[6], (guarantee.excess_log2.exp2().ln_1p() * answers).exp_m1().log2());
    }
    assert_eq!(*product, format!("2^{:.1} per answer (wide: 2^{:.1})", distance(narrow), distance(wide)));
}

/// The standard deviations of the table, in its order.
fn deviations_of(model: &CiphertextNoise<'_>) -> Vec<f64> {
    let bucket = model.bucket();
    let finest = model.layout.scales().next().expect("a scale");
    let mut values = vec![
        model.modulus_switch().sqrt() / bucket,
        model.key_switch().sqrt() / bucket,
        model.bootstrap(model.p.bootstrap).sqrt().log2(),
        model.bootstrap(model.p.select).sqrt().log2(),
        model.packing().sqrt().log2(),
    ];
    values.extend((0..4).map(|round| model.match_input(finest, round).sqrt()));
    values.push(model.sum_input(model.layout.scales().len()).sqrt());
    values
}
