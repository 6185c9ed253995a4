//! The state that the steps of all students change, on the device.

use burn::tensor::{Device, Tensor};
use speed_nn::adam::Adam;
use speed_nn::average;
use speed_student::training::{REFERENCE_RATE, Training};

use super::batch::Batch;
use super::networks::{discriminator_loss, feature_matching_loss, features, generate, logits};
use crate::DeviceError;
use crate::network::{ArrayKind, Network};
use crate::optimizer::adam_floor_inside;
use crate::stack::{stack, unstack};

/// Both networks of every student in training.
#[derive(Debug)]
pub(super) struct State {
    discriminator: Network,
    generator: Network,
    discriminator_adam: Adam,
    generator_adam: Adam,
    averages: [Average; 2],
    unlabelled_weight: f64,
    students: usize,
}

/// An average of the discriminator's trained arrays, from zero.
#[derive(Debug)]
struct Average {
    rate: f64,
    arrays: Vec<Option<Tensor<3>>>,
}

impl State {
    /// Puts trainings of the same settings, after the same number of steps, on the device.
    pub(super) fn load(trainings: &[Training<'_>], sizes: &Sizes, device: &Device) -> Self {
        let arrays: Vec<Vec<&[f32]>> = trainings.iter().map(Training::arrays).collect();
        let of_all = |index: usize| arrays.iter().map(|arrays| arrays[index]).collect::<Vec<_>>();
        let (first, second) = (sizes.discriminator.len(), sizes.generator.len());
        let both = first + second;
        let network = |kinds: &[ArrayKind], start: usize| {
            let moment = |i: usize, which: usize| of_all(both + 2 * (start + i) + which);
            Network::load(kinds, |i| of_all(start + i), moment, device)
        };
        let average = |rate: f64, start: usize| {
            let array = |(i, kind): (usize, &ArrayKind)| {
                kind.trained.then(|| stack(of_all(start + i).into_iter(), kind.shape, device))
            };
            Average { rate, arrays: sizes.discriminator.iter().enumerate().map(array).collect() }
        };
        let (steps, adam) = (trainings[0].steps_done(), trainings[0].adam());
        Self {
            discriminator: network(&sizes.discriminator, 0),
            generator: network(&sizes.generator, first),
            discriminator_adam: Adam::new(adam, steps),
            generator_adam: Adam::new(adam, steps),
            averages: [average(sizes.average_rate, 3 * both), average(REFERENCE_RATE, 3 * both + first)],
            unlabelled_weight: sizes.unlabelled_weight,
            students: trainings.len(),
        }
    }

    /// Steps that each optimiser has done.
    pub(super) fn steps(&self) -> u64 {
        self.discriminator_adam.steps()
    }

    /// Makes one step of every discriminator. Returns the losses before it, `[students, 1, 1]`.
    pub(super) fn discriminator_step(&mut self, batch: Batch, labels: Tensor<3>) -> Tensor<3> {
        let generated = generate(batch.latent, &self.generator.values());
        let images = Tensor::cat(vec![batch.images, generated], 2);
        let tracked = self.discriminator.tracked();
        let logits = logits(images, &tracked, &batch.noise);
        let loss = discriminator_loss(&logits, labels, self.unlabelled_weight);
        // A student's gradient is that of its own loss: no other loss depends on its parameters.
        let mut gradients = loss.clone().sum().backward();
        let rule = adam_floor_inside(self.discriminator_adam.begin_step());
        self.discriminator.update(&tracked, &mut gradients, rule);
        loss.inner()
    }

    /// Makes one step of every generator towards the features of unlabelled images, the discriminator frozen. Returns the losses
    /// before it, `[students, 1, 1]`.
    pub(super) fn generator_step(&mut self, batch: Batch) -> Tensor<3> {
        let n = batch.images.dims()[2];
        let part = |i: usize| batch.noise.iter().map(move |noise| noise.clone().map(|noise| noise.narrow(2, i * n, n)));
        let (for_real, for_generated): (Vec<_>, Vec<_>) = (part(0).collect(), part(1).collect());
        let discriminator = self.discriminator.values();
        let real = features(batch.images, &discriminator, &for_real);
        let tracked = self.generator.tracked();
        let generated = features(generate(batch.latent, &tracked), &discriminator, &for_generated);
        let loss = feature_matching_loss(real, generated);
        let mut gradients = loss.clone().sum().backward();
        let rule = adam_floor_inside(self.generator_adam.begin_step());
        self.generator.update(&tracked, &mut gradients, rule);
        loss.inner()
    }

    /// Takes the parameters as they are after `steps` more steps into both averages.
    pub(super) fn update_averages(&mut self, steps: u32) {
        let values = self.discriminator.values();
        for Average { rate, arrays } in &mut self.averages {
            let weight = average::weight(*rate, u64::from(steps));
            for (array, value) in arrays.iter_mut().zip(&values) {
                if let Some(array) = array {
                    array.inplace(|a| a.clone() + (value.clone() - a) * weight);
                }
            }
        }
    }

    /// Returns the arrays of every student, in the order of [`Training::arrays`].
    pub(super) fn read(&self) -> Result<Vec<Vec<Vec<f32>>>, DeviceError> {
        let mut arrays = self.discriminator.read_values()?;
        arrays.extend(self.generator.read_values()?);
        arrays.extend(self.discriminator.read_moments(self.students)?);
        arrays.extend(self.generator.read_moments(self.students)?);
        for array in self.averages.iter().flat_map(|average| &average.arrays) {
            arrays.push(array.as_ref().map_or_else(|| Ok(vec![Vec::new(); self.students]), unstack)?);
        }
        let mut students = vec![Vec::with_capacity(arrays.len()); self.students];
        for array in arrays {
            students.iter_mut().zip(array).for_each(|(student, values)| student.push(values));
        }
        Ok(students)
    }
}

/// Settings that all students of a batch have in common.
#[derive(Debug)]
pub(super) struct Sizes {
    /// Arrays of the discriminator: weights, bias, scale of every layer.
    pub(super) discriminator: Vec<ArrayKind>,
    /// Arrays of the generator: weights and shift of every hidden layer; weights, bias and scale of the last.
    pub(super) generator: Vec<ArrayKind>,
    pub(super) average_rate: f64,
    pub(super) unlabelled_weight: f64,
}
