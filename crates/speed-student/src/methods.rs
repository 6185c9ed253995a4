//! The methods by name: the built-in ones, and those that a program registers.

pub(crate) mod gan;
mod linear;
pub mod pseudo_labels;

use std::ops::Deref;

use speed_nn::training::{Named, RegistrationError, Registry, by_name};

use crate::{Method, StudentMethod};
use gan::{Convolutional, Dense, Gan};
use linear::Linear;
use pseudo_labels::PseudoLabels;

static METHODS: Registry<NamedMethod> = Registry::new(&[
    NamedMethod { name: StudentMethod::GAN, method: &Gan::<Dense>::NEW },
    NamedMethod { name: StudentMethod::PSEUDO_LABELS, method: &PseudoLabels },
    NamedMethod { name: StudentMethod::CONV_GAN, method: &Gan::<Convolutional>::NEW },
    NamedMethod { name: StudentMethod::LINEAR, method: &Linear },
]);

/// A method with its name.
#[derive(Clone, Copy)]
struct NamedMethod {
    name: StudentMethod,
    method: &'static dyn Method,
}

impl Named for NamedMethod {
    fn name(self) -> &'static str {
        self.name.name()
    }
}

impl StudentMethod {
    /// The paper's method for MNIST: a semi-supervised GAN of dense layers.
    pub const GAN: Self = Self { name: "gan" };
    /// The paper's method for SVHN: a semi-supervised GAN of convolutions.
    pub const CONV_GAN: Self = Self { name: "conv-gan" };
    /// A convolutional network that learns from its own pseudo-labels.
    pub const PSEUDO_LABELS: Self = Self { name: "pseudo-labels" };
    /// A linear classifier on an encoder's vectors.
    pub const LINEAR: Self = Self { name: "linear" };

    /// A reserved name: a row with this name uses the config's default method.
    pub const DEFAULT_NAME: &str = "default";

    /// Registers a method under a name for the configs of this process.
    ///
    /// # Errors
    /// [`RegistrationError`].
    pub fn register(name: &'static str, method: &'static dyn Method) -> Result<Self, RegistrationError> {
        if name == Self::DEFAULT_NAME {
            return Err(RegistrationError::Taken { name: name.to_owned() });
        }
        METHODS.add(NamedMethod { name: Self { name }, method }).map(|added| added.name)
    }

    /// Returns all methods, the built-in ones first.
    pub fn all() -> Vec<Self> {
        METHODS.all().into_iter().map(|method| method.name).collect()
    }

    /// Returns the method with this name.
    ///
    /// # Errors
    /// A message with the known names.
    pub fn find(name: &str) -> Result<Self, String> {
        METHODS.find(name).map(|method| method.name)
    }
}

impl Deref for StudentMethod {
    type Target = dyn Method;

    fn deref(&self) -> &Self::Target {
        METHODS.find(self.name).expect("a built-in or registered name").method
    }
}

impl Named for StudentMethod {
    fn name(self) -> &'static str {
        self.name
    }
}

by_name!(StudentMethod, StudentMethod::find);
