//! Errors that take over the messages of others, and the macros of `speed-core`.

pub(crate) use speed_core::{debug_as, getters};

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
