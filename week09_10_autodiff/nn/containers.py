"""Modules made of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from week09_10_autodiff.nn.module import Module


class ModuleList(Module):
    """A list of modules, whose names are 0, 1 and so on."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> None:
        """Add one at the end."""
        setattr(self, str(len(self)), module)

    def __len__(self) -> int:
        return len(list(self.children()))

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]


class Sequential(ModuleList):
    """Modules of which each takes what the one before gives."""

    def __init__(self, *modules: Module) -> None:
        super().__init__(modules)

    def forward(self, x: Any) -> Any:  # noqa: ANN401 - as the modules say
        """The last module's result."""
        for module in self:
            x = module(x)
        return x
