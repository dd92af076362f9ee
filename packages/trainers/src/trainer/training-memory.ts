import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { availableMemory } from "@periodic-eval/store";
import { describeBytes, joinRemedies } from "@periodic-eval/contracts/options";
import {
  engineMemory,
  type EngineMemory,
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
  const { remedies } = trainingAdvice(model, size, memory);
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

/** Returns the estimate and the changes of settings that would fit. */
export function trainingAdvice(
  model: EstimatedLM,
  size: TrainingSize,
  memory: EngineMemory = engineMemory(),
): MemoryAdvice {
  const estimate = estimateTrainingMemory(model, size);
  if (estimate === null) return { estimate: null, remedies: [] };
  const limit = usableBytes(memory) ?? estimate.total / refusedShare;
  const fitting = (changes: readonly Change[]): string[] => {
    const bytes = bytesAfter(changes, model, size);
    const text = changes.map((change) => change.text).join(" and ");
    return bytes <= warnedShare * limit ? [`${text} (${describeBytes(bytes)})`] : [];
  };
  const { alone, together } = changesOf(model, size);
  const single = alone.flatMap((group) => group.flatMap((change) => fitting([change])).slice(0, 1));
  const remedies = single.length > 0 ? single : together.flatMap(fitting).slice(0, 2);
  return {
    estimate: `${describeEstimate(estimate)} for a step of ${size.rows} × ${size.tokens} tokens`,
    remedies: [...remedies, ...nativeRemedy(model, size, memory)],
  };
}

/** Returns the advice for a measurement, during which only weights and moments stay in memory. */
export function measurementAdvice(model: EstimatedLM, size: TrainingSize): MemoryAdvice {
  const estimate = estimateTrainingMemory(model, size);
  if (estimate === null) return { estimate: null, remedies: [] };
  const { weights, optimizer } = estimate;
  return {
    estimate: `enough memory for a measurement beside weights (${describeBytes(weights)}) and moments (${describeBytes(optimizer)})`,
    remedies: [
      ...(isFullTraining(estimate) ? [`${adapterRemedy}, which needs no such moments`] : []),
      ...nativeRemedy(model, size, engineMemory()),
    ],
  };
}

/** A change of settings that may need less memory. */
interface Change {
  readonly text: string;
  readonly to: Partial<TrainingSize>;
  /** Whether an adapter is trained instead of all weights. */
  readonly lora?: true;
}

function bytesAfter(changes: readonly Change[], model: EstimatedLM, size: TrainingSize): number {
  const changed = Object.assign({}, size, ...changes.map(({ to }) => to)) as TrainingSize;
  const { total, gradients, optimizer } = estimateTrainingMemory(model, changed)!;
  return changes.some(({ lora }) => lora) ? total - gradients - optimizer : total;
}

const adapterRemedy = "train an adapter with withLora(model) (in YAML lora: {})";

/** Lists changes of settings: one of each group that fits is named, or combinations if no single change does. */
function changesOf(model: EstimatedLM, size: TrainingSize) {
  const canCheckpoint = !size.activationCheckpointing && model.enterActivationCheckpointing !== undefined;
  const checkpointing: Change[] = canCheckpoint
    ? [{ text: "set activationCheckpointing: true", to: { activationCheckpointing: true } }]
    : [];
  const batches = halves(size.rows, 1).map((rows): Change => {
    const gradientAccumulation = Math.ceil((size.gradientAccumulation * size.rows) / rows);
    return {
      text: `set batchSize: ${rows} and gradientAccumulation: ${gradientAccumulation}`,
      to: { rows, gradientAccumulation },
    };
  });
  const lengths = halves(size.tokens, 16).map((tokens): Change => ({
    text: `set maxLength: ${tokens + 1}`,
    to: { tokens },
  }));
  const adapter: Change[] = isFullTraining(estimateTrainingMemory(model, size)!)
    ? [{ text: adapterRemedy, to: {}, lora: true }]
    : [];
  return {
    alone: [checkpointing, batches, lengths, adapter],
    together: [
      ...combinations(checkpointing, batches),
      ...combinations(adapter, checkpointing),
      ...combinations(adapter, batches),
      ...combinations(adapter, checkpointing, batches),
    ],
  };
}

/** Returns all choices of one change of each group. */
const combinations = (...groups: readonly (readonly Change[])[]): readonly (readonly Change[])[] =>
  groups.reduce<Change[][]>((all, group) => all.flatMap((some) => group.map((one) => [...some, one])), [[]]);

/** Returns half of a size, a quarter, and so on, down to `least`. */
function halves(size: number, least: number): number[] {
  const found: number[] = [];
  for (let half = Math.floor(size / 2); half >= least; half = Math.floor(half / 2)) found.push(half);
  return found;
}

/** Whether all weights are trained, so that an adapter would save gradients and moments. */
const isFullTraining = ({ weights, optimizer }: TrainingMemory): boolean => optimizer >= weights;

function nativeRemedy(model: EstimatedLM, size: TrainingSize, { backend }: EngineMemory): string[] {
  if (backend !== "wasm" && backend !== "cpu") return [];
  const estimate = estimateTrainingMemory(model, { ...size, backend: "tensorflow" });
  const free = availableMemory();
  if (estimate === null || (free !== null && estimate.total > free)) return [];
  const needed = describeBytes(estimate.total);
  return [
    `use native TensorFlow, useBackend({ backend: "tfjs-node" }) (in YAML backend: tfjs-node) (${needed})`,
  ];
}

function describeEstimate({ total, ...parts }: TrainingMemory): string {
  const listed = Object.entries(parts).map(([name, bytes]) => `${name} ${describeBytes(bytes)}`);
  return `an estimated ${describeBytes(total)} (${listed.join(", ")})`;
}
