import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { availableMemory } from "@periodic-eval/store";
import { errorMessage, describeBytes, fullHeapCode, joinRemedies } from "@periodic-eval/contracts/options";

/** The memory of the backend in use. */
export interface EngineMemory {
  /** The value of `tf.getBackend()`. */
  readonly backend: string;
  /** Bytes that the backend holds: the size of the wasm heap, which never shrinks; elsewhere the bytes of all tensors. */
  readonly usedBytes: number;
  /** Bytes that all tensors may have. Null for a GPU, whose memory TensorFlow.js does not report. */
  readonly limitBytes: number | null;
}

/** The settings that would need less memory, for an error. */
export interface MemoryAdvice {
  /** The memory that the work needs: `an estimated 5.2 GiB (weights 0.50, …)`. Null if it is unknown. */
  readonly estimate: string | null;
  /** Imperative clauses without a full stop. Only those that apply. */
  readonly remedies: readonly string[];
}

/** The largest heap of the wasm backend: 65,536 pages of 64 KiB, less one. */
const wasmLimit = 2 ** 32 - 2 ** 16;

/** Share of the wasm heap from which a trap counts as missing memory; with less in use it is another fault. */
const fullShare = 0.9;

/** Returns what the backend holds and what it can hold. */
export function engineMemory(): EngineMemory {
  const backend = tf.getBackend();
  const usedBytes = tf.memory().numBytes;
  const heap = wasmHeapBytes();
  if (heap !== null) return { backend, usedBytes: heap, limitBytes: wasmLimit };
  if (isOnDevice()) return { backend, usedBytes, limitBytes: null };
  const free = availableMemory();
  return { backend, usedBytes, limitBytes: free === null ? null : usedBytes + free };
}

function wasmHeapBytes(): number | null {
  if (tf.getBackend() !== "wasm") return null;
  const { wasm } = tf.backend() as { readonly wasm?: { readonly HEAPU8?: Uint8Array } };
  return wasm?.HEAPU8?.length ?? null;
}

/** Messages with which backends, V8 and GPU drivers report that an allocation failed. */
const messages =
  /\bOOM\b|Resource_?Exhausted|out[ -]of[ -]memory|bad_alloc|failed to allocate|\ballocation failed|Array buffer allocation failed|Memory\.grow\(\)|device (?:is|was) lost|XNN status .* is not successful/i;

/** Messages of a wasm instance whose memory is full; they have other causes too. */
const traps = /out of bounds|Aborted\(|unreachable|Invalid typed array length: \d{9,}/;

/**
 * Whether an error means that the backend or the process ran out of memory. A trap of wasm counts only if the heap is almost
 * full.
 */
export function isOutOfMemory(error: unknown): boolean {
  if (PeriodicEvalError.is(error)) return error.code === "memory";
  if ((error as { readonly code?: unknown } | null)?.code === fullHeapCode) return true;
  const text = errorMessage(error);
  if (messages.test(text)) return true;
  if (!traps.test(text)) return false;
  return text.includes("Invalid typed array length") || (wasmHeapBytes() ?? 0) >= fullShare * wasmLimit;
}

/**
 * Returns the `memory` error for an error of a backend that ran out of memory; any other error unchanged. The only place
 * where backend errors are translated.
 *
 * @param doing A noun phrase: `step 3: the forward and backward pass of 8 × 512 tokens`.
 */
export function memoryErrorOf(error: unknown, doing: string, advise?: () => MemoryAdvice): unknown {
  if (PeriodicEvalError.is(error) || !isOutOfMemory(error)) return error;
  const { estimate, remedies } = advise?.() ?? { estimate: null, remedies: [] };
  const { backend, usedBytes, limitBytes } = engineMemory();
  const limit = limitBytes === null ? "" : ` of ${describeBytes(limitBytes)}`;
  return new PeriodicEvalError({
    code: "memory",
    where: doing,
    got: `no more memory on ${backend}, which holds ${describeBytes(usedBytes)}${limit} (${errorMessage(error).split("\n", 1)[0]})`,
    expected: estimate ?? "enough memory",
    fix: joinRemedies(remedies),
    cause: error,
  });
}

/**
 * Whether the backend keeps tensors in the memory of a device, such as a GPU: reading one is a download. True for every backend that
 * is not known to use host memory. Native TensorFlow says it itself, because its GPU build computes on the CPU where there is
 * no GPU.
 */
export function isOnDevice(): boolean {
  const backend = tf.getBackend();
  if (backend !== "tensorflow") return backend !== "cpu" && backend !== "wasm";
  return (tf.backend() as { readonly isUsingGpuDevice?: boolean }).isUsingGpuDevice === true;
}

/**
 * Returns the kernels that `periodic-eval native` compiles, if they compute here: they round differently from TensorFlow's operations. With
 * the numbers in a vector, by which sums are split.
 */
export const compiledKernels = (): { readonly lanes: number } | undefined =>
  isOnDevice()
    ? undefined
    : (tf.getKernel("PeriodicMatMul", tf.getBackend()) as
        | (tf.KernelConfig & { readonly lanes: number })
        | undefined);

/** Returns the advice to use native TensorFlow; none for other backends than those that it is an alternative to. */
export const nativeRemedy = (backend: string): readonly string[] =>
  ["wasm", "cpu"].includes(backend)
    ? ['use native TensorFlow, useBackend({ backend: "tfjs-node" }) (in YAML backend: tfjs-node)']
    : [];

/** Returns the advice for a measurement: batches shrink by themselves, to a single row. */
export const measuringAdvice = (): MemoryAdvice => ({
  estimate: null,
  remedies: [
    "ask shorter questions, with fewer few-shot examples",
    "generate fewer tokens (sampling.maxNewTokens of the callback)",
    ...nativeRemedy(tf.getBackend()),
  ],
});
