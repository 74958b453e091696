"""One layer of BERT on packed texts, on a CPU, with its gradient by hand.

Plain autograd gives the same numbers (tests/model/test_layer.py) in a tenth more time: it copies
more, and each of its calls costs, which narrow networks feel.
Source: Devlin et al. 2019 (arXiv 1810.04805), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import gelu

from repro.model.attention import Attention
from repro.model.dropout import Dropout

native = torch.ops.aten


@dataclass(frozen=True)
class Pass:
    """What the layers of one pass share."""

    attention: Attention
    drop: Dropout
    rate: float  # of dropout behind the linear layers
    attention_rate: float
    epsilon: float  # of the layer norms


def weights_of(layer: Any) -> list[Tensor]:
    """The sixteen weights of a layer of transformers' BERT, in the order of `Layer`."""
    own, mixing = layer.attention.self, layer.attention.output
    first = (own.query, own.key, own.value, mixing.dense, mixing.LayerNorm)
    parts = (*first, layer.intermediate.dense, layer.output.dense, layer.output.LayerNorm)
    return [weight for part in parts for weight in (part.weight, part.bias)]


class Layer(torch.autograd.Function):
    """States [t, width] to states [t, width]; `weights_of` gives what follows the pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, of: Pass, *weights: Tensor) -> Tensor:
        """The states behind this layer."""
        *three, mixing, mixing_bias, norm, norm_bias = weights[:10]
        wide, wide_bias, narrow, narrow_bias, last, last_bias = weights[10:]
        joint = torch.cat(three[::2])
        mixed, seen = of.attention.forward(
            _linear(x, joint, torch.cat(three[1::2])), of.drop, of.attention_rate
        )
        before = _linear(mixed, mixing, mixing_bias)
        scale = of.drop.scale(before, of.rate)
        between, *moments = _add_and_norm(before, scale, x, norm, norm_bias, of.epsilon)
        inner = _linear(between, wide, wide_bias)
        active = gelu(inner)
        after = _linear(active, narrow, narrow_bias)
        last_scale = of.drop.scale(after, of.rate)
        out, *last_moments = _add_and_norm(after, last_scale, between, last, last_bias, of.epsilon)
        ctx.attention = of.attention
        ctx.save_for_backward(
            *(x, joint, mixing, norm, norm_bias, wide, narrow, last, last_bias),
            *(mixed, before, scale, *moments, between, inner, active),
            *(after, last_scale, *last_moments, *seen),
        )
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        """The gradients at the states and at the weights."""
        saved = ctx.saved_tensors
        x, joint, mixing, norm, norm_bias, wide, narrow, last, last_bias = saved[:9]
        mixed, before, scale, mean, deviation, between, inner, active = saved[9:17]
        after, last_scale, last_mean, last_deviation, *seen = saved[17:]

        at, *to_last = _norm_backward(
            gradients[0], after, last_mean, last_deviation, last, last_bias
        )
        inside = at if last_scale is None else at * last_scale
        to_narrow = inside.t() @ active, inside.sum(0)
        inside = inside @ narrow
        native.gelu_backward.grad_input(inside, inner, grad_input=inside)
        to_wide = inside.t() @ between, inside.sum(0)
        at = at.addmm_(inside, wide)

        at, *to_norm = _norm_backward(at, before, mean, deviation, norm, norm_bias)
        inside = at if scale is None else at * scale
        to_mixing = inside.t() @ mixed, inside.sum(0)
        inside = ctx.attention.backward(inside @ mixing, seen)
        pairs = zip((inside.t() @ x).chunk(3), inside.sum(0).chunk(3), strict=True)
        to_three = [gradient for pair in pairs for gradient in pair]
        at = at.addmm_(inside, joint)
        return at, None, *to_three, *to_mixing, *to_norm, *to_wide, *to_narrow, *to_last


def _linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.mm(x, weight.t()).add_(bias)  # up to a tenth faster than addmm


def _add_and_norm(
    values: Tensor,
    scale: Tensor | None,
    residual: Tensor,
    norm: Tensor,
    bias: Tensor,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The norm of `residual` + `values`, dropped out; the sum is left in `values`."""
    if scale is None:
        values.add_(residual)
    else:
        torch.addcmul(residual, values, scale, out=values)
    return torch.native_layer_norm(values, norm.shape, norm, bias, epsilon)


def _norm_backward(
    gradient: Tensor, values: Tensor, mean: Tensor, deviation: Tensor, norm: Tensor, bias: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    found: tuple[Tensor, Tensor, Tensor] = native.native_layer_norm_backward(
        gradient, values, norm.shape, mean, deviation, norm, bias, [True, True, True]
    )
    return found
