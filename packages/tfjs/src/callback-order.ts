import { configError, isRecord } from "@periodic-eval/contracts/options";

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
