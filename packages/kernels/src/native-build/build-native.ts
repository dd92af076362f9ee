import { rmSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { checkBackend, compileBackend, type WorkingBackend } from "./binding.ts";
import { libraryFolder, libTensorFlow } from "./libtensorflow.ts";
import { findCompiler, unsupported, type Machine, type Report } from "./machine.ts";
import {
  backendFolder,
  fetchBackend,
  placeBackend,
  tfjsFolder,
  tfjsVersion,
  type BackendName,
} from "./modules.ts";

export interface NativeOptions {
  readonly gpu: boolean;
  readonly force: boolean;
  /** A folder with TensorFlow's C library. Default: one from PyPI. */
  readonly libtensorflow?: string;
  /** Default: `periodic-eval/native` in `$XDG_CACHE_HOME`, or in `~/.cache` unless that is an absolute path. */
  readonly cache?: string;
  /** Where the backend goes: the folder in which `useBackend` looks for it. */
  readonly folder: string;
  /** Receives lines of progress. */
  readonly report: Report;
}

/**
 * Builds native TensorFlow for TensorFlow.js, for machines that cannot reach the download of its own installer: JavaScript from npm,
 * TensorFlow's library from PyPI, and a binding between the two that is compiled here. Downloads and builds are kept in a cache,
 * and the backend is copied into `folder`. A second run only copies.
 *
 * @returns A sentence about the backend.
 * @throws PeriodicEvalError `config` for everything that is missing.
 */
export async function buildNative(options: NativeOptions, machine: Machine = process): Promise<string> {
  const backend: BackendName = options.gpu ? "tfjs-node-gpu" : "tfjs-node";
  const { folder, report } = options;
  const cache = resolve(options.cache ?? defaultCache());
  // The binding's compile command is for Linux.
  if (machine.platform !== "linux") throw unsupported(machine, "linux");
  // Everything that may be missing is checked before the downloads.
  const compiler = findCompiler();
  if (options.force)
    // The cache may hold other backends and, where the user named a folder, other files.
    for (const name of [libraryFolder(options.gpu), backendFolder(backend), tfjsFolder])
      rmSync(join(cache, name), { recursive: true, force: true });
  const library = libTensorFlow(options, cache, machine, report);
  const built = fetchBackend(backend, cache, report);
  compileBackend({ backend, built }, library, compiler, report);
  const placed = placeBackend({ backend, built, folder }, cache, report);
  try {
    return sentence(backend, checkBackend(placed));
  } catch (error) {
    // `useBackend` starts what it finds, so a broken backend must not stay.
    rmSync(placed, { recursive: true });
    throw error;
  }
}

export function defaultCache(): string {
  // The XDG specification says to ignore an empty or relative path.
  const named = process.env["XDG_CACHE_HOME"] ?? "";
  return join(isAbsolute(named) ? named : join(homedir(), ".cache"), "periodic-eval", "native");
}

function sentence(backend: BackendName, working: WorkingBackend): string {
  const choice = `Programs in this project start it by default; PERIODIC_EVAL_BACKEND=${backend} requests it.`;
  const works = `${backend} ${tfjsVersion} works with TensorFlow ${working.tensorflow}`;
  if (backend === "tfjs-node") return `${works}. ${choice}`;
  if (working.isUsingGpu) return `${works} and computes on the GPU. ${choice}`;
  const why =
    "it needs NVIDIA's driver 525.60.13 or newer, and TF_CPP_MIN_LOG_LEVEL=0 makes TensorFlow print why";
  return `${works}, found no GPU and computes on the CPU: ${why}. ${choice}`;
}
