//! Methods that return a field.

/// Defines methods that return fields: `name: Type,` returns `self.name`, `name: &Type,` returns `&self.name`, and
/// `name: Type = a.b,` returns `self.a.b`.
macro_rules! getters {
    () => {};
    ($(#[$doc:meta])+ $name:ident: &$type:ty, $($rest:tt)*) => {
        $(#[$doc])+
        #[must_use]
        pub fn $name(&self) -> &$type {
            &self.$name
        }

        $crate::getters::getters!($($rest)*);
    };
    ($(#[$doc:meta])+ $name:ident: $type:ty, $($rest:tt)*) => {
        $(#[$doc])+
        #[must_use]
        pub fn $name(&self) -> $type {
            self.$name
        }

        $crate::getters::getters!($($rest)*);
    };
    ($(#[$doc:meta])+ $name:ident: $type:ty = $first:ident.$second:ident, $($rest:tt)*) => {
        $(#[$doc])+
        #[must_use]
        pub fn $name(&self) -> $type {
            self.$first.$second
        }

        $crate::getters::getters!($($rest)*);
    };
}

pub(crate) use getters;
