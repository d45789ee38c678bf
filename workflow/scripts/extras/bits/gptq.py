"""Rounds weights by the inputs of their layer (GPTQ), and corrects weights and bias for them.

A layer of the quantized network receives x̃ where the float network's receives x: rounded, and with
the noise of all layers before. Its weights Wq and its bias are chosen to keep the mean of
|W x - Wq x̃|² small. The bias takes the mean shift, so that covariances are what is left:

- `compensate`: the float weights V for which that mean is least. Any others cost E[|(V - Wq) x̃|²]
  on top, so that V takes the place of W in the next step (asymmetric calibration: Li et al. 2025,
  "GPTAQ: Efficient Finetuning-Free Quantization for Asymmetric Calibration").
- `round_weights`: GPTQ (Frantar et al. 2022, "GPTQ: Accurate Post-Training Quantization for
  Generative Pre-trained Transformers"), without its batches of columns, which save memory traffic
  on weights of thousands of inputs, and without scales per group of columns.
- `bias_correction`: Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias
  Correction", section 4.2, with inputs that were measured instead of derived.
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
"""Added to the diagonal of the covariance, as a share of its mean: the paper's."""


@dataclass
class InputMoments:
    """Means and covariances of what a layer receives, x̃, and of the error x - x̃ in it.

    x is what the float network's layer receives for the same image. `total` and `products` with x̃
    are sums over all `rows` seen, float64 [2 · inputs] and [2 · inputs, inputs]: x̃ first.
    """

    rows: int = 0
    total: Tensor | float = 0.0
    products: Tensor | float = 0.0

    def update(self, floats: Tensor, received: Tensor) -> None:
        """Add the rows x and x̃ of `floats` and `received` [n, inputs]."""
        both = torch.cat([received, floats - received], dim=1)
        self.rows += len(received)
        self.total = both.double().sum(dim=0) + self.total
        self.products = (both.T @ received).double() + self.products

    def means(self) -> tuple[Tensor, Tensor]:
        """Return E[x̃] and E[x - x̃], float64 [inputs]."""
        mean, error = torch.as_tensor(self.total / self.rows).chunk(2)
        return mean, error

    def covariances(self) -> tuple[Tensor, Tensor]:
        """Return those of x̃ with x̃ and of x - x̃ with x̃, float64 [inputs, inputs]."""
        means = self.means()
        centred = self.products / self.rows - torch.outer(torch.cat(means), means[0])
        products, errors = centred.chunk(2)
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


def output_errors(difference: Tensor, covariance: Tensor) -> Tensor:
    """Compute the variance of d · x̃ for each row d of `difference` [outputs, inputs]: [outputs]."""
    return ((difference @ covariance) * difference).sum(dim=1)


def compensate(weight: Tensor, errors: Tensor, covariance: Tensor) -> Tensor:
    """Compute V = W + W cov(x - x̃, x̃) cov(x̃, x̃)⁻¹ [outputs, inputs], damped as GPTQ.

    Inputs that arrive as in the float network leave the weights as they are.
    """
    return weight + weight @ torch.linalg.solve(_damped(covariance), errors, left=False)


def round_weights(covariance: Tensor, weight: Tensor, scales: Tensor, bits: int) -> Tensor:
    """Round `weight` [outputs, inputs] to whole numbers of a small output error, by GPTQ.

    `covariance` [inputs, inputs] is of the layer's inputs in any unit, `scales` [outputs] are
    levels per unit; all are float64. A row for which rounding to the nearest gives the smaller
    output error keeps that rounding, so none is ever worse.
    """
    levels = weight_levels(bits)
    # The largest inputs first; what rounding one adds to the output, those after it take back.
    order = covariance.diagonal().argsort(descending=True, stable=True)
    covariance, ordered = covariance[order][:, order], weight[:, order]
    factor = torch.linalg.cholesky(
        torch.cholesky_inverse(torch.linalg.cholesky(_damped(covariance))), upper=True
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
    ours, theirs = (output_errors(unrounded - each, covariance) for each in (rounded, plain))
    return torch.where((ours < theirs).unsqueeze(1), rounded, plain)[:, order.argsort()]


def _damped(covariance: Tensor) -> Tensor:
    diagonal = covariance.diagonal()
    damping = DAMPING * diagonal.mean() if bool(diagonal.any()) else torch.ones_like(diagonal[0])
    return covariance + torch.diag(damping.expand_as(diagonal))


def bias_correction(weight: Tensor, quantized_weight: Tensor, moments: InputMoments) -> Tensor:
    """Compute W E[x] - Wq E[x̃], which added to the bias keeps the mean output: [outputs].

    `weight` and `quantized_weight` [outputs, inputs] are both in float units (integers divided by
    their scale).
    """
    mean, error = moments.means()
    return (weight - quantized_weight) @ mean + weight @ error


def least_output_error(covariance: Tensor, weight: Tensor, widest: Tensor, bits: int) -> Tensor:
    """Find the scales, float64 [outputs], for which GPTQ's weights [outputs, inputs] err least.

    Candidates are the scales `widest` with thresholds of each of `SHARES`. Of equal errors the
    largest threshold wins.
    """
    chosen, least = widest.clone(), torch.full_like(widest, torch.inf)
    for share in SHARES:
        scales = widest / share
        rounded = round_weights(covariance, weight, scales, bits) / scales.unsqueeze(1)
        errors = output_errors(weight - rounded, covariance)
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

    @torch.no_grad()
    def round(self, name: str, layer: Layer, scheme: Scheme, scale: float) -> RoundedLayer:
        """Round the layer called `name`, which receives integers of this `scale`.

        With a scale for each channel, their thresholds are those of the least output error.
        """
        assert layer.bias is not None
        moments, exact, bits = InputMoments(), layer.weight.flatten(1).double(), scheme.weight_bits
        for floats, received in zip(self.floats, self.received, strict=True):
            if moments.rows < ENOUGH_ROWS:
                moments.update(input_rows(layer, floats), input_rows(layer, received / scale))
        covariance, errors = moments.covariances()
        weight = compensate(exact, errors, covariance)
        scales = weight_scales(name, weight, scheme)
        if scheme.weight_scales == "channel":
            scales = least_output_error(covariance, weight, scales, bits)
        integers = round_weights(covariance, weight, scales, bits)
        shift = bias_correction(exact, integers / scales.unsqueeze(1), moments)
        rounded = integers.view_as(layer.weight).to(torch.int8)
        return RoundedLayer(rounded, scales, layer.bias.double() + shift)

    @torch.no_grad()
    def advance(self, module: nn.Module, copied: nn.Module) -> None:
        """Go through the float network's next `module`, and through the copy's."""
        self.floats = [module(batch) for batch in self.floats]
        # Levels of up to 8 bits are whole numbers in float32 too, at half the memory.
        self.received = [copied(batch).float() for batch in self.received]
