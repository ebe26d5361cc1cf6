"""Modules: PyTorch's names for state, values and gradients as PyTorch's, modes, text, errors."""

import copy

import numpy as np
import pytest
import torch

from tests.week09_10_autodiff.against_torch import close, compiled, interpreted, normal
from week09_10_autodiff import nn
from week09_10_autodiff.errors import TensorError
from week09_10_autodiff.nn import functional
from week09_10_autodiff.tensor import Tensor


def both(ours, theirs, *shape, run=interpreted, dtype=np.float32):
    """Load the state, compare outputs, the gradient of the input and those of all parameters."""
    ours.load_state_dict(theirs.state_dict())
    x = normal(*shape).astype(dtype)
    mine, yours = Tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, wanted = ours(mine), theirs(yours)
    bar = normal(*wanted.shape, seed=5).astype(dtype)
    y.backward(Tensor(bar))
    wanted.backward(torch.tensor(bar))
    parameters = list(ours.named_parameters())
    values = run(y, mine.grad, *(p.grad for _, p in parameters))
    close(values[0], wanted.detach().numpy(), 1e-5)
    close(values[1], yours.grad.numpy(), 1e-5)
    expected = dict(theirs.named_parameters())
    assert [name for name, _ in parameters] == list(expected)
    for (name, _), got in zip(parameters, values[2:], strict=True):
        close(got, expected[name].grad.numpy(), 3e-5)


t = torch.nn
LAYERS = {
    "Linear": (nn.Linear(4, 3), t.Linear(4, 3), (5, 4)),
    "Linear without bias": (nn.Linear(4, 3, bias=False), t.Linear(4, 3, bias=False), (2, 5, 4)),
    "Conv1d": (nn.Conv1d(4, 6, 3, padding=1), t.Conv1d(4, 6, 3, padding=1), (2, 4, 7)),
    "Conv2d": (
        nn.Conv2d(4, 6, (3, 2), stride=2, groups=2, bias=False),
        t.Conv2d(4, 6, (3, 2), stride=2, groups=2, bias=False),
        (2, 4, 7, 6),
    ),
    "MaxPool2d": (nn.MaxPool2d(2), t.MaxPool2d(2), (1, 2, 4, 6)),
    "AvgPool2d": (nn.AvgPool2d(3, 2, 1), t.AvgPool2d(3, 2, 1), (1, 2, 5, 6)),
    "LayerNorm": (nn.LayerNorm((3, 4)), t.LayerNorm((3, 4)), (2, 3, 4)),
    "LayerNorm without bias": (nn.LayerNorm(4, bias=False), t.LayerNorm(4, bias=False), (2, 4)),
    "RMSNorm": (nn.RMSNorm(4), t.RMSNorm(4), (2, 3, 4)),
    "GroupNorm": (nn.GroupNorm(2, 4), t.GroupNorm(2, 4), (2, 4, 3)),
    "BatchNorm1d": (nn.BatchNorm1d(3), t.BatchNorm1d(3), (5, 3)),
    "BatchNorm2d": (nn.BatchNorm2d(3), t.BatchNorm2d(3), (2, 3, 4, 4)),
    "BatchNorm1d without state": (
        nn.BatchNorm1d(3, affine=False, track_running_stats=False),
        t.BatchNorm1d(3, affine=False, track_running_stats=False),
        (5, 3, 4),
    ),
    "Flatten": (nn.Flatten(), t.Flatten(), (2, 3, 4)),
    "Identity": (nn.Identity(), t.Identity(), (2, 3)),
    "ReLU": (nn.ReLU(), t.ReLU(), (2, 3)),
    "LeakyReLU": (nn.LeakyReLU(0.3), t.LeakyReLU(0.3), (2, 3)),
    "ELU": (nn.ELU(0.5), t.ELU(0.5), (2, 3)),
    "GELU": (nn.GELU("tanh"), t.GELU("tanh"), (2, 3)),
    "SiLU": (nn.SiLU(), t.SiLU(), (2, 3)),
    "Sigmoid": (nn.Sigmoid(), t.Sigmoid(), (2, 3)),
    "Tanh": (nn.Tanh(), t.Tanh(), (2, 3)),
    "Softplus": (nn.Softplus(), t.Softplus(), (2, 3)),
    "Softmax": (nn.Softmax(0), t.Softmax(0), (2, 3)),
    "LogSoftmax": (nn.LogSoftmax(1), t.LogSoftmax(1), (2, 3)),
    "Dropout of nothing": (nn.Dropout(0.0), t.Dropout(0.0), (2, 3)),
    "Sequential": (
        nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 2))),
        t.Sequential(t.Linear(4, 6), t.ReLU(), t.Sequential(t.LayerNorm(6), t.Linear(6, 2))),
        (3, 4),
    ),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_are_pytorchs(name):
    ours, theirs, shape = LAYERS[name]
    both(ours, theirs, *shape)


@pytest.mark.parametrize("name", ["BatchNorm2d", "Conv2d"])
def test_layers_are_pytorchs_in_eval(name):
    ours, theirs, shape = LAYERS[name]
    both(ours.eval(), theirs.eval(), *shape)


def test_a_convolutional_network_compiled():
    def layers(m):
        return (
            *(m.Conv2d(1, 4, 3, padding=1), m.BatchNorm2d(4), m.ReLU(), m.MaxPool2d(2)),
            *(m.Flatten(), m.Linear(64, 5)),
        )

    both(nn.Sequential(*layers(nn)), t.Sequential(*layers(t)), 3, 1, 8, 8, run=compiled)


class TheirAttention(t.Module):
    def __init__(self, causal):
        super().__init__()
        self.inner, self.causal = t.MultiheadAttention(8, 2, batch_first=True), causal
        t.init.normal_(self.inner.in_proj_bias)

    def forward(self, x):
        mask = t.Transformer.generate_square_subsequent_mask(x.shape[1]) if self.causal else None
        return self.inner(x, x, x, attn_mask=mask, need_weights=False)[0]


class OurAttention(nn.Module):
    def __init__(self, causal):
        self.inner = nn.MultiHeadAttention(8, 2, causal=causal)

    def forward(self, x):
        return self.inner(x)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_pytorchs(causal):
    both(OurAttention(causal), TheirAttention(causal), 2, 5, 8)


def test_attention_to_a_context():
    ours, theirs = nn.MultiHeadAttention(8, 2), t.MultiheadAttention(8, 2, batch_first=True)
    ours.load_state_dict(theirs.state_dict())
    x, context = normal(2, 3, 8).astype(np.float32), normal(2, 6, 8).astype(np.float32)
    (got,) = interpreted(ours(Tensor(x), Tensor(context)))
    tx, tc = torch.tensor(x), torch.tensor(context)
    close(got, theirs(tx, tc, tc)[0].detach().numpy(), 1e-5)


def test_groups_of_heads_share_keys_and_values():
    few, many = nn.MultiHeadAttention(8, 4, num_kv_heads=2), nn.MultiHeadAttention(8, 4)
    weights = normal(16, 8).astype(np.float32)
    q, k, v = weights[:8], weights[8:12], weights[12:]
    repeated = [np.repeat(w.reshape(2, 2, 8), 2, 0).reshape(8, 8) for w in (k, v)]
    out = {n: p.detach() for n, p in few.state_dict().items() if n.startswith("out")}
    zeros = {16: np.zeros(16, np.float32), 24: np.zeros(24, np.float32)}
    few.load_state_dict({**out, "in_proj_weight": weights, "in_proj_bias": zeros[16]})
    whole = np.concatenate([q, *repeated])
    many.load_state_dict({**out, "in_proj_weight": whole, "in_proj_bias": zeros[24]})
    x = Tensor(normal(2, 3, 8), "float32")
    got, wanted = interpreted(few(x), many(x))
    close(got, wanted, 1e-6)
    with pytest.raises(TensorError, match="num_heads that divide 8"):
        nn.MultiHeadAttention(8, 3)


# Running statistics


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_statistics_are_pytorchs(momentum):
    ours, theirs = nn.BatchNorm1d(3, momentum=momentum), t.BatchNorm1d(3, momentum=momentum)
    for step in range(3):
        x = normal(4, 3, seed=step).astype(np.float32)
        ours(Tensor(x))
        theirs(torch.tensor(x))
    state = ours.state_dict()
    values = interpreted(*state.values())
    for name, got in zip(state, values, strict=True):
        close(got.astype(float), theirs.state_dict()[name].numpy().astype(float), 1e-6)


def test_running_statistics_of_earlier_batches_do_not_pile_up():
    layer = nn.BatchNorm1d(3)
    sizes = []
    for _ in range(6):
        layer(Tensor(normal(4, 3), "float32"))
        sizes.append(len(layer.running_mean.node.toposort()))
    assert max(sizes[2:]) <= max(sizes[:2])


# Trees


class Tied(nn.Module):
    def __init__(self):
        self.embedding = nn.Embedding(5, 4)
        self.blocks = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embedding.weight
        self.scale = nn.Parameter([2.0])
        self.register_buffer("steps", Tensor.zeros(dtype="int64"))
        self.register_buffer("table", Tensor.zeros(2), persistent=False)
        self.constant = Tensor([1.0])


def test_names_of_parameters_buffers_and_modules():
    model = Tied()
    names = ["embedding.weight", *(f"blocks.{i}.{n}" for i in (0, 1) for n in ("weight", "bias"))]
    assert sorted(name for name, _ in model.named_parameters()) == sorted([*names, "scale"])
    assert [name for name, _ in model.named_buffers()] == ["steps", "table"]
    assert sorted(model.state_dict()) == sorted([*names, "head.weight", "scale", "steps"])
    assert [name for name, _ in model.named_modules()] == [
        *("", "embedding", "blocks", "blocks.0", "blocks.1", "head")
    ]
    assert len(list(model.modules())) == 6
    assert [name for name, _ in model.named_children()] == ["embedding", "blocks", "head"]
    assert len(list(model.parameters())) == len(names) + 1
    assert len(list(model.buffers())) == 2


def test_attributes_change_what_they_are():
    model = Tied()
    model.scale = None
    assert "scale" not in model.state_dict()
    del model.head
    assert "head.weight" not in model.state_dict()
    model.embedding = nn.Linear(2, 2)
    assert "embedding.bias" in model.state_dict()
    model.steps = Tensor.ones(dtype="int64")
    assert model.state_dict()["steps"].item() == 1
    model.blocks.requires_grad_(False)
    assert not model.blocks[0].weight.requires_grad
    assert "blocks.0.weight" in dict(model.named_parameters())


def test_modes_reach_everything_below():
    model = Tied()
    assert model.training
    model.eval()
    assert not any(module.training for module in model.modules())
    model.train()
    assert all(module.training for module in model.modules())


def test_apply_comes_to_children_first():
    seen = []
    nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["ReLU", "Tanh", "Sequential"]


def test_zero_grad():
    layer = nn.Linear(2, 1)
    layer(Tensor([[1.0, 2.0]])).sum().backward()
    assert layer.weight.grad is not None
    layer.zero_grad()
    assert layer.weight.grad is None


def test_text():
    text = repr(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Dropout(0.1), nn.Conv2d(1, 2, 3))))
    assert text == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): Dropout(p=0.1)\n"
        "    (1): Conv2d(1, 2, kernel_size=(3, 3), stride=1, padding=0)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.ReLU()) == "ReLU()"


def test_other_dtypes_keep_ties_and_gradients():
    model = Tied().bfloat16()
    assert {str(p.dtype) for p in model.parameters()} == {"bfloat16"}
    assert model.head.weight is model.embedding.weight
    assert model.head.weight.requires_grad
    assert str(model.steps.dtype) == "int64"
    assert str(model.double().scale.dtype) == "float64"
    with pytest.raises(TensorError, match="to: expected a float dtype, got int32"):
        model.to("int32")


# State


def test_loading_copies_unless_told_otherwise():
    source = np.ones((1, 2), np.float32)
    layer = nn.Linear(2, 1, bias=False)
    layer.load_state_dict({"weight": source})
    source[...] = 5
    assert layer.weight.tolist() == [[1, 1]]


def test_assigned_arrays_are_not_copied(tmp_path):
    from_file = Tensor(np.ones((16, 16), np.float32)).storage().array
    layer = nn.Linear(16, 16, bias=False)
    layer.load_state_dict({"weight": from_file}, assign=True)
    assert layer.weight.storage().array.ctypes.data == from_file.ctypes.data
    layer.half().load_state_dict({"weight": from_file}, assign=True)
    assert str(layer.weight.dtype) == "float16"


def test_faults_of_a_state_are_all_named_and_nothing_changes():
    layer = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    before = layer[0].bias.tolist()
    state = {"0.weight": np.zeros((3, 4)), "0.bias": np.zeros(3), "2.weight": np.zeros(1)}
    with pytest.raises(TensorError) as caught:
        layer.load_state_dict(state)
    message = str(caught.value)
    assert "load_state_dict of Sequential: missing: 1.weight, 1.bias" in message
    assert "unexpected: 2.weight" in message
    assert "0.weight: expected the shape [3, 2], got [3, 4]" in message
    assert layer[0].bias.tolist() == before


def test_loading_what_fits():
    layer = nn.Linear(2, 1)
    keys = layer.load_state_dict({"weight": np.ones((1, 2)), "other": np.ones(1)}, strict=False)
    assert (keys.missing_keys, keys.unexpected_keys) == (["bias"], ["other"])
    assert layer.weight.tolist() == [[1, 1]]


def test_many_missing_names_are_cut_short():
    with pytest.raises(TensorError, match="and 1 more"):
        nn.Sequential(*(nn.Linear(1, 1) for _ in range(3))).load_state_dict({})


def test_a_module_without_forward():
    with pytest.raises(NotImplementedError, match="Module: expected a method forward"):
        nn.Module()(1)


def test_states_stay_what_they_were_when_training_goes_on():
    layer = nn.Linear(1, 1)
    layer.weight.assign([[1.0]])
    state = layer.state_dict()
    layer.weight.assign([[2.0]])
    assert state["weight"].tolist() == [[1]]


# Losses


LOSSES = {
    "MSELoss": (nn.MSELoss("sum"), t.MSELoss(reduction="sum"), normal(4, 3)),
    "L1Loss": (nn.L1Loss(), t.L1Loss(), normal(4, 3)),
    "BCEWithLogitsLoss": (nn.BCEWithLogitsLoss(), t.BCEWithLogitsLoss(), normal(4, 3) ** 2),
    "NLLLoss": (nn.NLLLoss(), t.NLLLoss(), np.array([0, 2, 1, -100])),
    "CrossEntropyLoss": (
        nn.CrossEntropyLoss(label_smoothing=0.1),
        t.CrossEntropyLoss(label_smoothing=0.1),
        np.array([0, 2, 1, 1]),
    ),
    "KLDivLoss": (nn.KLDivLoss("batchmean"), t.KLDivLoss(reduction="batchmean"), normal(4, 3) ** 2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_pytorchs(name):
    ours, theirs, target = LOSSES[name]
    x = normal(4, 3, seed=9)
    (got,) = interpreted(ours(Tensor(x), Tensor(target)))
    close(got, theirs(torch.tensor(x), torch.tensor(target)).numpy(), 1e-12)


# Dropout


def test_dropout_in_training_and_not_in_eval():
    layer = nn.Dropout(0.25)
    x = Tensor.ones(40, 50)
    assert layer.eval()(x) is x
    (got,) = compiled(layer.train()(x))
    assert set(np.unique(got)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((got == 0).mean() - 0.25) < 0.05


def test_attention_with_dropout_is_attention_on_average():
    q, k, v = (Tensor(normal(1, 2, 3, 4, seed=s), "float32") for s in range(3))
    wanted, *got = interpreted(
        functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        *(
            functional.scaled_dot_product_attention(q, k, v, dropout_p=0.2, is_causal=True)
            for _ in range(100)
        ),
    )
    assert abs(np.mean(got, 0) - wanted).max() < 0.3


# Values


def test_the_first_call_computes_the_parameters_once():
    model = nn.Sequential(nn.Linear(3, 5), nn.Sequential(nn.Linear(5, 2)))
    assert not model[0].weight.is_realized
    model(Tensor(normal(2, 3), "float32"))
    assert all(p.is_realized for p in model.parameters())
    before = model[0].weight.node
    model(Tensor(normal(2, 3), "float32"))
    assert model[0].weight.node is before


def test_a_deep_copy_is_a_model_of_its_own():
    model = Tied()
    twin = copy.deepcopy(model)
    assert twin.head.weight is twin.embedding.weight is not model.head.weight
    assert twin.head.weight.requires_grad
    assert list(twin.state_dict()) == list(model.state_dict())
    assert (twin.head.weight.numpy() == model.head.weight.numpy()).all()
    twin.head.weight.assign(0.0)
    assert model.head.weight.numpy().any()
