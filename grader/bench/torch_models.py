"""GPT-2 and Llama in PyTorch's functions, over parameters with the names of our models.

Written as one would for speed: one matrix product a linear map, scaled_dot_product_attention, fused
norms and loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from week09_10_autodiff.models.gpt2 import GPT2Config
from week09_10_autodiff.models.llama import LlamaConfig

Tensors = Mapping[str, Any]
Loss = Callable[[Tensors, Any, Any], Any]
"""loss(parameters, tokens, targets): the mean cross entropy."""


def gpt2(torch: Any, config: GPT2Config) -> Loss:  # noqa: ANN401 - a module
    """The loss of a GPT-2; weights of linear maps are (in, out)."""
    f, width, heads = torch.nn.functional, config.n_embd, config.n_head
    eps = config.layer_norm_epsilon

    def affine(p: Tensors, name: str, x: Any) -> Any:  # noqa: ANN401
        flat = torch.addmm(p[f"{name}.bias"], x.view(-1, x.shape[-1]), p[f"{name}.weight"])
        return flat.view(*x.shape[:-1], -1)

    def norm(p: Tensors, name: str, x: Any) -> Any:  # noqa: ANN401
        return f.layer_norm(x, (width,), p[f"{name}.weight"], p[f"{name}.bias"], eps)

    def attention(p: Tensors, name: str, x: Any) -> Any:  # noqa: ANN401
        batch, length, _ = x.shape
        parts = affine(p, f"{name}.c_attn", x).split(width, -1)
        q, k, v = [t.view(batch, length, heads, -1).transpose(1, 2) for t in parts]
        y = f.scaled_dot_product_attention(q, k, v, is_causal=True)
        return affine(p, f"{name}.c_proj", y.transpose(1, 2).reshape(batch, length, width))

    def loss(p: Tensors, tokens: Any, targets: Any) -> Any:  # noqa: ANN401
        table = p["transformer.wte.weight"]
        x = f.embedding(tokens, table) + p["transformer.wpe.weight"][: tokens.shape[1]]
        for k in range(config.n_layer):
            name = f"transformer.h.{k}"
            x = x + attention(p, f"{name}.attn", norm(p, f"{name}.ln_1", x))
            inner = affine(p, f"{name}.mlp.c_fc", norm(p, f"{name}.ln_2", x))
            x = x + affine(p, f"{name}.mlp.c_proj", f.gelu(inner, approximate="tanh"))
        logits = f.linear(norm(p, "transformer.ln_f", x), p.get("lm_head.weight", table))
        return f.cross_entropy(logits.view(-1, config.vocab_size), targets.view(-1))

    return loss


def llama(torch: Any, config: LlamaConfig) -> Loss:  # noqa: ANN401 - a module
    """The loss of a Llama with plain rotary positions and without biases."""
    f, width, half = torch.nn.functional, config.hidden_size, config.head_dim // 2
    exponents = torch.arange(half, dtype=torch.float64) / half
    places = torch.arange(config.max_position_embeddings, dtype=torch.float64)
    angles = torch.outer(places, config.rotary.theta**-exponents)
    cosine, sine = (torch.cat([g, g], -1).float() for g in (angles.cos(), angles.sin()))

    def turned(x: Any) -> Any:  # noqa: ANN401
        length = x.shape[-2]
        crossed = torch.cat([-x[..., half:], x[..., :half]], -1)
        return x * cosine[:length] + crossed * sine[:length]

    def norm(weight: Any, x: Any) -> Any:  # noqa: ANN401
        return f.rms_norm(x, (width,), weight, config.rms_norm_eps)

    def attention(p: Tensors, name: str, x: Any) -> Any:  # noqa: ANN401
        batch, length, _ = x.shape
        q, k, v = [
            f.linear(x, p[f"{name}.{part}_proj.weight"])
            .view(batch, length, -1, config.head_dim)
            .transpose(1, 2)
            for part in "qkv"
        ]
        y = f.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
        return f.linear(y.transpose(1, 2).reshape(batch, length, -1), p[f"{name}.o_proj.weight"])

    def loss(p: Tensors, tokens: Any, targets: Any) -> Any:  # noqa: ANN401
        table = p["model.embed_tokens.weight"]
        x = f.embedding(tokens, table)
        for k in range(config.num_hidden_layers):
            name = f"model.layers.{k}"
            y = norm(p[f"{name}.input_layernorm.weight"], x)
            x = x + attention(p, f"{name}.self_attn", y)
            y = norm(p[f"{name}.post_attention_layernorm.weight"], x)
            gate = f.silu(f.linear(y, p[f"{name}.mlp.gate_proj.weight"]))
            y = gate * f.linear(y, p[f"{name}.mlp.up_proj.weight"])
            x = x + f.linear(y, p[f"{name}.mlp.down_proj.weight"])
        logits = f.linear(norm(p["model.norm.weight"], x), p.get("lm_head.weight", table))
        return f.cross_entropy(logits.view(-1, config.vocab_size), targets.view(-1))

    return loss
