"""The models against those of the transformers library, with the same random weights."""

import json
import shutil

import numpy as np
import pytest

from tests.week09_10_autodiff.hugging import (
    BERT,
    CONFIGS,
    VOCABULARY,
    encoder,
    greedy,
    language_model,
    logits,
    save,
    torch,
    transformers,
)
from week01_uops.dtypes import bfloat16, float16
from week09_10_autodiff.context import no_grad
from week09_10_autodiff.generation import TokenGenerator
from week09_10_autodiff.hub import HubError
from week09_10_autodiff.models import GPT2, Bert, Llama, load_encoder, load_language_model
from week09_10_autodiff.nn import functional as F  # noqa: N812 - as everybody calls it
from week09_10_autodiff.safetensors_io import SafetensorsError, load_folder, save_file
from week09_10_autodiff.storage import storage_of
from week09_10_autodiff.tensor import Tensor

TOKENS = np.random.default_rng(0).integers(0, VOCABULARY, (2, 23))


@pytest.fixture(scope="module", params=CONFIGS)
def published(request, tmp_path_factory):
    model = language_model(request.param)
    return model, save(tmp_path_factory.mktemp(request.param), model)


@pytest.fixture(scope="module")
def tinyllama(tmp_path_factory):
    model = language_model("tinyllama")
    return model, save(tmp_path_factory.mktemp("tinyllama"), model)


def scores(model, tokens):
    with no_grad():
        return model(Tensor(tokens)).numpy()


def assert_close(found, expected, tolerance=1e-4):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_scores(published):
    reference, folder = published
    assert_close(scores(load_language_model(folder), TOKENS), logits(reference, TOKENS))


def test_parameters_have_the_names_of_the_folder(published):
    reference, folder = published
    model = load_language_model(folder)
    assert set(model.state_dict()) == set(reference.state_dict())
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(tensor.numpy(), reference.state_dict()[name].numpy())


def test_tied_embeddings_are_one_parameter(published):
    reference, folder = published
    ours = len(list(load_language_model(folder).parameters()))
    assert ours == len(list(reference.parameters()))


@pytest.mark.parametrize("dtype", [bfloat16, float16], ids=str)
def test_narrow_weights_are_computed_with_in_float32(tmp_path, dtype):
    save(tmp_path, language_model("tinyllama").to(getattr(torch, str(dtype))))
    reference = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    model = load_language_model(tmp_path)
    kept = {p.dtype for p in model.parameters() if p.ndim > 1}
    assert kept == {dtype}
    assert_close(scores(model, TOKENS), logits(reference, TOKENS))


def test_shards(tinyllama, tmp_path):
    reference, _ = tinyllama
    folder = save(tmp_path, reference, max_shard_size="50KB")
    assert len(list(folder.glob("*.safetensors"))) > 2
    assert_close(scores(load_language_model(folder), TOKENS), logits(reference, TOKENS))
    next(folder.glob("model-00002*")).unlink()
    with pytest.raises(FileNotFoundError, match=r"names the shard model-00002\S*, which is not th"):
        load_language_model(folder)


def test_weights_that_lie_well_are_not_copied(tinyllama, tmp_path):
    """Files written here align their tensors; those of other libraries are read once."""
    _, folder = tinyllama
    shutil.copy(folder / "config.json", tmp_path)
    save_file(dict(load_folder(folder)), tmp_path / "model.safetensors")
    model = load_language_model(tmp_path)
    for parameter in model.parameters():
        base = storage_of(parameter.node).array
        while isinstance(base, np.ndarray) and base.base is not None:
            base = base.base
        assert not isinstance(base, np.ndarray)  # but the mapped file


def test_older_gpt2_folders_lack_a_prefix_and_hold_masks(tmp_path):
    reference = language_model("gpt2")
    save(tmp_path, reference)
    tensors = {
        name.removeprefix("transformer."): array for name, array in load_folder(tmp_path).items()
    }
    tensors["h.0.attn.bias"] = np.ones((1, 1, 4, 4), np.float32)
    save_file(tensors, tmp_path / "model.safetensors")
    assert_close(scores(load_language_model(tmp_path), TOKENS), logits(reference, TOKENS))


def changed(source, target, config=None, tensors=None):
    """The folder with other settings and tensors."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    if config is not None:
        path = target / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
    if tensors is not None:
        save_file(tensors(dict(load_folder(source))), target / "model.safetensors")
    return target


ROPE = {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1e4}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "mamba"}, "one of gpt2, llama, qwen2 for 'model_type', got \"mamba\""),
        ({"model_type": "bert"}, "one of gpt2, llama, qwen2 for 'model_type', got \"bert\""),
        ({"hidden_act": "relu"}, "expected one of silu for 'hidden_act', got \"relu\""),
        ({"num_hidden_layers": 0}, "expected a whole number ≥ 1 for 'num_hidden_layers', got 0"),
        ({"rope_parameters": ROPE}, "one of default, linear, llama3 for 'rope_type', got \"yarn\""),
        ({"use_sliding_window": True}, "'use_sliding_window'"),
        ({"quantization_config": {"bits": 4}}, "expected no quantization_config"),
        (
            {"intermediate_size": 100},
            r"gate_proj.weight' of floats [100, 64], got float32[176, 64]",
        ),
        ({"num_hidden_layers": 3}, "expected a tensor 'model.layers.2.input_layernorm.weight'"),
        ({"num_hidden_layers": 1}, "expected tensors of a Llama, got 'model.layers.1.input_layer"),
        ({"num_key_value_heads": 3}, "expected heads of keys that divide 8, got 3"),
    ],
)
def test_folders_of_something_else_are_refused(tinyllama, tmp_path, config, message):
    _, folder = tinyllama
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is looked at
        load_language_model(changed(folder, tmp_path, config))
    assert message in str(caught.value)


def test_damaged_weights_are_refused(tinyllama, tmp_path):
    _, folder = tinyllama
    path = changed(folder, tmp_path) / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-100])
    with pytest.raises(SafetensorsError, match="is truncated"):
        load_language_model(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"expected model\.safetensors"):
        load_language_model(tmp_path)


def test_integers_are_no_weights(tinyllama, tmp_path):
    _, folder = tinyllama
    name = "model.layers.0.mlp.up_proj.weight"

    def quantized(tensors):
        return {**tensors, name: np.zeros(tensors[name].shape, np.int8)}

    with pytest.raises(HubError, match=rf"{name}' of floats \[176, 64\], got int8\[176, 64\]"):
        load_language_model(changed(folder, tmp_path, tensors=quantized))


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_encoder(tmp_path, prefix):
    reference = encoder()
    save(tmp_path, reference)
    if prefix:
        tensors = {prefix + name: array for name, array in load_folder(tmp_path).items()}
        save_file(tensors, tmp_path / "model.safetensors")
    model = load_encoder(tmp_path)
    assert isinstance(model, Bert)
    mask = np.arange(23) < np.array([[23], [9]])
    types = (np.arange(23) > 4).astype(int) * mask
    with torch.no_grad():
        expected = reference(
            torch.tensor(TOKENS),
            attention_mask=torch.tensor(mask.astype(int)),
            token_type_ids=torch.tensor(types),
        ).last_hidden_state.numpy()
    with no_grad():
        found = model(Tensor(TOKENS), Tensor(mask), Tensor(types)).numpy()
    assert_close(found[mask], expected[mask])


def test_encoders_of_another_kind_are_refused(tmp_path):
    save(tmp_path, encoder(hidden_act="relu"))
    with pytest.raises(HubError, match="expected one of gelu for 'hidden_act', got \"relu\""):
        load_encoder(tmp_path)
    with pytest.raises(HubError, match="expected one of gpt2, llama, qwen2 for 'model_type'"):
        load_language_model(tmp_path)


@pytest.mark.parametrize(
    ("family", "name", "sizes"),
    [(GPT2, "gpt2", {"n_layer": 1, "n_embd": 32}), (Llama, "qwen2.5", {"num_hidden_layers": 1})],
)
def test_a_step_along_the_gradient_makes_the_loss_smaller(family, name, sizes):
    model = family.from_config({**json.loads(CONFIGS[name]().to_json_string()), **sizes}).eval()
    tokens, targets = Tensor(TOKENS[:, :8]), Tensor(TOKENS[:, 1:9])
    before = loss(model, tokens, targets)
    before.backward()
    for parameter in model.parameters():
        parameter.assign(parameter.detach() - parameter.grad * 0.1)
    assert loss(model, tokens, targets).item() < before.item() - 0.01


def test_in_training_elements_are_dropped(tmp_path):
    """As many as the config says; in eval mode, in which models are loaded, none."""
    reference = language_model("gpt2")
    model = load_language_model(save(tmp_path, reference))
    assert not any(module.training for module in model.modules())
    model.train()
    dropped, again = scores(model, TOKENS[:1, :4]), scores(model, TOKENS[:1, :4])
    assert abs(dropped - again).max() > 0.1
    made = TokenGenerator(model)
    assert list(made.generate(TOKENS[0, :5].tolist(), 8)) == greedy(reference, TOKENS[0, :5], 8)
    assert model.training


def loss(model, tokens, targets):
    rows = model(tokens)
    return F.cross_entropy(rows.reshape(-1, rows.shape[-1]), targets.reshape(-1))


def test_the_same_seed_gives_the_same_weights():
    config = {**BERT, "model_type": "bert"}
    first, again, other = (
        Bert.from_config(config, seed=seed).embeddings.word_embeddings.weight.numpy()
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert abs(first - other).max() > 0.01
    assert abs(first.std() - 0.02) < 0.001
