import { fork, type ChildProcess } from "node:child_process";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import type { SandboxAnswer, SandboxLimits, SandboxOrder, SandboxValue } from "./messages.ts";

export type SandboxResult =
  | { readonly ok: true; readonly values: readonly SandboxValue[] }
  | { readonly ok: false; readonly reason: string };

export const defaultLimits: SandboxLimits = {
  seconds: 2,
  memoryMegabytes: 32,
  stackKilobytes: 256,
  textLength: 10_000,
};

/** What the process may take beside the engine's memory. */
const heapMegabytes = 128;
/** Longest that the engine may take to load; and beyond its time what the engine does not interrupt itself. */
const [loadSeconds, graceSeconds] = [60, 1];

/**
 * Runs untrusted JavaScript and evaluates expressions after it. The code runs in an engine of its own (QuickJS in
 * WebAssembly), in a process of its own with an empty
 * environment: it has the language and nothing else, no files, network, process, modules or
 * clock of Node, and what it does to prototypes stays with it. Numbers, texts, truth values and null come out.
 *
 * Whatever it does (throws, never ends, takes all memory, hands out too much) is a result that is not `ok`, with the reason.
 * Promises are not waited for.
 */
export async function runInSandbox(
  code: string,
  expressions: readonly string[],
  limits: Partial<SandboxLimits> = {},
): Promise<SandboxResult> {
  checkKeys("sandbox limits", limits, Object.keys(defaultLimits));
  const complete = { ...defaultLimits, ...limits };
  for (const [name, value] of Object.entries(complete)) {
    if (Number.isFinite(value) && value > 0) continue;
    throw new PeriodicEvalError({
      code: "config",
      where: `sandbox limits.${name}`,
      got: String(value),
      expected: "a number above 0",
      fix: "Correct it, or leave it out.",
    });
  }
  const order: SandboxOrder = { code, expressions, limits: complete };
  const child = startEngine();
  let timer: NodeJS.Timeout | undefined;
  try {
    return await new Promise<SandboxResult>((resolve) => {
      const fail = (reason: string) => resolve({ ok: false, reason });
      const within = (seconds: number, reason: string) => {
        clearTimeout(timer);
        timer = setTimeout(() => fail(reason), 1000 * seconds);
      };
      within(loadSeconds, `the engine was not loaded within ${loadSeconds} s`);
      child.send(order);
      child.on("message", (answer: SandboxAnswer) => {
        if (answer.kind === "ready")
          within(complete.seconds + graceSeconds, `no end within ${complete.seconds} s`);
        else if (answer.kind === "failed") fail(answer.reason);
        else resolve({ ok: true, values: answer.values });
      });
      child.on("error", (error) => fail(error.message));
      child.on("exit", () => fail("the process of the engine ended without an answer"));
    });
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
  }
}

function startEngine(): ChildProcess {
  const ending = extname(import.meta.url);
  // From source, what reads TypeScript has to be loaded first.
  const reader =
    ending === ".ts" ? ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href] : [];
  return fork(fileURLToPath(new URL(`./engine${ending}`, import.meta.url)), {
    execArgv: [...reader, `--max-old-space-size=${heapMegabytes}`],
    cwd: tmpdir(),
    env: {},
    // JSON would make null of NaN and of what is infinite.
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
}
