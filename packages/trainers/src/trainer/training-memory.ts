import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { describeBytes, joinRemedies } from "@periodic-eval/contracts/options";
import {
  engineMemory,
  type EngineMemory,
  nativeRemedy,
  type MemoryAdvice,
  type TrainableLM,
  type TrainingPassSize,
} from "@periodic-eval/tfjs";
import type { TrainingConfig } from "./training-config.ts";

/** A model whose memory can be estimated; its weights need not be loaded. */
export type EstimatedLM = Pick<TrainableLM, "trainingMemory" | "enterActivationCheckpointing"> &
  Partial<Pick<TrainableLM, "trainables">>;

/** The settings that the memory of a training depends on. */
export interface TrainingSize extends TrainingPassSize {
  /** Passes per optimizer step. */
  readonly gradientAccumulation: number;
}

/** Returns the largest pass of a training: its longest row in a full batch, because padding makes every row as long. */
export function trainingSizeOf(
  lengths: readonly number[],
  { batchSize, gradientAccumulation, activationCheckpointing }: SizeSettings,
  {
    sequencesPerRow = 1,
    model: { fixedLength },
  }: {
    readonly sequencesPerRow?: number | undefined;
    readonly model: Pick<TrainableLM, "fixedLength">;
  },
): TrainingSize {
  const longest = lengths.reduce((a, b) => Math.max(a, b), 2) - 1;
  return {
    rows: sequencesPerRow * Math.min(batchSize, Math.max(1, lengths.length)),
    tokens: fixedLength ?? longest,
    activationCheckpointing,
    gradientAccumulation: Math.min(gradientAccumulation, Math.max(1, Math.ceil(lengths.length / batchSize))),
    backend: tf.getBackend(),
  };
}

type SizeSettings = Pick<TrainingConfig, "batchSize" | "gradientAccumulation" | "activationCheckpointing">;

/** Estimated bytes at the peak of an optimizer step. */
export interface TrainingMemory {
  readonly weights: number;
  /** One set of gradients; two with gradient accumulation. */
  readonly gradients: number;
  /** Both moments of AdamW. */
  readonly optimizer: number;
  readonly activations: number;
  /** Temporary tensors, logits among them, and copies that the backend makes of weights. */
  readonly workspace: number;
  readonly total: number;
}

/**
 * Estimates the memory of an optimizer step from sizes alone. A model without `trainingMemory` counts without activations, so
 * that the estimate is a lower bound; null if not even its weights are known.
 */
export function estimateTrainingMemory(model: EstimatedLM, size: TrainingSize): TrainingMemory | null {
  const pass = model.trainingMemory?.(size) ?? passOfTrainables(model);
  if (pass === null) return null;
  const { weights, trainables, activations, workspace } = pass;
  const gradients = trainables * (size.gradientAccumulation > 1 ? 2 : 1);
  const optimizer = 2 * trainables;
  const total = weights + gradients + optimizer + activations + workspace;
  return { weights, gradients, optimizer, activations, workspace, total };
}

function passOfTrainables({ trainables }: EstimatedLM) {
  if (trainables === undefined) return null;
  const bytes = trainables().reduce((sum, { size }) => sum + 4 * size, 0);
  return { weights: bytes, trainables: bytes, activations: 0, workspace: 0 };
}

/** Share of the wasm heap that tensors can use: between them remain gaps that no large tensor fits into. */
const wasmShare = 0.9;

/**
 * On wasm, whose heap has a hard limit, an estimate above this share of the usable memory is refused. Elsewhere other processes and
 * caches change what is free, so that it is only warned of.
 */
const refusedShare = 1.1;

/** An estimate above this share of the usable memory is warned of. */
const warnedShare = 0.9;

const usableBytes = ({ backend, limitBytes }: EngineMemory): number | null =>
  limitBytes === null ? null : backend === "wasm" ? wasmShare * limitBytes : limitBytes;

export interface MemoryCheck {
  /** The trainer and phase, for the error. */
  readonly where: string;
  readonly model: EstimatedLM;
  readonly size: TrainingSize;
  /** Default: that of the backend in use. */
  readonly memory?: EngineMemory;
}

/**
 * Compares the estimate with what the backend can hold, before the first step. Returns a warning if it is tight, else null.
 *
 * @throws PeriodicEvalError `memory` if it cannot fit into the heap of wasm, with the settings that would.
 */
export function checkTrainingMemory({
  where,
  model,
  size,
  memory = engineMemory(),
}: MemoryCheck): string | null {
  const estimate = estimateTrainingMemory(model, size);
  const limit = usableBytes(memory);
  if (estimate === null || limit === null || estimate.total <= warnedShare * limit) return null;
  const { remedies } = trainingAdvice(model, size);
  const needed = `${describeEstimate(estimate)} for a step of ${size.rows} × ${size.tokens} tokens`;
  const available = `${describeBytes(limit)} that ${memory.backend} can use`;
  if (memory.backend !== "wasm" || estimate.total <= refusedShare * limit)
    return `training needs ${needed}, of ${available}. If it fails: ${joinRemedies(remedies)}`;
  throw new PeriodicEvalError({
    code: "memory",
    where,
    got: needed,
    expected: `at most the ${available}`,
    fix: joinRemedies(remedies),
  });
}

/** Returns the estimate, and changes of settings that need less, each with its estimate. */
export function trainingAdvice(model: EstimatedLM, size: TrainingSize): MemoryAdvice {
  const estimate = estimateTrainingMemory(model, size);
  if (estimate === null) return { estimate: null, remedies: [] };
  const { gradients, optimizer, weights, total } = estimate;
  const saving = (text: string, bytes: number) =>
    bytes < total ? [`${text} (${describeBytes(bytes)})`] : [];
  const after = (text: string, to: Partial<TrainingSize>) =>
    saving(text, estimateTrainingMemory(model, { ...size, ...to })!.total);
  const half = Math.ceil(size.tokens / 2);
  return {
    estimate: `${describeEstimate(estimate)} for a step of ${size.rows} × ${size.tokens} tokens`,
    remedies: [
      ...(model.enterActivationCheckpointing === undefined
        ? []
        : after("set activationCheckpointing: true", { activationCheckpointing: true })),
      ...after("set batchSize: 1 and raise gradientAccumulation", { rows: 1, gradientAccumulation: 2 }),
      ...after(`set maxLength: ${half + 1}`, { tokens: half }),
      // An adapter needs no gradients and moments of all weights.
      ...(optimizer < weights
        ? []
        : saving("train an adapter with withLora(model) (in YAML lora: {})", total - gradients - optimizer)),
      ...nativeRemedy(size.backend).flatMap((text) => after(text, { backend: "tensorflow" })),
    ],
  };
}

function describeEstimate({ total, ...parts }: TrainingMemory): string {
  const listed = Object.entries(parts).map(([name, bytes]) => `${name} ${describeBytes(bytes)}`);
  return `an estimated ${describeBytes(total)} (${listed.join(", ")})`;
}
