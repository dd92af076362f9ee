import { shellWord } from "@periodic-eval/contracts/options";
import { existsSync } from "node:fs";
import { copyFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { PeriodicEvalError } from "@periodic-eval/core";
import { checkWritable, nodeFiles, writeFileAtomic } from "@periodic-eval/store";
import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";

/** `init`: writes a commented training file. */
export function addInit(program: Command, terminal: Terminal): void {
  program
    .command("init")
    .description("write a commented configuration for train: model, dataset, options and what to measure")
    .argument("[file]", "the file to write", "train.yaml")
    .option("--force", "replace the file if it exists", false)
    .action(async (file: string, { force }: { readonly force: boolean }) => {
      const written = await writeTemplate(file, force);
      terminal.out(
        `wrote ${written.join(" and ")}. Set model, dataset and questions (null downloads ARC-Challenge), then run:\n` +
          `  npx periodic-eval plan ${shellWord(file)}\n  npx periodic-eval train ${shellWord(file)}\n` +
          "To fail a CI job if the model got worse, then run:\n  npx periodic-eval gate runs/1 --fail-on 'capability worse'",
      );
    });
}

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

/** The schema that the build writes into the package. */
const shippedSchema = fileURLToPath(new URL("../../../dist/train.schema.json", import.meta.url));

/** The copy of the schema beside a file whose project has not installed the package. */
const copiedSchema = "periodic-eval.train.schema.json";

/**
 * Writes a commented training file. It names the JSON Schema for editors: that of the package in the project's `node_modules`, or
 * a copy that is written beside the file, because npx runs from a cache that vanishes.
 *
 * @param force Replaces a file that exists.
 * @returns The files that it wrote.
 * @throws PeriodicEvalError `config` for a file that exists, or a path that is a folder or no YAML file; `store` for a folder that
 *   cannot be written to.
 */
async function writeTemplate(file: string, force: boolean): Promise<readonly string[]> {
  const refuse = (got: string, expected: string, fix: string) =>
    new PeriodicEvalError({ code: "config", where: file, path: ["file"], got, expected, fix });
  if (!/\.ya?ml$/.test(file))
    throw refuse("a name that does not end in .yaml", "a YAML file", "Write train.yaml, for example.");
  if (existsSync(file) && !force)
    throw refuse("a file that exists", "a new file", "Choose another name, or pass --force to replace it.");
  const folder = dirname(resolve(file));
  await checkWritable(folder);
  await nodeFiles.makeFolder(folder);
  const installed = installedSchema(folder);
  const copy = join(dirname(file), copiedSchema);
  if (installed === null) await copyFile(shippedSchema, copy);
  const schema = installed === null ? copiedSchema : relative(folder, installed).split(sep).join("/");
  await writeFileAtomic(file, trainingTemplate(schema.startsWith(".") ? schema : `./${schema}`));
  return installed === null ? [file, copy] : [file];
}

/** Returns the schema in the nearest `node_modules` at or above a folder that has it; null if none has. */
function installedSchema(folder: string): string | null {
  const path = join(folder, "node_modules/periodic-eval/dist/train.schema.json");
  if (existsSync(path)) return path;
  return dirname(folder) === folder ? null : installedSchema(dirname(folder));
}
