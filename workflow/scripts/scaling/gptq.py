"""Weight rounding that looks at a layer's inputs, and the shift of outputs that rounding leaves.

`round_weights` is GPTQ (Frantar et al. 2022, "GPTQ: Accurate Post-Training Quantization for
Generative Pre-trained Transformers"): the columns of W [outputs, inputs], one input each, are
rounded in order, and what rounding one column adds to the layer's output is taken back by the
columns not rounded yet, so as to keep the mean of |(W - Wq) x|² over the inputs x small. Left out:
the batches of columns of the paper, which save memory traffic on weights of thousands of inputs and
change nothing else; ordering the columns by their input's size; and scales per group of columns.

`bias_correction` is Nagel et al. 2019, "Data-Free Quantization Through Weight Equalization and Bias
Correction", section 4.2, with inputs that were measured instead of derived.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.nn import functional

# Added to the diagonal of the second moments, as a share of its mean: the paper's.
DAMPING = 0.01


@dataclass
class InputMoments:
    """Mean and second moments of a layer's inputs over all rows seen: what both methods need."""

    rows: int = 0
    total: Tensor = field(default_factory=lambda: torch.zeros(()))
    products: Tensor = field(default_factory=lambda: torch.zeros(()))

    def see(self, inputs: Tensor) -> None:
        """Add the rows of `inputs` [n, inputs]; sums are kept in float64."""
        self.rows += len(inputs)
        self.total = self.total.to(inputs.device) + inputs.double().sum(dim=0)
        self.products = self.products.to(inputs.device) + (inputs.T @ inputs).double()

    @property
    def mean(self) -> Tensor:
        """E[x], float64 [inputs]."""
        return self.total / self.rows

    @property
    def second_moment(self) -> Tensor:
        """E[x xᵀ], float64 [inputs, inputs]."""
        return self.products / self.rows

    @property
    def covariance(self) -> Tensor:
        """E[x xᵀ] - E[x] E[x]ᵀ: what is left to minimise where the bias takes the mean shift."""
        return self.second_moment - torch.outer(self.mean, self.mean)


def input_rows(layer: nn.Conv2d | nn.Linear, inputs: Tensor) -> Tensor:
    """What each product with a row of the layer's flattened weights sees: [n, inputs].

    A linear layer sees `inputs` [n, inputs] itself; an ungrouped convolution every patch of them.
    """
    if isinstance(layer, nn.Linear):
        return inputs
    assert layer.groups == 1 and not isinstance(layer.padding, str)
    patches = functional.unfold(
        inputs, layer.kernel_size, layer.dilation, layer.padding, layer.stride
    )
    return patches.transpose(1, 2).flatten(0, 1)


def output_errors(difference: Tensor, second_moment: Tensor) -> Tensor:
    """E[(d · x)²] of each row d of `difference` [outputs, inputs]: float64 [outputs]."""
    rows = difference.double()
    return ((rows @ second_moment.double()) * rows).sum(dim=1)


def round_weights(
    weight: Tensor, second_moment: Tensor, scale: Tensor | float, bits: int
) -> Tensor:
    """GPTQ: integer weights [outputs, inputs], int32, whose output error is small.

    `weight` [outputs, inputs] are the float weights, `second_moment` [inputs, inputs] is E[x xᵀ] of
    the layer's inputs in any unit (or their covariance, where a corrected bias takes the rest),
    `scale` in steps per unit for the tensor or [outputs] for each row, `bits` from 2 to 8: integers
    reach from -(2^(bits-1) - 1) to the same above zero. A row for which rounding to the nearest
    gives the smaller output error on these moments keeps that rounding, so none is ever worse.
    """
    last_step = 2 ** (bits - 1) - 1
    moments = second_moment.double()
    scales = torch.as_tensor(scale, dtype=torch.float64, device=weight.device).reshape(-1, 1)
    steps = weight.double() * scales
    nearest = steps.round().clamp(-last_step, last_step)
    factor = _inverse_factor(moments)
    remaining, rounded = steps.clone(), torch.empty_like(steps)
    for column, row in enumerate(factor):
        rounded[:, column] = remaining[:, column].round().clamp(-last_step, last_step)
        error = (remaining[:, column] - rounded[:, column]) / row[column]
        remaining[:, column:] -= torch.outer(error, row[column:])
    better = output_errors(steps - rounded, moments) < output_errors(steps - nearest, moments)
    return torch.where(better.unsqueeze(1), rounded, nearest).to(torch.int32)


def _inverse_factor(moments: Tensor) -> Tensor:
    """The upper triangular U with Uᵀ U the inverse of the damped `moments`.

    Row k, divided by its diagonal entry, says how the columns after k make up for an error in
    column k. Inputs that are always zero are left with the damping alone and make up for nothing.
    """
    diagonal = moments.diagonal()
    damping = DAMPING * diagonal.mean() if bool(diagonal.any()) else torch.ones_like(diagonal[0])
    damped = moments + damping * torch.eye(len(moments), dtype=moments.dtype, device=moments.device)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    return torch.linalg.cholesky(inverse, upper=True)


def bias_correction(weight: Tensor, quantized_weight: Tensor, mean_input: Tensor) -> Tensor:
    """(W - Wq) · E[x]: what to add to the bias so that the mean output stays; float64 [outputs].

    `weight` and `quantized_weight` [outputs, inputs] are both in float units (integers divided by
    their scale), `mean_input` [inputs] is the mean of the layer's inputs.
    """
    return (weight.double() - quantized_weight.double()) @ mean_input.double()
