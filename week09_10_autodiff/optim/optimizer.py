"""What all optimizers share: groups of parameters, their state, and the step as one program.

    optimizer = AdamW(model.parameters(), lr=1e-3)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

A step assigns new expressions to parameters and state and then computes them all in one program,
with the losses that `backward` was called on. Within `jit` it only assigns; the captured program
does the rest. The learning rate and the number of steps are tensors, so that another rate is no
other program; the other options are constants of it.

**Mixed precision.** Hold a model in bfloat16 (`model.bfloat16()`): products are accumulated in
float32 by the compiler, normalizations and losses computed in float32. With `master_weights=True`
the optimizer keeps each bfloat16 or float16 parameter in float32 as well, with moments in float32,
changes that, and rounds it to the parameter. For float16 scale the loss (`loss * 1024`) and
give the optimizer `grad_scale=1024`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from week01_uops.dtypes import bfloat16, float16, float32, float64, int64
from week09_10_autodiff.context import no_grad
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.pending import realize_all
from week09_10_autodiff.tensor import Tensor

Parameters = Iterable[Tensor] | Iterable[Mapping[str, Any]]
State = dict[str, Tensor]
MASTER = "master"
"""The name of a parameter in float32 among its state."""


class Group(dict[str, Any]):
    """Parameters with options of their own: {"params": [...], "lr": a tensor, …}.

    `group["lr"] = 0.1` changes the tensor's value, and so compiles nothing anew.
    """

    def __setitem__(self, key: str, value: Any) -> None:  # noqa: ANN401 - any option
        known = self.get(key)
        if isinstance(known, Tensor) and isinstance(value, (int, float)):
            known.assign(Tensor(float(value), known.dtype))
        else:
            super().__setitem__(key, value)


class Optimizer(ABC):
    """The base of all optimizers.

    Attributes:
        param_groups: what is trained, and how.
        state: of each parameter, by its number; tensors of its shape.
        steps: how many steps there were, a tensor.
    """

    def __init__(
        self,
        params: Parameters,
        defaults: Mapping[str, Any],
        *,
        master_weights: bool = False,
        grad_scale: float = 1.0,
    ) -> None:
        self.defaults = dict(defaults)
        self.master_weights, self.grad_scale = master_weights, grad_scale
        self.param_groups = [self._group(given) for given in _groups(params)]
        self.parameters = [p for group in self.param_groups for p in group["params"]]
        _expect_distinct_leaves(self.parameters)
        self.steps = Tensor.zeros(dtype=int64)
        self.state = [
            self._first_state(p, group) for group in self.param_groups for p in group["params"]
        ]
        realize_all([*self.parameters, *self._tensors()])

    def _group(self, given: Mapping[str, Any]) -> Group:
        unknown = sorted(set(given) - set(self.defaults) - {"params", "initial_lr"})
        if unknown:
            known = ", ".join(self.defaults)
            raise TensorError(f"expected the options {known}, got {', '.join(unknown)}")
        options = {**self.defaults, **given, "params": list(given["params"])}
        self._check(options)
        options["lr"] = Tensor(float(options["lr"]), float64)
        return Group(options)

    def _check(self, options: Mapping[str, Any]) -> None:
        """TensorError unless the options make sense."""
        _expect_at_least_0(options, "lr", "weight_decay")

    def _first_state(self, parameter: Tensor, group: Group) -> State:
        kept = self.master_weights and parameter.dtype in (bfloat16, float16)
        weights = parameter.detach().to(float32) if kept else parameter.detach()
        state = {name: weights.zeros_like() for name in self.state_names(group)}
        return {MASTER: weights, **state} if kept else state

    @abstractmethod
    def state_names(self, group: Mapping[str, Any]) -> Sequence[str]:
        """The tensors of a parameter's shape that are kept from step to step; 0 at first."""

    @abstractmethod
    def update(
        self, weights: Tensor, gradient: Tensor, state: State, group: Mapping[str, Any]
    ) -> tuple[Tensor, State]:
        """The new weights and state, after `self.steps` steps with this one."""

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Change the parameters that have a gradient."""
        with no_grad():
            self.steps.assign(self.steps + 1)
            states = iter(self.state)
            for group in self.param_groups:
                for parameter in group["params"]:
                    self._step_of(parameter, next(states), group)
        realize_all([*self.parameters, *self._tensors()])

    def _step_of(self, parameter: Tensor, state: State, group: Group) -> None:
        if parameter.grad is None:
            return
        weights = state.get(MASTER, parameter.detach())
        gradient = parameter.grad.to(weights.dtype)
        gradient = gradient * (1 / self.grad_scale) if self.grad_scale != 1 else gradient
        new, changed = self.update(weights, gradient, state, group)
        for name, value in changed.items():
            state[name].assign(value)
        if MASTER in state:
            state[MASTER].assign(new)
        parameter.assign(new)

    def _tensors(self) -> list[Tensor]:
        """All that a step changes, but for the parameters, and the learning rates."""
        rates = [group["lr"] for group in self.param_groups]
        return [self.steps, *rates, *[t for state in self.state for t in state.values()]]

    def state_dict(self) -> dict[str, Any]:
        """The state, laid out as PyTorch's: parameters are numbers, counted through the groups."""
        numbers = iter(range(len(self.parameters)))
        groups = [
            {**group, "lr": group["lr"].item(), "params": [next(numbers) for _ in group["params"]]}
            for group in self.param_groups
        ]
        step = self.steps.item()
        state = {
            number: {"step": step, **{name: t.detach() for name, t in state.items()}}
            for number, state in enumerate(self.state)
        }
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take a state, of this optimizer or of PyTorch's, of tensors or arrays.

        Raises:
            TensorError: groups, parameters or shapes do not match. Nothing has changed then.
        """
        given = [len(group["params"]) for group in state_dict["param_groups"]]
        own = [len(group["params"]) for group in self.param_groups]
        if given != own:
            raise TensorError(f"load_state_dict: expected groups of {own} parameters, got {given}")
        entries = {int(number): entry for number, entry in state_dict["state"].items()}
        for number, state in enumerate(self.state):
            _expect_entry(number, state, entries.get(number, {}), bool(entries))
        self.steps.assign(_steps_of(entries.values()))
        for number, entry in entries.items():
            for name, tensor in self.state[number].items():
                value = entry[name] if name in entry else self.parameters[number].detach()
                tensor.assign(Tensor(value))
        for group, new in zip(self.param_groups, state_dict["param_groups"], strict=True):
            for key in set(new) & set(self.defaults):
                group[key] = new[key]
        realize_all(self._tensors())


def _groups(params: Parameters) -> list[Mapping[str, Any]]:
    """Groups, or one group of all."""
    items: list[Any] = list(params)
    if not items:
        raise TensorError("expected parameters to train, got none")
    return items if isinstance(items[0], Mapping) else [{"params": items}]


def _expect_distinct_leaves(parameters: Sequence[Tensor]) -> None:
    for number, parameter in enumerate(parameters):
        if not parameter.is_leaf or not parameter.dtype.is_float:
            wanted = "a float tensor that no operation made"
            raise TensorError(f"parameter {number}: expected {wanted}, got {parameter!r}")
    if len({id(parameter) for parameter in parameters}) < len(parameters):
        raise TensorError("expected each parameter once, got one several times")


def _expect_at_least_0(options: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not options[name] >= 0:
            raise TensorError(f"expected {name} ≥ 0, got {options[name]}")


def _steps_of(entries: Iterable[Mapping[str, Any]]) -> int:
    """How many steps there were: PyTorch's SGD does not say, but a state comes with the first."""
    counts = [int(entry.get("step", 1)) for entry in entries]
    if len(set(counts)) > 1:
        wanted = "one number of steps"
        raise TensorError(f"load_state_dict: expected {wanted}, got {sorted(set(counts))}")
    return max(counts, default=0)


def _expect_entry(
    number: int, own: Mapping[str, Tensor], entry: Mapping[str, Any], needed: bool
) -> None:
    """TensorError unless an entry has a tensor of the right shape for each of one's own.

    Only weights in float32 may be missing: they are those of the parameter then.
    """
    for name, tensor in own.items() if needed else ():
        shape = tuple(entry[name].shape) if entry.get(name) is not None else None
        if shape != tensor.shape and not (shape is None and name == MASTER):
            got = "nothing" if shape is None else list(shape)
            wanted = f"{name} of parameter {number} of shape {list(tensor.shape)}"
            raise TensorError(f"load_state_dict: expected {wanted}, got {got}")
