import { join, realpath } from "@periodic-eval/store/platform";
import { readdir, stat } from "@periodic-eval/store/browser";
import type { EvaluableModel, OpenCheckpointOptions, OpenedModel, Tokenizer } from "@periodic-eval/core";
import { checkAdapterBase } from "@periodic-eval/data";
import { fingerprintWeights, inMemory } from "@periodic-eval/tfjs";
import { hashWeightFiles } from "@periodic-eval/store";
import { loadCausalLM, type LoadOptions } from "./checkpoint/load-causal-lm.ts";
import type { CheckpointLM } from "./checkpoint/model.ts";
import { rejectSharded } from "./folder/file-names.ts";
import { modelError } from "./folder/model-error.ts";
import { modelFolder } from "./hub/fetch-model.ts";
import { loadLora } from "./lora/load-lora.ts";
import { outlineCausalLM, type CausalLMOutline } from "./outline/outline.ts";
import { sharing } from "./sharing.ts";
import { loadTokenizer } from "./tokenizer/load-tokenizer.ts";

/** A checkpoint that was opened in this process. */
export interface OpenedCheckpoint extends OpenedModel {
  fingerprint(): Promise<string>;
  baseFingerprint(): Promise<string>;
  /** Frees an adapter, and the base model once no other opened checkpoint uses it. */
  dispose(): Promise<void>;
}

/** Progress of downloads and of loading weights, beside the options of the contract. */
export interface OpenOptions extends OpenCheckpointOptions, Pick<LoadOptions, "onDownload" | "onLoad"> {}

/** The weights of a model without an adapter, which adapters share. */
interface Loaded {
  readonly lm: CheckpointLM;
  fingerprint(): Promise<string>;
  dispose(): void;
}

const sharedWeights = sharing<Loaded>();

/**
 * Opens a checkpoint of a base model, in this process: an `OpenCheckpoint`, such as the `openModel` of an `Evaluator`.
 *
 *     Evaluator.fromCheckpoint("path/to/model", { name: "base", tasks, openModel: openCheckpoint });
 *
 * Opened checkpoints with the same weights share them: adapters do not load the base again while another part of the program has
 * it open. The caller disposes the result. Call `useBackend` first.
 *
 * @param base A folder, or `owner/name` on the hub.
 * @param path A folder with a full checkpoint (`config.json`) or an adapter in PEFT's format (`adapter_config.json`); for an
 *   adapter also `owner/name` on the hub. Null (default): the base model itself.
 * @throws PeriodicEvalError `model` as `loadTokenizer`, `loadCausalLM` and `loadLora`; for an adapter of another base model; for a
 *   tokenizer with more tokens than the model has embeddings.
 */
export async function openCheckpoint(
  base: string,
  path: string | null = null,
  { tokenizer: tokenizerSource = null, signal, ...progress }: OpenOptions = {},
): Promise<OpenedCheckpoint> {
  const { onDownload } = progress;
  const downloads = onDownload && { onDownload };
  const parts = await partsOf(base, path, tokenizerSource);
  const checkBase = parts.adapter === null ? null : await checkAdapterBase(parts.adapter, base);
  signal?.throwIfAborted();
  const tokenizer = await loadTokenizer(parts.tokenizer, downloads);
  if (parts.tokenizer !== parts.weights)
    checkVocabulary(tokenizer, await outlineCausalLM(parts.weights, downloads), parts);
  signal?.throwIfAborted();
  const shared = sharedWeights(await weightsKey(parts.weights), () => load(parts.weights, progress));
  const loaded = await shared.open();
  try {
    await checkBase?.(loaded.fingerprint);
    signal?.throwIfAborted();
    const adapted = parts.adapter === null ? null : await loadLora(loaded.lm, parts.adapter, downloads);
    const model = adapted ?? loaded.lm;
    return {
      model: inMemory(model, tokenizer),
      fingerprint: adapted === null ? loaded.fingerprint : () => fingerprintOf(adapted),
      baseFingerprint: loaded.fingerprint,
      async dispose() {
        adapted?.dispose();
        await shared.close();
      },
    };
  } catch (error) {
    await shared.close();
    throw error;
  }
}

const fingerprintOf = (model: CheckpointLM): Promise<string> =>
  fingerprintWeights(model.weights(), { method: "exact" });

async function load(source: string, progress: Pick<LoadOptions, "onDownload" | "onLoad">): Promise<Loaded> {
  const lm = await loadCausalLM(source, progress);
  let hash: Promise<string> | null = null;
  return { lm, fingerprint: () => (hash ??= fingerprintOf(lm)), dispose: () => lm.dispose() };
}

/** Names the weights of a model: a folder with the sizes and times of its files, because it may be saved again. */
async function weightsKey(source: string): Promise<string> {
  const names = await readdir(source).catch(() => null);
  if (names === null) return source;
  const files = names.filter((name) => /\.(safetensors|json)$/.test(name)).sort();
  const stats = await Promise.all(
    files.map(async (name) => {
      const { size, mtimeMs } = await stat(join(source, name));
      return [name, size, mtimeMs];
    }),
  );
  return JSON.stringify([await realpath(source), stats]);
}

/** Where the parts of an opened model are read from. */
interface CheckpointParts {
  readonly weights: string;
  readonly adapter: string | null;
  readonly tokenizer: string;
}

async function partsOf(
  base: string,
  path: string | null,
  tokenizer: string | null,
): Promise<CheckpointParts> {
  const names = await readdir(path ?? base).catch(() => null);
  if (names !== null) await rejectSharded(path ?? base, names);
  if (path === null) return { weights: base, adapter: null, tokenizer: tokenizer ?? base };
  const folder = names?.includes("tokenizer.json") === true ? path : base;
  // A trainer may save the base model's config.json beside an adapter.
  if (names === null || names.includes("adapter_config.json"))
    return { weights: base, adapter: path, tokenizer: tokenizer ?? folder };
  if (names.includes("config.json")) return { weights: path, adapter: null, tokenizer: tokenizer ?? folder };
  throw modelError({
    where: path,
    got: "a folder without config.json and without adapter_config.json",
    expected: "a full checkpoint, or an adapter in PEFT's format",
    fix: "Name the folder of one checkpoint, such as checkpoint-500.",
  });
}

/** A checkpoint's configuration and tokenizer, without its weights. */
export interface CheckpointOutline {
  /** Renders prompts and reads data; its logits throw. */
  readonly model: EvaluableModel;
  /** Returns, without an adapter's, a hash of the weights' files; for a model on the hub, its commit. Null for a folder without weights. */
  weights(): Promise<string | null>;
}

/**
 * Opens only the configuration and tokenizer of a checkpoint, so that prompts and options are checked before weights load.
 *
 * @param base As for `openCheckpoint`.
 * @param path As for `openCheckpoint`.
 * @throws PeriodicEvalError `model` as `loadTokenizer` and `outlineCausalLM`.
 */
export async function outlineCheckpoint(
  base: string,
  path: string | null = null,
  { tokenizer: tokenizerSource = null, ...options }: Pick<OpenOptions, "tokenizer" | "onDownload"> = {},
): Promise<CheckpointOutline> {
  const parts = await partsOf(base, path, tokenizerSource);
  const tokenizer = await loadTokenizer(parts.tokenizer, options);
  const outline = await outlineCausalLM(parts.weights, options);
  checkVocabulary(tokenizer, outline, parts);
  const { name, vocabSize, contextLength, hiddenStates } = outline;
  return {
    model: inMemory({ name, vocabSize, contextLength, logits: hiddenStates, hiddenStates }, tokenizer),
    weights: async () => weightsHash(await modelFolder(parts.weights, { need: "config" })),
  };
}

async function weightsHash(folder: string): Promise<string | null> {
  const [, commit] = /[\\/]snapshots[\\/]([0-9a-f]{40})[\\/]?$/.exec(folder) ?? [];
  if (commit !== undefined) return `commit:${commit}`;
  return hashWeightFiles(folder);
}

/** @throws PeriodicEvalError `model` for a tokenizer with ids that the model has no embedding for. */
function checkVocabulary(
  { vocabSize }: Tokenizer,
  model: Pick<CausalLMOutline, "vocabSize">,
  { tokenizer, weights }: CheckpointParts,
): void {
  if (vocabSize <= model.vocabSize) return;
  throw modelError({
    where: `the tokenizer ${tokenizer}`,
    got: `${vocabSize} tokens`,
    expected: `at most ${model.vocabSize}, the embeddings of ${weights}`,
    fix: "Name a tokenizer that the model was trained with.",
  });
}
