//! Neighbours by their definition, for all tests that enumerate them.

/// Lists the counts of `teachers` teachers after one of them changed its vote from anything to anything else: a class, or
/// an empty vote.
pub(crate) fn neighbours(counts: &[i64], teachers: i64) -> Vec<Vec<i64>> {
    // The last place is for empty votes.
    let places = [counts, &[teachers - counts.iter().sum::<i64>()]].concat();
    let mut all = Vec::new();
    for from in (0..places.len()).filter(|&from| places[from] > 0) {
        for to in (0..places.len()).filter(|&to| to != from) {
            let mut moved = places.clone();
            moved[from] -= 1;
            moved[to] += 1;
            moved.pop();
            all.push(moved);
        }
    }
    all
}
