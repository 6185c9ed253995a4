//! Methods that return a field, and texts of values that show no secret.

/// Defines methods that return fields: `name: Type,` returns `self.name`, `name: &Type,` returns `&self.name`, and
/// `name: Type = a.b,` returns `self.a.b`. They are public, unless `pub(crate)` stands before the name.
#[macro_export]
macro_rules! getters {
    () => {};
    ($(#[$doc:meta])+ pub(crate) $($rest:tt)*) => {
        $crate::getters!(@[pub(crate)] $(#[$doc])+ $($rest)*);
    };
    ($(#[$doc:meta])+ $name:ident $($rest:tt)*) => {
        $crate::getters!(@[pub] $(#[$doc])+ $name $($rest)*);
    };
    (@[$vis:vis] $(#[$doc:meta])+ $name:ident: &$type:ty, $($rest:tt)*) => {
        $(#[$doc])+
        $vis fn $name(&self) -> &$type {
            &self.$name
        }

        $crate::getters!($($rest)*);
    };
    (@[$vis:vis] $(#[$doc:meta])+ $name:ident: $type:ty, $($rest:tt)*) => {
        $(#[$doc])+
        $vis fn $name(&self) -> $type {
            self.$name
        }

        $crate::getters!($($rest)*);
    };
    (@[$vis:vis] $(#[$doc:meta])+ $name:ident: $type:ty = $($field:ident).+, $($rest:tt)*) => {
        $(#[$doc])+
        $vis fn $name(&self) -> $type {
            self.$($field).+
        }

        $crate::getters!($($rest)*);
    };
}

/// Implements `Debug` for a type as a text, because its fields are secret or long: `Type, value => "Type({}, ..)", value.id`.
#[macro_export]
macro_rules! debug_as {
    ($type:ty, $value:ident => $($format:tt)+) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $value = self;
                write!(f, $($format)+)
            }
        }
    };
}
