import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { performance } from "node:perf_hooks";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { nativeKernels, type KernelStamp } from "../native/compiled-kernels.ts";
import type { LibTensorFlow } from "./libtensorflow.ts";
import { packageOf, type BackendName } from "./modules.ts";
import { runTool, type Report } from "./machine.ts";

/** Compiles the binding of a backend, and the kernels for it. */
export function compileBackend(
  { backend, built }: { readonly backend: BackendName; readonly built: string },
  library: LibTensorFlow,
  compiler: string,
  report: Report,
): void {
  compileBinding({ backend, built }, library, compiler, report);
  const root = join(built, "node_modules", packageOf(backend));
  compileKernels(root, library, { compiler, headers: nodeHeaders(built) }, report);
}

/**
 * Compiles the backend's binding to TensorFlow's C library, unless it is compiled for these libraries already. The binding finds them
 * through its rpath, in `deps/lib` of the package, which holds links to them; they find each other there, because all of them
 * search their own folder.
 *
 * @param built The folder of the cache that holds the backend.
 * @param compiler The command of a C++ compiler.
 */
function compileBinding(
  { backend, built }: { readonly backend: BackendName; readonly built: string },
  library: LibTensorFlow,
  compiler: string,
  report: Report,
): void {
  const { libraries } = library;
  const root = join(built, "node_modules", packageOf(backend));
  const binding = join(root, "lib", "napi-v8", "tfjs_binding.node");
  const stamp = join(root, "lib", "libraries.txt");
  const libraryText = libraries.join("\n");
  if (existsSync(binding) && existsSync(stamp) && readFileSync(stamp, "utf8") === libraryText) return;
  linkLibraries(root, libraries);
  mkdirSync(dirname(binding), { recursive: true });
  const sources = ["tfjs_backend.cc", "tfjs_binding.cc"].map((name) => join(root, "binding", name));
  compile(
    { what: "the binding", target: binding, sources, flags: "-std=c++17 -O2" },
    { root, library, compiler, headers: nodeHeaders(built) },
    {
      where: `the binding of ${backend}`,
      expected: "C++ that compiles",
      fix: "Install a newer compiler, name another one with CXX=COMMAND, or name another --libtensorflow FOLDER.",
    },
    report,
  );
  writeFileSync(stamp, libraryText);
}

interface Compiled {
  readonly what: string;
  readonly target: string;
  readonly sources: readonly string[];
  readonly flags: string;
}

interface CompilerOptions {
  /** The folder of the backend's package. */
  readonly root: string;
  readonly library: LibTensorFlow;
  readonly compiler: string;
  /** The folder of `node_api.h`. */
  readonly headers: string;
}

/** Compiles sources into a library that Node loads and that finds TensorFlow's in `deps/lib` of the package. */
function compile(
  { what, target, sources, flags }: Compiled,
  { root, library: { libraries, include }, compiler, headers }: CompilerOptions,
  failure: { readonly where: string; readonly expected: string; readonly fix: string },
  report: Report,
): void {
  const started = performance.now();
  const draft = `${target}.${process.pid}`;
  const folders = [`-I${headers}`, `-I${include}`, `-L${join(root, "deps", "lib")}`];
  const linked = libraries.slice(0, 2).map((library) => `-l:${basename(library)}`);
  const options = `${flags} -fPIC -shared -w -DNAPI_VERSION=8`.split(" ");
  const output = ["-o", draft, ...linked, "-Wl,-rpath,$ORIGIN/../../deps/lib"];
  try {
    runTool(compiler, [...options, ...folders, ...sources, ...output], (got) =>
      configError({ ...failure, got }),
    );
    renameSync(draft, target);
  } finally {
    rmSync(draft, { force: true });
  }
  report(`compiled ${what}: ${((performance.now() - started) / 1000).toFixed(1)} s`);
}

function linkLibraries(root: string, libraries: readonly string[]): void {
  const folder = join(root, "deps", "lib");
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const library of libraries) symlinkSync(library, join(folder, basename(library)));
}

function nodeHeaders(built: string): string {
  const places = [
    join(dirname(process.execPath), "..", "include", "node"),
    "/usr/include/node",
    join(built, "node_modules", "node-api-headers", "include"),
  ];
  const headers = places.find((folder) => existsSync(join(folder, "node_api.h")));
  if (headers !== undefined) return headers;
  throw configError({
    where: "node_api.h",
    got: "no such file",
    expected: `one in ${places.join(", ")}`,
    fix: "Run the command again with --force.",
  });
}

/** A backend that works. */
export interface WorkingBackend {
  /** The version of TensorFlow's library. */
  readonly tensorflow: string;
  readonly isUsingGpu: boolean;
}

/**
 * Loads a backend in a separate process and multiplies two matrices: an incompatible library crashes the process.
 *
 * @param path The placed package.
 * @throws PeriodicEvalError `config` if it does not load or multiplies wrongly.
 */
export function checkBackend(path: string): WorkingBackend {
  const code = `
    process.env.TF_CPP_MIN_LOG_LEVEL ??= "3";
    const util = require("node:util");
    util.isNullOrUndefined ??= (value) => value === null || value === undefined;
    const tf = require(${JSON.stringify(path)});
    const product = [...tf.matMul([[1, 2], [3, 4]], [[5, 6], [7, 8]]).dataSync()];
    const kernels = ${JSON.stringify(join(path, "lib", "napi-v8", nativeKernels().file))};
    if (require("node:fs").existsSync(kernels)) require(kernels);
    const { binding, isUsingGpuDevice } = tf.backend();
    console.log(JSON.stringify({ product, tensorflow: binding.TF_Version, isUsingGpu: isUsingGpuDevice }));`;
  const failureOf = (got: string) =>
    configError({
      where: path,
      got,
      expected: "a backend that multiplies",
      fix: "Run the command again with --force; if that does not help, use the backend wasm.",
    });
  const output = runTool(process.execPath, ["-e", code], failureOf).trim().split("\n").at(-1)!;
  const { product, ...backend } = JSON.parse(output) as WorkingBackend & {
    readonly product: readonly number[];
  };
  // [1 2; 3 4] · [5 6; 7 8] = [19 22; 43 50]
  if (product.join(" ") !== "19 22 43 50") throw failureOf(`the product ${product.join(" ")}`);
  return backend;
}

/**
 * Compiles the kernels for native TensorFlow beside the binding, for the CPU of this machine, unless they are compiled already.
 * A backend without them works and is slower, so a failure is only printed.
 *
 * @param root The folder of the backend's package, whose binding is compiled.
 * @param headers The folder of `node_api.h`.
 */
export function compileKernels(
  root: string,
  library: LibTensorFlow,
  { compiler, headers }: { readonly compiler: string; readonly headers: string },
  report: Report,
): void {
  const { libraries } = library;
  const { source, fingerprint, file, stampFile, cpuFlags } = nativeKernels();
  const folder = join(root, "lib", "napi-v8");
  const [compiled, stamp] = [join(folder, file), join(folder, stampFile)];
  const currentStamp = () => {
    const hash = createHash("sha256").update(readFileSync(compiled)).digest("hex");
    return JSON.stringify({ fingerprint, cpuFlags, compiled: hash, libraries } satisfies KernelStamp);
  };
  if (existsSync(compiled) && existsSync(stamp) && readFileSync(stamp, "utf8") === currentStamp()) return;
  rmSync(compiled, { force: true });
  const native = process.arch === "arm64" ? "-mcpu=native" : "-march=native";
  const flags = `-std=c++20 -O3 -fno-math-errno ${native}`;
  try {
    compile(
      { what: "the kernels", target: compiled, sources: [join(source, "kernels.cc")], flags },
      { root, library, compiler, headers },
      {
        where: "the kernels for native TensorFlow",
        expected: "a compiler of C++20",
        fix: "Install GCC 11 or newer, or name it with CXX=COMMAND, and run the command again.",
      },
      report,
    );
    writeFileSync(stamp, currentStamp());
  } catch (error) {
    report(
      `${errorMessage(error)} Until then generation and training are slower. Results are the same up to rounding.`,
    );
  }
}
