"""Tiny models for the tests."""

from __future__ import annotations

import copy
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import torch

torch.set_num_threads(1)

MICRO_WORLD = Path(__file__).parents[2] / "cli" / "assets" / "micro-world"


def end_rank() -> NoReturn:
    """Leaves the process group and ends the process.

    The interpreter's end may deadlock where gloo ran: a process group's destructor waits for a thread that
    waits for the GIL (pytorch/pytorch#190489).
    """
    torch.distributed.destroy_process_group()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


@cache
def _loaded() -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(MICRO_WORLD, dtype=torch.float32)
    return model, AutoTokenizer.from_pretrained(MICRO_WORLD)


def micro_world() -> tuple[Any, Any]:
    """Returns a copy of the embedded Llama in float32, and its tokenizer."""
    model, tokenizer = _loaded()
    return copy.deepcopy(model), copy.deepcopy(tokenizer)


def random_model(kind: str, **settings: Any) -> Any:
    """Returns a model of random weights with 64 ids, of a model type of transformers."""
    from transformers import AutoConfig, AutoModelForCausalLM

    small: dict[str, Any] = {
        "vocab_size": 64,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    if kind == "gpt2":
        small = {
            "vocab_size": 64,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "eos_token_id": 2,
        }
    torch.manual_seed(0)
    config = AutoConfig.for_model(kind, **{**small, **settings})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model.eval()
