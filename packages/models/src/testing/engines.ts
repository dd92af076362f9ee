import { createRequire } from "node:module";

/** The engines of the parity suites: those that this package installs, and tfjs-node if it is installed. */
export const testedEngines: readonly string[] = ["wasm", "cpu", ...(isInstalled() ? ["tfjs-node"] : [])];

function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve("@tensorflow/tfjs-node");
    return true;
  } catch {
    return false;
  }
}
