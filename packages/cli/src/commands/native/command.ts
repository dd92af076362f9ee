import { rmSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { nativeBackendFolder } from "@periodic-eval/models";
import type { Command } from "commander";
import type { Terminal } from "../../terminal/terminal.ts";
import { checkBackend, compileBackend, type WorkingBackend } from "./binding.ts";
import { libraryFolder, libTensorFlow } from "./libtensorflow.ts";
import { findCompiler, unsupported, type Machine } from "./machine.ts";
import {
  backendFolder,
  fetchBackend,
  placeBackend,
  tfjsFolder,
  tfjsVersion,
  type BackendName,
} from "./modules.ts";

/** `native`: builds native TensorFlow for TensorFlow.js, with or without GPU. */
export function addNative(program: Command, terminal: Terminal): void {
  program
    .command("native")
    .description("build native TensorFlow (Linux), the fastest backend")
    .option("--gpu", "build tfjs-node-gpu, for NVIDIA GPUs", false)
    .option("--libtensorflow <folder>", "use this Python package tensorflow or libtensorflow")
    .option("--cache <folder>", "folder of downloads and builds (default: in ~/.cache)")
    .option("--force", "download and build everything again", false)
    .action(async (options: NativeOptions) => {
      terminal.out(await buildNative(options, terminal));
    });
}

interface NativeOptions {
  readonly gpu: boolean;
  readonly force: boolean;
  /** A folder with TensorFlow's C library. Default: one from PyPI. */
  readonly libtensorflow?: string;
  /** Default: `periodic-eval/native` in `$XDG_CACHE_HOME`, or in `~/.cache` unless that is an absolute path. */
  readonly cache?: string;
}

/**
 * Builds native TensorFlow for TensorFlow.js, for machines that cannot reach the download of its own installer: JavaScript from npm,
 * TensorFlow's library from PyPI, and a binding between the two that is compiled here. Downloads and builds are kept in a cache,
 * and the backend is copied into the project's node_modules/.cache, where `useBackend` finds it. A second run only copies.
 *
 * @returns A line for the terminal.
 * @throws PeriodicEvalError `config` for everything that is missing.
 */
export async function buildNative(
  options: NativeOptions,
  terminal: Terminal,
  machine: Machine = process,
): Promise<string> {
  const backend: BackendName = options.gpu ? "tfjs-node-gpu" : "tfjs-node";
  const project = nativeBackendFolder();
  const cache = resolve(options.cache ?? defaultCache());
  // The binding's compile command is for Linux.
  if (machine.platform !== "linux") throw unsupported(machine, "linux");
  // Everything that may be missing is checked before the downloads.
  const compiler = findCompiler();
  if (options.force)
    // The cache may hold other backends and, where the user named a folder, other files.
    for (const name of [libraryFolder(options.gpu), backendFolder(backend), tfjsFolder])
      rmSync(join(cache, name), { recursive: true, force: true });
  const library = libTensorFlow(options, cache, machine, terminal);
  const built = fetchBackend(backend, cache, terminal);
  compileBackend({ backend, built }, library, compiler, terminal);
  const placed = placeBackend({ backend, built, folder: project }, cache, terminal);
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
