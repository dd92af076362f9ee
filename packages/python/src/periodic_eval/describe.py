"""What `hello` says about a model and its tokenizer."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
from importlib import metadata
from typing import Any

import torch

from .adapters import adapter_name
from .forward import Forward

ABILITIES = ("log_likelihoods", "next_token", "generate", "hidden_states")


def describe_model(
    forward: Forward, *, autocast: torch.dtype | None, base_absent: str | None
) -> dict[str, Any]:
    """Returns the field `model` of `hello`.

    `autocast` is the dtype of the trainer's autocast, if it uses one; `base_absent` is why `on: base` is not
    answered.
    """
    model: Any = forward.model
    weights = _main_dtype(model)
    casts = ((autocast, "autocast"), (_fsdp_dtype(model, weights), "FSDP"))
    other = next((f" ({_name(dtype)} {by})" for dtype, by in casts if dtype not in (None, weights)), "")
    arithmetic = f"{_name(weights)}{other}"
    config = forward.config
    is_exact = (
        arithmetic == "float32"
        and torch.get_float32_matmul_precision() == "highest"
        and _quantization(config) is None
    )
    return {
        "name": str(getattr(config, "_name_or_path", "") or type(forward.base).__name__),
        "engine": f"torch-{forward.device.type}",
        "dtype": arithmetic,
        "adapter": adapter_name(model),
        "context_length": forward.context_length,
        "vocab_size": forward.vocab_size,
        "abilities": [ability for ability in ABILITIES if ability != "hidden_states" or forward.takes_hidden],
        "base": base_absent is None,
        # Float32 sums of another order; nothing is known of 16-bit kernels.
        "tolerance_nats": 1e-4 if is_exact else None,
        "details": {
            "versions": _versions(model),
            "device": torch.cuda.get_device_name(forward.device)
            if forward.device.type == "cuda"
            else platform.machine(),
            "attention": getattr(config, "_attn_implementation", None),
            "layers": getattr(config, "num_hidden_layers", None),
            "width": getattr(config, "hidden_size", None),
            "quantization": _quantization(config),
            "batch_tokens": forward.batch_tokens,
            "base_absent": base_absent,
        },
    }


def describe_tokenizer(tokenizer: Any, base: Any) -> dict[str, Any]:
    """Returns the field `tokenizer` of `hello`."""
    eos = getattr(tokenizer, "eos_token_id", None)
    return {
        "fingerprint": _tokenizer_fingerprint(tokenizer),
        "vocab_size": len(tokenizer),
        "stop_ids": stop_ids(tokenizer, base),
        "eos_id": eos if isinstance(eos, int) else None,
        "has_template": bool(getattr(tokenizer, "chat_template", None)),
    }


def stop_ids(tokenizer: Any, base: Any) -> list[int]:
    """Returns the model's end-of-text ids and the id that the chat template writes after an answer."""
    found: list[Any] = [getattr(tokenizer, "eos_token_id", None)]
    for holder in (getattr(base, "generation_config", None), getattr(base, "config", None)):
        ids = getattr(holder, "eos_token_id", None)
        found += list(ids) if isinstance(ids, (list, tuple)) else [ids]
    found.append(_end_of_turn(tokenizer))
    return list(dict.fromkeys(int(token) for token in found if token is not None))


def _end_of_turn(tokenizer: Any) -> int | None:
    if not getattr(tokenizer, "chat_template", None):
        return None
    answer = "periodic"
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": answer}]
    # A template may refuse these messages; then it names no end of a turn.
    with contextlib.suppress(Exception):
        text = str(tokenizer.apply_chat_template(messages, tokenize=False))
        ids = tokenizer(text.rpartition(answer)[2], add_special_tokens=False)["input_ids"]
        special = {*tokenizer.all_special_ids, *getattr(tokenizer, "added_tokens_decoder", {})}
        return next((int(token) for token in ids if token in special), None)
    return None


def _tokenizer_fingerprint(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and hasattr(backend, "to_str"):
        facts = json.loads(backend.to_str())
        # Each call of the tokenizer sets them.
        facts.pop("truncation", None)
        facts.pop("padding", None)
    else:
        facts = {"vocab": sorted(tokenizer.get_vocab().items())}
    facts = {
        "tokenizer": facts,
        "template": getattr(tokenizer, "chat_template", None),
        "special": {key: str(value) for key, value in getattr(tokenizer, "special_tokens_map", {}).items()},
        "adds": [getattr(tokenizer, key, None) for key in ("add_bos_token", "add_eos_token")],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:32]


def _main_dtype(model: Any) -> torch.dtype:
    """Returns the floating dtype that most weights have."""
    counts: dict[torch.dtype, int] = {}
    for parameter in model.parameters():
        if parameter.is_floating_point():
            counts[parameter.dtype] = counts.get(parameter.dtype, 0) + parameter.numel()
    return max(counts, key=lambda dtype: counts[dtype]) if counts else torch.get_default_dtype()


def _fsdp_dtype(model: Any, weights: torch.dtype) -> torch.dtype | None:
    """Returns the first dtype to which FSDP2 casts weights of another dtype, or None if it casts none."""
    for module in model.modules():
        get_state = getattr(module, "_get_fsdp_state", None)
        policy = getattr(get_state(), "_mp_policy", None) if callable(get_state) else None
        dtype = getattr(policy, "param_dtype", None)
        if isinstance(dtype, torch.dtype) and dtype != weights:
            return dtype
    return None


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _quantization(config: Any) -> Any:
    quantization = getattr(config, "quantization_config", None)
    method = getattr(quantization, "quant_method", None)
    return None if quantization is None else str(getattr(method, "value", method))


def _versions(model: Any) -> dict[str, str]:
    """Returns the versions of Python and of the packages whose modules `model` consists of.

    Ignores other imported packages: a resumed training may import different ones.
    """
    versions = {"python": platform.python_version(), "torch": str(torch.__version__)}
    packages = {type(module).__module__.partition(".")[0] for module in model.modules()}
    for name in sorted(packages - {"torch"}):
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions


def package_version() -> str:
    """Returns the version of this package."""
    try:
        return metadata.version("periodic-eval")
    except metadata.PackageNotFoundError:
        return "0.0.0"
