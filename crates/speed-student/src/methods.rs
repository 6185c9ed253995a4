//! The methods by name: the built-in ones, and those that a program registers.

pub(crate) mod gan;
mod linear;
pub mod pseudo_labels;

use std::ops::Deref;

use speed_nn::training::{Named, RegistrationError, Registry, by_name};

use crate::Method;
use gan::{Convolutional, Dense, Gan};
use linear::Linear;
use pseudo_labels::PseudoLabels;

static METHODS: Registry<StudentMethod> =
    Registry::new(&[StudentMethod::GAN, StudentMethod::PSEUDO_LABELS, StudentMethod::CONV_GAN, StudentMethod::LINEAR]);

/// A method of training a student, identified by its name.
#[derive(Clone, Copy)]
pub struct StudentMethod {
    name: &'static str,
    method: &'static dyn Method,
}

impl StudentMethod {
    /// The paper's method for MNIST: a semi-supervised GAN of dense layers.
    pub const GAN: Self = Self { name: "gan", method: &Gan::<Dense>::NEW };
    /// The paper's method for SVHN: a semi-supervised GAN of convolutions.
    pub const CONV_GAN: Self = Self { name: "conv-gan", method: &Gan::<Convolutional>::NEW };
    /// A convolutional network that learns from its own pseudo-labels.
    pub const PSEUDO_LABELS: Self = Self { name: "pseudo-labels", method: &PseudoLabels };

    /// A linear classifier on an encoder's vectors.
    pub const LINEAR: Self = Self { name: "linear", method: &Linear };

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
        METHODS.add(Self { name, method })
    }

    /// Returns all methods, the built-in ones first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        METHODS.all()
    }

    /// Returns the method with this name.
    ///
    /// # Errors
    /// A message with the known names.
    pub fn find(name: &str) -> Result<Self, String> {
        METHODS.find(name)
    }

    /// Returns the method's name in a config.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }
}

impl Deref for StudentMethod {
    type Target = dyn Method;

    fn deref(&self) -> &Self::Target {
        self.method
    }
}

impl Named for StudentMethod {
    fn name(self) -> &'static str {
        self.name
    }
}

by_name!(StudentMethod, StudentMethod::find);
