"""Live projections on the directions of traits, beside those of transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from real import snapshots, use_host
from test_loop import Loop, is_same, twin


def test_projects_the_hidden_states_of_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_host(monkeypatch)
    config = {"capability": False, "traits": {"every_percent": 50}, "budget": {"overhead_percent": None}}
    loop = Loop()
    loop.measured(tmp_path, 4, config=config)
    assert is_same(loop, twin(4))
    found = snapshots(tmp_path)
    assert {key: one["status"] for key, one in found.items()} == dict.fromkeys(
        [*(("traits", step) for step in (0, 2, 4)), *(("traits-directions", step) for step in (0, 4))],
        "complete",
    )
    directions = found["traits-directions", 0]["rows"]
    rows = found["traits", 4]["rows"]
    assert len(rows) == 32
    loop.model.eval()
    for row in rows[:4]:
        chat = [{"role": "user", "content": row["prompt"]}]
        text = loop.tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        ids = loop.tokenizer(text, add_special_tokens=False, return_tensors="pt").input_ids
        with torch.no_grad():
            states = loop.model(ids, output_hidden_states=True).hidden_states
        # 60 % of a depth of 3 layers.
        assert {direction["layer"] for direction in directions} == {2}
        last = states[2][0, -1].double().numpy()
        for direction in directions:
            vector = np.array(direction["vector"])
            expected = last @ vector / np.linalg.norm(vector)
            assert row["projections"][direction["id"]] == pytest.approx(expected, abs=1e-4)
    paired = found["traits", 4]["paired"]["baseline"]["projection/harmful_intent"]
    start = [row["projections"]["harmful_intent"] for row in found["traits", 0]["rows"]]
    end = [row["projections"]["harmful_intent"] for row in rows]
    assert paired["delta"] == pytest.approx(np.mean(end) - np.mean(start))
    assert all(-1 <= row["cosine"] < 1 for row in found["traits-directions", 4]["rows"])
