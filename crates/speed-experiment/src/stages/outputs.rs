//! The outputs of finished stages, which later stages read.

use std::any::{Any, TypeId};
use std::collections::HashMap;

/// The outputs of the stages of a run, one value of each type.
#[derive(Default)]
pub(crate) struct Outputs(HashMap<TypeId, Box<dyn Any>>);

impl Outputs {
    pub(crate) fn put<T: 'static>(&mut self, output: T) {
        self.0.insert(TypeId::of::<T>(), Box::new(output));
    }

    /// Returns the output of this type, if a stage has added one.
    pub(crate) fn find<T: 'static>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>()).and_then(|output| output.downcast_ref())
    }

    /// Returns the output of an earlier stage that every run has.
    ///
    /// # Panics
    /// If no stage has added it, which is an error in the order of the stages.
    pub(crate) fn get<T: 'static>(&self) -> &T {
        self.find().unwrap_or_else(|| panic!("{} before its stage", std::any::type_name::<T>()))
    }

    /// Returns the output of this type for changes; it begins with the default value.
    pub(crate) fn get_mut<T: Default + 'static>(&mut self) -> &mut T {
        let output = self.0.entry(TypeId::of::<T>()).or_insert_with(|| Box::new(T::default()));
        output.downcast_mut().expect("the type is the key")
    }

    pub(crate) fn remove<T: 'static>(&mut self) -> Option<T> {
        self.0.remove(&TypeId::of::<T>()).and_then(|output| output.downcast().ok()).map(|output| *output)
    }
}
