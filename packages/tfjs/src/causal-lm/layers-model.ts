import * as tf from "@tensorflow/tfjs-core";
import * as z from "zod";
import { PeriodicEvalError } from "@periodic-eval/core";
import { configError, isRecord, parseOptions, positiveInteger } from "@periodic-eval/contracts/options";
import type { CausalLM } from "./causal-lm.ts";

/** The used part of `tf.Sequential` or a functional `tf.LayersModel`; avoids a dependency on the layers library. */
export interface LayersModel {
  readonly inputs: readonly { readonly shape: Shape }[];
  readonly outputs: readonly { readonly shape: Shape; readonly sourceLayer: object }[];
  readonly layers: readonly Layer[];
  /** `read` returns the live variable. The layers library calls this type `LayerVariable`. */
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
  /** Longest sequence in tokens. Default: the length in the input's shape, if it is fixed. */
  readonly contextLength?: number;
}

const optionsSchema = z.strictObject({
  contextLength: positiveInteger.optional(),
} satisfies Record<keyof LayersModelOptions, z.ZodType>);

/**
 * Wraps a model of the layers API that maps ids [B, T] to logits [B, T, V] or to probabilities. If the last activation is a
 * softmax, as `categoricalCrossentropy` requires, the logits are the logarithms of its output (at least log 1e-38).
 *
 * The model must be causal: its output at a position must not depend on later positions, because rows are padded on the right.
 * `predict` never applies dropout, so the model has no training mode to leave; `modes` reports each layer's `trainable` flag and
 * dropout rates, which a callback could change. Its `fit` and `fitDataset` then call `tf.Callback`s before `fitCallbacks`.
 *
 * @throws PeriodicEvalError `model` for other shapes, for several inputs or outputs, and for stateful layers, whose state a
 *   measurement would change; `config` for a wrong option or an unknown context length.
 */
export function fromLayersModel(model: LayersModel, options: LayersModelOptions = {}): CausalLM {
  parseOptions("fromLayersModel options", optionsSchema, options);
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
    throw unsupported(
      `inputs ${shapes(model.inputs)} and outputs ${shapes(model.outputs)}`,
      "ids [batch, tokens] → logits [batch, tokens, vocabulary]",
      "Wrap the language model in a model with these shapes.",
    );
  }
  const stateful = model.layers.find((layer) => layer.stateful);
  if (stateful) {
    throw unsupported(
      `the stateful layer ${stateful.name}`,
      "layers without state between calls",
      "Build it with stateful: false, because measurements would change the state that training continues from.",
    );
  }
  const fixedLength = input.shape[1] ?? null;
  const contextLength = options.contextLength ?? fixedLength;
  if (contextLength === null) {
    throw configError({
      where: "fromLayersModel options",
      path: ["contextLength"],
      got: "undefined, for an input shape without a length",
      expected: "the longest sequence in tokens",
      fix: "Pass { contextLength }, a positive integer.",
    });
  }
  if (fixedLength !== null && contextLength > fixedLength) {
    throw configError({
      where: "fromLayersModel options",
      path: ["contextLength"],
      value: contextLength,
      expected: `at most ${fixedLength}, the length of the model's input`,
      fix: "Remove it, or give the first layer the inputShape [null].",
    });
  }
  orderCallbacks(model);
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

/** Numbers of a layer that have an effect in training only. */
const trainingFields = ["rate", "dropout", "recurrentDropout", "stddev"] as const;

function modeLine(layer: Layer): string {
  // Recurrent layers have their dropout in a cell, wrappers (TimeDistributed, Bidirectional) in the wrapped layer.
  const holders = [layer, ...["cell", "layer"].map((part) => fieldsOf(layer)[part])].map(fieldsOf);
  const fields = trainingFields.flatMap((field) => {
    const value = holders
      .map((holder) => holder[field])
      .find((candidate): candidate is number => typeof candidate === "number");
    return value === undefined ? [] : [`${field}=${value}`];
  });
  return [layer.name, `trainable=${layer.trainable}`, ...fields].join(" ");
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});

/** Whether the output is a softmax. `sourceLayer` may be a wrapper (TimeDistributed) around the layer that computes it. */
function endsInSoftmax(sourceLayer: object): boolean {
  const layer = ("layer" in sourceLayer ? sourceLayer.layer : sourceLayer) as {
    readonly activation?: { getClassName?(): string };
    getClassName?(): string;
  };
  return layer.getClassName?.() === "Softmax" || layer.activation?.getClassName?.() === "softmax";
}

const shapes = (tensors: readonly { readonly shape: Shape }[]): string =>
  tensors.map(({ shape }) => `[${shape.map((size) => size ?? "?").join(", ")}]`).join(" ");

function unsupported(got: string, expected: string, fix: string): PeriodicEvalError {
  return new PeriodicEvalError({ code: "model", where: "fromLayersModel", got, expected, fix });
}

/** The callbacks that `fitCallbacks` returned. */
const fitCallbackObjects = new WeakSet<object>();
const orderedModels = new WeakSet<object>();

/** Marks callbacks that stand behind the `tf.Callback`s of their array. */
export function standsBehindCallbacks(callbacks: object): void {
  fitCallbackObjects.add(callbacks);
}

/**
 * Makes `fit` and `fitDataset` of a layers model move the callbacks of `fitCallbacks` behind the `tf.Callback`s of their array:
 * the layers library treats an array as its first element, and takes the functions of a `tf.Callback` behind a plain object
 * from their object, where they fail. Calls without `fitCallbacks` pass unchanged.
 *
 * `model.fit(x, y, { callbacks: [fitCallbacks(…)] })` looks `fit` up before `fitCallbacks` runs. `fromLayersModel` therefore
 * calls this first, and of a `tf.Sequential` the functions of its inner model change, which are looked up last.
 */
export function orderCallbacks(model: object): void {
  const inner = "model" in model && isRecord(model.model) ? model.model : model;
  if (orderedModels.has(inner)) return;
  orderedModels.add(inner);
  const methods = inner as Record<string, unknown>;
  for (const name of ["fit", "fitDataset"]) {
    const fit = methods[name];
    if (typeof fit === "function")
      methods[name] = (...args: readonly unknown[]): unknown => fit.apply(inner, args.map(inOrder));
  }
}

/** Returns the argument of `fit` that holds callbacks with an array in order, and any other argument as it is. */
function inOrder(argument: unknown): unknown {
  if (!isRecord(argument) || !Array.isArray(argument["callbacks"])) return argument;
  const list: readonly unknown[] = argument["callbacks"];
  const ours = list.filter((callback) => isRecord(callback) && fitCallbackObjects.has(callback));
  const theirs = list.filter((callback) => !ours.includes(callback));
  if (ours.length === 0 || !theirs.some(isCallback)) return argument;
  if (!theirs.every(isCallback))
    throw configError({
      where: "model.fit options",
      path: ["callbacks"],
      got: "an array with a plain object beside fitCallbacks and a tf.Callback",
      expected: "tf.Callbacks beside fitCallbacks: TensorFlow.js calls all elements like the first one",
      fix: "Wrap the plain object: new tf.CustomCallback({ onEpochEnd: … }).",
    });
  return { ...argument, callbacks: [...theirs, ...ours] };
}

const isCallback = (value: unknown): boolean => isRecord(value) && typeof value["setModel"] === "function";
