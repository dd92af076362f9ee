import { createRequire } from "node:module";

export type Engine = "cpu" | "wasm" | "tfjs-node";

/** Whether an engine is installed. The native one is an optional peer dependency. */
export function isThere(engine: Engine): boolean {
  try {
    const name = { cpu: "tfjs-backend-cpu", wasm: "tfjs-backend-wasm", "tfjs-node": "tfjs-node" }[engine];
    createRequire(import.meta.url).resolve(`@tensorflow/${name}`);
    return true;
  } catch {
    return false;
  }
}
