//! Distributions of the answer by sums over every value of the noise.

/// Computes the probabilities of `A - B` at `-reach..=reach`, where `A` and `B` are negative binomial of shape `shape`,
/// by convolution.
pub(crate) fn pmf(gamma: f64, shape: f64, reach: i64) -> Vec<f64> {
    let p = (-gamma).exp();
    let terms = (60.0 / gamma) as usize + reach as usize;
    let mut one = vec![(1.0 - p).powf(shape)];
    for k in 1..=terms {
        let last = one[k - 1];
        one.push(last * p * (k as f64 - 1.0 + shape) / k as f64);
    }
    let at = |k: i64| -> f64 { (0..=terms - k as usize).map(|j| one[j] * one[j + k as usize]).sum() };
    let half: Vec<f64> = (0..=reach).map(at).collect();
    (-reach..=reach).map(|k| half[k.unsigned_abs() as usize]).collect()
}

/// Computes the probabilities of the heads of fair coins, less half of the coins, rounded down, from as far below 0 as
/// above it.
pub(crate) fn heads_of(coins: u64) -> Vec<f64> {
    let mut row = vec![1.0];
    for _ in 0..coins {
        row = (0..=row.len())
            .map(|i| 0.5 * (row.get(i).unwrap_or(&0.0) + if i > 0 { row[i - 1] } else { 0.0 }))
            .collect();
    }
    // An odd number of coins has one more place above 0 than below.
    if coins % 2 == 1 {
        row.insert(0, 0.0);
    }
    row
}

/// Computes the probability of every answer, with "no answer" last, over all values of the noise. Ties go to the lowest
/// class.
pub(crate) fn answers(counts: &[i64], pmf: &[f64], threshold: Option<i64>) -> Vec<f64> {
    let reach = (pmf.len() / 2) as i64;
    let mut answers = vec![0.0; counts.len() + 1];
    let mut noise = vec![-reach; counts.len()];
    loop {
        let probability: f64 = noise.iter().map(|&r| pmf[(r + reach) as usize]).product();
        let noisy = |k: usize| counts[k] + noise[k];
        let winner = (1..counts.len()).fold(0, |best, k| if noisy(k) > noisy(best) { k } else { best });
        let silent = threshold.is_some_and(|threshold| noisy(winner) < threshold);
        answers[if silent { counts.len() } else { winner }] += probability;
        let Some(next) = (0..counts.len()).find(|&k| noise[k] < reach) else { return answers };
        noise[next] += 1;
        noise[..next].fill(-reach);
    }
}

/// Computes the same by sums over the winning count, which takes less time.
pub(crate) fn probabilities(counts: &[i64], pmf: &[f64], threshold: Option<i64>) -> Vec<f64> {
    let reach = (pmf.len() / 2) as i64;
    let below: Vec<f64> = pmf
        .iter()
        .scan(0.0, |sum, p| {
            *sum += p;
            Some(*sum)
        })
        .collect();
    let at = |k: i64| if k < -reach { 0.0 } else { below.get((k + reach) as usize).copied().unwrap_or(1.0) };
    let reaches = |x: i64| threshold.is_none_or(|threshold| x >= threshold);
    let mut all: Vec<f64> = (0..counts.len())
        .map(|class| {
            let others = |x: i64| -> f64 {
                let rivals = (0..counts.len()).filter(|&k| k != class);
                rivals.map(|k| at(x - counts[k] - i64::from(k < class))).product()
            };
            let winning = (-reach..=reach).filter(|r| reaches(counts[class] + r));
            winning.map(|r| pmf[(r + reach) as usize] * others(counts[class] + r)).sum()
        })
        .collect();
    let silent = |threshold: i64| counts.iter().map(|count| at(threshold - 1 - count)).product();
    all.push(threshold.map_or(0.0, silent));
    all
}

/// Lists all ways to distribute votes.
pub(crate) fn histograms(classes: usize, votes: i64) -> Vec<Vec<i64>> {
    if classes == 1 {
        return vec![vec![votes]];
    }
    (0..=votes)
        .flat_map(|first| {
            histograms(classes - 1, votes - first).into_iter().map(move |mut rest| {
                rest.insert(0, first);
                rest
            })
        })
        .collect()
}

/// Lists all votes of this number of teachers, of which any may be empty.
pub(crate) fn rows_with_empty_votes(classes: usize, teachers: i64) -> Vec<Vec<i64>> {
    let mut all = histograms(classes + 1, teachers);
    all.iter_mut().for_each(|row| row.truncate(classes));
    all
}

/// Computes the least delta of `queries` copies of the same pair of distributions, by a sum over all counts of answers.
pub(crate) fn delta_of(here: &[f64], there: &[f64], queries: usize, epsilon: f64) -> f64 {
    fn walk(here: &[f64], there: &[f64], left: usize, log_ways: f64, logs: (f64, f64), epsilon: f64) -> f64 {
        if here.len() == 1 {
            let add = |log: f64, p: f64| if left == 0 { log } else { log + left as f64 * p.ln() };
            let (p, p_there) = (add(logs.0, here[0]), add(logs.1, there[0]));
            return ((log_ways + p).exp() - (log_ways + epsilon + p_there).exp()).max(0.0);
        }
        (0..=left)
            .map(|times| {
                let choose: f64 = (0..times).map(|i| ((left - i) as f64 / (times - i) as f64).ln()).sum();
                let add = |log: f64, p: f64| if times == 0 { log } else { log + times as f64 * p.ln() };
                let logs = (add(logs.0, here[0]), add(logs.1, there[0]));
                walk(&here[1..], &there[1..], left - times, log_ways + choose, logs, epsilon)
            })
            .sum()
    }
    walk(here, there, queries, 0.0, (0.0, 0.0), epsilon)
}

/// Computes the logarithm of `sum p^{l+1} / p'^l`.
pub(crate) fn exact_moment(here: &[f64], there: &[f64], l: f64) -> f64 {
    let pairs = here.iter().zip(there).filter(|(p, _)| **p > 0.0);
    pairs.map(|(p, p_there)| p * (p / p_there).powf(l)).sum::<f64>().ln()
}
