import type { PeriodicEvalError } from "@periodic-eval/core";
import { configError, errorMessage, isRecord } from "@periodic-eval/contracts/options";
import { importOptional, isMissing } from "../backend/definition.ts";
import { modelError } from "../folder/model-error.ts";

/**
 * The used part of a causal language model of `@huggingface/transformers` 4, as `AutoModelForCausalLM.from_pretrained` returns
 * it.
 */
export interface TransformersModel {
  readonly config: object;
  /** The ONNX sessions, by name. */
  readonly sessions: object;
  readonly forward: (inputs: never) => Promise<unknown>;
}

/** A tensor of `@huggingface/transformers`. */
export interface OnnxTensor {
  readonly type: string;
  readonly dims: readonly number[];
  readonly data: unknown;
  to(type: string): OnnxTensor;
  dispose(): void;
}

/** The used part of the package. */
export interface TransformersPackage {
  readonly Tensor: new (
    type: string,
    data: BigInt64Array | Float32Array,
    dims: readonly number[],
  ) => OnnxTensor;
  readonly AutoModelForCausalLM: {
    from_pretrained(
      source: string,
      options: Readonly<Record<string, unknown>>,
    ): Promise<TransformersModel & { dispose(): Promise<unknown> }>;
  };
  readonly env: { readonly version?: string };
}

export const packageName = "@huggingface/transformers";

/**
 * Imports `@huggingface/transformers`, which is an optional peer.
 *
 * @throws PeriodicEvalError `config` with the install line if it is missing.
 */
export async function importTransformers(where: string): Promise<TransformersPackage> {
  try {
    return (await importOptional(packageName)) as TransformersPackage;
  } catch (cause) {
    const got = isMissing(cause)
      ? `no package ${packageName}`
      : `the error "${errorMessage(cause)}" of the package ${packageName}`;
    throw configError({
      where,
      path: [],
      got,
      expected: `${packageName} 4, which runs ONNX models`,
      fix: `Run npm install ${packageName}@4.`,
      cause,
    });
  }
}

/** The facts about a model that its configuration and its sessions tell, before it runs. */
export interface OnnxFacts {
  /** Size of the embedding; null if the configuration does not say. */
  readonly vocabSize: number | null;
  readonly contextLength: number | null;
  readonly dtype: string;
  readonly device: string;
  readonly hasCache: boolean;
  /** Whether several tokens can be read after cached ones. False for the states of convolutions. */
  readonly readsPieces: boolean;
  /** Whether a pass can compute the logits of the last tokens only. */
  readonly keepsLogits: boolean;
  /** Whether sequences of different lengths can be generated together: padding within the cache is then no position. */
  readonly padsCache: boolean;
  /** Ids that end a completion, by the model's generation configuration. */
  readonly eosIds: readonly number[];
}

interface Session {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly config?: { readonly dtype?: string; readonly device?: string };
}

/** @throws PeriodicEvalError `config` if `value` is no model; `model` if the model is no causal language model. */
export function factsOf(where: string, value: unknown): OnnxFacts {
  const model = value as Partial<TransformersModel & { readonly generation_config: unknown }> | null;
  if (typeof model?.forward !== "function" || !isRecord(model.sessions) || typeof model.config !== "object")
    throw configError({
      where,
      path: ["model"],
      got:
        value instanceof Promise ? "a promise" : `a value of type ${value === null ? "null" : typeof value}`,
      expected: "a model of @huggingface/transformers",
      fix: "Pass `await AutoModelForCausalLM.from_pretrained(source)`.",
    });
  const config = { ...model.config } as Readonly<Record<string, unknown>>;
  const text = { ...config, ...(isRecord(config["text_config"]) && config["text_config"]) };
  const sessions = model.sessions as Readonly<Record<string, Session | undefined>>;
  const { model: plain, decoder_model_merged: decoder } = sessions;
  if (config["is_encoder_decoder"] === true || (plain !== undefined && decoder !== undefined))
    throw notCausal(where, config, "an encoder-decoder model");
  const session = plain ?? decoder;
  if (session === undefined)
    throw notCausal(where, config, `sessions named ${Object.keys(sessions).join(", ") || "(none)"}`);
  if (!session.outputNames.includes("logits"))
    throw notCausal(where, config, `a model with the outputs ${session.outputNames.slice(0, 4).join(", ")}`);
  const cached = session.outputNames.filter((name) => name.startsWith("present"));
  const isAttention = cached.every((name) => name.startsWith("present."));
  const window = text["sliding_window"];
  const hasWindow = typeof window === "number" && text["use_sliding_window"] !== false;
  const positive = (...names: readonly string[]) =>
    names.map((name) => text[name]).find((n): n is number => Number.isInteger(n) && Number(n) > 0) ?? null;
  const { eos_token_id: eos = null } = (model.generation_config ?? {}) as { readonly eos_token_id?: unknown };
  return {
    vocabSize: positive("vocab_size"),
    contextLength: positive("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"),
    dtype: session.config?.dtype ?? "unknown",
    device: session.config?.device ?? "unknown",
    hasCache: cached.length > 0,
    readsPieces: cached.length > 0 && isAttention,
    keepsLogits: session.inputNames.includes("num_logits_to_keep"),
    padsCache: session.inputNames.includes("position_ids") && isAttention && !hasWindow,
    eosIds: [eos].flat().filter((id): id is number => Number.isInteger(id)),
  };
}

const notCausal = (
  where: string,
  config: Readonly<Record<string, unknown>>,
  got: string,
): PeriodicEvalError =>
  modelError({
    where: typeof config["model_type"] === "string" ? `${where}, model type ${config["model_type"]}` : where,
    got,
    expected: "a causal language model, whose output is logits",
    fix: "Load it with AutoModelForCausalLM, from a folder or repository with onnx/model.onnx.",
  });

/** Keys and values of the tokens that a batch has read, by input name. */
export type OnnxCache = Readonly<Record<string, OnnxTensor>>;

/** One pass over a batch. B sequences, T new tokens, S tokens with those of the cache, V vocabulary. */
export interface OnnxPass {
  /** Rows of T ids. */
  readonly ids: readonly (readonly number[])[];
  /** Rows of S flags: 0 for padding. */
  readonly mask: readonly (readonly number[])[];
  /** Keys and values of the first S − T tokens. The pass disposes them. */
  readonly past?: OnnxCache | null;
  /** Compute at least the logits of the last `keep` tokens. Default: of all T. */
  readonly keep?: number;
  /** Whether the caller takes the keys and values. */
  readonly isCached?: boolean;
}

export interface OnnxLogits {
  /** [B, count, V], of the last `count` tokens of each row. */
  readonly values: Float32Array;
  readonly count: number;
  /** Position in the sequence, with its cached tokens, of the first of these tokens. */
  readonly from: number;
  readonly vocabSize: number;
  /** Disposed by the next pass, or by `disposeCache`; null if not requested, or if the model has none. */
  readonly cache: OnnxCache | null;
}

/** Runs one pass and disposes all tensors but the cache. */
export async function runPass(
  { Tensor }: Pick<TransformersPackage, "Tensor">,
  model: TransformersModel,
  facts: OnnxFacts,
  { ids, mask, past = null, keep = 0, isCached = false }: OnnxPass,
): Promise<OnnxLogits> {
  const table = (rows: readonly (readonly number[])[]) =>
    new Tensor("int64", BigInt64Array.from(rows.flat(), BigInt), [rows.length, rows[0]!.length]);
  const inputs: Record<string, OnnxTensor> = { input_ids: table(ids), attention_mask: table(mask) };
  if (keep > 0 && facts.keepsLogits)
    inputs["num_logits_to_keep"] = new Tensor("int64", BigInt64Array.of(BigInt(keep)), []);
  let outputs: Readonly<Record<string, OnnxTensor>> = {};
  let cache: Record<string, OnnxTensor> | null = null;
  try {
    outputs = await forward(model, past === null ? inputs : { ...inputs, past_key_values: past });
    const { logits } = outputs;
    const [batch, count, vocabSize] = logits?.dims ?? [];
    if (logits === undefined || batch !== ids.length || count === undefined || vocabSize === undefined)
      throw modelError({
        where: packageName,
        got: logits === undefined ? "an output without logits" : `logits [${logits.dims.join(", ")}]`,
        expected: `logits [${ids.length}, tokens, vocabulary]`,
        fix: "Load the model with AutoModelForCausalLM.",
      });
    if (isCached && facts.hasCache) {
      cache = {};
      for (const [name, tensor] of Object.entries(outputs))
        if (name.startsWith("present")) cache[cacheName(name)] = tensor;
    }
    const values = logits.to("float32").data as Float32Array;
    return { values, count, from: mask[0]!.length - count, vocabSize, cache };
  } finally {
    const cached = new Set(Object.values(cache ?? {}));
    for (const tensor of [...Object.values(inputs), ...Object.values(outputs)])
      if (!cached.has(tensor)) tensor.dispose();
    disposeCache(past);
  }
}

export function disposeCache(cache: OnnxCache | null): void {
  for (const tensor of Object.values(cache ?? {})) tensor.dispose();
}

/** Repeats the keys and values of one row, and disposes the given ones. They must be in this process's memory. */
export function repeatCache(
  { Tensor }: Pick<TransformersPackage, "Tensor">,
  cache: OnnxCache,
  rows: number,
): OnnxCache {
  const repeat = ({ type, data, dims }: OnnxTensor): OnnxTensor => {
    const values = data as Float32Array;
    const all = new (values.constructor as Float32ArrayConstructor)(rows * values.length);
    for (let row = 0; row < rows; row++) all.set(values, row * values.length);
    return new Tensor(type, all, [rows, ...dims.slice(1)]);
  };
  try {
    return Object.fromEntries(Object.entries(cache).map(([name, tensor]) => [name, repeat(tensor)]));
  } finally {
    disposeCache(cache);
  }
}

/** The input that takes an output: `present.0.key` → `past_key_values.0.key`, `present_conv.0` → `past_conv.0`. */
const cacheName = (output: string): string =>
  output.startsWith("present.")
    ? output.replace("present", "past_key_values")
    : output.replace("present", "past");

async function forward(
  model: TransformersModel,
  inputs: Readonly<Record<string, unknown>>,
): Promise<Readonly<Record<string, OnnxTensor>>> {
  try {
    return (await model.forward(inputs as never)) as Readonly<Record<string, OnnxTensor>>;
  } catch (cause) {
    throw modelError({
      where: packageName,
      got: `the error "${errorMessage(cause)}"`,
      expected: "a model that runs",
      fix: "Lower maxBatchTokens if memory is short, or load the model with another dtype or device.",
      cause,
    });
  }
}
