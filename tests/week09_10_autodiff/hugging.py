"""Small models of the transformers library with random weights, and folders that hold them."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is the reference of the models")
transformers = pytest.importorskip("transformers", reason="transformers has the reference models")
tokenizers = pytest.importorskip("tokenizers", reason="the tokenizers library reads tokenizer.json")

VOCABULARY = 320

LLAMA = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 2,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "bos_token_id": None,
    "eos_token_id": None,
}
LLAMA3_SCALING = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}

CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=256,
        n_embd=64,
        n_layer=2,
        n_head=4,
        bos_token_id=None,
        eos_token_id=None,
    ),
    "tinyllama": lambda: transformers.LlamaConfig(**LLAMA, rms_norm_eps=1e-5),
    "llama3": lambda: transformers.LlamaConfig(**LLAMA, rope_parameters=LLAMA3_SCALING),
    "qwen2.5": lambda: transformers.Qwen2Config(
        **LLAMA,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1000000.0},
    ),
}
"""Language models: what each of them has is what the others lack."""

BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "max_position_embeddings": 64,
}


def randomized(model, seed=0):
    """The model with weights that tell tokens apart: norms and biases are random, too."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        with torch.no_grad():
            if parameter.ndim > 1:
                parameter.copy_(noise * (1.5 / parameter.shape[-1] ** 0.5))
            elif name.endswith("bias"):
                parameter.copy_(noise * 0.1)
            else:
                parameter.copy_(1 + noise * 0.1)
    return model.eval()


def language_model(name):
    """A model of `CONFIGS`."""
    return randomized(transformers.AutoModelForCausalLM.from_config(CONFIGS[name]()))


def encoder(**changes):
    """A small BERT."""
    return randomized(transformers.BertModel(transformers.BertConfig(**{**BERT, **changes})))


def tokenizer(texts, vocabulary=VOCABULARY):
    """Byte-level BPE."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|end|>"],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    return made


def save(folder, model, inner=None, **options):
    """Write a model, and a tokenizer if there is one, as they are published."""
    model.save_pretrained(folder, **options)
    if inner is not None:
        inner.save(str(folder / "tokenizer.json"))
    return folder


def logits(model, tokens):
    """The reference's scores (batch, t, vocabulary)."""
    with torch.no_grad():
        return model(torch.tensor(np.asarray(tokens))).logits.float().numpy()


def greedy(model, prompt, count):
    """The tokens that the reference goes on with."""
    with torch.no_grad():
        given = torch.tensor([list(prompt)])
        made = model.generate(
            given,
            attention_mask=torch.ones_like(given),
            max_new_tokens=count,
            do_sample=False,
            pad_token_id=0,
        )
    return made[0, len(prompt) :].tolist()
