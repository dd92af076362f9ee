import { backends } from "#backends";
import { process } from "@periodic-eval/store/platform";
import * as tf from "@tensorflow/tfjs-core";
import { PeriodicEvalError } from "@periodic-eval/core";
import { configError, errorMessage, parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { isMissing, type BackendDefinition } from "./definition.ts";
import { findKernels, loadedKernels } from "./kernels.ts";

export interface BackendOptions {
  /**
   * `tfjs-node-gpu`, `tfjs-node`, `webgpu`, `wasm` or `cpu`. Default: the environment variable PERIODIC_EVAL_BACKEND,
   * else the fastest one that is installed and starts.
   */
  readonly backend?: string;
}

const backendName = z.enum(backends.map(({ name }) => name)).meta({
  fix: "Name one of these backends, or omit the option to use the fastest that is installed.",
});

const optionsSchema = z.strictObject({
  backend: backendName.optional(),
} satisfies Record<keyof BackendOptions, z.ZodType>);

export interface Backend {
  /** The backend in use, as `BackendOptions` names it. */
  readonly name: string;
  /** The value of `tf.getBackend()`. */
  readonly tfBackend: string;
  /** Whether `@periodic-eval/kernels` is installed. Without it numbers are the same up to rounding, and computing is slower. */
  readonly kernels: boolean;
  /** Faster backends that are installed but did not start, each with the reason. */
  readonly unusable: readonly { readonly name: string; readonly reason: string }[];
}

/** The last start. TensorFlow.js mixes up backends that start at the same time, so each start waits for the one before. */
let lastStart: Promise<unknown> = Promise.resolve();

function afterLastStart<T>(run: () => Promise<T>): Promise<T> {
  const started = lastStart.then(run);
  lastStart = started.catch(() => undefined);
  return started;
}

/**
 * Starts a backend of TensorFlow.js and makes it the current one. Concurrent calls run one after the other, so the last one counts.
 *
 * @throws PeriodicEvalError `config` if the requested backend is unknown, is not installed or does not start.
 */
export async function useBackend(options: BackendOptions = {}): Promise<Backend> {
  return afterLastStart(() => startBackend(options));
}

/**
 * Calls `run` once all earlier calls of `useBackend` are done, on the backend that they started, or on the default one if none
 * is running. Later calls of `useBackend` wait for `run`, so the backend stays the same meanwhile. `run` must not call it.
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
  for (const definition of backends) {
    try {
      return await start(definition, false, unusable);
    } catch (error) {
      if (isOfVariable(error)) throw error;
      if (!isMissing(error)) unusable.push({ name: definition.name, reason: reasonOf(error) });
    }
  }
  const reasons = unusable.map(({ name, reason }) => `${name}: ${reason}`).join("; ");
  throw notStarted({ where }, reasons || "no backend");
}

/** Whether an environment variable has a wrong value, which no other backend corrects. */
const isOfVariable = (error: unknown): boolean =>
  PeriodicEvalError.is(error) && error.where.startsWith("PERIODIC_EVAL_");

/** The option or the environment variable that named the backend. */
interface Origin {
  readonly where: string;
  readonly path?: readonly string[];
}

async function useRequested(name: string, origin: Origin): Promise<Backend> {
  const definition = backends.find((backend) => backend.name === name)!;
  try {
    return await start(definition, true, []);
  } catch (cause) {
    if (PeriodicEvalError.is(cause)) throw cause;
    const got = `${name}: ${reasonOf(cause)}`;
    if (!isMissing(cause)) throw notStarted(origin, got, definition, cause);
    throw configError({
      ...origin,
      got,
      expected: `the packages ${definition.packages.join(" and ")}`,
      fix: `Run \`${definition.command ?? `npm install ${definition.packages.join(" ")}`}\`, or choose another backend.`,
      cause,
    });
  }
}

async function start(
  definition: BackendDefinition,
  isRequested: boolean,
  unusable: Backend["unusable"],
): Promise<Backend> {
  await findKernels();
  await definition.load(isRequested);
  const isStarted = await (definition.start?.() ?? tf.setBackend(definition.tfBackend));
  if (!isStarted) throw new Error("the backend did not initialize");
  await tf.ready();
  const kernels = loadedKernels() !== null;
  return { name: definition.name, tfBackend: tf.getBackend(), kernels, unusable };
}

const reasonOf = (error: unknown): string => errorMessage(error).split("\n", 1)[0]!;

function notStarted(
  origin: Origin,
  got: string,
  definition?: BackendDefinition,
  cause?: unknown,
): PeriodicEvalError {
  const { command, remedy = command === undefined ? "Reinstall its packages" : `Run \`${command}\`` } =
    definition ?? {};
  const fix = `${remedy}, or choose another backend: this package installs \`wasm\`.`;
  return configError({ ...origin, got, expected: "a backend that starts", fix, cause });
}
