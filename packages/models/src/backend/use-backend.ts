import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys, errorMessage } from "@periodic-eval/core/internal";
import { cpu } from "./cpu.ts";
import { isMissing, type Engine } from "./engine.ts";
import { tfjsNodeGpu } from "./tfjs-node-gpu.ts";
import { tfjsNode } from "./tfjs-node.ts";
import { wasm } from "./wasm.ts";
import { webgpu } from "./webgpu.ts";

/** Fastest first. */
const engines: readonly Engine[] = [tfjsNodeGpu, tfjsNode, webgpu, wasm, cpu];

export interface BackendOptions {
  /** `tfjs-node-gpu`, `tfjs-node`, `webgpu`, `wasm` or `cpu`; else the environment's PERIODIC_EVAL_BACKEND. */
  readonly backend?: string;
}

export interface Backend {
  /** The engine in use, as `BackendOptions` names it. */
  readonly name: string;
  /** What `tf.getBackend()` now says. */
  readonly tfBackend: string;
  /** Engines that are installed and faster, and why they did not start. */
  readonly unusable: readonly { readonly name: string; readonly reason: string }[];
}

/**
 * Starts an engine and makes it TensorFlow.js' backend: the one asked for, or the fastest that is installed and starts.
 * Throws a `config` error where the one asked for is unknown, not installed or does not start.
 */
export async function useBackend(options: BackendOptions = {}): Promise<Backend> {
  checkKeys("useBackend", options, ["backend"]);
  const { backend } = options;
  const asked = backend ?? (process.env["PERIODIC_EVAL_BACKEND"] || undefined);
  if (asked !== undefined)
    return useAsked(asked, backend === undefined ? "PERIODIC_EVAL_BACKEND" : "backend");
  const unusable: { name: string; reason: string }[] = [];
  for (const engine of engines) {
    try {
      return await start(engine, false, unusable);
    } catch (error) {
      if (!isMissing(error)) unusable.push({ name: engine.name, reason: reasonOf(error) });
    }
  }
  throw notStarted(
    "useBackend",
    unusable.map(({ name, reason }) => `${name}: ${reason}`).join("; ") || "no engine",
  );
}

async function useAsked(asked: string, where: string): Promise<Backend> {
  const engine = engines.find(({ name }) => name === asked);
  if (engine === undefined) {
    const expected = engines.map(({ name }) => name).join(", ");
    const fix = "Name one of these, or leave it out for the fastest that is installed.";
    throw new PeriodicEvalError({ code: "config", where, got: asked, expected, fix });
  }
  try {
    return await start(engine, true, []);
  } catch (cause) {
    if (!isMissing(cause)) throw notStarted(`${where} ${asked}`, reasonOf(cause), engine, cause);
    throw new PeriodicEvalError({
      code: "config",
      where: `${where} ${asked}`,
      got: reasonOf(cause),
      expected: `the packages ${engine.packages.join(" and ")}`,
      fix: `Run \`${engine.command ?? `npm install ${engine.packages.join(" ")}`}\`, or choose another backend.`,
      cause,
    });
  }
}

async function start(engine: Engine, asked: boolean, unusable: Backend["unusable"]): Promise<Backend> {
  await engine.load(asked);
  if (!(await tf.setBackend(engine.backend))) throw new Error("the backend did not initialize");
  await tf.ready();
  return { name: engine.name, tfBackend: tf.getBackend(), unusable };
}

const reasonOf = (error: unknown): string => errorMessage(error).split("\n", 1)[0]!;

function notStarted(where: string, got: string, engine?: Engine, cause?: unknown): PeriodicEvalError {
  const { command, remedy = command === undefined ? "Reinstall its packages" : `Run \`${command}\`` } =
    engine ?? {};
  const fix = `${remedy}, or choose another backend: \`wasm\` comes with this package.`;
  return new PeriodicEvalError({ code: "config", where, got, expected: "an engine that starts", fix, cause });
}
