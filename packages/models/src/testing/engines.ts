import { createRequire } from "node:module";

/** The engines that parity suites run on: those that come with this package, and the native one where it is installed. */
export const testedEngines: readonly string[] = ["wasm", "cpu", ...(isInstalled() ? ["tfjs-node"] : [])];

function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve("@tensorflow/tfjs-node");
    return true;
  } catch {
    return false;
  }
}
