import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { resultsVariable, type Results } from "./results.ts";

/** Runs a file of benchmarks/ in a process of its own, because backends and peaks of memory belong to a process. */
export function runBenchmark(
  file: string,
  args: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<{ readonly results: Results | null; readonly exitCode: number | null }> {
  const child = fork(fileURLToPath(new URL(`../${file}`, import.meta.url)), [...args], {
    execArgv: process.execArgv,
    env: { ...process.env, ...environment, [resultsVariable]: "1" },
  });
  let results: Results | null = null;
  child.on("message", (message) => {
    results = message as Results;
  });
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (exitCode) => resolve({ results, exitCode }));
  });
}
