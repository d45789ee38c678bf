"""Rounds weights by the inputs of their layer (GPTQ), and corrects weights and bias for them.

A layer of the quantized network receives x̃ where the float network's receives x: rounded, and with
the noise of all layers before. Its weights Wq and its bias are chosen to keep the mean of
|W x - Wq x̃|² small, in three unrounded.

`compensate` gives the float weights V = W E[x x̃ᵀ] E[x̃ x̃ᵀ]⁻¹ for which that mean is least (normal
equations of a linear regression). Any others cost E[|(V - Wq) x̃|²] on top, so that V takes the
place of W in the next step (asymmetric calibration: Li et al. 2025, "GPTAQ: Efficient Finetuning-
Free Quantization for Asymmetric Calibration").

`round_weights` is GPTQ (Frantar et al. 2022, "GPTQ: Accurate Post-Training Quantization for
Generative Pre-trained Transformers"): the columns of V [outputs, inputs], one input each, are
rounded in order, those of the largest inputs first, and what rounding one column adds to the
layer's output is taken back by the columns not rounded yet. Left out: the batches of columns of the
paper, which save memory traffic on weights of thousands of inputs and change nothing else, and
scales per group of columns.

`bias_correction` is Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias
Correction", section 4.2, with inputs that were measured instead of derived. It takes the mean
shift, so that moments are covariances: what is left to minimise.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.config.scheme import Scheme
from scaling.quantization.calibration import Layer
from scaling.quantization.integers import weight_levels
from scaling.quantization.rounding import RoundedLayer, nearest, weight_scales

SHARES = [1 - step / 50 for step in range(40)]
"""Thresholds tried in the search for the least output error, as shares of the largest weight."""
ENOUGH_ROWS = 400_000
"""A convolution sees hundreds of rows of inputs in an image, a linear layer one."""
DAMPING = 0.01
"""Added to the diagonal of the second moments, as a share of its mean: the paper's."""
ZERO = torch.zeros(())  # Of no dimension, so that it adds to a tensor on any device.


@dataclass
class InputMoments:
    """Means and second moments of what a layer receives, x̃, and of the error x - x̃ in it.

    x is what the float network's layer receives for the same image. The fields are sums over all
    `rows` seen, float64: [inputs] and [inputs, inputs].
    """

    rows: int = 0
    total: Tensor = ZERO
    error_total: Tensor = ZERO
    products: Tensor = ZERO
    error_products: Tensor = ZERO

    def update(self, floats: Tensor, received: Tensor) -> None:
        """Add the rows x and x̃ of `floats` and `received` [n, inputs]."""
        error = floats - received
        self.rows += len(received)
        self.total = self.total + received.double().sum(dim=0)
        self.error_total = self.error_total + error.double().sum(dim=0)
        self.products = self.products + (received.T @ received).double()
        self.error_products = self.error_products + (error.T @ received).double()

    @property
    def mean(self) -> Tensor:
        """E[x̃], float64 [inputs]."""
        return self.total / self.rows

    @property
    def mean_error(self) -> Tensor:
        """E[x - x̃], float64 [inputs]."""
        return self.error_total / self.rows

    def covariances(self) -> tuple[Tensor, Tensor]:
        """Return those of x̃ with x̃ and of x - x̃ with x̃, float64 [inputs, inputs]."""
        products = self.products / self.rows - torch.outer(self.mean, self.mean)
        errors = self.error_products / self.rows - torch.outer(self.mean_error, self.mean)
        return products, errors


def input_rows(layer: Layer, inputs: Tensor) -> Tensor:
    """Return the rows that the layer's flattened weights are multiplied with: [n, inputs].

    Those of a linear layer are its `inputs` [n, inputs], of an ungrouped convolution all patches.
    """
    if isinstance(layer, nn.Linear):
        return inputs
    assert layer.groups == 1 and not isinstance(layer.padding, str)
    patches = functional.unfold(
        inputs, layer.kernel_size, layer.dilation, layer.padding, layer.stride
    )
    return patches.transpose(1, 2).flatten(0, 1)


def output_errors(difference: Tensor, moments: Tensor) -> Tensor:
    """Compute E[(d · x)²] of each row d of `difference` [outputs, inputs]: [outputs]."""
    return ((difference @ moments) * difference).sum(dim=1)


def compensate(weight: Tensor, error_moment: Tensor, second_moment: Tensor) -> Tensor:
    """Compute V = W + W E[(x - x̃) x̃ᵀ] E[x̃ x̃ᵀ]⁻¹ [outputs, inputs], damped as GPTQ.

    Inputs that arrive as in the float network leave the weights as they are.
    """
    return weight + weight @ torch.linalg.solve(_damped(second_moment), error_moment, left=False)


def round_weights(second_moment: Tensor, weight: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Round `weight` [outputs, inputs] to whole numbers of a small output error, by GPTQ.

    `second_moment` [inputs, inputs] is the covariance of the layer's inputs in any unit, `scales`
    [outputs] are levels per unit; all are float64. A row for which rounding to the nearest gives
    the smaller output error on these moments keeps that rounding, so none is ever worse.
    """
    levels = weight_levels(bits)
    order = second_moment.diagonal().argsort(descending=True, stable=True)
    moments, ordered = second_moment[order][:, order], weight[:, order]
    factor = torch.linalg.cholesky(
        torch.cholesky_inverse(torch.linalg.cholesky(_damped(moments))), upper=True
    )
    # Row k of the factor, by its diagonal entry, says how the columns after k make up for an error
    # in column k. Inputs that are always zero are left with the damping and make up for nothing.
    unrounded = ordered * scales.unsqueeze(1)
    remaining, rounded = unrounded.clone(), torch.empty_like(unrounded)
    for column, row in enumerate(factor):
        rounded[:, column] = levels.clamp(remaining[:, column].round())
        error = (remaining[:, column] - rounded[:, column]) / row[column]
        remaining[:, column:] -= torch.outer(error, row[column:])
    plain = nearest(ordered, scales, bits)
    better = output_errors(unrounded - rounded, moments) < output_errors(unrounded - plain, moments)
    return torch.where(better.unsqueeze(1), rounded, plain)[:, order.argsort()]


def _damped(moments: Tensor) -> Tensor:
    """Add a small share of the mean diagonal entry of `moments` to the diagonal."""
    diagonal = moments.diagonal()
    damping = DAMPING * diagonal.mean() if bool(diagonal.any()) else torch.ones_like(diagonal[0])
    return moments + damping * torch.eye(len(moments), dtype=moments.dtype, device=moments.device)


def bias_correction(weight: Tensor, quantized_weight: Tensor, moments: InputMoments) -> Tensor:
    """Compute W E[x] - Wq E[x̃], which added to the bias keeps the mean output: [outputs].

    `weight` and `quantized_weight` [outputs, inputs] are both in float units (integers divided by
    their scale).
    """
    return (weight - quantized_weight) @ moments.mean + weight @ moments.mean_error


def least_output_error(moments: Tensor, weight: Tensor, widest: Tensor, bits: int) -> Tensor:
    """Find the scales for which GPTQ's weights [outputs, inputs] err least in output on `moments`.

    Candidates are the scales `widest`, float64 [outputs], with thresholds of each of `SHARES`. Of
    equal errors the largest threshold wins.
    """
    chosen, least = widest.clone(), torch.full_like(widest, torch.inf)
    for share in SHARES:
        scales = widest / share
        rounded = round_weights(moments, weight, scales, bits) / scales.unsqueeze(1)
        errors = output_errors(weight - rounded, moments)
        chosen = torch.where(errors < least, scales, chosen)
        least = torch.minimum(errors, least)
    return chosen


class ByMoments:
    """Rounds each layer of a network for the inputs that it has in the quantized network.

    Images go through the float network and its quantized copy, a module at a time, so that a layer
    is rounded with what the layers before it, quantized already, really pass on. Both begin with
    the same `batches` [n, 3, 32, 32], of which all are kept.
    """

    def __init__(self, batches: Iterable[Tensor]) -> None:
        self.floats = list(batches)
        self.received = self.floats

    def round(self, name: str, layer: Layer, scheme: Scheme, scale: float) -> RoundedLayer:
        """Round the layer called `name`, which receives integers of this `scale`.

        With a scale for each channel, their thresholds are those of the least output error.
        """
        assert layer.bias is not None
        exact, bits = layer.weight.detach().flatten(1).double(), scheme.weight_bits
        moments = self.moments(layer, scale)
        products, errors = moments.covariances()
        weight = compensate(exact, errors, products)
        scales = weight_scales(name, weight, scheme)
        if scheme.weight_scales == "channel":
            scales = least_output_error(products, weight, scales, bits)
        integers = round_weights(products, weight, scales, bits)
        shift = bias_correction(exact, integers / scales.unsqueeze(1), moments)
        bias = layer.bias.detach().double() + shift
        return RoundedLayer(integers.view_as(layer.weight).to(torch.int8), scales, bias)

    @torch.no_grad()
    def moments(self, layer: Layer, scale: float = 1.0) -> InputMoments:
        """Measure the inputs of `layer`, on all images or on as many as give `ENOUGH_ROWS`."""
        found = InputMoments()
        for floats, received in zip(self.floats, self.received, strict=True):
            if found.rows >= ENOUGH_ROWS:
                break
            found.update(input_rows(layer, floats), input_rows(layer, received / scale))
        return found

    @torch.no_grad()
    def advance(self, module: nn.Module, copied: nn.Module) -> None:
        """Go through the float network's next `module`, and through the copy's."""
        self.floats = [module(batch) for batch in self.floats]
        # Levels of up to 8 bits are whole numbers in float32 too, at half the memory.
        self.received = [copied(batch).float() for batch in self.received]
