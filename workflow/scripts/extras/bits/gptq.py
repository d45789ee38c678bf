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
Correction", section 4.2, with inputs that were measured instead of derived.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.quantization.integers import weight_levels

# Added to the diagonal of the second moments, as a share of its mean: the paper's.
DAMPING = 0.01
# Of no dimension, so that it adds to a tensor on any device.
ZERO = torch.zeros(())


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

    def second(self, centred: bool) -> tuple[Tensor, Tensor]:
        """Return E[x̃ x̃ᵀ] and E[(x - x̃) x̃ᵀ], float64 [inputs, inputs].

        `centred`, their covariances: what is left to minimise where the bias takes the mean shift.
        """
        products, errors = self.products / self.rows, self.error_products / self.rows
        if centred:
            products = products - torch.outer(self.mean, self.mean)
            errors = errors - torch.outer(self.mean_error, self.mean)
        return products, errors


def input_rows(layer: nn.Conv2d | nn.Linear, inputs: Tensor) -> Tensor:
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


def output_errors(difference: Tensor, second_moment: Tensor) -> Tensor:
    """Compute E[(d · x)²] of each row d of `difference` [outputs, inputs]: float64 [outputs]."""
    rows = difference.double()
    return ((rows @ second_moment.double()) * rows).sum(dim=1)


def compensate(weight: Tensor, error_moment: Tensor, second_moment: Tensor) -> Tensor:
    """Compute V = W + W E[(x - x̃) x̃ᵀ] E[x̃ x̃ᵀ]⁻¹, float64 [outputs, inputs], damped as GPTQ.

    Inputs that arrive as in the float network leave the weights as they are.
    """
    exact = weight.double()
    taken = torch.linalg.solve(_damped(second_moment.double()), error_moment.double(), left=False)
    return exact + exact @ taken


def round_weights(
    second_moment: Tensor, weight: Tensor, scale: Tensor | float, bits: int
) -> Tensor:
    """Round to integer weights [outputs, inputs], int32, of a small output error, by GPTQ.

    `weight` [outputs, inputs] are the float weights, `second_moment` [inputs, inputs] is E[x̃ x̃ᵀ] of
    the layer's inputs in any unit (or their covariance), `scale` in levels per unit for the tensor
    or [outputs] for each row, `bits` from 2 to 8: levels from -(2^(bits-1) - 1) to the same above
    zero. A row for which rounding to the nearest gives the smaller output error on these moments
    keeps that rounding, so none is ever worse.
    """
    levels = weight_levels(bits)
    order = second_moment.diagonal().argsort(descending=True, stable=True)
    moments = second_moment.double()[order][:, order]
    scales = torch.as_tensor(scale, dtype=torch.float64, device=weight.device).reshape(-1, 1)
    unrounded = weight.double()[:, order] * scales
    nearest = levels.clamp(unrounded.round())
    factor = torch.linalg.cholesky(
        torch.cholesky_inverse(torch.linalg.cholesky(_damped(moments))), upper=True
    )
    # Row k of the factor, by its diagonal entry, says how the columns after k make up for an error
    # in column k. Inputs that are always zero are left with the damping and make up for nothing.
    remaining, rounded = unrounded.clone(), torch.empty_like(unrounded)
    for column, row in enumerate(factor):
        rounded[:, column] = levels.clamp(remaining[:, column].round())
        error = (remaining[:, column] - rounded[:, column]) / row[column]
        remaining[:, column:] -= torch.outer(error, row[column:])
    better = output_errors(unrounded - rounded, moments) < output_errors(
        unrounded - nearest, moments
    )
    chosen = torch.where(better.unsqueeze(1), rounded, nearest)
    return chosen[:, order.argsort()].to(torch.int32)


def _damped(moments: Tensor) -> Tensor:
    """Add a small share of the mean diagonal entry of `moments` to the diagonal."""
    diagonal = moments.diagonal()
    damping = DAMPING * diagonal.mean() if bool(diagonal.any()) else torch.ones_like(diagonal[0])
    return moments + damping * torch.eye(len(moments), dtype=moments.dtype, device=moments.device)


def bias_correction(weight: Tensor, quantized_weight: Tensor, moments: InputMoments) -> Tensor:
    """Compute W E[x] - Wq E[x̃], which added to the bias keeps the mean output; float64 [outputs].

    `weight` and `quantized_weight` [outputs, inputs] are both in float units (integers divided by
    their scale).
    """
    exact = weight.double()
    return (exact - quantized_weight.double()) @ moments.mean + exact @ moments.mean_error
