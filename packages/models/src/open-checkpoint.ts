import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { EvaluableModel, Tokenizer } from "@periodic-eval/core";
import { fingerprintWeights, inMemory } from "@periodic-eval/core/tfjs";
import { hashFiles } from "@periodic-eval/core/snapshots";
import { loadCausalLM, type LoadOptions } from "./checkpoint/load-causal-lm.ts";
import { modelError } from "./folder/model-error.ts";
import { modelFolder } from "./hub/model-folder.ts";
import { loadLora } from "./lora/load-lora.ts";
import { outlineCausalLM } from "./outline/outline.ts";
import { loadTokenizer } from "./tokenizer/load-tokenizer.ts";

/** The checkpoint and its parts. Each is a local folder, or `owner/name` on the hub. */
export interface CheckpointToOpen {
  readonly folder: string;
  /** An adapter in PEFT's format; null (default) for none. */
  readonly adapter?: string | null;
  /** Null (default) for the checkpoint's own tokenizer. */
  readonly tokenizer?: string | null;
}

export interface OpenCheckpoint {
  readonly model: EvaluableModel;
  /** Returns the hash of all weights, including the adapter's. */
  fingerprint(): Promise<string>;
  /** Returns the hash of the weights without the adapter's. */
  baseFingerprint(): Promise<string>;
  dispose(): void;
}

/**
 * Loads a checkpoint, its tokenizer and, if named, an adapter, as a model to measure. It is the `openModel` of an `Evaluator`:
 *
 *     Evaluator.fromCheckpoint("path/to/model", { name: "base", tasks, openModel: openCheckpoint });
 *
 * The caller disposes the result. Call `useBackend` first.
 *
 * @param progress Receives the progress of downloads and of loading the weights.
 * @throws PeriodicEvalError `model` as `loadTokenizer`, `loadCausalLM` and `loadLora`; for another tokenizer with more tokens than the
 *   model has embeddings.
 */
export async function openCheckpoint(
  { folder, adapter = null, tokenizer: tokenizerSource = null }: CheckpointToOpen,
  progress: Pick<LoadOptions, "onDownload" | "onLoad"> = {},
): Promise<OpenCheckpoint> {
  const { onDownload } = progress;
  const downloads = onDownload && { onDownload };
  const tokenizer = await loadTokenizer(tokenizerSource ?? folder, downloads);
  if (tokenizerSource !== null) await checkVocabulary(tokenizer, tokenizerSource, folder);
  const base = await loadCausalLM(folder, progress);
  try {
    const model = adapter === null ? base : await loadLora(base, adapter, downloads);
    return {
      model: inMemory(model, tokenizer),
      fingerprint: () => fingerprintWeights(model.weights(), { method: "exact" }),
      baseFingerprint: () => fingerprintWeights(base.weights(), { method: "exact" }),
      dispose() {
        if (model !== base) model.dispose();
        base.dispose();
      },
    };
  } catch (error) {
    base.dispose();
    throw error;
  }
}

/** A checkpoint's configuration and tokenizer, without its weights. */
export interface CheckpointOutline {
  /** Renders prompts and reads data; its logits throw. */
  readonly model: EvaluableModel;
  /** Returns a hash of the weights' files; for a model on the hub, its commit. Null for a folder without weights. */
  weights(): Promise<string | null>;
}

/**
 * Opens only a model's configuration and tokenizer, so that prompts and options are checked before weights load.
 *
 * @param source A folder, or `owner/name` on the hub.
 * @throws PeriodicEvalError `model` as `loadTokenizer` and `outlineCausalLM`.
 */
export async function outlineCheckpoint(
  source: string,
  options: Pick<LoadOptions, "onDownload"> = {},
): Promise<CheckpointOutline> {
  const tokenizer = await loadTokenizer(source, options);
  const { name, vocabSize, contextLength } = await outlineCausalLM(source, options);
  const logits = () => {
    throw modelError({
      where: name,
      got: "a request for logits, but the weights are not loaded",
      expected: "only prompts and data to be read",
      fix: "Load the model: `npx periodic-eval eval` does.",
    });
  };
  return {
    model: inMemory({ name, vocabSize, contextLength, logits }, tokenizer),
    weights: async () => weightsHash(await modelFolder(source, { need: "config" })),
  };
}

async function weightsHash(folder: string): Promise<string | null> {
  const [, commit] = /[\\/]snapshots[\\/]([0-9a-f]{40})[\\/]?$/.exec(folder) ?? [];
  if (commit !== undefined) return `commit:${commit}`;
  const files = (await readdir(folder)).filter((file) => file.endsWith(".safetensors")).sort();
  if (files.length === 0) return null;
  return hashFiles(files.map((file) => join(folder, file)));
}

/** @throws PeriodicEvalError `model` for a tokenizer with ids that the model has no embedding for. Loads no weights. */
async function checkVocabulary({ vocabSize }: Tokenizer, source: string, folder: string): Promise<void> {
  const model = await outlineCausalLM(folder);
  if (vocabSize <= model.vocabSize) return;
  throw modelError({
    where: `the tokenizer ${source}`,
    got: `${vocabSize} tokens`,
    expected: `at most ${model.vocabSize}, the embeddings of ${folder}`,
    fix: "Name a tokenizer that the model was trained with.",
  });
}
