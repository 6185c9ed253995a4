//! Exponential averages of parameters.

/// The average `a += rate * (p - a)` of some arrays of parameters, from `a = 0`.
///
/// It may be updated once for several steps: [`update`](Self::update) then takes the parameters of the last of them
/// with the compounded rate `1 - (1 - rate)^steps`, a tenth of the work for nearly the same average.
#[derive(Clone, Debug, PartialEq)]
pub struct Average {
    rate: f64,
    steps: u64,
    arrays: Vec<Vec<f32>>,
}

impl Average {
    /// Returns an average of rate `rate` a step, for arrays of these lengths.
    #[must_use]
    pub fn new(rate: f64, lengths: impl IntoIterator<Item = usize>) -> Self {
        Self { rate, steps: 0, arrays: lengths.into_iter().map(|length| vec![0.0; length]).collect() }
    }

    /// Takes in the parameters as they are `steps` steps after the last update.
    ///
    /// # Panics
    /// When the arrays are not those that the average was made for.
    pub fn update(&mut self, steps: u32, parameters: &[&[f32]]) {
        assert_eq!(parameters.len(), self.arrays.len(), "arrays of parameters");
        self.steps += u64::from(steps);
        let weight = self.weight(u64::from(steps));
        for (average, parameters) in self.arrays.iter_mut().zip(parameters) {
            assert_eq!(average.len(), parameters.len(), "parameters of an array");
            for (a, &p) in average.iter_mut().zip(*parameters) {
                *a = weight.mul_add(p - *a, *a);
            }
        }
    }

    /// Share of the average that is not its start at zero.
    fn weight(&self, steps: u64) -> f32 {
        weight(self.rate, steps)
    }

    /// Returns the average as it is, still drawn towards its start at zero.
    #[must_use]
    pub fn from_zero(&self) -> Vec<Vec<f32>> {
        self.arrays.clone()
    }

    /// Returns the average with its start at zero divided out: a true weighted mean of the parameters seen. Zero before the
    /// first update.
    #[must_use]
    pub fn corrected(&self) -> Vec<Vec<f32>> {
        let factor = if self.steps == 0 { 0.0 } else { 1.0 / self.weight(self.steps) };
        self.arrays.iter().map(|array| array.iter().map(|a| a * factor).collect()).collect()
    }

    /// Steps seen, for a checkpoint.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the arrays of the average, for a checkpoint.
    pub fn arrays(&self) -> impl Iterator<Item = &[f32]> {
        self.arrays.iter().map(Vec::as_slice)
    }

    /// Steps seen and the arrays, to restore from a checkpoint.
    pub fn restore(&mut self, steps: u64) -> impl Iterator<Item = &mut [f32]> {
        self.steps = steps;
        self.arrays.iter_mut().map(Vec::as_mut_slice)
    }
}

/// `1 - (1 - rate)^steps`: how far an average of rate `rate` goes in `steps` steps.
#[must_use]
pub fn weight(rate: f64, steps: u64) -> f32 {
    let steps = i32::try_from(steps).unwrap_or(i32::MAX);
    #[expect(clippy::cast_possible_truncation, reason = "a weight in f32 is what the update needs")]
    let weight = (1.0 - (1.0 - rate).powi(steps)) as f32;
    weight
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_steps_at_once_are_ten_steps_of_constant_parameters() {
        let parameters: [&[f32]; 2] = [&[2.0, -1.0], &[0.5]];
        let (mut single, mut joint) = (Average::new(0.1, [2, 1]), Average::new(0.1, [2, 1]));
        for _ in 0..10 {
            single.update(1, &parameters);
        }
        joint.update(10, &parameters);
        assert_eq!(single.steps(), joint.steps());
        // (1 - 0.9^10) * 2 = 1.302643
        assert!((joint.from_zero()[0][0] - 1.302_643_1).abs() < 1e-5);
        assert!((single.from_zero()[0][0] - 1.302_643_1).abs() < 1e-5);
        assert!((joint.corrected()[0][1] + 1.0).abs() < 1e-6 && (single.corrected()[1][0] - 0.5).abs() < 1e-6);
    }

    #[test]
    fn newer_parameters_weigh_more() {
        let mut average = Average::new(0.25, [1]);
        assert_eq!(average.corrected(), vec![vec![0.0]]);
        average.update(1, &[&[1.0]]);
        average.update(1, &[&[2.0]]);
        // 0.75 * 0.25 * 1 + 0.25 * 2 = 0.6875, weights 0.4375
        assert!((average.from_zero()[0][0] - 0.6875).abs() < 1e-6);
        assert!((average.corrected()[0][0] - 0.6875 / 0.4375).abs() < 1e-6);
    }

    #[test]
    #[should_panic(expected = "parameters of an array")]
    fn other_parameters_are_refused() {
        Average::new(0.1, [2]).update(1, &[&[1.0]]);
    }
}
