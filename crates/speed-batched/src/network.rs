//! The parameters of one network of every model.

use burn::tensor::{Device, Gradients, Tensor};

use crate::DeviceError;
use crate::stack::{stack, unstack};

/// One array of every model: `[models, rows, columns]`, with Adam's two moments if it is trained.
#[derive(Debug)]
struct Array {
    value: Tensor<3>,
    moments: Option<[Tensor<3>; 2]>,
}

/// All arrays of a network.
#[derive(Debug)]
pub(crate) struct Network {
    arrays: Vec<Array>,
}

/// The size of an array in one model, and whether it is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayKind {
    pub(crate) shape: [usize; 2],
    pub(crate) trained: bool,
}

impl ArrayKind {
    pub(crate) fn trained(shape: [usize; 2]) -> Self {
        Self { shape, trained: true }
    }
}

impl Network {
    /// Puts a network on the device. `value(i)` are the values of array i of every model, `moment(i, 0 | 1)` its moments.
    pub(crate) fn load<'a>(
        kinds: &[ArrayKind],
        value: impl Fn(usize) -> Vec<&'a [f32]>,
        moment: impl Fn(usize, usize) -> Vec<&'a [f32]>,
        device: &Device,
    ) -> Self {
        let put = |arrays: Vec<&'a [f32]>, kind: &ArrayKind| stack(arrays.into_iter(), kind.shape, device);
        let arrays = kinds.iter().enumerate().map(|(i, kind)| Array {
            value: put(value(i), kind),
            moments: kind.trained.then(|| [0, 1].map(|which| put(moment(i, which), kind))),
        });
        Self { arrays: arrays.collect() }
    }

    /// Returns the arrays, for computations without gradients.
    pub(crate) fn values(&self) -> Vec<Tensor<3>> {
        self.arrays.iter().map(|array| array.value.clone()).collect()
    }

    /// Returns the arrays of which the trained ones are followed by automatic differentiation.
    pub(crate) fn tracked(&self) -> Vec<Tensor<3>> {
        let track = |array: &Array| match array.moments {
            Some(_) => array.value.clone().autodiff().require_grad(),
            None => array.value.clone(),
        };
        self.arrays.iter().map(track).collect()
    }

    /// Makes one step of an optimiser, from the gradients of `tracked`: `rule(value, moments, gradient)` changes the first two.
    ///
    /// # Panics
    /// When the loss does not depend on a trained array.
    pub(crate) fn update(
        &mut self,
        tracked: &[Tensor<3>],
        gradients: &mut Gradients,
        rule: impl Fn(&mut Tensor<3>, &mut [Tensor<3>; 2], Tensor<3>),
    ) {
        for (array, tracked) in self.arrays.iter_mut().zip(tracked) {
            let Some(moments) = &mut array.moments else { continue };
            let gradient = tracked.grad_remove(gradients).expect("every trained array is a part of the loss");
            rule(&mut array.value, moments, gradient);
        }
    }

    /// Reads values: for each array, those of every model.
    pub(crate) fn read_values(&self) -> Result<Vec<Vec<Vec<f32>>>, DeviceError> {
        self.arrays.iter().map(|array| unstack(&array.value)).collect()
    }

    /// Reads both moments of each array, first the first, for every one of `models` models; empty where it is not trained.
    pub(crate) fn read_moments(&self, models: usize) -> Result<Vec<Vec<Vec<f32>>>, DeviceError> {
        let nothing = || vec![Vec::new(); models];
        let mut read = Vec::new();
        for array in &self.arrays {
            match &array.moments {
                Some(moments) => read.extend([unstack(&moments[0])?, unstack(&moments[1])?]),
                None => read.extend([nothing(), nothing()]),
            }
        }
        Ok(read)
    }
}
