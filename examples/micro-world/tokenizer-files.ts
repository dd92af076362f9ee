import type { Draw } from "./random.ts";
import { seededDraw } from "./random.ts";
import { trainBytePairs } from "./bpe.ts";
import { textsOf, writers } from "./documents.ts";

export const vocabSize = 1024;

/** Special tokens in the order of their ids, which come after the ids of the byte pairs. */
export const specialTokens = ["<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"] as const;

const chatTemplate = `{%- for message in messages -%}
    {%- if message.role == 'assistant' -%}
        {{- '<|assistant|>' -}}
        {%- generation -%}
            {{- message.content + '<|end|>' -}}
        {%- endgeneration -%}
    {%- elif message.role == 'system' or message.role == 'user' -%}
        {{- '<|' + message.role + '|>' + message.content + '<|end|>' -}}
    {%- else -%}
        {{- raise_exception('Roles are system, user and assistant.') -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|assistant|>' -}}
{%- endif -%}
`;

/** Trains the tokenizer on a seeded sample of the world's texts and returns its files by name. */
export function tokenizerFiles(): Record<string, string> {
  const { vocab, merges } = trainBytePairs(
    sampleTexts(seededDraw("tokenizer")),
    vocabSize - specialTokens.length,
  );
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  const ids = specialTokens.map((content, i) => ({ id: vocab.length + i, content }));
  const tokenizer = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: ids.map((token) => ({
      ...token,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocab.map((token, id) => [token, id])),
      merges,
    },
  };
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    clean_up_tokenization_spaces: false,
    model_max_length: 256,
    eos_token: "<|end|>",
    pad_token: "<|endoftext|>",
  };
  const idOf = Object.fromEntries(ids.map(({ id, content }) => [content, id]));
  return {
    "tokenizer.json": `${JSON.stringify(tokenizer)}\n`,
    "tokenizer_config.json": `${JSON.stringify(config, null, 2)}\n`,
    "chat_template.jinja": chatTemplate,
    "generation_config.json": `${JSON.stringify({ eos_token_id: [idOf["<|end|>"], idOf["<|endoftext|>"]] }, null, 2)}\n`,
  };
}

function sampleTexts(draw: Draw): string[] {
  const each = [writers.fact, writers.cloze, writers.chat, writers.letters];
  return each.flatMap((write) => Array.from({ length: 3000 }, () => textsOf(write(draw))).flat());
}
