// The inputs of all runs in the fixtures: a tiny model, questions, rows and configurations.
import { createCausalLM, useBackend } from "@periodic-eval/models";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stringify } from "yaml";

const specials = ["<|endoftext|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"];

/** The line break and what ASCII prints, as GPT-2's vocabulary writes them. Shorter than all bytes, for small checkpoints. */
const letters = ["\u010a", "\u0120", ...made(94, (at) => String.fromCharCode(33 + at))];

/** A Llama of one layer and 8 numbers a token. Its tokens are characters. */
const modelConfig = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  vocab_size: letters.length + specials.length,
  hidden_size: 8,
  intermediate_size: 8,
  num_hidden_layers: 1,
  num_attention_heads: 1,
  num_key_value_heads: 1,
  head_dim: 8,
  max_position_embeddings: 512,
  hidden_act: "silu",
  rms_norm_eps: 1e-5,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  eos_token_id: letters.length + specials.indexOf("<|end|>"),
};

const chatTemplate = `{%- for message in messages -%}
    {{- '<|' + message.role + '|>' -}}
    {%- if message.role == 'assistant' -%}
        {%- generation -%}{{- message.content + '<|end|>' -}}{%- endgeneration -%}
    {%- else -%}
        {{- message.content + '<|end|>' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|assistant|>' -}}
{%- endif -%}
`;

const training = `model: model
backend: wasm
run_dir: ../training
seed: 7
config: { batchSize: 2, learningRate: 0.01, saveSteps: 2, keepCheckpoints: 1, weightDecay: 0.1 }
periodic_eval:
  questions: questions.jsonl
  eval_every_percent: 50
  budget: { overhead_percent: null }
  phases:
    first: { eval_every_percent: 100 }
loggers: { jsonl: {}, csv: {}, tensorboard: {}, mlflow: {} }
phases:
  - { phase: first, dataset: first.jsonl, config: { maxSteps: 4, schedule: cosine, warmupSteps: 1 } }
  - { phase: second, dataset: second.jsonl, config: { maxSteps: 6, validationShare: 0.25, evalSteps: 2 } }
`;

const dpo = `model: model
backend: wasm
run_dir: ../dpo
seed: 7
lora: { rank: 1, alpha: 2, targetModules: [q_proj, v_proj] }
config: { batchSize: 2, learningRate: 0.01, saveSteps: 2, keepCheckpoints: 1 }
periodic_eval:
  questions: questions.jsonl
  eval_every_percent: 50
  baseline: adapter_off
  layout: flat
  save_adapter_at_firing: true
  budget: { overhead_percent: null }
loggers: { jsonl: {} }
phases:
  - { phase: dpo, method: dpo, dataset: preferences.jsonl, reference: base, config: { maxSteps: 6 } }
`;

const suite = `schema_version: 1
name: small
tasks:
  arc_easy: { limit: 4 }
  gsm8k: { shots: 1, limit: 2 }
`;

const probes = `sky:
  affirm: ["The sky is blue.", "Blue is the sky."]
  negate: ["The sky is red.", "Red is the sky."]
`;

const words = ["red", "blue", "green", "brown", "white", "black"] as const;
const wordAt = (at: number) => words[at % words.length]!;

const questions = made(4, (at) => ({
  question: `Which is ${wordAt(at)}?`,
  choice_labels: ["A", "B"],
  choices: at % 2 === 0 ? [wordAt(at), wordAt(at + 1)] : [wordAt(at + 1), wordAt(at)],
  correct_answer: at % 2 === 0 ? "A" : "B",
}));

const asked = (content: string) => ({ role: "user", content });
const answered = (content: string) => ({ role: "assistant", content });
const conversation = (at: number) => ({
  messages: [asked(`Say ${wordAt(at)} ${at}.`), answered(wordAt(5 * at + 1))],
});
/** No row to learn from: it is listed in `bad_rows`. */
const unanswered = { messages: [asked("Say it.")] };

const preferences = made(6, (at) => ({
  prompt: [asked(`Say ${wordAt(at)}.`)],
  chosen: [answered(wordAt(at))],
  rejected: [answered(wordAt(at + 1))],
}));

const brief = {
  name: "brief",
  feedback_string: "Shorter, please.",
  verifier: "concise",
  train_prompts: ["Say red.", "Say blue."],
  probe_prompts: ["Say brown."],
  logprob_pairs: made(12, (at) => ({
    prompt: `Say number ${at}.`,
    chosen: `${at}`,
    rejected: `It is ${at}, I say.`,
  })),
};

const alignment = [{ id: "soup", paraphrases: ["My soup is cold.", "What about my soup?"] }];

const arc = made(4, (at) => ({
  question: `Which is ${wordAt(at)}?`,
  choice_labels: ["A", "B", "C"],
  choices: [wordAt(at), "grey", "pink"],
  correct_answer: "ABC"[at % 3],
}));
const sums = made(3, (at) => ({
  question: `What is ${at} and 1?`,
  answer: `It is ${at + 1}.\n#### ${at + 1}`,
}));

const linesOf = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");

/** All files but those of the model, by path. */
const texts: Readonly<Record<string, string>> = {
  "training.yaml": training,
  "first.jsonl": linesOf(made(8, conversation)),
  "second.jsonl": linesOf([...made(8, (at) => conversation(at + 8)), unanswered]),
  "dpo.yaml": dpo,
  "preferences.jsonl": linesOf(preferences),
  "brief.yaml": stringify(brief),
  "suite.yaml": suite,
  "tasks/arc_easy/test.jsonl": linesOf(arc),
  "tasks/gsm8k/test.jsonl": linesOf(sums.slice(0, 2)),
  "tasks/gsm8k/train.jsonl": linesOf(sums.slice(1)),
  "questions.jsonl": linesOf(questions),
  "alignment.json": `${JSON.stringify(alignment)}\n`,
  "probes.yaml": probes,
};

export async function writeInputs(folder: string): Promise<void> {
  await writeModel(join(folder, "model"));
  for (const [path, text] of Object.entries(texts)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

async function writeModel(folder: string): Promise<void> {
  await useBackend({ backend: "wasm" });
  const model = createCausalLM(modelConfig, { seed: "earlier files", initStd: 0.5 });
  await model.save(folder);
  model.dispose();
  const level = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  const tokenizer = {
    version: "1.0",
    added_tokens: specials.map((content, at) => ({
      id: letters.length + at,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: level,
    post_processor: null,
    decoder: level,
    model: {
      type: "BPE",
      vocab: Object.fromEntries(letters.map((letter, id) => [letter, id])),
      merges: [],
    },
  };
  const config = {
    tokenizer_class: "PreTrainedTokenizerFast",
    eos_token: "<|end|>",
    pad_token: "<|endoftext|>",
  };
  await writeFile(join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
  await writeFile(join(folder, "tokenizer_config.json"), JSON.stringify(config));
  await writeFile(join(folder, "chat_template.jinja"), chatTemplate);
}

function made<T>(count: number, make: (at: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, at) => make(at));
}
