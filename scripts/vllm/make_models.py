"""Makes the two test models in a folder. Runs in the environment that build.py makes, not in the project's.

    python make_models.py FOLDER WEIGHTS_FOLDER

`tiny` is a Qwen2 of two layers with random weights: it writes nonsense at hundreds of tokens a second, in the
shape that the grammar asks for. `smollm` is SmolLM2-135M-Instruct, read from the GGUF file in WEIGHTS_FOLDER.
"""

from __future__ import annotations

import math
import sys
from importlib import metadata
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GgufConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

CHAT_TEMPLATE = Path(__file__).with_name("chat_template.jinja").read_text(encoding="utf-8")
CONTEXT = 32_768
VOCABULARY = 4096
HIDDEN = 64
END_SHARE = 1 / 10
"""Probability that a message, or a JSON string, ends at any token. Nonsense has no end of its own."""

_END, _START, _PAD = "<|im_end|>", "<|im_start|>", "<|endoftext|>"


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """A BPE over bytes, trained on what the installed packages say of themselves: English, and pinned."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[_PAD, _START, _END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = sorted(str(package.read_text("METADATA")) for package in metadata.distributions())
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=_PAD, eos_token=_END, chat_template=CHAT_TEMPLATE
    )


def tiny_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """Random weights, except that every token ends the message, or the JSON string, with END_SHARE."""
    torch.manual_seed(0)
    end = tokenizer.convert_tokens_to_ids(_END)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=HIDDEN,
        intermediate_size=2 * HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        initializer_range=0.1,
        bos_token_id=None,
        eos_token_id=end,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen2ForCausalLM(config)
    quote = tokenizer.convert_tokens_to_ids('"')
    with torch.no_grad():
        # The first channel is the same large number at every token, and no layer writes to it. So the head's
        # first column adds a constant to each token's logit, which is otherwise noise of deviation 1.
        steady = math.sqrt(HIDDEN)
        model.model.embed_tokens.weight.normal_(0, 0.5)[:, 0] = steady
        for layer in model.model.layers:
            layer.self_attn.o_proj.weight[0] = 0
            layer.mlp.down_proj.weight[0] = 0
        model.lm_head.weight.normal_(0, 1 / steady)[:, 0] = 0
        others = VOCABULARY * math.exp(0.5)
        bias = math.log(others * END_SHARE / (1 - 2 * END_SHARE))
        model.lm_head.weight[[end, quote], 0] = bias / steady
    return model.to(torch.bfloat16)


def make_tiny(folder: Path) -> None:
    """Write the random model."""
    tokenizer = tiny_tokenizer()
    tiny_model(tokenizer).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def make_smollm(folder: Path, weights: Path) -> None:
    """Write SmolLM2-135M-Instruct as safetensors, with a chat template that knows tools."""
    (gguf,) = weights.rglob("*.gguf")
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer.chat_template = CHAT_TEMPLATE
    # Policy and tools leave no room in the 8,192 tokens that it was trained for; YaRN doubles them.
    model.config.rope_parameters = {
        "rope_type": "yarn",
        "rope_theta": model.config.rope_parameters["rope_theta"],
        "factor": 2.0,
        "original_max_position_embeddings": model.config.max_position_embeddings,
    }
    model.config.max_position_embeddings *= 2
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    target, weights_folder = Path(sys.argv[1]), Path(sys.argv[2])
    make_tiny(target / "tiny")
    make_smollm(target / "smollm", weights_folder)
