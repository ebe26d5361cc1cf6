import json

import numpy as np
import pytest
from click.testing import CliRunner

from projects.models import Classifier, digits_classifier
from tests.projects.compiled import run
from week01_uops.dtypes import float32, float64
from week01_uops.errors import ProgramError
from week03_loops.evaluate import evaluate

torch = pytest.importorskip("torch", reason="the classifier is trained with PyTorch")
pytest.importorskip("sklearn", reason="scikit-learn holds the digits")

from projects.digits.__main__ import main  # noqa: E402 - needs torch
from projects.digits.exporting import export, exported, logits  # noqa: E402
from projects.digits.files import load, save  # noqa: E402
from projects.digits.training import HELD_OUT, digits, train  # noqa: E402

TOLERANCE = {float32: 1e-4, float64: 1e-10}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The images are few: more threads only wait for one another."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def network():
    return train(epochs=6)


@pytest.fixture(scope="module")
def folder(network, tmp_path_factory):
    path = tmp_path_factory.mktemp("digits")
    export(network, path)
    return path


@pytest.fixture(scope="module")
def held_out(folder):
    with np.load(folder / "held_out.npz") as archive:
        return dict(archive)


def test_the_network_has_learnt(held_out):
    right = held_out["logits_float32"].argmax(1) == held_out["labels"]
    assert len(right) == HELD_OUT
    assert right.mean() > 0.9


def interpret(program, inputs):
    (result,) = evaluate(program, inputs)
    return result


@pytest.mark.parametrize("execute", [run, interpret], ids=["compiled", "interpreted"])
@pytest.mark.parametrize("dtype", [float32, float64])
def test_every_prediction_is_pytorchs(folder, held_out, dtype, execute):
    classifier = load(folder, f"digits_{dtype}")
    images = held_out["images"].astype(dtype.numpy)
    result = execute(classifier.program, classifier.inputs(images))
    expected = held_out[f"logits_{dtype}"]
    np.testing.assert_array_equal(result.argmax(1), expected.argmax(1))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(
        result, expected, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] * scale
    )


def test_training_is_settled_by_its_seed():
    first, second, other = train(1), train(1), train(1, seed=1)
    for name, weight in first.state_dict().items():
        assert torch.equal(weight, second.state_dict()[name])
    assert not torch.equal(first.conv1.weight, other.conv1.weight)


def test_one_image_is_classified_as_in_a_batch(network):
    images, _ = digits()
    single = exported(network, float32, batch=1)
    result = run(single.program, single.inputs(images[-1:]))
    np.testing.assert_allclose(result[0], logits(network, float32)[-1], rtol=1e-4, atol=1e-4)


def test_slots_are_in_the_archive(folder):
    with np.load(folder / "digits_float32.npz") as archive:
        slots = json.loads(str(archive["slots"]))
        assert list(slots) == [name for name in Classifier().shapes() if name != "images"]
        assert slots["conv1.weight"] == 1
        assert archive["head.bias"].shape == (10,)


def test_what_is_saved_is_loaded(network, tmp_path):
    before = exported(network, float64, batch=2)
    save(tmp_path / "new", "two", before)
    after = load(tmp_path / "new", "two")
    assert after.program is before.program
    assert after.program is digits_classifier(Classifier(2), float64)
    assert after.slots == before.slots


def test_weights_must_fit_their_params(network, tmp_path):
    save(tmp_path, "wrong", exported(network, float64))
    save(tmp_path, "other", exported(network, float32))
    (tmp_path / "other.npz").replace(tmp_path / "wrong.npz")
    with pytest.raises(ProgramError, match=r"E407 expected float64\[8, 1, 3, 3\] in slot 1"):
        load(tmp_path, "wrong")


def test_command(tmp_path):
    result = CliRunner().invoke(main, [str(tmp_path / "out"), "--epochs", "1"])
    assert result.exit_code == 0, result.output
    assert "held-out images right" in result.output
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        "digits_float32.uop",
        "digits_float32.npz",
        "digits_float64.uop",
        "digits_float64.npz",
        "held_out.npz",
    }
