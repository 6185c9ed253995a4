//! The list of methods: the built-in ones, and those that a program registers.

use std::ops::Deref;

use speed_nn::training::{Named, RegistrationError, Registry, by_name};

use crate::gan::{Convolutional, Dense, Gan};
use crate::pseudo_labels::PseudoLabels;
use crate::{Method, StudentMethod};

static METHODS: Registry<NamedMethod> = Registry::new(&[
    NamedMethod { name: StudentMethod::GAN, method: &Gan::<Dense>::NEW },
    NamedMethod { name: StudentMethod::PSEUDO_LABELS, method: &PseudoLabels },
    NamedMethod { name: StudentMethod::CONV_GAN, method: &Gan::<Convolutional>::NEW },
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
    #[must_use]
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
