import { spawnSync, type SpawnSyncOptions } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { configError } from "@periodic-eval/contracts/options";
import type { PeriodicEvalError } from "@periodic-eval/core";
import type { Terminal } from "../../terminal/terminal.ts";

/** The facts about this machine that decide whether a build is possible. */
export interface Machine {
  /** `linux`, and `x64` or `arm64`, as Node names them. */
  readonly platform: string;
  readonly arch: string;
  /** Bytes that this user can still write below a folder. */
  freeBytes(folder: string): number;
  /** The version of NVIDIA's driver: `535.104.05`. Null without one. */
  driverVersion(): string | null;
}

export const thisMachine: Machine = {
  platform: process.platform,
  arch: process.arch,
  freeBytes(folder) {
    mkdirSync(folder, { recursive: true });
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  },
  driverVersion: () => driverOfKernel() ?? driverOfTool(),
};

function driverOfKernel(): string | null {
  try {
    return parseDriverVersion(readFileSync("/proc/driver/nvidia/version", "utf8"));
  } catch {
    return null;
  }
}

/** Returns the version in the text of /proc/driver/nvidia/version; null without one. */
export const parseDriverVersion = (text: string): string | null =>
  /Kernel Module\D*?(?:x86_64|aarch64)?\s+(\d+(?:\.\d+)+)/.exec(text)?.[1] ?? null;

/** In the Linux of Windows only this tool knows the driver. */
function driverOfTool(): string | null {
  const { status, stdout } = spawnSync(
    "nvidia-smi",
    ["--query-gpu=driver_version", "--format=csv,noheader"],
    {
      encoding: "utf8",
    },
  );
  return status === 0 ? (/^\s*(\d+(?:\.\d+)+)/.exec(stdout)?.[1] ?? null) : null;
}

/** The oldest driver for CUDA 12, by the table "CUDA Toolkit and Corresponding Driver Versions" of NVIDIA's release notes. */
const oldestDriver = "525.60.13";

/** Returns the warning about a missing or old driver of NVIDIA; null if the driver is new enough. */
export function driverWarning(version: string | null): string | null {
  if (version !== null && !isOlder(version, oldestDriver)) return null;
  const got = version === null ? "none" : version;
  const fix = version === null ? "Install NVIDIA's driver" : "Update NVIDIA's driver";
  return configError({
    where: "NVIDIA's driver",
    got,
    expected: `${oldestDriver} or newer, for CUDA 12`,
    fix: `${fix} to compute on the GPU (Debian: \`apt-get install nvidia-driver\`); until then this backend computes on the CPU.`,
  }).message;
}

function isOlder(version: string, than: string): boolean {
  const [own, other] = [version, than].map((text) => text.split(".").map(Number)) as [number[], number[]];
  const at = other.findIndex((part, index) => part !== (own[index] ?? 0));
  return at !== -1 && (own[at] ?? 0) < other[at]!;
}

const otherDisk = "Free some space, or name a folder on another disk with --cache FOLDER.";

/** @throws PeriodicEvalError `config` if less disk is free than the build needs. */
export function checkDisk(machine: Machine, folder: string, neededBytes: number, fix = otherDisk): void {
  const free = machine.freeBytes(folder);
  if (free >= neededBytes) return;
  const gigabytes = (bytes: number) => (bytes / 1e9).toFixed(1);
  throw configError({
    where: folder,
    got: `${gigabytes(free)} GB of free disk`,
    expected: `${gigabytes(neededBytes)} GB`,
    fix,
  });
}

/**
 * Returns the command of a C++ compiler.
 *
 * @throws PeriodicEvalError `config` if there is none.
 */
export function findCompiler(): string {
  const found = [process.env["CXX"], "g++", "c++", "clang++"].find(
    (name) => name !== undefined && name !== "" && answers(name, ["--version"]),
  );
  if (found !== undefined) return found;
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
