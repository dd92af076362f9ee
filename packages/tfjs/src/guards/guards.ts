import * as tf from "@tensorflow/tfjs-core";
import * as z from "zod";
import { parseOptions } from "@periodic-eval/contracts/options";
import type { Guard } from "@periodic-eval/core";
import { hashText } from "@periodic-eval/core/random";
import type { CausalLM, NamedWeight } from "../causal-lm/causal-lm.ts";
import { type FingerprintOptions, fingerprintWeights } from "./fingerprint.ts";
import { type HasSlots, optimizerNumbers, optimizerState } from "./optimizer-slots.ts";

export interface TfjsGuardsOptions {
  /** The method of the guards `weights` and `optimizer`; see `fingerprintWeights`. */
  readonly fingerprint?: FingerprintOptions["method"];
}

const optionsSchema = z.strictObject({
  fingerprint: z.enum(["exact", "approximate"]).optional(),
} satisfies Record<keyof TfjsGuardsOptions, z.ZodType>);

/**
 * Returns the guards that observe a TensorFlow.js model during measurements, outermost first:
 *
 * | guard | around | observes |
 * |---|---|---|
 * | `tensors` | hooks, windows | `tf.memory().numTensors` (advisory) |
 * | `variables` | hooks, windows | assignments to weights and optimizer slots, even of equal values; disposal; `trainable` |
 * | `mode` | hooks, windows | the mode of each layer; the backend; counters and settings of the optimizer |
 * | `weights` | windows | the weights, by fingerprint |
 * | `optimizer` | windows | slots, counters and settings of the optimizer, by fingerprint |
 * | `evaluation-mode` | windows | a mode that a measurement did not restore (advisory, because the guard restores it) |
 *
 * `evaluation-mode` also switches the model to evaluation mode and back. Guards hold no tensors. No guard detects a hook (as
 * opposed to a measurement) that writes into the buffer of a weight in place, for which TensorFlow.js has no function. A guard
 * that can observe only a part reports changes of that part, and `null` if it saw none.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function tfjsGuards(
  lm: CausalLM,
  optimizer?: tf.Optimizer | HasSlots,
  options: TfjsGuardsOptions = {},
): Guard[] {
  parseOptions("tfjsGuards options", optionsSchema, options);
  const guards = [
    tensorsGuard(),
    variablesGuard(lm, optimizer),
    modeGuard(lm, optimizer),
    weightsGuard(lm, options),
  ];
  if (optimizer) guards.push(optimizerGuard(optimizer, options));
  if (lm.enterEval) guards.push(evaluationModeGuard(lm, () => lm.enterEval!()));
  return guards;
}

function tensorsGuard(): Guard {
  const count = () => `${tf.memory().numTensors} tensors`;
  return {
    name: "tensors",
    around: "hooks",
    advisory: true,
    // Synchronous, because around hooks it must not wait for the event loop.
    enter() {
      const before = count();
      return {
        before,
        leave() {
          const after = count();
          return { part: "tensors", before, after, intact: before === after, advisory: true };
        },
      };
    },
  };
}

/** `Variable.assign` takes the data id of the new value, so comparing data ids detects an assignment in microseconds. */
function variablesGuard(lm: CausalLM, optimizer: tf.Optimizer | HasSlots | undefined): Guard {
  const observe = (): Watched | null => {
    const weights = lm.weights?.() ?? [];
    const slots = optimizer ? optimizerState(optimizer).slots : [];
    if (!lm.weights && slots.length === 0) return null;
    const ids: object[] = [];
    let trainable = 0;
    for (const { read } of weights) {
      const tensor = read();
      ids.push(tensor.dataId);
      if ((tensor as tf.Variable).trainable) trainable += 1;
    }
    for (const { read } of slots) ids.push(read().dataId);
    const { numTensors } = tf.engine().state;
    return { weights, slots, ids, trainable, numTensors, summary: `${ids.length} variables` };
  };
  return {
    name: "variables",
    around: "hooks",
    enter() {
      const before = observe();
      return {
        before: before?.summary ?? null,
        leave() {
          const after = observe();
          if (before && after && after.numTensors < before.numTensors) markDisposed(after);
          if (!before || !after)
            return unobserved("variables", "neither the model nor the optimizer lists its variables");
          const changed = assigned(before, after);
          if (changed.length === 0 && before.trainable !== after.trainable) {
            const count = ({ summary, trainable }: Watched) => `${summary}, ${trainable} of them trainable`;
            return { part: "variables", before: count(before), after: count(after), intact: false };
          }
          if (changed.length === 0) {
            const note = "the model does not list its weights: only optimizer slots were looked at";
            return lm.weights
              ? { part: "variables", before: before.summary, after: after.summary, intact: true }
              : { part: "variables", before: before.summary, after: after.summary, intact: null, note };
          }
          const names = changed.length > 5 ? `${changed.slice(0, 5).join(", ")}, …` : changed.join(", ");
          return {
            part: "variables",
            before: before.summary,
            after: `${after.summary}, ${changed.length} of them ${after.ids.includes(disposed) ? "assigned or disposed" : "assigned"}: ${names}`,
            intact: false,
          };
        },
      };
    },
  };
}

/** Stands for the data of a disposed tensor. */
const disposed = {};

/** `tf.disposeVariables` frees the data of a variable but does not mark it as disposed. */
const isDisposed = (tensor: tf.Tensor): boolean =>
  tensor.isDisposed || !tf.engine().state.tensorInfo.has(tensor.dataId);

function markDisposed({ weights, slots, ids }: Watched): void {
  for (const [i, { read }] of [...weights, ...slots].entries()) if (isDisposed(read())) ids[i] = disposed;
}

interface Watched {
  readonly weights: readonly NamedWeight[];
  readonly slots: readonly NamedWeight[];
  /** Data ids of the weights, then of the slots. */
  readonly ids: object[];
  readonly numTensors: number;
  /** How many weights an optimizer changes. */
  readonly trainable: number;
  readonly summary: string;
}

/** Returns the names of variables with other data than before. Reads names only if data ids differ. */
function assigned(before: Watched, after: Watched): string[] {
  const isSame = before.ids.length === after.ids.length && before.ids.every((id, i) => id === after.ids[i]);
  if (isSame) return [];
  const byName = ({ weights, slots, ids }: Watched) => {
    const names = [...weights.map(({ name }) => name), ...slots.map(({ name }) => `optimizer ${name}`)];
    return new Map(names.map((name, i) => [name, ids[i]]));
  };
  const [old, now] = [byName(before), byName(after)];
  return [...new Set([...old.keys(), ...now.keys()])].filter((name) => old.get(name) !== now.get(name));
}

/**
 * Observes `CausalLM.modes`, the backend, and the numbers of the optimizer. The evidence contains the lines that changed, or the
 * number of lines.
 */
function modeGuard(lm: CausalLM, optimizer: tf.Optimizer | HasSlots | undefined): Guard {
  const numbersNow = () => (optimizer === undefined ? none : optimizerNumbers(optimizer));
  return {
    name: "mode",
    around: "hooks",
    enter() {
      const before = lm.modes?.() ?? null;
      const [backend, numbers] = [tf.getBackend(), numbersNow()];
      const summary = before === null ? null : summaryOf(before);
      return {
        before: summary,
        leave() {
          const after = lm.modes?.() ?? null;
          const [backendNow, now] = [tf.getBackend(), numbersNow()];
          if (backend !== backendNow || !areEqual(numbers, now)) {
            const changed = changedLines(settingLines(backend, numbers), settingLines(backendNow, now));
            return { part: "mode", ...changed, intact: false };
          }
          if (before === null || after === null)
            return unobserved("mode", "the model does not tell its modes");
          if (before === after) return { part: "mode", before: summary, after: summary, intact: true };
          return { part: "mode", ...changedLines(before, after), intact: false };
        },
      };
    },
  };
}

type Numbers = ReturnType<typeof optimizerNumbers>;
const none: Numbers = [];

function areEqual(before: Numbers, now: Numbers): boolean {
  if (before.length !== now.length) return false;
  for (let i = 0; i < now.length; i++) if (!Object.is(before[i]![1], now[i]![1])) return false;
  return true;
}

const settingLines = (backend: string, numbers: Numbers): string =>
  [`backend=${backend}`, ...numbers.map(([name, value]) => `${name}=${value}`)].join("\n");

function changedLines(before: string, after: string): { readonly before: string; readonly after: string } {
  const [old, now] = [before.split("\n"), after.split("\n")];
  return {
    before: old.filter((line) => !now.includes(line)).join("; "),
    after: now.filter((line) => !old.includes(line)).join("; "),
  };
}

function summaryOf(modes: string): string {
  return modes.includes("\n") ? `${modes.split("\n").length} lines ${hashText(modes)}` : modes;
}

function weightsGuard(lm: CausalLM, { fingerprint }: TfjsGuardsOptions): Guard {
  return comparing(
    "weights",
    async () =>
      lm.weights ? fingerprintWeights(lm.weights(), fingerprint && { method: fingerprint }) : null,
    () => (lm.weights ? null : "the model does not list its weights"),
  );
}

function optimizerGuard(optimizer: tf.Optimizer | HasSlots, { fingerprint }: TfjsGuardsOptions): Guard {
  return comparing(
    "optimizer",
    async () => {
      const { slots, numbers } = optimizerState(optimizer);
      const settings = numbers.map(([name, value]) => `${name}=${value}`);
      const digest = await fingerprintWeights(slots, fingerprint && { method: fingerprint });
      return [digest, `slots=${slots.length}`, ...settings].join(" ");
    },
    () => (optimizerState(optimizer).isComplete ? null : "the optimizer shows no slots: give it slots()"),
  );
}

/** The innermost guard, so that all others observe training mode, and only this one sees a mode that a measurement left. */
function evaluationModeGuard(lm: CausalLM, enterEval: () => () => void): Guard {
  const part = "evaluation-mode";
  const observe = () => lm.modes?.() ?? "";
  return {
    name: part,
    enter() {
      const training = observe();
      const restore = enterEval();
      const entered = observe();
      return {
        before: "entered",
        leave() {
          const left = observe();
          restore();
          if (left === entered) return { part, before: "entered", after: "restored", intact: true };
          const changed = { part, ...changedLines(entered, left), intact: false };
          // Restoring failed: the guard `mode` reports the change too.
          if (observe() !== training) return changed;
          const note = "left so by what was measured; training's own mode was restored";
          return { ...changed, advisory: true, note };
        },
      };
    },
  };
}

/**
 * Returns a guard that compares an observation before and after. Nothing runs between two measurements of a window, so the
 * observation after one serves as the observation before the next.
 *
 * @param observe Returns the state, or null if there is nothing to observe.
 * @param gap Returns why a change could have gone unnoticed, or null.
 */
function comparing(name: string, observe: () => Promise<string | null>, gap: () => string | null): Guard {
  return {
    name,
    async enter({ justLeft }) {
      const before = justLeft?.after ?? (await observe());
      return {
        before,
        async leave() {
          const after = await observe();
          const isApproximate = after?.startsWith("approximate:") === true;
          const how = isApproximate ? { note: "reductions on the device: see fingerprintWeights" } : {};
          if (before !== after) return { part: name, before, after, intact: false, ...how };
          const missing = gap();
          return missing === null
            ? { part: name, before, after, intact: true, ...how }
            : { part: name, before, after, intact: null, note: missing };
        },
      };
    },
  };
}

const unobserved = (part: string, note: string) => ({ part, before: null, after: null, intact: null, note });
