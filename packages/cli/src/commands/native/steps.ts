import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { spawnSync, type SpawnSyncOptions } from "node:child_process";
import { dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import type { PeriodicEvalError } from "@periodic-eval/core";
import { isRunning } from "@periodic-eval/store";
import type { Terminal } from "../../terminal/terminal.ts";

/** Returns the error for what a tool printed last. */
export type FailureOf = (got: string) => PeriodicEvalError;

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
  terminal: Terminal,
  { what, folder }: { readonly what: string; readonly folder: string },
  make: (draft: string) => void,
): void {
  if (existsSync(folder)) return;
  const started = performance.now();
  terminal.err(`${what} …`);
  makeFolder(folder, make);
  terminal.err(`${what}: ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

const draftPattern = /^making-(\d+)-/;
/** The drafts that this process is building. */
const ownDrafts = new Set<string>();

/** Builds a folder under a temporary name first, so that an interrupted command leaves nothing that looks complete. */
export function makeFolder(folder: string, make: (draft: string) => void): void {
  const parent = dirname(folder);
  mkdirSync(parent, { recursive: true });
  removeOldDrafts(parent);
  const draft = mkdtempSync(join(parent, `making-${process.pid}-`));
  ownDrafts.add(draft);
  try {
    make(draft);
    rmSync(folder, { recursive: true, force: true });
    renameSync(draft, folder);
  } finally {
    ownDrafts.delete(draft);
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Removes drafts of processes that have ended: an interrupt does not reach `finally` while a tool runs. */
function removeOldDrafts(parent: string): void {
  for (const name of readdirSync(parent)) {
    const pid = draftPattern.exec(name)?.[1];
    const path = join(parent, name);
    if (pid !== undefined && !isBeingBuilt(path, Number(pid))) rmSync(path, { recursive: true, force: true });
  }
}

/** In a container, an earlier process can have had the id of this one. */
const isBeingBuilt = (path: string, pid: number): boolean =>
  pid === process.pid ? ownDrafts.has(path) : isRunning(pid);
