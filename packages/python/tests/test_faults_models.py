"""Models, tokenizers and settings of unusual kinds: measured bit for bit, or refused before the training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from test_faults import STEPS, faulty
from tiny import MICRO_WORLD, micro_world, random_model
from torch import nn

import periodic_eval
from periodic_eval import PeriodicEvalError
from periodic_eval.describe import describe_model
from periodic_eval.forward import Forward


def hello_of(script: Any) -> Any:
    return next(fact["params"] for fact in script.heard() if fact.get("heard") == "hello")


def errors_of(script: Any) -> list[Any]:
    return [fact["error"] for fact in script.heard() if "error" in fact]


class Plain(nn.Module):
    """A model with dropout that knows nothing of transformers."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Embedding(1024, 8), nn.Dropout(0.3), nn.Linear(8, 1024))

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.body(ids)


def trained(
    model: nn.Module, folder: Path | None, tokenizer: Any = None, **options: Any
) -> list[torch.Tensor]:
    """Trains a model for three steps, measured if there is a folder, and returns what training left."""
    torch.manual_seed(2)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    model.train()
    losses: list[torch.Tensor] = []

    def step() -> torch.Tensor:
        ids = torch.randint(3, 60, (2, 10))
        output = model(ids)
        logits = output if isinstance(output, torch.Tensor) else output.logits
        loss = nn.functional.cross_entropy(logits[:, :-1].float().flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
        return loss

    if folder is None:
        for _ in range(STEPS):
            step()
    else:
        tokenizer = tokenizer or micro_world()[1]
        settings: dict[str, Any] = {"run_dir": str(folder), "max_steps": STEPS, "optimizer": optimizer}
        with periodic_eval.live(model, tokenizer, **{**settings, **options}) as run:
            for at in range(1, STEPS + 1):
                run.step_end(at, loss=step())
    return [*(value.clone() for value in model.state_dict().values()), torch.get_rng_state(), *losses]


def plain() -> nn.Module:
    torch.manual_seed(0)
    return Plain()


def compiled() -> Any:
    return torch.compile(random_model("llama", attention_dropout=0.1), backend="eager")


def compiled_in_place() -> Any:
    model = random_model("llama", attention_dropout=0.1)
    model.compile(backend="eager")
    return model


def checkpointing() -> Any:
    model = random_model("llama", attention_dropout=0.1)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    return model


def quantized() -> Any:
    model = random_model("llama")
    model.config.quantization_config = type("Config", (), {"quant_method": "bitsandbytes"})()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("norm" in name)
    return model


MODELS: dict[str, Any] = {
    "plain": plain,
    "tied": lambda: random_model("llama", tie_word_embeddings=True, attention_dropout=0.1),
    "gpt2": lambda: random_model("gpt2"),
    "bf16": lambda: random_model("llama", attention_dropout=0.1).to(torch.bfloat16),
    "no-cache": lambda: random_model("llama", use_cache=False),
    "compiled": compiled,
    "compiled-in-place": compiled_in_place,
    "checkpointing": checkpointing,
    "quantized": quantized,
}


@pytest.mark.parametrize("kind", MODELS)
def test_measures_and_trains_bit_for_bit(host: Any, window: Any, tmp_path: Path, kind: str) -> None:
    torch._dynamo.reset()
    expected = trained(MODELS[kind](), None)
    torch._dynamo.reset()
    script = faulty(host, window)
    found = trained(MODELS[kind](), tmp_path)
    assert len(found) == len(expected)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert errors_of(script) == []
    assert len(script.answers("generate")) == 3
    for leave in script.answers("leave"):
        assert [part["part"] for part in leave["result"]["evidence"] if part["intact"] is not True] == []
    hello = hello_of(script)["model"]
    assert hello["dtype"] == ("bfloat16" if kind == "bf16" else "float32")
    assert hello["details"]["quantization"] == ("bitsandbytes" if kind == "quantized" else None)


@pytest.mark.parametrize(
    ("dtype", "said", "tolerance"),
    [
        (None, "float32", 1e-4),
        (torch.float32, "float32", 1e-4),
        (torch.bfloat16, "float32 (bfloat16 FSDP)", None),
    ],
)
def test_describes_the_dtype_in_which_fsdp_computes(
    dtype: torch.dtype | None, said: str, tolerance: float | None
) -> None:
    import torch.distributed as dist
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        model = random_model("llama")
        mesh = dist.init_device_mesh("cpu", (1,))
        policy = MixedPrecisionPolicy(param_dtype=dtype)
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        # The root has the default policy.
        fully_shard(model, mesh=mesh)
        hello = describe_model(Forward(model), autocast=None, base_absent=None)
    finally:
        dist.destroy_process_group()
    assert (hello["dtype"], hello["tolerance_nats"]) == (said, tolerance)


def test_names_the_versions_of_what_a_model_consists_of_whatever_else_is_imported() -> None:
    from peft import LoraConfig, get_peft_model

    def versions(model: Any) -> list[str]:
        return sorted(describe_model(Forward(model), autocast=None, base_absent=None)["details"]["versions"])

    plain = versions(random_model("llama"))
    adapted = versions(get_peft_model(random_model("llama"), LoraConfig(target_modules=["q_proj"])))
    assert plain == ["python", "torch", "transformers"]
    assert adapted == ["peft", "python", "torch", "transformers"]


@pytest.mark.parametrize("bits", [4, 8])
def test_measures_qlora_bit_for_bit(host: Any, window: Any, tmp_path: Path, bits: int) -> None:
    pytest.importorskip("bitsandbytes")
    from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
    from transformers import AutoModelForCausalLM, BitsAndBytesConfig

    def model() -> Any:
        settings: dict[str, Any] = {"load_in_8bit": True}
        if bits == 4:
            double = {"bnb_4bit_quant_type": "nf4", "bnb_4bit_use_double_quant": True}
            settings = {"load_in_4bit": True, "bnb_4bit_compute_dtype": torch.float32, **double}
        loaded = AutoModelForCausalLM.from_pretrained(
            MICRO_WORLD, quantization_config=BitsAndBytesConfig(**settings), device_map={"": "cpu"}
        )
        torch.manual_seed(4)
        lora = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], lora_dropout=0.1)
        return get_peft_model(prepare_model_for_kbit_training(loaded, use_gradient_checkpointing=False), lora)

    expected = trained(model(), None)
    on_base = {**window[2], "params": {**window[2]["params"], "on": "base"}}
    script = faulty(host, [*window[:4], on_base, window[4]])
    found = trained(model(), tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert errors_of(script) == []
    hello = hello_of(script)
    assert (hello["model"]["base"], hello["model"]["details"]["quantization"]) == (True, "bitsandbytes")
    assert "quantization" in hello["guards"]
    for leave in script.answers("leave"):
        assert [part["part"] for part in leave["result"]["evidence"] if part["intact"] is not True] == []
    bases = script.answers("log_likelihoods")[1::2]
    assert bases[0]["rows"] == bases[1]["rows"] == bases[2]["rows"]


def test_sees_that_bitsandbytes_moves_its_scales_and_changes_none() -> None:
    from types import SimpleNamespace

    from periodic_eval.guards import Window, training_guards

    class Base(nn.Linear):
        """Moves its integers from the weight to its state in the first forward pass."""

        def __init__(self) -> None:
            super().__init__(4, 4)
            self.state: Any = SimpleNamespace(CB=None, SCB=None)
            self.weight.CB, self.weight.SCB = torch.arange(16), torch.ones(4)  # type: ignore[assignment]

        def forward(self, states: torch.Tensor) -> torch.Tensor:
            weight: Any = self.weight
            if weight.CB is not None:
                self.state.CB, self.state.SCB, weight.CB, weight.SCB = weight.CB, weight.SCB, None, None
            return states

    class Wrapper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.base_layer = Base()

        @property
        def weight(self) -> Any:
            return self.base_layer.weight

    def quantization(disturb: bool) -> bool:
        model = Wrapper()
        window = Window(model, training_guards(model, micro_world()[1]))
        window.enter("seed")
        model.base_layer(torch.ones(4))
        if disturb:
            model.base_layer.state.SCB[0] = 2
        evidence = {part["part"]: part["intact"] for part in window.leave()}
        return evidence["quantization"]

    assert quantization(False) is True
    assert quantization(True) is False


def test_keeps_bitsandbytes_from_packing_its_weights(host: Any, window: Any, tmp_path: Path) -> None:
    class Packing(nn.Linear):
        support_avx512bf16_for_cpu = True

        def forward(self, states: torch.Tensor) -> torch.Tensor:
            if not self.training:
                self.weight.data = self.weight.data.flip(0)
            return super().forward(states)

    def model() -> Any:
        made = random_model("llama")
        made.model.layers[0].mlp.up_proj = Packing(32, 48, bias=False)
        return made

    torch.manual_seed(0)
    expected = trained(model(), None)
    faulty(host, window)
    torch.manual_seed(0)
    found = trained(model(), tmp_path)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_measures_a_compiled_model_uncompiled(host: Any, window: Any, tmp_path: Path) -> None:
    model = random_model("llama")
    nats: list[Any] = []
    for subject in (model, torch.compile(model, backend="eager")):
        script = host(on={"hello": window})
        with periodic_eval.live(subject, micro_world()[1], run_dir=str(tmp_path), max_steps=1):
            pass
        nats.append(script.answers("log_likelihoods")[-1]["rows"])
    assert nats[0] == nats[1]


@pytest.mark.parametrize(
    ("kind", "got"),
    [
        ("classes", "logits without positions"),
        ("seq2seq", "an encoder and a decoder"),
        ("none", "logits without positions"),
        ("labels", "logits of 2 values"),
        ("masked", "logits that depend on later ids"),
        ("untrained", "logits that depend on later ids"),
        ("bfloat16", "logits that depend on later ids"),
    ],
)
def test_never_starts_with_a_model_that_predicts_no_tokens(
    host: Any, tmp_path: Path, kind: str, got: str
) -> None:
    import transformers as library

    script = host()
    small = {"vocab_size": 64, "d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    model: Any = nn.Identity()
    if kind == "classes":
        model = library.AutoModelForSequenceClassification.from_config(random_model("llama").config)
    elif kind == "seq2seq":
        model = library.AutoModelForSeq2SeqLM.from_config(library.AutoConfig.for_model("t5", **small))
    elif kind == "labels":
        model = library.AutoModelForTokenClassification.from_config(random_model("llama").config)
    elif kind != "none":
        model = random_model("bert")
        if kind == "untrained":
            model = library.AutoModelForMaskedLM.from_config(model.config)
        elif kind == "bfloat16":
            model = model.bfloat16()
    before = [parameter.clone() for parameter in model.parameters()]
    state = torch.get_rng_state()
    with pytest.raises(PeriodicEvalError) as caught:
        periodic_eval.live(model, micro_world()[1], run_dir=str(tmp_path), max_steps=1).__enter__()
    error = caught.value
    assert error.where == f"the model {type(model).__name__}"
    assert error.got == got
    assert error.expected.startswith("logits ")
    assert error.fix == "Measure a causal language model."
    assert script.heard() == []
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), before, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["llama", "mixtral", "mamba", "bert as decoder", "noise", "bigrams"])
def test_starts_with_any_causal_model(kind: str, dtype: torch.dtype) -> None:
    settings = {"is_decoder": True} if kind == "bert as decoder" else {}
    name = {"bert as decoder": "bert", "noise": "llama"}.get(kind, kind)
    model = nn.Embedding(64, 64) if kind == "bigrams" else random_model(name, **settings)
    if kind == "noise":
        # Dropout that stays on in evaluation mode is no look ahead: the host reports it.
        model.model.layers[0].register_forward_hook(lambda _, __, out: nn.functional.dropout(out, 0.1))
    forward = Forward(model.to(dtype))
    with torch.no_grad():
        forward.check()
    assert forward.passes <= 3


def test_refuses_deepspeed_and_pipelines_and_names_watch() -> None:
    from periodic_eval.distributed import refuse_unsupported

    engine = type("DeepSpeedEngine", (nn.Module,), {})
    stage = type("PipelineStage", (nn.Module,), {})
    optimizer = type("DeepSpeedOptimizerWrapper", (), {})()
    sharded = nn.Linear(2, 2)
    sharded.weight.ds_id = 0  # type: ignore[assignment]
    cases: list[tuple[nn.Module, Any, str]] = [
        (nn.Sequential(engine()), None, "DeepSpeed"),
        (sharded, None, "DeepSpeed"),
        (nn.Linear(2, 2), optimizer, "DeepSpeed"),
        (nn.Sequential(stage()), None, "pipeline parallelism"),
    ]
    for model, at, got in cases:
        with pytest.raises(PeriodicEvalError) as caught:
            refuse_unsupported(model, at)
        assert caught.value.got == got
        assert caught.value.fix == "Measure its checkpoints with `periodic-eval watch` instead."
