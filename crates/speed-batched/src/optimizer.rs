//! The rules by which gradients change the parameters of several models.

use burn::tensor::Tensor;
use speed_nn::adam::AdamStep;

/// Returns the students' Adam: `p -= rate m / sqrt(v + floor)`.
pub(crate) fn adam_floor_inside(step: AdamStep) -> impl Fn(&mut Tensor<3>, &mut [Tensor<3>; 2], Tensor<3>) {
    let AdamStep { beta1, beta2, rate, floor } = step;
    move |value, moments, gradient| {
        update_moments(moments, [beta1, beta2], gradient);
        let [first, second] = moments;
        value.inplace(|p| p - first.clone() * rate / (second.clone() + floor).sqrt());
    }
}

/// Returns the teachers' Adam: `p -= rate m / (sqrt(v) + floor)`, with the rate of each model `[models, 1, 1]`.
pub(crate) fn adam_floor_outside(
    betas: [f32; 2],
    rates: Tensor<3>,
    floor: f64,
) -> impl Fn(&mut Tensor<3>, &mut [Tensor<3>; 2], Tensor<3>) {
    move |value, moments, gradient| {
        update_moments(moments, betas, gradient);
        let [first, second] = moments;
        value.inplace(|p| p - first.clone() * rates.clone() / (second.clone().sqrt() + floor));
    }
}

/// Plain gradient descent with the rate of each model `[models, 1, 1]`.
pub(crate) fn descent(rates: Tensor<3>) -> impl Fn(&mut Tensor<3>, &mut [Tensor<3>; 2], Tensor<3>) {
    move |value, _, gradient| value.inplace(|p| p - gradient * rates.clone())
}

fn update_moments([first, second]: &mut [Tensor<3>; 2], [beta1, beta2]: [f32; 2], gradient: Tensor<3>) {
    first.inplace(|m| m * beta1 + gradient.clone() * (1.0 - beta1));
    second.inplace(|v| v * beta2 + gradient.square() * (1.0 - beta2));
}
