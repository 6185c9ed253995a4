//! The interface of the teachers' networks.

use burn::tensor::{Device, Tensor};
use speed_core::random::Stream;
use speed_data::ImageShape;
use speed_nn::training::Classifier;

/// A classifier that teachers can use: [`Architecture::register`](crate::Architecture::register) gives it a name.
pub trait TeacherNetwork: Classifier {
    /// The least height and width of its images.
    const LEAST_SIZE: usize = 1;

    /// Approximate bytes that a step keeps for each pixel of an image; used in a run's estimate of its memory.
    const STEP_BYTES_PER_PIXEL: usize = 2048;

    /// A version number, to be raised when the name refers to a changed network: finished trainings are then not
    /// reused.
    const VERSION: u32 = 1;

    /// Returns whether the network learns from an encoder's vectors. Other networks read pictures, whose neighbouring pixels belong together.
    fn reads_vectors() -> bool {
        false
    }

    /// Returns a network with initial weights from `stream`, for images of at least [`LEAST_SIZE`](Self::LEAST_SIZE) a side.
    fn new(shape: ImageShape, classes: usize, stream: &mut Stream, device: &Device) -> Self;

    /// Returns a lower bound on the number of parameters of such a network. A file with fewer values is refused before
    /// the network is built, so a damaged or hostile file cannot make a program reserve memory.
    fn least_parameters(shape: ImageShape, classes: usize) -> usize;

    /// Returns a term that is added to the mean cross-entropy, of shape `[1]`: weight decay, for instance.
    fn penalty(&self) -> Option<Tensor<1>> {
        None
    }
}
