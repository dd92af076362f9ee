import { Worker } from "node:worker_threads";
import { parseOptions } from "@periodic-eval/contracts/options";
import { startTimeout } from "@periodic-eval/store";
import * as z from "zod";
import type { SandboxLimits, SandboxReply, SandboxRequest, SandboxValue } from "./evaluate.ts";

export type SandboxResult =
  | { readonly ok: true; readonly values: readonly SandboxValue[] }
  | { readonly ok: false; readonly reason: string };

export const defaultLimits: SandboxLimits = {
  seconds: 2,
  memoryMegabytes: 32,
  stackKilobytes: 256,
  textLength: 10_000,
};

const limit = z.number("a number above 0").positive("a number above 0").optional();
const limitsSchema = z.strictObject({
  seconds: limit,
  memoryMegabytes: limit,
  stackKilobytes: limit,
  textLength: limit,
} satisfies Record<keyof SandboxLimits, z.ZodType>);

/** Maximum heap of the worker, in addition to the engine's memory. */
const heapMegabytes = 128;
/** Time limit for loading the engine, and extra time after the deadline for code that the engine cannot interrupt. */
const [loadSeconds, graceSeconds] = [60, 1];

/**
 * Runs untrusted JavaScript, then evaluates expressions and returns their values: numbers, strings, booleans and null. The code
 * runs in QuickJS in WebAssembly, in a worker with an empty environment. The code has only the language: no files, network,
 * modules, `process` or Node timers.
 *
 * If the code throws, does not end, exceeds its memory or returns too much, the result has `ok: false` and the reason. Pending
 * promises are not awaited.
 *
 * @throws PeriodicEvalError `config` for a wrong limit.
 */
export async function runInSandbox(
  code: string,
  expressions: readonly string[],
  limits: Partial<SandboxLimits> = {},
): Promise<SandboxResult> {
  parseOptions("sandbox limits", limitsSchema, limits);
  const complete = { ...defaultLimits, ...limits };
  const request: SandboxRequest = { code, expressions, limits: complete };
  const worker = startEngine(request);
  let stopTimeout = () => {};
  try {
    return await new Promise<SandboxResult>((resolve) => {
      const fail = (reason: string) => resolve({ ok: false, reason });
      const within = (seconds: number, reason: string) => {
        stopTimeout();
        stopTimeout = startTimeout(seconds, () => fail(reason));
      };
      within(loadSeconds, `the engine did not load within ${loadSeconds} s`);
      worker.on("message", (reply: SandboxReply) => {
        if (reply.kind === "ready")
          within(complete.seconds + graceSeconds, `no end within ${complete.seconds} s`);
        else if (reply.kind === "failed") fail(reply.reason);
        else resolve({ ok: true, values: reply.values });
      });
      worker.on("error", (error) => fail(error.message));
      worker.on("exit", () => fail("the worker ended without a reply"));
    });
  } finally {
    stopTimeout();
    await worker.terminate();
  }
}

function startEngine(request: SandboxRequest): Worker {
  // The TypeScript source starts the compiled file, which needs no loader.
  const compiled = import.meta.url.replace(/\/src\/(.*)\.ts$/, "/dist/$1.js");
  return new Worker(new URL("./engine.js", compiled), {
    workerData: request,
    execArgv: [],
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: heapMegabytes },
  });
}
