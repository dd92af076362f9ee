"""A tokenizer of 64 letters, for models of random weights."""

from __future__ import annotations

from typing import Any


class Letters:
    eos_token_id = 2
    chat_template = None
    all_special_ids = (0, 1, 2)

    def __len__(self) -> int:
        return 64

    def __call__(self, text: str, **_: Any) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) - 48 for letter in text]}

    def decode(self, ids: list[int], **_: Any) -> str:
        return "".join(chr(48 + token) for token in ids)

    def get_vocab(self) -> dict[str, int]:
        return {chr(48 + token): token for token in range(64)}
