import { spawnSync, type SpawnSyncOptions } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { configError } from "@periodic-eval/contracts/options";
import type { PeriodicEvalError } from "@periodic-eval/contracts";

/** Shows a line of progress. */
export type Report = (line: string) => void;

/** `linux`, and `x64` or `arm64`, as Node names them. */
export type Machine = Pick<NodeJS.Process, "platform" | "arch">;

/**
 * Returns the command of a C++ compiler.
 *
 * @throws PeriodicEvalError `config` if there is none.
 */
export function findCompiler(): string {
  const compiler = [process.env["CXX"], "g++", "c++", "clang++"].find(
    (name) => name !== undefined && name !== "" && answers(name, ["--version"]),
  );
  if (compiler !== undefined) return compiler;
  throw configError({
    where: "C++ compiler",
    got: "neither $CXX nor g++, c++ or clang++",
    expected: "one that knows C++17",
    fix: "Install one (Debian: `apt-get install g++`), or use the backend wasm, which needs none.",
  });
}

/** Returns the error for a machine for which no wheel of TensorFlow exists. */
export function unsupported({ platform, arch }: Machine, expected: string): PeriodicEvalError {
  return configError({
    where: "native",
    got: `${platform} on ${arch}`,
    expected,
    fix: "Try `npm install @tensorflow/tfjs-node`, which downloads its own library, or use the backend wasm.",
  });
}

/** Returns the error for what a tool printed last. */
type FailureOf = (got: string) => PeriodicEvalError;

/**
 * Runs a tool and returns its output.
 *
 * @throws PeriodicEvalError The error that `failureOf` returns for the first line with "error", else for the last line.
 */
export function runTool(
  command: string,
  args: readonly string[],
  failureOf: FailureOf,
  options: SpawnSyncOptions = {},
): string {
  const result = spawnSync(command, args, { maxBuffer: 2 ** 26, ...options, encoding: "utf8" });
  if (result.status === 0) return result.stdout;
  const output = result.error?.message ?? `${result.stderr}\n${result.stdout}`;
  const lines = output
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const isError = (line: string) => /error/i.test(line);
  throw failureOf(lines.find(isError) ?? lines.at(-1) ?? `exit status ${result.status}`);
}

/** Whether a tool exists and answers. */
export const answers = (command: string, args: readonly string[]): boolean =>
  spawnSync(command, args).status === 0;

/** Makes a folder unless it exists, and prints how long that took. */
export function makeStep(
  report: Report,
  { what, folder }: { readonly what: string; readonly folder: string },
  make: (draft: string) => void,
): void {
  if (existsSync(folder)) return;
  const started = performance.now();
  report(`${what} …`);
  makeFolder(folder, make);
  report(`${what}: ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

/** Builds a folder under a temporary name first, so that an interrupted command leaves nothing that looks complete. */
export function makeFolder(folder: string, make: (draft: string) => void): void {
  mkdirSync(dirname(folder), { recursive: true });
  const draft = mkdtempSync(`${folder}.making-`);
  removeOldDrafts(folder, statSync(draft).mtimeMs);
  try {
    make(draft);
    rmSync(folder, { recursive: true, force: true });
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** No build takes a day. */
const longestBuildMs = 86_400_000;

/** Removes drafts that no command builds any more: an interrupt does not reach `finally` while a tool runs. */
function removeOldDrafts(folder: string, now: number): void {
  const parent = dirname(folder);
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(`${basename(folder)}.making`)) continue;
    const draft = join(parent, name);
    const made = statSync(draft, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (made < now - longestBuildMs) rmSync(draft, { recursive: true, force: true });
  }
}
