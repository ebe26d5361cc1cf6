"""Modules: trees of parameters and buffers, with PyTorch's names for them.

    class Net(Module):
        def __init__(self):
            self.layer = Linear(3, 4)       a module: its parameters are called layer.weight, …
            self.scale = Parameter(1.0)     a parameter: a tensor that requires grad
        def forward(self, x):
            return self.layer(x) * self.scale

`net(x)` calls `forward`. A tensor that does not require grad is an ordinary attribute, unless
`register_buffer` makes it part of the state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Self

from week01_uops.dtypes import bfloat16, float16, float32, float64
from week09_10_autodiff.context import CONTEXT
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.promotion import DTypeLike, dtype_of
from week09_10_autodiff.tensor import Tensor

PARAMETER, BUFFER, CACHE, MODULE = "parameter", "buffer", "cache", "module"
"""What an attribute is; a cache is a buffer that does not belong to the state_dict."""
LONGEST = 5
"""So many names are listed in an error."""


def Parameter(data: object, dtype: DTypeLike | None = None) -> Tensor:  # noqa: N802 - PyTorch's name
    """A tensor that requires grad; a copy of data."""
    return Tensor(data, dtype, requires_grad=True)


class Keys(NamedTuple):
    """What `load_state_dict` did not find a partner for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Module:
    """The base of all layers and models; a subclass has a method `forward`.

    Attributes:
        training: whether dropout drops and normalizations use the batch; set by train() and eval().
    """

    training: bool
    _kinds: dict[str, str]
    _computed: bool

    def __new__(cls, *args: object, **options: object) -> Self:
        """An empty module: `super().__init__()` may be called and need not be."""
        self = super().__new__(cls)
        object.__setattr__(self, "_kinds", {})
        object.__setattr__(self, "training", True)
        object.__setattr__(self, "_computed", False)
        return self

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401
        known = self._kinds.pop(name, None)
        kind = self._kind(value, known)
        if kind is not None:
            self._kinds[name] = kind
        object.__setattr__(self, name, value)

    @staticmethod
    def _kind(value: object, known: str | None) -> str | None:
        if isinstance(value, Module):
            return MODULE
        if not isinstance(value, Tensor):
            return None
        if value.requires_grad and value.is_leaf:
            return PARAMETER
        return known if known != MODULE else None

    def __delattr__(self, name: str) -> None:
        self._kinds.pop(name, None)
        object.__delattr__(self, name)

    def __call__(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as forward
        """forward(…); the first time all parameters and buffers are computed before."""
        if not self._computed and CONTEXT.tracer is None:
            self.realize()
        return self.forward(*args, **options)

    def forward(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - as the subclass says
        """What the module computes."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method forward")

    def register_buffer(self, name: str, tensor: Tensor, persistent: bool = True) -> None:
        """Make a tensor part of the module though it is not trained; `persistent`: of its state."""
        self._kinds.pop(name, None)
        object.__setattr__(self, name, tensor)
        self._kinds[name] = BUFFER if persistent else CACHE

    # What belongs to it

    def _own(self, *kinds: str) -> Iterator[tuple[str, Any]]:
        return ((name, getattr(self, name)) for name, kind in self._kinds.items() if kind in kinds)

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules that are attributes of this one."""
        return self._own(MODULE)

    def children(self) -> Iterator[Module]:
        """The modules that are attributes of this one."""
        return (child for _, child in self.named_children())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below it, each once."""
        seen: set[int] = set()
        for name, module in self._tree(prefix):
            if id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def _tree(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all below it; one that has two names, twice."""
        yield prefix, self
        for name, child in self.named_children():
            yield from child._tree(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all below it."""
        return (module for _, module in self.named_modules())

    def _named(self, *kinds: str) -> Iterator[tuple[str, Tensor]]:
        """The tensors of these kinds with their full names; one that has two names, twice."""
        for prefix, module in self._tree():
            for name, tensor in module._own(*kinds):
                yield f"{prefix}.{name}" if prefix else name, tensor

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """What is trained, each once: "layer.weight" and its tensor."""
        return _once(self._named(PARAMETER))

    def parameters(self) -> Iterator[Tensor]:
        """What is trained, each once."""
        return (tensor for _, tensor in self.named_parameters())

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """What belongs to the module and is not trained, each once."""
        return _once(self._named(BUFFER, CACHE))

    def buffers(self) -> Iterator[Tensor]:
        """What belongs to the module and is not trained, each once."""
        return (tensor for _, tensor in self.named_buffers())

    # State

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by name, as values that later training leaves alone."""
        return {name: tensor.detach() for name, tensor in self._named(PARAMETER, BUFFER)}

    def load_state_dict(
        self, state: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> Keys:
        """Take the values of tensors or arrays by name, in the dtypes that are here.

        Args:
            state: tensors, or arrays of any library.
            strict: the names must be the same on both sides.
            assign: use arrays in place, where compiled code can and their dtype is the one here,
                rather than copy them. They must not be changed afterwards. Meant for those of
                `safetensors_io`, which are mapped files.

        Raises:
            TensorError: names are missing or unexpected, or a shape is another one. Nothing has
                changed then.
        """
        own = dict(self._named(PARAMETER, BUFFER))
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        given = {name: state[name] for name in own if name in state}  # each is read once
        faults = _mismatches(own, given)
        if strict:
            faults = [*_listed("missing", missing), *_listed("unexpected", unexpected), *faults]
        if faults:
            raise TensorError(f"load_state_dict of {type(self).__name__}: {'; '.join(faults)}")
        for name, value in given.items():
            own[name].assign(_as_tensor(value, assign))
        return Keys(missing, unexpected)

    def realize(self) -> Self:
        """Compute all parameters and buffers now, in one program."""
        tensors = [tensor for _, tensor in _once(self._named(PARAMETER, BUFFER, CACHE))]
        if tensors:
            tensors[0].realize(*tensors[1:])
        for module in self.modules():
            object.__setattr__(module, "_computed", True)
        return self

    # Modes

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and below."""
        for module in self.modules():
            object.__setattr__(module, "training", mode)
        return self

    def eval(self) -> Self:
        """Clear `training` here and below."""
        return self.train(False)

    def requires_grad_(self, wanted: bool = True) -> Self:
        """Whether the parameters are trained."""
        for tensor in self.parameters():
            tensor.requires_grad_(wanted)
        return self

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for tensor in self.parameters():
            tensor.grad = None

    def apply(self, function: Callable[[Module], object]) -> Self:
        """function(module) for this module and all below it, children first."""
        for child in self.children():
            child.apply(function)
        function(self)
        return self

    def to(self, dtype: DTypeLike) -> Self:
        """Hold the float parameters and buffers in another float dtype.

        They become new tensors: make the optimizer afterwards.
        """
        wanted = dtype_of(dtype)
        if not wanted.is_float:
            raise TensorError(f"to: expected a float dtype, got {wanted}")
        new: dict[int, Tensor] = {}
        for module in self.modules():
            for name, tensor in list(module._own(PARAMETER, BUFFER, CACHE)):
                if tensor.dtype.is_float and tensor.dtype is not wanted:
                    made = new.setdefault(id(tensor), _converted(tensor, wanted))
                    object.__setattr__(module, name, made)
        return self

    def float(self) -> Self:
        """float32."""
        return self.to(float32)

    def double(self) -> Self:
        """float64."""
        return self.to(float64)

    def half(self) -> Self:
        """float16."""
        return self.to(float16)

    def bfloat16(self) -> Self:
        """bfloat16."""
        return self.to(bfloat16)

    # Text

    def extra_repr(self) -> str:
        """What stands in the parentheses of `repr`."""
        return ""

    def __repr__(self) -> str:
        rows = [f"({name}): {_indented(repr(child))}" for name, child in self.named_children()]
        about = self.extra_repr()
        if not rows:
            return f"{type(self).__name__}({about})"
        lines = ([about] if about else []) + rows
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


def _once(named: Iterator[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """Each tensor under its first name."""
    seen: set[int] = set()
    for name, tensor in named:
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor


def _as_tensor(value: object, in_place: bool) -> Tensor:
    """A tensor; over the memory of an array if it may be."""
    return Tensor.from_numpy(value) if in_place and not isinstance(value, Tensor) else Tensor(value)


def _converted(tensor: Tensor, dtype: DTypeLike) -> Tensor:
    made = tensor.detach().to(dtype)
    return made.requires_grad_(tensor.requires_grad)


def _mismatches(own: Mapping[str, Tensor], given: Mapping[str, Any]) -> list[str]:
    """A sentence for each tensor of another shape."""
    shapes = {name: tuple(value.shape) for name, value in given.items()}
    return [
        f"{name}: expected the shape {list(own[name].shape)}, got {list(shape)}"
        for name, shape in shapes.items()
        if shape != own[name].shape
    ][:LONGEST]


def _listed(what: str, names: list[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - LONGEST} more" if len(names) > LONGEST else ""
    return [f"{what}: {', '.join(names[:LONGEST])}{more}"]


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
