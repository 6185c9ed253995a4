//! Methods that return a field, and errors that take over the messages of others.

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

/// Makes errors from others with their messages: `Error, make: Other, Another = "text before it: "`. `make` creates the error from a text.
macro_rules! messages_of {
    ($error:ty, $make:path: $($other:ty $(= $before:literal)?),+) => {$(
        impl From<$other> for $error {
            fn from(error: $other) -> Self {
                $make(format!(concat!($($before,)? "{}"), error))
            }
        }
    )+};
}
pub(crate) use messages_of;
