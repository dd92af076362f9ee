import { hasBackend } from "../backend/installed-backends.ts";

/** The native backend of the tests, the one that `useBackend` prefers: a process runs only one. */
export const nativeBackend = hasBackend("@tensorflow/tfjs-node-gpu") ? "tfjs-node-gpu" : "tfjs-node";

export const hasNative = hasBackend(`@tensorflow/${nativeBackend}`);

/** The backends of the parity suites: those that this package installs, and the native one if it is there. */
export const testedBackends: readonly string[] = ["wasm", "cpu", ...(hasNative ? [nativeBackend] : [])];

/** Whether a backend of the tests is built or installed. */
export const isThere = (name: string): boolean => name !== nativeBackend || hasNative;
