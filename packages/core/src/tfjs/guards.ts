import * as tf from "@tensorflow/tfjs-core";
import { checkKeys } from "../internal/check-keys.ts";
import type { Guard } from "../contracts/guard.ts";
import { hashText } from "../random/hash.ts";
import type { CausalLM, NamedWeight } from "./causal-lm.ts";
import { checkFingerprint, type FingerprintOptions, fingerprintWeights } from "./fingerprint.ts";
import { type HasSlots, optimizerState } from "./optimizer-slots.ts";

export interface TfjsGuardsOptions {
  /** How the guards `weights` and `optimizer` look; see `fingerprintWeights`. */
  readonly fingerprint?: FingerprintOptions["method"];
}

/**
 * What keeps a window from disturbing training, outermost first:
 *
 * | guard | around | sees |
 * |---|---|---|
 * | `tensors` | hooks, windows | `tf.memory().numTensors` (advisory) |
 * | `variables` | hooks, windows | weights or optimizer slots that were assigned, whatever the value |
 * | `mode` | hooks, windows | a layer left in another mode |
 * | `weights` | windows | any changed weight, by fingerprint |
 * | `optimizer` | windows | any changed slot, counter or setting, by fingerprint |
 * | `evaluation-mode` | windows | a mode that a measurement left behind, as `modes` tells it (advisory: it is undone) |
 *
 * `evaluation-mode` leaves training mode and restores it. Guards hold no tensors. What none of them sees: a hook (not a
 * window) that writes into a weight's buffer in place, which tfjs has no call for. A guard that sees a part only reports a
 * change it saw, and `null` where it saw none.
 *
 * @throws PeriodicEvalError `config` for an unknown option or fingerprint.
 */
export function tfjsGuards(
  lm: CausalLM,
  optimizer?: tf.Optimizer | HasSlots,
  options: TfjsGuardsOptions = {},
): Guard[] {
  checkKeys("tfjsGuards", options, ["fingerprint"]);
  if (options.fingerprint !== undefined) checkFingerprint("tfjsGuards fingerprint", options.fingerprint);
  const guards = [tensorsGuard(), variablesGuard(lm, optimizer), modeGuard(lm), weightsGuard(lm, options)];
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
    // Without a promise: round hooks it must not cost a turn of the event loop.
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

/** `Variable.assign` takes over the new value's data, so a changed data id tells of an assignment in microseconds. */
function variablesGuard(lm: CausalLM, optimizer: tf.Optimizer | HasSlots | undefined): Guard {
  const look = (): Watched | null => {
    const weights = lm.weights?.() ?? [];
    const slots = optimizer ? optimizerState(optimizer).slots : [];
    if (!lm.weights && slots.length === 0) return null;
    const ids: object[] = [];
    for (const { read } of weights) ids.push(read().dataId);
    for (const { read } of slots) ids.push(read().dataId);
    return { weights, slots, ids, told: `${ids.length} variables` };
  };
  return {
    name: "variables",
    around: "hooks",
    enter() {
      const before = look();
      return {
        before: before?.told ?? null,
        leave() {
          const after = look();
          if (!before || !after)
            return unobserved("variables", "neither the model nor the optimizer lists its variables");
          const changed = assigned(before, after);
          if (changed.length === 0) {
            const note = "the model does not list its weights: only optimizer slots were looked at";
            return lm.weights
              ? { part: "variables", before: before.told, after: after.told, intact: true }
              : { part: "variables", before: before.told, after: after.told, intact: null, note };
          }
          const names = changed.length > 5 ? `${changed.slice(0, 5).join(", ")}, …` : changed.join(", ");
          return {
            part: "variables",
            before: before.told,
            after: `${after.told}, ${changed.length} of them assigned: ${names}`,
            intact: false,
          };
        },
      };
    },
  };
}

interface Watched {
  readonly weights: readonly NamedWeight[];
  readonly slots: readonly NamedWeight[];
  /** Data ids of the weights, then of the slots. */
  readonly ids: readonly object[];
  /** How many, for people. */
  readonly told: string;
}

/** Names of what holds other data than before. Names are looked at only where the data ids differ. */
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

/** One line per thing that has a mode; evidence holds the lines that changed, or how many there are. */
function modeGuard(lm: CausalLM): Guard {
  return {
    name: "mode",
    around: "hooks",
    enter() {
      const before = lm.modes?.() ?? null;
      const told = before === null ? null : summaryOf(before);
      return {
        before: told,
        leave() {
          const after = lm.modes?.() ?? null;
          if (before === null || after === null)
            return unobserved("mode", "the model does not tell its modes");
          if (before === after) return { part: "mode", before: told, after: told, intact: true };
          return { part: "mode", ...changedLines(before, after), intact: false };
        },
      };
    },
  };
}

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
  return observing(
    "weights",
    async () =>
      lm.weights ? fingerprintWeights(lm.weights(), fingerprint && { method: fingerprint }) : null,
    () => (lm.weights ? null : "the model does not list its weights"),
  );
}

function optimizerGuard(optimizer: tf.Optimizer | HasSlots, { fingerprint }: TfjsGuardsOptions): Guard {
  return observing(
    "optimizer",
    async () => {
      const { slots, numbers } = optimizerState(optimizer);
      const told = numbers.map(([name, value]) => `${name}=${value}`);
      const seen = await fingerprintWeights(slots, fingerprint && { method: fingerprint });
      return [seen, `slots=${slots.length}`, ...told].join(" ");
    },
    () => (optimizerState(optimizer).isWhole ? null : "the optimizer shows no slots: give it slots()"),
  );
}

/** Innermost, so that all other guards look at training's own mode: what a measurement leaves shows in here alone. */
function evaluationModeGuard(lm: CausalLM, enterEval: () => () => void): Guard {
  const part = "evaluation-mode";
  const look = () => lm.modes?.() ?? "";
  return {
    name: part,
    enter() {
      const training = look();
      const restore = enterEval();
      const entered = look();
      return {
        before: "entered",
        leave() {
          const left = look();
          restore();
          if (left === entered) return { part, before: "entered", after: "restored", intact: true };
          const changed = { part, ...changedLines(entered, left), intact: false };
          // Else the guard `mode` sees as well what is not as it was.
          if (look() !== training) return changed;
          const note = "left so by what was measured; training's own mode was restored";
          return { ...changed, advisory: true, note };
        },
      };
    },
  };
}

/**
 * A guard that looks at the same thing twice; null: there is nothing to look at. Between two measurements of a window
 * nothing else runs, so what it saw last is what stands before the next.
 *
 * @param gap why a change could have escaped it; null where none could
 */
function observing(name: string, look: () => Promise<string | null>, gap: () => string | null): Guard {
  return {
    name,
    async enter({ justLeft }) {
      const before = justLeft?.after ?? (await look());
      return {
        before,
        async leave() {
          const after = await look();
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
