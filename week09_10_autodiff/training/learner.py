"""A model that learns: one training step as one compiled program.

With several batches a step, one program adds up gradients and another one applies them.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from week09_10_autodiff import nn, optim
from week09_10_autodiff import random as streams
from week09_10_autodiff.atomic import atomic_file
from week09_10_autodiff.context import no_grad, watched_by
from week09_10_autodiff.generation import TokenGenerator
from week09_10_autodiff.jit import jit
from week09_10_autodiff.models import LANGUAGE_MODELS
from week09_10_autodiff.nn import functional as F  # noqa: N812 - as everybody calls it
from week09_10_autodiff.realize import PROGRAMS
from week09_10_autodiff.safetensors_io import SINGLE, write_file
from week09_10_autodiff.sampling import Sampling
from week09_10_autodiff.tensor import Tensor
from week09_10_autodiff.training.batches import Pair
from week09_10_autodiff.training.config import Config, ModelConfig
from week09_10_autodiff.training.nans import Inspector, NotFiniteError
from week09_10_autodiff.training.tokens import END, tokenizer_of

SAMPLING = Sampling(temperature=0.8, top_k=50)
"""How samples are drawn."""


def hub_config(model: ModelConfig, vocabulary: int, end: int) -> dict[str, Any]:
    """The config.json of a model."""
    ends = {"vocab_size": vocabulary, "bos_token_id": end, "eos_token_id": end}
    if model.kind == "gpt":
        return {
            "model_type": "gpt2",
            "architectures": ["GPT2LMHeadModel"],
            "n_embd": model.width,
            "n_layer": model.layers,
            "n_head": model.heads,
            "n_inner": model.inner,
            "n_positions": model.context,
            "activation_function": "gelu_new",
            "tie_word_embeddings": True,
            **dict.fromkeys(("attn_pdrop", "embd_pdrop", "resid_pdrop"), model.dropout),
            **ends,
        }
    return {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_act": "silu",
        "hidden_size": model.width,
        "intermediate_size": model.inner,
        "num_hidden_layers": model.layers,
        "num_attention_heads": model.heads,
        "num_key_value_heads": model.key_heads,
        "max_position_embeddings": model.context,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        **ends,
    }


class Learner:
    """A language model, its optimizer, and what it takes to go on.

    Attributes:
        model: the model.
        parameters: how many numbers are trained.
        compiled: how many kernels the last step compiled and in how many seconds, or None; whoever
            has read it sets it to None.
    """

    def __init__(self, config: Config, tokenizer: str) -> None:
        self._config, self._tokenizer = config, tokenizer
        self._tool = tokenizer_of(tokenizer)
        vocabulary, end = self._tool.get_vocab_size(), self._tool.token_to_id(END)
        self._hub = hub_config(config.model, vocabulary, end)
        kind = LANGUAGE_MODELS[self._hub["model_type"]]
        streams.manual_seed(config.run.seed)
        self.model = kind.from_config(self._hub, seed=config.run.seed)
        if config.model.dtype == "bfloat16":
            _narrow(self.model)
        self.parameters = sum(p.node.size for p in self.model.parameters())
        self.compiled: tuple[int, float] | None = None
        self._optimizer = _optimizer(self.model, config)
        many = config.run.accumulation > 1
        self._sums = optim.Accumulator(self.model.parameters()) if many else None
        self._whole = jit(self._whole_step)
        self._part, self._end = jit(self._add_gradients), jit(self._apply_gradients)
        self._loss = jit(self._loss_alone)
        self._writer = TokenGenerator(self.model, frozenset((end,)))

    # Steps

    def step(self, batches: Sequence[Pair], lr: float) -> tuple[float, float]:
        """Learn from batches; the mean loss, and the gradients' norm."""
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        tensors = [(Tensor(x), Tensor(y)) for x, y in batches]
        if len(tensors) == 1:
            loss, norm = self._timed(self._whole, *tensors[0])
            return float(loss.item()), float(norm.item())
        losses = [self._timed(self._part, x, y).item() for x, y in tensors]
        norm = self._timed(self._end)
        return sum(losses) / len(losses), float(norm.item())

    def loss(self, pair: Pair) -> float:
        """The mean of −ln p(next token); nothing is learned."""
        with no_grad():
            return float(self._loss(*map(Tensor, pair)).item())

    def _mean_loss(self, x: Tensor, y: Tensor) -> Tensor:
        """x and y (batch, context)."""
        scores = self.model(x)
        loss: Tensor = F.cross_entropy(scores.reshape(-1, scores.shape[-1]), y.reshape(-1))
        return loss

    def _loss_alone(self, x: Tensor, y: Tensor) -> Tensor:
        self.model.eval()
        return self._mean_loss(x, y)

    def _whole_step(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        self.model.train()
        self._optimizer.zero_grad()
        loss = self._mean_loss(x, y)
        loss.backward()
        return loss.detach(), self._update()

    def _add_gradients(self, x: Tensor, y: Tensor) -> Tensor:
        self.model.train()
        self._optimizer.zero_grad()
        loss = self._mean_loss(x, y)
        loss.backward()
        assert self._sums is not None
        self._sums.add()
        return loss.detach()

    def _apply_gradients(self) -> Tensor:
        assert self._sums is not None
        self._sums.give()
        return self._update()

    def _update(self) -> Tensor:
        """One step of the optimizer; the norm of the gradients before they are clipped."""
        limit = self._config.optimizer.clip or math.inf
        norm = optim.clip_grad_norm_(self.model.parameters(), limit)
        self._optimizer.step()
        return norm

    def _timed(self, function: Callable[..., Any], *given: Tensor) -> Any:  # noqa: ANN401
        """function(…); what it compiles is told in `compiled`."""
        kernels, start = _kernels(), time.perf_counter()
        result = function(*given)
        if (made := _kernels() - kernels) > 0:
            before, seconds = self.compiled or (0, 0.0)
            self.compiled = before + made, seconds + time.perf_counter() - start
        return result

    def explain(self, batches: Sequence[Pair], lr: float) -> str:
        """Which operation of a step first makes a NaN, with its lines."""
        for group in self._optimizer.param_groups:
            group["lr"] = lr
        try:
            with watched_by(Inspector()):
                for x, y in batches:
                    self._whole_step(Tensor(x), Tensor(y))
        except NotFiniteError as found:
            return str(found)
        return "computed one operation at a time, the step has no NaN"

    # State

    def state(self) -> dict[str, Any]:
        """All that later steps depend on."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "random": streams.get_state(),
        }

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` gave."""
        self.model.load_state_dict(state["model"])
        self._optimizer.load_state_dict(state["optimizer"])
        streams.set_state(state["random"])

    # What comes out

    def sample(self, prompt: str, count: int, seed: int) -> str:
        """A text of so many tokens that the model writes after a prompt."""
        self.model.eval()
        given = self._tool.encode(prompt).ids
        room = max(1, min(count, self._config.model.context - len(given)))
        sampling = replace(SAMPLING, seed=seed)
        tokens = list(self._writer.generate(given, room, sampling))
        return prompt + str(self._tool.decode(tokens))

    def export(self, folder: Path) -> None:
        """Write the model as a Hugging Face folder."""
        folder.mkdir(parents=True, exist_ok=True)
        dtype = {"torch_dtype": self._config.model.dtype}
        for name, text in (
            ("config.json", json.dumps({**self._hub, **dtype}, indent=2) + "\n"),
            ("tokenizer.json", self._tokenizer),
        ):
            with atomic_file(folder / name) as file:
                file.write_text(text, encoding="utf-8")
        tensors = {name: p.detach().numpy() for name, p in self.model.named_parameters()}
        write_file(tensors, folder / SINGLE, {"format": "pt"})


def _narrow(model: nn.Module) -> None:
    """Hold the tables and matrices in bfloat16; norms and their sums stay float32."""
    model.bfloat16()
    for module in model.modules():
        if isinstance(module, nn.LayerNorm | nn.RMSNorm):
            module.float()


def _optimizer(model: nn.Module, config: Config) -> optim.AdamW:
    """AdamW in which matrices decay, and vectors (norms, biases) do not."""
    chosen = config.optimizer
    parameters = list(model.parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": chosen.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    first, second = chosen.betas
    return optim.AdamW(
        groups, lr=chosen.lr, betas=(first, second), eps=chosen.eps, master_weights=True
    )


def _kernels() -> int:
    """Kernels that this process compiled."""
    return PROGRAMS.kernels
