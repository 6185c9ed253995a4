//! Everything that a training changes, and its two kinds of step.

use sha2::{Digest, Sha256};
use speed_nn::adam::{Adam, AdamConfig, Moments};
use speed_nn::average::Average;
use speed_nn::noise::NormalPool;
use speed_random::{Stream, Streams};

use crate::checkpoint::CheckpointError;
use crate::discriminator::{Depth, Discriminator, DiscriminatorTrace, Noise};
use crate::generator::{Generator, GeneratorMoments, GeneratorTrace};
use crate::loss::{discriminator_loss, feature_matching_loss};
use crate::{EpochMetrics, Images, StudentConfig};

#[cfg(test)]
mod peer_trace;

/// Rate of the reference's parameter average.
pub const REFERENCE_RATE: f64 = 1e-4;

/// Normal values drawn for the noise layers: 16 MB, three times what a step uses.
const NOISE_POOL: usize = 1 << 22;

/// Both networks in training.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) discriminator: Discriminator,
    pub(crate) generator: Generator,
    discriminator_adam: Adam,
    generator_adam: Adam,
    discriminator_moments: Vec<[Moments; 3]>,
    generator_moments: GeneratorMoments,
    pub(crate) average: Average,
    pub(crate) reference_average: Average,
    pub(crate) metrics: Vec<EpochMetrics>,
}

/// Memory and noise that steps share; holds nothing that outlives a step.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) noise: NormalPool,
    discriminator: DiscriminatorTrace,
    generator: GeneratorTrace,
}

impl Workspace {
    pub(crate) fn new(streams: &Streams) -> Self {
        Self {
            noise: NormalPool::new(NOISE_POOL, &mut streams.stream("noise pool", 0)),
            discriminator: DiscriminatorTrace::default(),
            generator: GeneratorTrace::default(),
        }
    }
}

impl State {
    /// New networks, the discriminator initialised on some images of the pool.
    pub(crate) fn new(
        config: &StudentConfig,
        pool: Images<'_>,
        classes: usize,
        streams: &Streams,
        workspace: &mut Workspace,
    ) -> Self {
        let pixels = pool.shape().pixels();
        let mut discriminator = Discriminator::new(config, pixels, classes, &mut streams.stream("discriminator", 0));
        let generator = Generator::new(config, pixels, &mut streams.stream("generator", 0));

        let mut stream = streams.stream("initial images", 0);
        let count = config.initial_images.min(pool.len());
        let indices = rand::seq::index::sample(&mut stream, pool.len(), count).into_vec();
        let trace = &mut workspace.discriminator;
        pool.write(trace.images(pixels, count), 0, &indices);
        discriminator.initialize_on(trace, &mut Noise { pool: &workspace.noise, stream: &mut stream });

        let lengths: Vec<usize> = discriminator.trained().iter().map(|array| array.len()).collect();
        Self {
            discriminator_adam: Adam::new(config.adam(), 0),
            generator_adam: Adam::new(config.adam(), 0),
            discriminator_moments: discriminator.moments(),
            generator_moments: generator.moments(),
            average: Average::new(config.average_rate, lengths.iter().copied()),
            reference_average: Average::new(REFERENCE_RATE, lengths),
            metrics: Vec::new(),
            discriminator,
            generator,
        }
    }

    /// Makes one step of the discriminator on labelled, unlabelled and as many generated images, all in one batch. Returns
    /// the loss before the step.
    pub(crate) fn discriminator_step(
        &mut self,
        pool: Images<'_>,
        (labelled, labels): (&[usize], &[u8]),
        unlabelled: &[usize],
        weight: f64,
        workspace: &mut Workspace,
        stream: &mut Stream,
    ) -> f64 {
        let (n, trace) = (labels.len(), &mut workspace.discriminator);
        let batch = trace.images(pool.shape().pixels(), 3 * n);
        pool.write(batch, 0, labelled);
        pool.write(batch, n, unlabelled);
        let generated = self.generator.forward(n, &mut workspace.generator, stream);
        for pixel in 0..generated.rows() {
            batch.row_mut(pixel)[2 * n..].copy_from_slice(generated.row(pixel));
        }

        let mut noise = Noise { pool: &workspace.noise, stream };
        self.discriminator.forward(trace, Depth::Logits, Some(&mut noise));
        let loss = discriminator_loss(&trace.output, labels, weight, &mut trace.gradient);
        self.discriminator.backward(trace);
        self.discriminator.update(&mut self.discriminator_adam, trace, &mut self.discriminator_moments);
        loss
    }

    /// Makes one step of the generator towards the features of unlabelled images. Returns the loss before the step.
    ///
    /// Real and generated images go through the discriminator together; only the generated ones come back.
    pub(crate) fn generator_step(
        &mut self,
        pool: Images<'_>,
        unlabelled: &[usize],
        workspace: &mut Workspace,
        stream: &mut Stream,
    ) -> f64 {
        let (n, trace) = (unlabelled.len(), &mut workspace.discriminator);
        let batch = trace.images(pool.shape().pixels(), 2 * n);
        pool.write(batch, 0, unlabelled);
        let generated = self.generator.forward(n, &mut workspace.generator, stream);
        for pixel in 0..generated.rows() {
            batch.row_mut(pixel)[n..].copy_from_slice(generated.row(pixel));
        }

        let mut noise = Noise { pool: &workspace.noise, stream };
        self.discriminator.forward(trace, Depth::Features, Some(&mut noise));
        let loss = feature_matching_loss(&trace.output, &mut trace.gradient);
        self.discriminator.backward_to_images(trace, n..2 * n);
        self.generator.backward(&mut trace.gradient, &mut workspace.generator);
        self.generator.update(&mut self.generator_adam, &mut workspace.generator, &mut self.generator_moments);
        loss
    }

    /// Takes the parameters as they are after `steps` more steps into both averages.
    pub(crate) fn update_averages(&mut self, steps: u32) {
        let parameters = self.discriminator.trained();
        self.average.update(steps, &parameters);
        self.reference_average.update(steps, &parameters);
    }

    /// Returns the student: the discriminator with the average of its parameters.
    pub(crate) fn averaged(&self) -> Discriminator {
        self.discriminator.with_trained(&self.average.corrected())
    }

    /// Returns the discriminator with the reference's average, drawn towards zero (errata 19).
    pub(crate) fn reference_averaged(&self) -> Discriminator {
        self.discriminator.with_trained(&self.reference_average.from_zero())
    }

    /// Steps of each network's optimiser.
    pub(crate) fn steps(&self) -> u64 {
        self.discriminator_adam.steps()
    }

    /// Returns all arrays, for a checkpoint.
    pub(crate) fn arrays(&self) -> Vec<&[f32]> {
        let moments = self.discriminator_moments.iter().flatten().chain(self.generator_moments.all());
        (self.discriminator.state().into_iter())
            .chain(self.generator.state())
            .chain(moments.flat_map(Moments::arrays))
            .chain(self.average.arrays())
            .chain(self.reference_average.arrays())
            .collect()
    }

    /// Takes over all arrays after `steps` steps, in the order of [`arrays`](Self::arrays).
    ///
    /// # Errors
    /// [`CheckpointError::Damaged`] when they are not those of these networks. The state is then of no further use.
    pub(crate) fn load(&mut self, adam: AdamConfig, steps: u64, arrays: &[Vec<f32>]) -> Result<(), CheckpointError> {
        let mut arrays = arrays.iter();
        let mut read = |to: &mut [f32]| -> Result<(), CheckpointError> {
            let from = arrays.next().filter(|from| from.len() == to.len()).ok_or(CheckpointError::Damaged)?;
            to.copy_from_slice(from);
            Ok(())
        };
        self.discriminator.restore(&mut read)?;
        self.generator.restore(&mut read)?;
        let moments = self.discriminator_moments.iter_mut().flatten().chain(self.generator_moments.all_mut());
        moments.flat_map(Moments::arrays_mut).try_for_each(&mut read)?;
        for average in [&mut self.average, &mut self.reference_average] {
            average.restore(steps).try_for_each(&mut read)?;
        }
        if arrays.next().is_some() {
            return Err(CheckpointError::Damaged);
        }
        self.discriminator_adam = Adam::new(adam, steps);
        self.generator_adam = Adam::new(adam, steps);
        Ok(())
    }
}

/// Returns the identity of a training: settings, sizes, labels, and the random streams; not the number of epochs,
/// so that a training can be made longer.
pub(crate) fn identity(
    config: &StudentConfig,
    pool: Images<'_>,
    classes: usize,
    labelled: &[(usize, u8)],
    streams: &Streams,
) -> [u8; 32] {
    let settings = StudentConfig { epochs: 0, ..config.clone() };
    let fingerprint: [u8; 32] = rand::RngExt::random(&mut streams.stream("identity", 0));
    let sizes = (pool.len(), pool.shape(), classes);
    Sha256::digest(format!("{settings:?} {sizes:?} {labelled:?} {fingerprint:?}")).into()
}
