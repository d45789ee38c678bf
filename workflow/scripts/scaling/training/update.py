"""Optimizer update by SGD, LARS or Muon with few kernels, which a CUDA graph can capture."""

from collections import defaultdict

import torch
from torch import Tensor, nn

from scaling.registry.update_rule import UpdateRule
from scaling.training.flat_weights import FlatWeights, room_of, views_of

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients a, b, c of X ← aX + (bA + cA²)X with A = XXᵀ, as in torch.optim.Muon: Jordan et al.
2024 chose them to raise small singular values fast. A value of 1 ends within 0.7 to 1.2."""
NEWTON_SCHULZ_STEPS = 3


class Update:
    """Updates `parameters` of `model`, which are, in this order, views of the array `flat`.

    SGD is as in torch.optim.SGD; LARS as in You et al. 2017 (arXiv:1708.03888, algorithm 1), with a
    parameter tensor as a layer. Vectors (batch norms and biases) have the trust ratio 1, as in
    MLPerf's reference, and so have zero weights or gradients, which would never learn.

    Muon is as Jordan et al. 2024 train CIFAR-10: the weights of `hidden_convolutions` are scaled to
    the norm √(output channels), then moved by rate · `orthogonalized` Nesterov momentum. Other
    parameters use SGD at the rate `rest`.

    Rates are tensors on the device, so a captured step follows a schedule. `working`, if given, is
    a copy of the weights in its own dtype, and is updated too.
    """

    def __init__(
        self,
        model: nn.Module,
        flat: FlatWeights,
        parameters: list[nn.Parameter],
        working: Tensor | None = None,
        compiled: bool = False,
    ) -> None:
        self._flat, self._parameters, self._working = flat, parameters, working
        self._rate, self._rest, self._momentum = (flat.values.new_zeros(()) for _ in range(3))
        self._one = flat.values.new_ones(())
        self._set: tuple[float, float] | None = None
        self._sgd = torch.compile(_sgd, dynamic=False) if compiled else _sgd
        hidden = {id(weight) for weight in hidden_convolutions(model)}
        self._hidden = [place for place, one in enumerate(parameters) if id(one) in hidden]
        self._groups: list[tuple[list[int], Tensor]] = []
        adapted = torch.tensor([one.dim() > 1 for one in parameters])
        of_each = adapted.repeat_interleave(torch.tensor(list(map(room_of, parameters))))
        self._adapted, self._in_adapted = (one.to(flat.values.device) for one in (adapted, of_each))

    def reset(self, rule: UpdateRule, momentum: float, weight_decay: float) -> None:
        """Start a training with `rule`: zero momenta, and rate 0 until `set_rates`."""
        self._rule, self._weight_decay = rule, weight_decay
        self._momentum.fill_(momentum)
        self.set_rates(0.0, 0.0)
        if rule.muon and not self._groups:
            # Matrices of one shape as a batch: their places, and momenta [n, out, rest].
            matrices, groups = self._matrices(self._flat.values), defaultdict(list)
            for place in self._hidden:
                groups[matrices[place].shape].append(place)
            zeros = self._flat.values.new_zeros
            self._groups = [(own, zeros(len(own), *shape)) for shape, own in groups.items()]
        for momenta in self.momenta:
            momenta.zero_()

    @property
    def momenta(self) -> list[Tensor]:
        """Return all state of earlier updates except the weights."""
        return [self._flat.momenta, *(momenta for _, momenta in self._groups)]

    def set_rates(self, rate: float, rest: float) -> None:
        """Set the rate of the next updates, and with Muon the rate of all other parameters."""
        if (rate, rest) != self._set:
            self._rate.fill_(rate)
            self._rest.fill_(rest)
            self._set = rate, rest

    def step(self) -> None:
        """Update all weights by the gradients."""
        flat, rule = self._flat, self._rule
        moved = self._muon() if rule.muon else {}
        gradients, rate = flat.gradients, self._rest if rule.muon else self._rate
        decay: Tensor | float = self._weight_decay
        if not rule.decay_batch_norm:
            decay = decay * self._in_adapted
        if rule.lars:
            gradients = gradients + decay * flat.values
            local = self._local_rates(rule.lars) * rate
            torch._foreach_mul_(views_of(gradients, self._parameters), list(local.unbind()))
            rate, decay = self._one, 0.0
        self._sgd(
            *(flat.values, flat.momenta, gradients, None if moved else self._working),
            *(rate, self._momentum, decay, rule.nesterov),
        )
        if moved:
            matrices = self._matrices(flat.values)
            torch._foreach_copy_([matrices[place] for place in moved], list(moved.values()))
            if self._working is not None:
                self._working.copy_(flat.values)

    def _muon(self) -> dict[int, Tensor]:
        """Return the weights of all groups after the step, by their places."""
        weights, gradients = map(self._matrices, (self._flat.values, self._flat.gradients))
        found: dict[int, Tensor] = {}
        for places, momenta in self._groups:
            gradient = torch.stack([gradients[place] for place in places])
            momenta.mul_(self._rule.muon_momentum).add_(gradient)
            step = orthogonalized(gradient.add_(momenta, alpha=self._rule.muon_momentum))
            old = torch.stack([weights[place] for place in places])
            scale = old.size(1) ** 0.5 / torch.linalg.matrix_norm(old, keepdim=True)
            found |= zip(places, (old * scale - self._rate * step).unbind(), strict=True)
        return found

    def _matrices(self, flat: Tensor) -> list[Tensor]:
        """Return the tensors of `flat` as matrices whose first dimension is outermost in memory."""
        parts = flat.split([room_of(one) for one in self._parameters])
        return [
            part[: one.numel()].view(len(one), -1)
            for part, one in zip(parts, self._parameters, strict=True)
        ]

    def _local_rates(self, trust: float) -> Tensor:
        """Return LARS's rate of each parameter tensor: η · |w| / (|g| + decay · |w|), or 1."""
        weights, gradients = (
            torch.stack(torch._foreach_norm(views_of(flat, self._parameters)))
            for flat in (self._flat.values, self._flat.gradients)
        )
        local = trust * weights / (gradients + self._weight_decay * weights)
        return torch.where(self._adapted & (weights > 0) & (gradients > 0), local, 1.0)


def _sgd(
    weights: Tensor,
    momenta: Tensor,
    gradients: Tensor,
    working: Tensor | None,
    rate: Tensor,
    momentum: Tensor,
    decay: Tensor | float,
    nesterov: bool,
) -> None:
    change = gradients + decay * weights
    momenta.mul_(momentum).add_(change)
    weights.sub_(rate * (change + momentum * momenta if nesterov else momenta))
    if working is not None:
        working.copy_(weights)


def hidden_convolutions(model: nn.Module) -> list[Tensor]:
    """Return the weights of the convolutions without bias, except the first: a norm follows each.

    So the scale of a weight affects only the relative size of its updates.
    """
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    return [one.weight for one in convolutions[1:] if one.bias is None and one.groups == 1]


def orthogonalized(matrices: Tensor, steps: int = NEWTON_SCHULZ_STEPS) -> Tensor:
    """Bring the singular values of each of `matrices` [n, rows, columns] near 1 by matrix products.

    Newton–Schulz iteration as in Muon (`NEWTON_SCHULZ`), in bf16 on a GPU; torch.optim.Muon does it
    for one matrix at a time. Singular vectors are kept; the smallest values stay small.
    """
    a, b, c = NEWTON_SCHULZ
    tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if tall else matrices
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    x = x.to(torch.bfloat16) if x.is_cuda else x
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)
