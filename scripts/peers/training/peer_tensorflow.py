"""The training steps in TensorFlow as competitors: float32, tf.function, its own kernels (oneDNN). See peer.py."""

import numpy as np
import tensorflow as tf

import conv_student
from conv_student import BLOCK, windows
from shapes import CLASSES, COLOUR_SIDE, COLOURS, DEEPER, DROPOUT, NOISE_POOL, PIXELS, RATES
from shapes import initial_conv_student, initial_student, initial_teacher, random_images, teacher_images
from student import BETA1, BETA2, HIDDEN_NOISE, INPUT_NOISE, LATENT, LEARNING_RATE


def version():
    return f"TensorFlow {tf.__version__}"


class Adam:
    """Adam on plain variables, with `epsilon` inside the root (the student) or outside (the teachers).

    tf.raw_ops.ResourceApplyAdam is TensorFlow's fused kernel: one pass over each array. It adds its epsilon outside the
    uncorrected root. For the student's floor inside the root, the update is written out.
    """

    def __init__(self, variables, rate, beta1, beta2, inside=None, outside=None):
        self.variables, self.rate, self.betas = variables, rate, (beta1, beta2)
        self.inside, self.outside = inside, outside
        self.moments = [(tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in variables]
        self.powers = [tf.Variable(1.0), tf.Variable(1.0)]

    def apply(self, gradients, rate=None):
        rate, (beta1, beta2) = self.rate if rate is None else rate, self.betas
        power1, power2 = (power.assign(power * beta) for power, beta in zip(self.powers, self.betas))
        for variable, gradient, (m, v) in zip(self.variables, gradients, self.moments):
            if self.outside is not None:
                tf.raw_ops.ResourceApplyAdam(
                    var=variable.handle, m=m.handle, v=v.handle, beta1_power=power1, beta2_power=power2, lr=rate,
                    beta1=beta1, beta2=beta2, epsilon=self.outside, grad=gradient,
                )  # fmt: skip
                continue
            m.assign(beta1 * m + (1 - beta1) * gradient)
            v.assign(beta2 * v + (1 - beta2) * tf.square(gradient))
            # One square root and one division per element, as in our implementation.
            factor, floor = rate * tf.sqrt(1 - power2) / (1 - power1), (1 - power2) * self.inside
            variable.assign_sub(factor * m * tf.math.rsqrt(v + floor))

    def reset(self):
        for variable in [array for pair in self.moments for array in pair]:
            variable.assign(tf.zeros_like(variable))
        for power in self.powers:
            power.assign(1.0)


def weight_norm(x, layer, epsilon=0.0):
    """Multiplies the product by the norm, which is cheaper than normalising weights if the batch is smaller than a layer."""
    theta, bias, scale = layer
    return (x @ theta) * (scale * tf.math.rsqrt(tf.reduce_sum(tf.square(theta), axis=0) + epsilon)) + bias


def batch_norm(product):
    centred = product - tf.reduce_mean(product, axis=0)
    return centred * tf.math.rsqrt(tf.reduce_mean(tf.square(centred), axis=0) + 1e-6)


def variables_of(networks):
    return [[tuple(tf.Variable(array) for array in layer) for layer in network] for network in networks]


def student_step(pooled):
    discriminator, generator = variables_of(initial_student())
    images, labels = random_images(1000)
    normals = tf.constant(np.random.default_rng(2).standard_normal(NOISE_POOL, dtype=np.float32))

    def noise(shape):
        if not pooled:
            return tf.random.normal(shape)
        count = tf.reduce_prod(shape)
        start = tf.random.uniform((), 0, NOISE_POOL - count, tf.int32)
        return tf.reshape(tf.slice(normals, [start], [count]), shape)

    def features(x):
        for index, layer in enumerate(discriminator[:-1]):
            x = x + (INPUT_NOISE if index == 0 else HIDDEN_NOISE) * noise(tf.shape(x))
            x = tf.nn.relu(weight_norm(x, layer))
        return x

    def logits(x):
        x = features(x)
        return weight_norm(x + HIDDEN_NOISE * noise(tf.shape(x)), discriminator[-1])

    def generate(x):
        for weight, shift in generator[:-1]:
            x = tf.nn.softplus(batch_norm(x @ weight) + shift)
        return tf.sigmoid(weight_norm(x, generator[-1], 1e-6))

    functions = features, logits, generate, tf.square
    return gan_step(functions, LEARNING_RATE, discriminator, generator, images.reshape(len(images), PIXELS), labels)


def conv_student_step():
    discriminator, generator = variables_of(initial_conv_student())
    features = lambda x: conv_features(discriminator, x)
    logits = lambda x: weight_norm(features(x), discriminator[-1])
    functions = features, logits, lambda latent: conv_generate(generator, latent), tf.abs
    images, labels = random_images(1000, COLOUR_SIDE, COLOURS)
    return gan_step(functions, conv_student.LEARNING_RATE, discriminator, generator, images, labels)


def conv_features(layers, x):
    """Computes the same as in conv_student.py, but with TensorFlow's own padding, because others take up to three times as long.

    With stride 2, its windows begin a pixel later: this is the network with kernels, images and masks rotated by 180 degrees.
    """
    x, count = 2 * x - 1, len(layers) - 1
    for index, (theta, bias, scale) in enumerate(layers[:-1]):
        side, stride, padding = windows(index, count)
        if index % BLOCK == 0:
            x = tf.nn.dropout(x, DROPOUT[index // BLOCK])
        # Scales the kernel and not the product, because the maps have far more values than a kernel.
        weight = theta * (scale * tf.math.rsqrt(tf.reduce_sum(tf.square(theta), axis=0)))
        kernel = tf.reshape(weight, (side, side, x.shape[-1], -1))
        product = tf.nn.conv2d(x, kernel, stride, "VALID" if padding == "VALID" else "SAME")
        x = tf.nn.leaky_relu(tf.nn.bias_add(product, bias), 0.2)
    return tf.reduce_mean(x, axis=(1, 2))


def conv_generate(layers, latent):
    (weight, shift), side = layers[0], COLOUR_SIDE >> (len(layers) - 1)
    x = tf.reshape(tf.nn.relu(batch_norm(latent @ weight) + shift), (len(latent), side, side, -1))
    for matrix, shift in layers[1:-1]:
        x = tf.nn.relu(batch_norm_of_maps(transposed(x, matrix), shift))
    theta, bias, scale = layers[-1]
    length = tf.sqrt(tf.reduce_sum(tf.square(tf.reshape(theta, (25, COLOURS, -1))), axis=(0, 2)) + 1e-6)
    return tf.tanh(transposed(x, theta) * (scale / length) + bias) / 2 + 0.5


def transposed(x, matrix):
    n, rows, columns, inputs = x.shape
    kernel = tf.reshape(matrix, (5, 5, -1, inputs))
    return tf.nn.conv2d_transpose(x, kernel, (n, 2 * rows, 2 * columns, kernel.shape[2]), 2, "SAME")


def batch_norm_of_maps(x, shift):
    """Calls TensorFlow's fused kernel, because its wrappers do not accept an epsilon below 1e-5."""
    ones, none = tf.ones_like(shift), tf.zeros(0)
    return tf.raw_ops.FusedBatchNormV3(
        x=x, scale=ones, offset=shift, mean=none, variance=none, epsilon=1e-6, is_training=True
    ).y


def gan_step(functions, rate, discriminator, generator, images, labels):
    """Returns a function that runs a number of steps of both networks, 3 x 100 and 2 x 100 images each.

    `functions` are the discriminator's features and logits, the generator, and the cost of the difference of mean features.
    """
    features, logits, generate, cost = functions
    n, images, labels = 100, tf.constant(images), tf.constant(labels)
    # Scales of hidden layers are not trained.
    d_variables = [v for layer in discriminator[:-1] for v in layer[:2]] + list(discriminator[-1])
    g_variables = [v for layer in generator for v in layer]
    d_adam, g_adam = (Adam(v, rate, BETA1, BETA2, inside=1e-8) for v in (d_variables, g_variables))
    latent = lambda: tf.random.uniform((n, LATENT))

    def batch():
        indices = tf.random.uniform((n,), 0, len(images), tf.int32)
        return tf.gather(images, indices), tf.gather(labels, indices)

    @tf.function
    def step():
        generated = generate(latent())
        (labelled, own), (unlabelled, _), (other, _) = batch(), batch(), batch()
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(d_variables)
            d_loss = loss_of_logits(logits(tf.concat([labelled, unlabelled, generated], 0)), own)
        d_adam.apply(tape.gradient(d_loss, d_variables))
        # The tape records neither the real images nor the discriminator.
        real = tf.reduce_mean(features(other), axis=0)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(g_variables)
            g_loss = tf.reduce_mean(cost(tf.reduce_mean(features(generate(latent())), axis=0) - real))
        g_adam.apply(tape.gradient(g_loss, g_variables))
        return d_loss, g_loss

    def run(steps):
        for _ in range(steps):
            losses = step()
        return [float(loss) for loss in losses]

    return run


def loss_of_logits(z, labels):
    """`z` are those of labelled, unlabelled and generated images, in this order."""
    n, lse = len(labels), tf.reduce_logsumexp(z, axis=1)
    supervised = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, z[:n]))
    real = tf.reduce_mean(tf.nn.softplus(lse[n : 2 * n])) - tf.reduce_mean(lse[n : 2 * n])
    return supervised + 0.5 * real + 0.5 * tf.reduce_mean(tf.nn.softplus(lse[2 * n :]))


def standardised(x):
    """Standardises every image: minus its mean, divided by its deviation, which for bytes is at least 1 / sqrt(N)."""
    mean, variance = tf.nn.moments(x, (1, 2, 3), keepdims=True)
    return (x - mean) / tf.maximum(tf.sqrt(variance), 1 / 255 / np.prod(x.shape[1:]) ** 0.5)


def teacher(architecture, batch):
    """Returns the variables, a compiled step on a batch, and the optimiser, if any."""
    layers = [tuple(tf.Variable(array) for array in layer) for layer in initial_teacher(architecture)]
    variables = [v for layer in layers for v in layer]
    dense = [layer for layer in layers if len(layer[0].shape) == 2]
    optimiser = Adam(variables, RATES["small"], 0.9, 0.999, outside=1e-8) if architecture == "small" else None
    lrn = lambda x: tf.nn.lrn(x, 4, 1.0, 0.001 / 9.0, 0.75) if architecture == "reference" else x

    def conv(x, layer, padding, stride=1):
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, layer[0], stride, padding), layer[1]))

    def logits(x):
        if architecture == "small":
            for layer in layers[:2]:
                x = tf.nn.max_pool2d(conv(x, layer, "VALID"), 2, 2, "VALID")
        elif architecture == "deeper":
            x = standardised(x)
            for layer, (_, stride, _) in zip(layers, DEEPER):
                x = conv(x, layer, "SAME", stride)
        else:
            x = lrn(tf.nn.max_pool2d(conv(x * 255.0, layers[0], "SAME"), 3, 2, "SAME"))
            x = tf.nn.max_pool2d(lrn(conv(x, layers[1], "SAME")), 3, 2, "SAME")
        x = tf.reshape(x, (x.shape[0], -1))
        for weight, bias in dense[:-1]:
            x = tf.nn.relu(tf.nn.bias_add(x @ weight, bias))
        return tf.nn.bias_add(x @ dense[-1][0], dense[-1][1])

    def step(x, y, rate):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits(x)))
            if architecture.startswith("reference"):
                loss += 0.004 * (tf.nn.l2_loss(dense[0][0]) + tf.nn.l2_loss(dense[1][0]))
        gradients = tape.gradient(loss, variables)
        if optimiser:
            optimiser.apply(gradients, rate)
        else:
            for variable, gradient in zip(variables, gradients):
                variable.assign_sub(rate * gradient)
        return loss

    return variables, logits, step, optimiser


def teacher_step(architecture, batch):
    _, _, step, _ = teacher(architecture, batch)
    images, labels = (tf.constant(array) for array in teacher_images(architecture))
    rate = RATES[architecture]

    @tf.function
    def one(start):
        size = (batch, *images.shape[1:])
        return step(tf.slice(images, [start, 0, 0, 0], size), tf.slice(labels, [start], [batch]), rate)

    draw = np.random.default_rng(3)

    def run(steps):
        for _ in range(steps):
            loss = one(tf.constant(draw.integers(0, len(images) - batch), tf.int32))
        return float(loss)

    return run


def ensemble(images, labels):
    """Returns a function that trains the teacher of a partition as in configs/mnist.toml and returns its training accuracy.

    One call does everything except the augmentation: 300 steps of 30 images in a loop inside the graph.
    """
    batch, steps, shift, side = 30, 300, 2, 28
    variables, logits, step, optimiser = teacher("small", batch)
    initial = [variable.numpy() for variable in variables]
    rates = tf.constant(RATES["small"] * 0.5 * (1 + np.cos(np.pi * np.arange(steps) / steps)), tf.float32)

    @tf.function
    def train(x, y):
        for k in tf.range(steps):
            step(tf.ensure_shape(x[k], (batch, side, side, 1)), y[k], rates[k])

    @tf.function
    def classify(x):
        return tf.argmax(logits(x), axis=1)

    def one(index):
        draw = np.random.default_rng(index)
        x, y = images[240 * index : 240 * (index + 1)], labels[240 * index : 240 * (index + 1)]
        order = np.concatenate([draw.permutation(240) for _ in range(-(-batch * steps // 240))])[: batch * steps]
        padded = np.pad(x, ((0, 0), (shift, shift), (shift, shift)))
        rows, columns = draw.integers(0, 2 * shift + 1, (2, len(order)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), axis=(1, 2))
        shifted = windows[order, rows, columns].astype(np.float32) / 255
        for variable, value in zip(variables, initial):
            variable.assign(value)
        optimiser.reset()
        train(
            tf.constant(shifted.reshape(steps, batch, side, side, 1)), tf.constant(y[order].reshape(steps, batch), tf.int32)
        )
        return float(np.mean(classify(tf.constant(x[..., None].astype(np.float32) / 255)).numpy() == y))

    return one


assert CLASSES == 10
