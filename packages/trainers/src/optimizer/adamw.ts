import * as tf from "@tensorflow/tfjs-core";
import * as z from "zod";
import { parseOptions } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { adamWKernel, FusedCall, weightName, type NamedWeight } from "@periodic-eval/tfjs";

/** Computes gradient norms. On backends that run graphs, each norm is one call of a graph that is kept until `dispose`. */
export class GradientNorm {
  readonly #call = new FusedCall("The norm of gradients", (gradients) => [
    tf.sqrt(tf.sum(tf.stack(gradients.map((gradient) => tf.tidy(() => tf.sum(tf.square(gradient))))))),
  ]);

  /** Returns √ Σ ‖gradient‖², the norm of all gradients as one vector; null if there are none. */
  async of(gradients: readonly tf.Tensor[]): Promise<number | null> {
    if (gradients.length === 0) return null;
    const norm = tf.tidy(() => this.#call.call(gradients)[0]!);
    try {
      return (await norm.data<"float32">())[0] ?? null;
    } finally {
      norm.dispose();
    }
  }

  dispose(): void {
    this.#call.dispose();
  }
}

/**
 * Returns the factor that scales gradients of this norm to at most `maxNorm`, as `torch.nn.utils.clip_grad_norm_` (2.13):
 * min(1, maxNorm / (norm + 1e-6)). 1 if `maxNorm` is null (no clipping).
 */
export const clipFactor = (norm: number, maxNorm: number | null): number =>
  maxNorm === null ? 1 : Math.min(1, maxNorm / (norm + 1e-6));

export interface AdamWOptions {
  /** Decay rates of the running means of the gradient and its square. Default [0.9, 0.999]. */
  readonly betas?: readonly [number, number];
  /** Added to the square root of the second moment. Default 1e-8. */
  readonly epsilon?: number;
  /** Decoupled weight decay: each update first multiplies a decayed weight by `1 − learningRate · weightDecay`. Default 0.01. */
  readonly weightDecay?: number;
  /** Which weights decay: `all`, as in torch by default, or `no-norms`, all but norms and biases. Default `all`. */
  readonly decay?: "all" | "no-norms";
}

export const beta = z.number("a number in [0, 1)").min(0, "a number in [0, 1)").lt(1, "a number in [0, 1)");
const adamWSchema = z.strictObject({
  betas: z.tuple([beta, beta], "two numbers in [0, 1)").default([0.9, 0.999]),
  epsilon: z.number().positive().default(1e-8),
  weightDecay: z.number().nonnegative().default(0.01),
  decay: z.enum(["all", "no-norms"]).default("all"),
} satisfies Record<keyof AdamWOptions, z.ZodType>);

/** Names of weights that transformers' Trainer excludes from weight decay (`get_decay_parameter_names`, 5.23.0). */
const normOrBias = /bias|layernorm|rmsnorm|(?:^|\.)norm(?:$|\.)|_norm(?:$|\.)/i;

/** Whether `decay: "no-norms"` decays the weight with this name. */
export const isDecayedWithoutNorms = (name: string): boolean => !normOrBias.test(name);

interface Slot {
  readonly variable: tf.Variable;
  /** The name in checkpoints. */
  readonly name: string;
  readonly isDecayed: boolean;
  expAvg: tf.Tensor;
  expAvgSq: tf.Tensor;
}

/**
 * AdamW (Loshchilov and Hutter 2019), with the bias correction of `torch.optim.AdamW` (2.13).
 *
 * The two bias corrections are folded into one step size and epsilon:
 * `m/c₁ / (√v/√c₂ + ε) = (√c₂/c₁) · m / (√v + ε√c₂)`, c = 1 − βᵗ, which saves two passes over every weight.
 * A backend with `adamWKernel` (wasm, native TensorFlow on a CPU) updates each weight in one pass, with the bits of the operations.
 * Otherwise a backend that runs graphs updates a group of weights in one call, and others run the operations.
 */
export class AdamW implements Optimizer {
  readonly #slots: readonly Slot[];
  /** Computed once, because guards read it around every hook. */
  readonly #listed: readonly NamedWeight[];
  readonly #calls = new Map<string, FusedCall>();
  readonly #betas: readonly [number, number];
  readonly #epsilon: number;
  readonly #weightDecay: number;
  #steps = 0;

  /** @throws PeriodicEvalError `config` for an unknown or invalid option. */
  constructor(variables: readonly tf.Variable[], options: AdamWOptions = {}) {
    const { betas, epsilon, weightDecay, decay } = parseOptions("AdamW options", adamWSchema, options);
    this.#betas = betas;
    this.#epsilon = epsilon;
    this.#weightDecay = weightDecay;
    this.#slots = variables.map((variable) => ({
      variable,
      name: weightName(variable),
      isDecayed: weightDecay !== 0 && (decay === "all" || isDecayedWithoutNorms(weightName(variable))),
      expAvg: tf.keep(tf.zeros(variable.shape)),
      expAvgSq: tf.keep(tf.zeros(variable.shape)),
    }));
    this.#listed = this.#slots.flatMap((slot) => [
      { name: `${slot.name}.exp_avg`, read: () => slot.expAvg },
      { name: `${slot.name}.exp_avg_sq`, read: () => slot.expAvgSq },
    ]);
  }

  get steps(): number {
    return this.#steps;
  }

  apply(gradients: Readonly<Record<string, tf.Tensor>>, learningRate: number, gradientScale = 1): void {
    const [beta1, beta2] = this.#betas;
    this.#steps += 1;
    const correction1 = 1 - beta1 ** this.#steps;
    const rootCorrection2 = Math.sqrt(1 - beta2 ** this.#steps);
    const numbers = [
      beta1,
      (1 - beta1) * gradientScale,
      beta2,
      (1 - beta2) * gradientScale ** 2,
      this.#epsilon * rootCorrection2,
      (learningRate * rootCorrection2) / correction1,
      1 - learningRate * this.#weightDecay,
    ];
    const moved = this.#slots.filter(({ variable }) => gradients[variable.name] !== undefined);
    const hasKernel = tf.getKernel(adamWKernel, tf.getBackend()) !== undefined;
    tf.tidy(() => {
      const scalars = numbers.map((number) => tf.scalar(number));
      for (const group of inGroups(moved)) {
        tf.tidy(() => {
          const inputs = group.map((slot): UpdateInputs => {
            return [gradients[slot.variable.name]!, slot.variable, slot.expAvg, slot.expAvgSq];
          });
          const outputs = hasKernel
            ? group.flatMap((slot, i) => {
                const ofSlot = inputs[i]!;
                const byKernel = updatedByKernel(ofSlot, numbers, slot.isDecayed);
                return byKernel ?? updated([...scalars, ...ofSlot], [slot]);
              })
            : this.#callOf(group).call([...scalars, ...inputs.flat()]);
          for (const [i, slot] of group.entries()) {
            slot.variable.assign(outputs[3 * i]!);
            replace(slot, outputs[3 * i + 1]!, outputs[3 * i + 2]!);
          }
        });
      }
    });
  }

  #callOf(group: readonly Slot[]): FusedCall {
    const key = group.map((slot) => this.#slots.indexOf(slot)).join();
    let call = this.#calls.get(key);
    if (call === undefined) {
      call = new FusedCall("Updating weights", (inputs) => updated(inputs, group));
      this.#calls.set(key, call);
    }
    return call;
  }

  /** Returns two slots per variable, `<weight>.exp_avg` and `<weight>.exp_avg_sq`, in the order of the variables. */
  slots(): readonly NamedWeight[] {
    return this.#listed;
  }

  restore(steps: number, values: ReadonlyMap<string, Float32Array>): void {
    const read = (name: string, size: number): Float32Array => {
      const stored = values.get(name);
      if (stored?.length === size) return stored;
      throw new PeriodicEvalError({
        code: "model",
        where: `optimizer slot ${name}`,
        got: stored === undefined ? "no such slot" : `${stored.length} values`,
        expected: `${size} values`,
        fix: "Resume with the model and the optimizer that wrote the checkpoint.",
      });
    };
    const restored = this.#slots.map(({ name, variable: { size } }) => ({
      expAvg: read(`${name}.exp_avg`, size),
      expAvgSq: read(`${name}.exp_avg_sq`, size),
    }));
    for (const [i, { expAvg, expAvgSq }] of restored.entries()) {
      const slot = this.#slots[i]!;
      const { shape } = slot.variable;
      replace(slot, tf.tensor(expAvg, shape, "float32"), tf.tensor(expAvgSq, shape, "float32"));
    }
    this.#steps = steps;
  }

  dispose(): void {
    for (const { expAvg, expAvgSq } of this.#slots) tf.dispose([expAvg, expAvgSq]);
    for (const call of this.#calls.values()) call.dispose();
    this.#calls.clear();
  }
}

/** Weights that one call updates, 16 MB: old and new values exist at the same time. */
const groupSize = 2 ** 22;

function inGroups(slots: readonly Slot[]): Slot[][] {
  const groups: Slot[][] = [];
  let size = Infinity;
  for (const slot of slots) {
    size += slot.variable.size;
    if (size > groupSize) {
      groups.push([]);
      size = slot.variable.size;
    }
    groups.at(-1)!.push(slot);
  }
  return groups;
}

/**
 * Computes the new weight and both means of each slot.
 *
 * @param inputs Seven scalars, then gradient, weight, first and second mean of each slot.
 */
function updated(inputs: readonly tf.Tensor[], group: readonly Slot[]): tf.Tensor[] {
  const [keep1, take1, keep2, take2, epsilon, stepSize, decay] = inputs as [
    ...[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor],
  ];
  return group.flatMap(({ isDecayed }, i) =>
    tf.tidy(() => {
      const [gradient, weight, mean, meanSq] = inputs.slice(7 + 4 * i) as [
        ...[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor],
      ];
      const expAvg = tf.add(tf.mul(mean, keep1), tf.mul(gradient, take1));
      const expAvgSq = tf.add(tf.mul(meanSq, keep2), tf.mul(tf.square(gradient), take2));
      const change = tf.mul(tf.div(expAvg, tf.add(tf.sqrt(expAvgSq), epsilon)), stepSize);
      return [tf.sub(isDecayed ? tf.mul(weight, decay) : weight, change), expAvg, expAvgSq];
    }),
  );
}

type UpdateInputs = readonly [gradient: tf.Tensor, weight: tf.Tensor, mean: tf.Tensor, meanSq: tf.Tensor];

/** Computes `updated` of one slot with the backend's kernel; null for tensors that it does not process. */
function updatedByKernel(
  [gradient, weight, mean, meanSq]: UpdateInputs,
  numbers: readonly number[],
  isDecayed: boolean,
): tf.Tensor[] | null {
  const isSame = gradient.dtype === weight.dtype && tf.util.arraysEqual(gradient.shape, weight.shape);
  if (!isSame || weight.size < 4) return null;
  const attributes = { numbers: [...numbers.slice(0, -1), isDecayed ? numbers.at(-1)! : 1] };
  return tf.engine().runKernel(adamWKernel, { gradient, weight, mean, meanSq }, attributes) as tf.Tensor[];
}

function replace(slot: Slot, expAvg: tf.Tensor, expAvgSq: tf.Tensor): void {
  tf.dispose([slot.expAvg, slot.expAvgSq]);
  slot.expAvg = tf.keep(expAvg);
  slot.expAvgSq = tf.keep(expAvgSq);
}

/** Updates a model's variables from their gradients. Deterministic: the same calls give the same bits. */
export interface Optimizer {
  /** Completed updates. */
  readonly steps: number;
  /**
   * Applies one update. `gradients` are by variable name; a variable without a gradient is unchanged. Each gradient is first
   * multiplied by `gradientScale` (default 1), so that clipping and averaging need no pass of their own. The caller disposes
   * the gradients.
   */
  apply(gradients: Readonly<Record<string, tf.Tensor>>, learningRate: number, gradientScale?: number): void;
  /** Returns the whole state of the optimizer except `steps`. */
  slots(): readonly NamedWeight[];
  /**
   * Restores `steps` and the values of `slots()`, by slot name and row-major. Throws if a slot is missing or has another size.
   */
  restore(steps: number, values: ReadonlyMap<string, Float32Array>): void;
  dispose(): void;
}
