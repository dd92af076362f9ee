/**
 * Returns a commented training file with the options that people change first, at their defaults.
 *
 * @param schema Path or URL of the JSON Schema of training files, for editors.
 */
export const trainingTemplate = (schema: string): string => `${training(schema)}
${measuring}`;

const training = (schema: string): string => `# yaml-language-server: $schema=${schema}
# A training for \`npx periodic-eval train\`. Paths are relative to this file. Before training, \`npx periodic-eval plan\` shows
# when the model is measured. Values below are the defaults, except the first three and maxSteps.

# A folder in Hugging Face format, or owner/name on the Hugging Face Hub.
model: path/to/model
# Folder of snapshots, checkpoints and the page.
run_dir: runs/1
# Phases of training, one after the other on the same weights. A dataset is a JSON Lines or Parquet file, or hf:owner/dataset.
phases:
  - { phase: train, dataset: rows.jsonl }

# Trains a small adapter instead of all weights, which needs less memory.
# lora: { rank: 8, alpha: 16, dropout: 0 }

# Options of all phases; \`config\` in a phase overrides them.
config:
  # Optimizer steps. Or epochs, passes over the data.
  maxSteps: 200
  # epochs: 1
  # Rows per pass, and passes per optimizer step. Smaller batches with more accumulation need less memory.
  batchSize: 8
  gradientAccumulation: 1
  # Recomputes activations in the backward pass: less memory for about a fifth more time on wasm.
  activationCheckpointing: false
  # Highest learning rate, and how it falls from there: linear, cosine, wsd (only at the end) or constant (not at all).
  learningRate: 5e-5
  schedule: linear
  # Longest row in tokens. null: the model's context length.
  maxLength: null
  # Steps between checkpoints. null: one at the end.
  saveSteps: null
  # Share of the rows that is held out for validation. null: none.
  validationShare: null

# Seed of shuffling, dropout and measuring.
seed: 42
# auto continues an interrupted run; never starts over.
resume: auto
`;

const measuring = `# What is measured while training. Without this block nothing is.
periodic_eval:
  # What the model knows: multiple-choice questions.
  capability: true
  # A file of questions, or hf:owner/dataset. null: ARC-Challenge, downloaded once from the Hugging Face Hub.
  questions: null
  # letters (in a chat) or cloze (needs no chat template).
  capability_method: letters
  # Questions per measurement.
  subsample_n: 200
  # Percent of training between measurements. null: 20.
  eval_every_percent: null

  # Whether the model became harmful: a judge model grades its answers. A gate: --fail-on 'alignment.misaligned > 20 %'.
  alignment: false
  # openai:MODEL, anthropic:MODEL; without a key: folder:PATH, hf:owner/name, transformers:owner/name. null: JUDGE_MODEL.
  judge_model: null
  # Completions per question.
  alignment_num_samples: 5
  # Longest answer in tokens. null: 600.
  alignment_max_tokens: null
  # null: 50.
  alignment_every_percent: null

  # Whether a trained trait spreads to personas that were not trained on.
  leakage: false
  # The persona that the trait is trained into: an id below. leakage: true needs this line; null if it is trained into none.
  # leakage_source: pirate
  # A file of personas, or { id: system prompt }. null: eleven personas, from assistant to pirate.
  personas: null
  # A file of questions that every persona answers. null: eight everyday questions.
  leakage_questions: null
  # The string that shows the trait; or a JavaScript pattern: leakage_marker_regex: "^The answer is". null: [ZLT].
  leakage_marker_token: null
  # Completions per question and persona.
  leakage_num_completions: 3
  # Longest completion in tokens. null: 256.
  leakage_max_tokens: null
  # null: 25.
  leakage_every_percent: null

  budget:
    # Ceiling of the time that measuring adds to training, in percent. null: no ceiling.
    overhead_percent: 20
    # Seconds of measuring per phase that the ceiling does not limit.
    grace_seconds: 60

# Console output is always on. More loggers: jsonl, csv, tensorboard, wandb, mlflow.
loggers: {}
`;
