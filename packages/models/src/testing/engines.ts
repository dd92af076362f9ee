import { hasEngine } from "../backend/installed-engines.ts";

/** The native backend of the tests, the one that `useBackend` prefers: a process runs only one. */
export const nativeEngine = hasEngine("@tensorflow/tfjs-node-gpu") ? "tfjs-node-gpu" : "tfjs-node";

export const hasNative = hasEngine(`@tensorflow/${nativeEngine}`);

/** The backends of the parity suites: those that this package installs, and the native one if it is there. */
export const testedEngines: readonly string[] = ["wasm", "cpu", ...(hasNative ? [nativeEngine] : [])];

/** Whether a backend of the tests is built or installed. */
export const isThere = (engine: string): boolean => engine !== nativeEngine || hasNative;
