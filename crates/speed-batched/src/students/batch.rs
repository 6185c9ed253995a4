//! The batches of one step, for all students at once.

use burn::tensor::{Device, Int, Tensor, TensorData};
use speed_data::Split;
use speed_student::training::{NetworkDraws, StepDraws, Training};

/// Students whose normal values are in one buffer: 64 MiB, half of what every GPU allows.
const NOISE_BLOCK: usize = 4;

/// Values that do not change from step to step, on the device.
#[derive(Debug)]
pub(super) struct Source {
    device: Device,
    /// `[images, pixels]` within 0..=1.
    pool: Tensor<2>,
    /// Normal values of some students each, `[students, values]`.
    noise: Vec<Tensor<2>>,
    longest_window: usize,
    /// Units that noise is added to, layer by layer, and its deviation.
    inputs: Vec<(usize, f64)>,
    batch: usize,
    latent: usize,
    classes: usize,
}

/// Inputs of one step of one network.
#[derive(Debug)]
pub(super) struct Batch {
    /// Real images `[students, pixels, images]`.
    pub(super) images: Tensor<3>,
    /// `[students, latent, batch]`.
    pub(super) latent: Tensor<3>,
    /// Noise before each layer of the discriminator, `[students, inputs, columns]`.
    pub(super) noise: Vec<Option<Tensor<3>>>,
}

impl Source {
    pub(super) fn new(pool: &Split, trainings: &[Training<'_>], device: &Device) -> Self {
        let config = trainings[0].config();
        let (images, pixels) = (pool.len(), pool.shape().pixels());
        let values: Vec<f32> = (0..images).flat_map(|i| pool.pixels(i)).map(|&byte| f32::from(byte) / 255.0).collect();
        let block = |trainings: &[Training<'_>]| {
            let values: Vec<f32> = trainings.iter().flat_map(|training| training.noise().values()).copied().collect();
            let shape = [trainings.len(), values.len() / trainings.len()];
            Tensor::from_data(TensorData::new(values, shape), device)
        };
        let deviations = std::iter::once(config.input_noise).chain(std::iter::repeat(config.hidden_noise));
        let inputs = std::iter::once(pixels).chain(config.discriminator.iter().copied());
        Self {
            device: device.clone(),
            pool: Tensor::from_data(TensorData::new(values, [images, pixels]), device),
            noise: trainings.chunks(NOISE_BLOCK).map(block).collect(),
            longest_window: trainings[0].noise().longest_window(),
            inputs: inputs.zip(deviations).collect(),
            batch: config.batch,
            latent: config.latent,
            classes: trainings[0].classes(),
        }
    }

    /// Returns the batch of the discriminators' step: labelled and unlabelled images.
    pub(super) fn discriminator(&self, draws: &[StepDraws]) -> Batch {
        let images = draws.iter().flat_map(|draws| draws.labelled.iter().chain(&draws.unlabelled));
        let of_networks: Vec<_> = draws.iter().map(|draws| &draws.discriminator).collect();
        self.batch(images.copied(), &of_networks, 3 * self.batch)
    }

    /// Returns the batch of the generators' step: unlabelled images.
    pub(super) fn generator(&self, draws: &[StepDraws]) -> Batch {
        let images = draws.iter().flat_map(|draws| &draws.matched);
        let of_networks: Vec<_> = draws.iter().map(|draws| &draws.generator).collect();
        self.batch(images.copied(), &of_networks, 2 * self.batch)
    }

    /// 1 at the label of each labelled image and 0 elsewhere, `[students, classes, batch]`.
    pub(super) fn labels(&self, draws: &[StepDraws]) -> Tensor<3> {
        let mut values = vec![0.0_f32; draws.len() * self.classes * self.batch];
        for (student, draws) in values.chunks_exact_mut(self.classes * self.batch).zip(draws) {
            for (column, &label) in draws.labels.iter().enumerate() {
                student[usize::from(label) * self.batch + column] = 1.0;
            }
        }
        Tensor::from_data(TensorData::new(values, [draws.len(), self.classes, self.batch]), &self.device)
    }

    fn batch(&self, images: impl Iterator<Item = usize>, draws: &[&NetworkDraws], columns: usize) -> Batch {
        let students = draws.len();
        let indices = self.indices(images.collect());
        let pixels = self.inputs[0].0;
        let images = self.pool.clone().select(0, indices).reshape([students as i32, -1, pixels as i32]).swap_dims(1, 2);
        let latent: Vec<f32> = draws.iter().flat_map(|draws| &draws.latent).copied().collect();
        let shape = [students, self.latent, self.batch];
        let layers = draws[0].noise.len();
        let noise = (0..layers).map(|layer| {
            let starts: Vec<&[usize]> = draws.iter().map(|draws| draws.noise[layer].as_slice()).collect();
            let (inputs, deviation) = self.inputs[layer];
            (!starts[0].is_empty()).then(|| self.noise(&starts, [inputs, columns]) * deviation)
        });
        Batch {
            images,
            latent: Tensor::from_data(TensorData::new(latent, shape), &self.device),
            noise: noise.collect(),
        }
    }

    /// Normal values `[students, rows, columns]` from the windows that start at each student's `starts`.
    fn noise(&self, starts: &[&[usize]], [rows, columns]: [usize; 2]) -> Tensor<3> {
        let (values, windows) = (rows * columns, starts[0].len());
        let blocks = self.noise.iter().zip(starts.chunks(NOISE_BLOCK)).map(|(pool, starts)| {
            let windows = (0..windows).map(|window| {
                let length = self.longest_window.min(values - window * self.longest_window);
                let first = self.indices(starts.iter().map(|starts| starts[window]).collect()).reshape([-1, 1]);
                let places = Tensor::arange(0..length as i64, &self.device).reshape([1, -1]);
                pool.clone().gather(1, first.expand([starts.len(), length]) + places.expand([starts.len(), length]))
            });
            Tensor::cat(windows.collect(), 1)
        });
        Tensor::cat(blocks.collect(), 0).reshape([starts.len(), rows, columns])
    }

    fn indices(&self, indices: Vec<usize>) -> Tensor<1, Int> {
        let length = indices.len();
        let indices: Vec<i32> = indices.into_iter().map(|i| i32::try_from(i).expect("an index of 31 bits")).collect();
        Tensor::from_data(TensorData::new(indices, [length]), &self.device)
    }
}
