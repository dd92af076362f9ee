import util from "node:util";
import { commandHere, importOptional, type Engine } from "./engine.ts";

/** Native TensorFlow on the processor. */
export const tfjsNode: Engine = {
  ...native("tfjs-node", "@tensorflow/tfjs-node"),
  ...commandHere("native"),
};

/** An engine of TensorFlow's C library. */
export function native(name: string, packageName: string): Engine {
  return {
    name,
    backend: "tensorflow",
    packages: [packageName],
    async load() {
      // Its C++ side writes to standard error on every start.
      process.env["TF_CPP_MIN_LOG_LEVEL"] ??= "3";
      // Removed from Node 23, still called by tfjs-node 4.22 (tensorflow/tfjs#8609).
      const old = util as { isNullOrUndefined?: (value: unknown) => boolean };
      old.isNullOrUndefined ??= (value) => value === null || value === undefined;
      await importOptional(packageName);
    },
  };
}
