import * as tf from "@tensorflow/tfjs-core";
import { checkKeys } from "../internal/check-keys.ts";
import { quoteValue } from "../internal/quote-value.ts";
import { PeriodicEvalError } from "../errors.ts";
import { isCount } from "../internal/is-count.ts";
import type { CausalLM } from "./causal-lm.ts";

/** What is needed of a `tf.Sequential` or functional `tf.LayersModel`, without the layers library at run time. */
export interface LayersModel {
  readonly inputs: readonly { readonly shape: Shape }[];
  readonly outputs: readonly { readonly shape: Shape; readonly sourceLayer: object }[];
  readonly layers: readonly Layer[];
  /** Each reads as the live variable; layers' own typings name it `LayerVariable`. */
  readonly weights: readonly { readonly name: string; read(): tf.Tensor }[];
  predict(x: tf.Tensor, args?: { batchSize?: number }): tf.Tensor | tf.Tensor[];
}

interface Layer {
  readonly name: string;
  readonly trainable: boolean;
  readonly stateful: boolean;
}

type Shape = readonly (number | null)[];

export interface LayersModelOptions {
  /** Longest sequence in tokens; taken from the input's shape where it is fixed there. */
  readonly contextLength?: number;
}

/**
 * A model of the layers API that maps ids [B, T] to logits [B, T, V], or to probabilities: where the last activation is a
 * softmax, as `categoricalCrossentropy` wants it, the logits are the logarithms of its output (no less than 1e-38).
 *
 * It must be causal: its output at a position must not depend on later ones, because rows are padded on the right.
 * `predict` runs without dropout whatever training does, so there is no mode to leave; `modes` tells each layer's
 * `trainable` and dropout rates, which a callback could leave changed.
 *
 * @throws PeriodicEvalError `model` for other shapes, for several inputs or outputs, and for stateful layers, whose state
 *   measuring would change; `config` for an unknown option, and where the context length is not known or no length.
 */
export function fromLayersModel(model: LayersModel, options: LayersModelOptions = {}): CausalLM {
  checkKeys("fromLayersModel", options, ["contextLength"]);
  const [input, output] = [model.inputs[0], model.outputs[0]];
  const vocabSize = output?.shape[2];
  if (
    !input ||
    !output ||
    model.inputs.length > 1 ||
    model.outputs.length > 1 ||
    input.shape.length !== 2 ||
    output.shape.length !== 3 ||
    !vocabSize
  ) {
    throw refused(
      `inputs ${shapes(model.inputs)} and outputs ${shapes(model.outputs)}`,
      "ids [batch, tokens] → logits [batch, tokens, vocabulary]",
      "Wrap the language model in a model of these shapes.",
    );
  }
  const stateful = model.layers.find((layer) => layer.stateful);
  if (stateful) {
    throw refused(
      `the stateful layer ${stateful.name}`,
      "layers without state between calls",
      "Build it with stateful: false; measuring would change the state that training goes on from.",
    );
  }
  const fixedLength = input.shape[1] ?? null;
  const contextLength = options.contextLength ?? fixedLength;
  if (!isCount(contextLength, 1)) {
    throw new PeriodicEvalError({
      code: "config",
      where: "fromLayersModel contextLength",
      got:
        contextLength === null ? "nothing, and an input shape without a length" : quoteValue(contextLength),
      expected: "the longest sequence in tokens",
      fix: "Pass { contextLength }, a whole number.",
    });
  }
  const givesProbabilities = endsInSoftmax(output.sourceLayer);
  return {
    vocabSize,
    contextLength,
    ...(fixedLength !== null && { fixedLength }),
    logits: (ids) =>
      tf.tidy(() => {
        const values = model.predict(ids, { batchSize: ids.shape[0] }) as tf.Tensor3D;
        return givesProbabilities ? tf.log(tf.maximum(values, 1e-38)) : values;
      }),
    modes: () => model.layers.map(modeLine).join("\n"),
    weights: () => model.weights.map((weight) => ({ name: weight.name, read: () => weight.read() })),
  };
}

/** Numbers and flags of a layer that act in training only. */
const trainingFields = ["rate", "dropout", "recurrentDropout", "stddev"] as const;

function modeLine(layer: Layer): string {
  // Recurrent layers keep their dropout in a cell, wrappers (TimeDistributed, Bidirectional) in the layer they wrap.
  const holders = [layer, ...["cell", "layer"].map((part) => fieldsOf(layer)[part])].map(fieldsOf);
  const fields = trainingFields.flatMap((field) => {
    const value = holders
      .map((holder) => holder[field])
      .find((candidate): candidate is number => typeof candidate === "number");
    return value === undefined ? [] : [`${field}=${value}`];
  });
  return [layer.name, `trainable=${layer.trainable}`, ...fields].join(" ");
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

/** `sourceLayer` may be a wrapper (TimeDistributed), which holds the layer that acts. */
function endsInSoftmax(sourceLayer: object): boolean {
  const layer = ("layer" in sourceLayer ? sourceLayer.layer : sourceLayer) as {
    readonly activation?: { getClassName?(): string };
    getClassName?(): string;
  };
  return layer.getClassName?.() === "Softmax" || layer.activation?.getClassName?.() === "softmax";
}

const shapes = (tensors: readonly { readonly shape: Shape }[]): string =>
  tensors.map(({ shape }) => `[${shape.map((size) => size ?? "?").join(", ")}]`).join(" ");

function refused(got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "model", where: "fromLayersModel", got, expected, fix });
}
