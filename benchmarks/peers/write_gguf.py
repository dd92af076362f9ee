"""Writes a folder of a Llama model with a byte-level BPE tokenizer as a GGUF file for llama.cpp.

All matrices have the type TYPE. Vectors are float32, which llama.cpp expects.

    python write_gguf.py MODEL_FOLDER float32|bfloat16 OUT.gguf
"""

import json
import sys
from pathlib import Path

import gguf
from safetensors.torch import load_file

folder, type_name, out = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
dtype = {"float32": gguf.GGMLQuantizationType.F32, "bfloat16": gguf.GGMLQuantizationType.BF16}[type_name]
config = json.loads((folder / "config.json").read_text())
tokenizer = json.loads((folder / "tokenizer.json").read_text())
heads, layers = config["num_attention_heads"], config["num_hidden_layers"]
head_size = config.get("head_dim", config["hidden_size"] // heads)

writer = gguf.GGUFWriter(out, "llama")
writer.add_context_length(config["max_position_embeddings"])
writer.add_embedding_length(config["hidden_size"])
writer.add_block_count(layers)
writer.add_feed_forward_length(config["intermediate_size"])
writer.add_head_count(heads)
writer.add_head_count_kv(config["num_key_value_heads"])
writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
writer.add_rope_freq_base(config["rope_theta"])
writer.add_rope_dimension_count(head_size)
writer.add_vocab_size(config["vocab_size"])

# The split of words before BPE that SmolLM's tokenizer uses.
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("smollm")
tokens = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
special = {token["id"] for token in tokenizer["added_tokens"]}
writer.add_token_list(tokens)
writer.add_token_types([gguf.TokenType.CONTROL if at in special else gguf.TokenType.NORMAL for at in range(len(tokens))])
writer.add_token_merges([" ".join(pair) for pair in tokenizer["model"]["merges"]])
writer.add_bos_token_id(config["bos_token_id"])
writer.add_eos_token_id(config["eos_token_id"])
writer.add_add_bos_token(False)

names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, layers)
for name, tensor in load_file(folder / "model.safetensors").items():
    values = tensor.float().numpy()
    if name.endswith(("q_proj.weight", "k_proj.weight")):
        # llama.cpp rotates neighbouring dimensions, transformers the two halves of a head.
        rows, columns = values.shape
        values = values.reshape(rows // head_size, 2, head_size // 2, columns).swapaxes(1, 2).reshape(rows, columns)
    kind = dtype if values.ndim == 2 else gguf.GGMLQuantizationType.F32
    writer.add_tensor(names.get_name(name, (".weight",)), gguf.quants.quantize(values, kind), raw_dtype=kind)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
