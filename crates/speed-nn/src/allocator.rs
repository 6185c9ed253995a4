//! The memory allocator of SPEED's programs.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: speed_nn::allocator::Allocator = speed_nn::allocator::ALLOCATOR;
//!
//! fn main() {
//!     speed_nn::allocator::keep_freed_memory();
//! }
//! ```

/// The allocator: mimalloc.
pub type Allocator = mimalloc::MiMalloc;

/// The only value of [`Allocator`].
pub const ALLOCATOR: Allocator = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of mimalloc 2 and 3, which the Rust binding does not name.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;

/// The purge delay: longer than a step of the largest networks takes.
const MILLISECONDS: std::ffi::c_long = 10_000;

/// Keeps freed memory for at least ten seconds before returning it to the system. Every step of a training frees some
/// hundred megabytes and allocates them again. With mimalloc's default delay of 10 ms the system clears their pages
/// each time, which takes a tenth of a step of the paper's networks for SVHN. As a result, a program's memory stays
/// near its peak for that time.
pub fn keep_freed_memory() {
    // SAFETY: mimalloc allows its options to be set at any time, by any thread.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, MILLISECONDS) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_is_the_purge_delay() {
        // SAFETY: as above.
        let delay = || unsafe { libmimalloc_sys::mi_option_get(PURGE_DELAY) };
        let default = delay();
        assert!((1..=2000).contains(&default), "a delay in milliseconds: {default}");
        keep_freed_memory();
        assert_eq!(delay(), MILLISECONDS);
    }
}
