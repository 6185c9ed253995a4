//! Operations on Burn's tensors, implemented by this crate's kernels, one per module.
//!
//! Each is a function on [`Tensor`](burn::tensor::Tensor)s with
//!
//! 1. **a body of plain Burn tensors** (`..._in_burn`): it defines the operation, runs on every backend but Flex with
//!    Burn's own gradients, and is the reference of the tests;
//! 2. **a kernel for Flex with an explicit gradient**, registered with Burn's `#[backend_extension(Flex, Autodiff)]`.
//!
//! # Add an operation
//!
//! 1. A function on tensors: on Flex (`flex::on_flex`) it calls the dispatched operation, otherwise the body.
//! 2. Two functions: `forward`, the kernel, which returns the output and the values that the gradient needs, and `backward`, the gradient of
//!    every input (`flex::record`). Inputs are passed by value: a kernel may write into those that are not shared
//!    (`flex::values_mut`). If it keeps values for the gradient that it also returns, it must keep them as a
//!    tensor, a second owner.
//! 3. A line `operation!`, which makes the dispatched operation of the two.
//! 4. A test that kernel and body give the same values and gradients, and a line in `benches/operations.rs`.
//!
//! [`add_scaled`] is the shortest example.

/// Makes the operation `name` of tensors and other arguments, as Burn's backends see it, from its kernel and its gradient.
macro_rules! operation {
    ($ops:ident: $name:ident([$($input:ident),+] $(, $argument:ident: $kind:ident)*), $forward:ident, $backward:ident) => {
        #[doc = concat!("See [`", stringify!($name), "`](fn@", stringify!($name), ").")]
        #[burn::backend::backend_extension(Flex, Autodiff)]
        pub(crate) trait $ops: burn::backend::Backend {
            #[doc = concat!("See [`", stringify!($name), "`](fn@", stringify!($name), ").")]
            fn $name(
                $($input: burn::backend::tensor::FloatTensor<Self>,)+ $($argument: $kind),*
            ) -> burn::backend::tensor::FloatTensor<Self>;
        }

        impl $ops for burn::backend::Flex {
            fn $name($($input: crate::flex::Array,)+ $($argument: $kind),*) -> crate::flex::Array {
                $forward([$($input),+] $(, $argument)*).0
            }
        }

        impl<C> $ops for burn::backend::Autodiff<burn::backend::Flex, C>
        where
            C: burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy,
        {
            fn $name($($input: crate::flex::Recorded<C>,)+ $($argument: $kind),*) -> crate::flex::Recorded<C> {
                crate::flex::record::<C, _, _>([$($input),+], |inputs| $forward(inputs $(, $argument)*), $backward)
            }
        }
    };
}

pub mod activation;
pub mod add_scaled;
pub mod batch_norm;
pub mod bias;
pub mod conv;
pub mod log_sum_exp;
pub mod lrn;
pub mod max_pool;
pub mod pooled_conv;
pub mod product;
pub mod sums;
pub mod weight_norm;

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, Tensor};

    use super::activation::Activation;
    use super::conv::Geometry;
    use super::lrn::Window;
    use super::pooled_conv::PooledWindows;
    use super::*;
    use crate::matrix::on_vectors;
    use crate::test_support::random;

    /// Checks that an operation on no images gives no results, and an empty gradient.
    #[test]
    fn empty_batches_stay_empty() {
        let device = Device::flex().autodiff();
        let empty = |dims: [usize; 4]| Tensor::<4>::zeros(dims, &device).require_grad();
        let geometry = Geometry::same([6, 6, 4], 3, 1).expect("a map");
        let windows = PooledWindows::new(6, 6, 4, 3).expect("a map");
        let (weight, bias) = (random([36, 8], 1), random([8], 2));
        let maps = empty([0, 6, 6, 4]);
        for output in [
            conv::conv(maps.clone(), weight.clone(), geometry),
            pooled_conv::pooled_conv(maps.clone(), weight.clone(), bias.clone(), windows),
            lrn::local_response_norm(maps.clone(), Window { radius: 2, alpha: 0.1 }),
            max_pool::max_pool_same(maps.clone(), 3, 2),
            bias::bias_activation(conv::conv(maps.clone(), weight, geometry), bias, Activation::Relu),
        ] {
            assert_eq!(output.dims()[0], 0);
            let gradients = (output * 2.0).sum().backward();
            assert_eq!(maps.grad(&gradients).expect("a gradient").dims(), [0, 6, 6, 4]);
        }
        let rows = Tensor::<2>::zeros([0, 5], &device).require_grad();
        for output in [
            batch_norm::batch_norm(rows.clone(), 1e-6),
            product::product(rows.clone(), random([5, 3], 1)),
            log_sum_exp::log_softmax(rows.clone()),
            log_sum_exp::log_sum_exp(rows.clone()),
            sums::row_sums(rows.clone()),
        ] {
            assert_eq!(output.dims()[0], 0);
            let gradients = (output * 2.0).sum().backward();
            assert_eq!(rows.grad(&gradients).expect("a gradient").dims(), [0, 5]);
        }
    }

    /// The same with the algorithms of vectors for maps of many channels.
    #[test]
    fn empty_batches_of_many_channels_stay_empty() {
        on_vectors(|| {
            let device = Device::flex().autodiff();
            let check = |output: Tensor<4>, maps: &Tensor<4>, weight: &Tensor<2>| {
                assert_eq!(output.dims()[0], 0);
                let gradients = (output * 2.0).sum().backward();
                assert_eq!(maps.grad(&gradients).expect("a gradient").dims(), maps.dims());
                assert_eq!(weight.grad(&gradients).expect("a gradient").abs().sum().into_scalar::<f32>(), 0.0);
            };
            for (map @ [height, width, channels], kernel, stride) in
                [([6, 6, 16], 3, 1), ([8, 8, 16], 5, 1), ([16, 16, 4], 5, 2)]
            {
                let geometry = Geometry::same(map, kernel, stride).expect("a map");
                let maps = Tensor::<4>::zeros([0, height, width, channels], &device).require_grad();
                let weight = random([geometry.patch_len(), 16], 1);
                check(conv::conv(maps.clone(), weight.clone(), geometry), &maps, &weight);
            }
            let windows = PooledWindows::new(8, 8, 16, 5).expect("a map");
            let maps = Tensor::<4>::zeros([0, 8, 8, 16], &device).require_grad();
            let (weight, bias) = (random([windows.patch_len(), 16], 1), random([16], 2));
            check(pooled_conv::pooled_conv(maps.clone(), weight.clone(), bias, windows), &maps, &weight);
        });
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let refused =
            |run: &(dyn Fn() -> [usize; 2] + std::panic::RefUnwindSafe)| std::panic::catch_unwind(run).is_err();
        assert!(refused(&|| bias::bias_activation(random([4, 6], 1), random([4], 2), Activation::Linear).dims()));
        assert!(refused(&|| add_scaled::add_scaled(random([4, 6], 1), random([4, 5], 2), 0.1).dims()));
        assert!(refused(&|| {
            let parts = [random([1], 3), random([6], 4)];
            weight_norm::weight_norm_dense(random([4, 5], 1), random([5, 6], 2), parts, Activation::Relu, 0.0).dims()
        }));
        let geometry = Geometry::same([8, 4, 1], 3, 1).expect("a map");
        assert!(refused(&move || {
            let [images, rows, ..] = conv::conv(random([2, 4, 8, 1], 1), random([9, 2], 2), geometry).dims();
            [images, rows]
        }));
    }
}
