import util from "node:util";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { configError, errorMessage, parseOptions } from "@periodic-eval/core/internal";
import { z } from "zod";
import { builtEngine, commandHere, hasEngine, importOptional, isMissing, type Engine } from "./engine.ts";
import { startChecked } from "./wasm-memory.ts";
import { webgpu } from "./webgpu.ts";

/** Plain JavaScript: slow and simple, for tests. */
const cpu: Engine = {
  name: "cpu",
  backend: "cpu",
  packages: ["@tensorflow/tfjs-backend-cpu"],
  async load() {
    await import("@tensorflow/tfjs-backend-cpu");
  },
};

/** WebAssembly with SIMD, one thread in Node. The default: this package installs it. */
const wasm: Engine = {
  name: "wasm",
  backend: "wasm",
  packages: ["@tensorflow/tfjs-backend-wasm"],
  async load() {
    await import("@tensorflow/tfjs-backend-wasm");
  },
  start: startChecked,
};

/** Native TensorFlow on the CPU. */
const tfjsNode = native("tfjs-node", "");

/** Native TensorFlow on an NVIDIA GPU; without a GPU it computes on the CPU. */
const tfjsNodeGpu = native("tfjs-node-gpu", "--gpu");

/** Every engine, the fastest first. */
const engines: readonly Engine[] = [tfjsNodeGpu, tfjsNode, webgpu, wasm, cpu];

/** The package of native TensorFlow that this process has loaded: a second library in one process may crash it. */
let loaded: string | null = null;

/** An engine that runs TensorFlow's C library. `args` of `periodic-eval native` build it. */
function native(name: string, args: string): Engine {
  const packageName = `@tensorflow/${name}`;
  // The command builds on Linux only.
  const built = process.platform === "linux" ? { command: `npx periodic-eval native ${args}`.trim() } : {};
  return {
    name,
    backend: "tensorflow",
    packages: [packageName],
    ...built,
    ...commandHere("native", args),
    async load() {
      if (loaded !== null && loaded !== packageName && hasEngine(packageName))
        throw configError({
          where: `useBackend ${name}`,
          got: `a process that has loaded ${loaded}`,
          expected: "one native engine per process",
          fix: "Start another process, or name the loaded engine.",
        });
      // The C++ library logs to standard error on every start.
      process.env["TF_CPP_MIN_LOG_LEVEL"] ??= "3";
      // On a GPU, TensorFlow multiplies float32 matrices with 10 bits of mantissa (TF32) by default.
      process.env["NVIDIA_TF32_OVERRIDE"] ??= "0";
      // Node 23 removed this function, and tfjs-node 4.22 still calls it (tensorflow/tfjs#8609).
      const old = util as { isNullOrUndefined?: (value: unknown) => boolean };
      old.isNullOrUndefined ??= (value) => value === null || value === undefined;
      await importOptional(builtEngine(packageName) ?? packageName);
      loaded = packageName;
    },
  };
}

export interface BackendOptions {
  /**
   * `tfjs-node-gpu`, `tfjs-node`, `webgpu`, `wasm` or `cpu`. Default: the environment variable PERIODIC_EVAL_BACKEND,
   * else the fastest engine that is installed and starts.
   */
  readonly backend?: string;
}

const backendName = z.enum(engines.map(({ name }) => name)).meta({
  fix: "Name one of these engines, or omit the option to use the fastest that is installed.",
});

const optionsSchema = z.strictObject({
  backend: backendName.optional(),
} satisfies Record<keyof BackendOptions, z.ZodType>);

export interface Backend {
  /** The engine in use, as `BackendOptions` names it. */
  readonly name: string;
  /** The value of `tf.getBackend()`. */
  readonly tfBackend: string;
  /** Faster engines that are installed but did not start, each with the reason. */
  readonly unusable: readonly { readonly name: string; readonly reason: string }[];
}

/** The last start. TensorFlow.js mixes up engines that start at the same time, so each start waits for the one before. */
let lastStart: Promise<unknown> = Promise.resolve();

function afterLastStart<T>(run: () => Promise<T>): Promise<T> {
  const started = lastStart.then(run);
  lastStart = started.catch(() => undefined);
  return started;
}

/**
 * Starts an engine and makes it the backend of TensorFlow.js. Concurrent calls run one after the other, so the last one counts.
 *
 * @throws PeriodicEvalError `config` if the requested engine is unknown, is not installed or does not start.
 */
export async function useBackend(options: BackendOptions = {}): Promise<Backend> {
  return afterLastStart(() => startBackend(options));
}

/**
 * Calls `run` once all earlier calls of `useBackend` are done, on the engine that they started, or on the default one if none
 * is running. Later calls of `useBackend` wait for `run`, so the engine stays the same meanwhile. `run` must not call it.
 */
export const onBackend = <T>(run: () => Promise<T>): Promise<T> =>
  afterLastStart(async () => {
    if (!tf.getBackend()) await startBackend({});
    return run();
  });

async function startBackend(options: BackendOptions): Promise<Backend> {
  const where = "useBackend options";
  const { backend } = parseOptions(where, optionsSchema, options);
  if (backend !== undefined) return useRequested(backend, { where, path: ["backend"] });
  const fromEnvironment = process.env["PERIODIC_EVAL_BACKEND"];
  if (fromEnvironment) {
    const variable = "PERIODIC_EVAL_BACKEND";
    return useRequested(parseOptions(variable, backendName, fromEnvironment), { where: variable });
  }
  const unusable: { name: string; reason: string }[] = [];
  for (const engine of engines) {
    try {
      return await start(engine, false, unusable);
    } catch (error) {
      if (!isMissing(error)) unusable.push({ name: engine.name, reason: reasonOf(error) });
    }
  }
  const reasons = unusable.map(({ name, reason }) => `${name}: ${reason}`).join("; ");
  throw notStarted({ where }, reasons || "no engine");
}

/** The option or the environment variable that named the engine. */
interface Origin {
  readonly where: string;
  readonly path?: readonly string[];
}

async function useRequested(name: string, origin: Origin): Promise<Backend> {
  const engine = engines.find((one) => one.name === name)!;
  try {
    return await start(engine, true, []);
  } catch (cause) {
    if (PeriodicEvalError.is(cause)) throw cause;
    const got = `${name}: ${reasonOf(cause)}`;
    if (!isMissing(cause)) throw notStarted(origin, got, engine, cause);
    throw configError({
      ...origin,
      got,
      expected: `the packages ${engine.packages.join(" and ")}`,
      fix: `Run \`${engine.command ?? `npm install ${engine.packages.join(" ")}`}\`, or choose another backend.`,
      cause,
    });
  }
}

async function start(engine: Engine, isRequested: boolean, unusable: Backend["unusable"]): Promise<Backend> {
  await engine.load(isRequested);
  const isStarted = await (engine.start?.() ?? tf.setBackend(engine.backend));
  if (!isStarted) throw new Error("the backend did not initialize");
  await tf.ready();
  return { name: engine.name, tfBackend: tf.getBackend(), unusable };
}

const reasonOf = (error: unknown): string => errorMessage(error).split("\n", 1)[0]!;

function notStarted(origin: Origin, got: string, engine?: Engine, cause?: unknown): PeriodicEvalError {
  const { command, remedy = command === undefined ? "Reinstall its packages" : `Run \`${command}\`` } =
    engine ?? {};
  const fix = `${remedy}, or choose another backend: this package installs \`wasm\`.`;
  return configError({ ...origin, got, expected: "an engine that starts", fix, cause });
}
