import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import { dirname, join } from "node:path";
import { Worker } from "node:worker_threads";
import { process } from "@periodic-eval/store/platform";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import * as tf from "@tensorflow/tfjs-core";

/*
 * The wasm backend with threads, which `@tensorflow/tfjs-backend-wasm` 4.22 offers in browsers only. Large matrix products are
 * shared among threads; a thread computes whole elements of the product, so that its bits are those of one thread. All else
 * runs on one thread, because waking the others costs more than a small operation. See docs/decisions/wasm-kernels.md.
 */

/** Multiplications of the smallest product that is faster with two threads than with one. */
const leastMultiplications = 2 ** 22;

/** The address of the C++ variable `tfjs::backend::threadpool` in the package's binary; checked when the backend starts. */
const poolAddress = 23_564;

/** A careful limit of the default: only two threads have been measured. */
const mostByDefault = 4;

const variable = "PERIODIC_EVAL_WASM_THREADS";
const most = 64;

const folder = "@tensorflow/tfjs-backend-wasm/wasm-out";
const scriptName = "tfjs-backend-wasm-threaded-simd.js";

/** The part of the Emscripten module that this file uses. */
interface WasmModule {
  readonly HEAPU8: Uint8Array;
  cwrap(
    name: string,
    returns: "number" | null,
    args: readonly string[],
  ): (...args: readonly number[]) => number;
  tfjs?: Readonly<Record<string, unknown>>;
}

type Factory = (config: object) => Promise<WasmModule>;

let isReplaced = false;

/**
 * Makes the wasm backend start with one thread per CPU core, at most 4, or as many as the variable PERIODIC_EVAL_WASM_THREADS says.
 * Uses one thread if the backend has started before and may hold tensors, and, with a process warning, if the threads do not start.
 *
 * @throws PeriodicEvalError `config` if the variable is not an integer from 1 to 64.
 */
export function useWasmThreads(): void {
  const threads = wantedThreads();
  if (threads === 1 || isReplaced || "wasm" in tf.engine().registry) return;
  isReplaced = true;
  const withOneThread = tf.findBackendFactory("wasm");
  const factory = () =>
    backendWithThreads(threads).catch((error: unknown) => {
      const message = `wasm computes with one thread: ${errorMessage(error)}`;
      process.emitWarning(message, { code: "PERIODIC_EVAL_WASM" });
      return withOneThread();
    });
  tf.removeBackend("wasm");
  // The package's own priority.
  tf.registerBackend("wasm", factory, 2);
}

function wantedThreads(): number {
  const wanted = process.env[variable];
  if (!wanted) return Math.min(os.availableParallelism(), mostByDefault);
  const threads = Number(wanted);
  if (Number.isInteger(threads) && threads >= 1 && threads <= most) return threads;
  throw configError({
    where: variable,
    got: JSON.stringify(wanted),
    expected: `an integer from 1 to ${most}`,
    fix: `Correct ${variable}, or unset it.`,
  });
}

async function backendWithThreads(threads: number): Promise<tf.KernelBackend> {
  const { BackendWasm } = await import("@tensorflow/tfjs-backend-wasm");
  const { wasm, terminate } = await startModule(threads);
  const initialize = wasm.cwrap("init_with_threads_count", null, ["number"]);
  const threadsCount = wasm.cwrap("get_threads_count", "number", []);
  initialize(threads);
  // Shared memory keeps its place when it grows, so this view stays valid.
  const memory = new Int32Array(wasm.HEAPU8.buffer, poolAddress, 1);
  const pool = memory[0]!;
  const countWith = (value: number): number => {
    memory[0] = value;
    return threadsCount();
  };
  if (pool === 0 || countWith(pool) !== threads || countWith(0) === threads) {
    terminate();
    throw new Error("its binary is another one than that of @tensorflow/tfjs-backend-wasm 4.22.0");
  }
  wasm.tfjs = {
    // The constructor of the backend would create a second pool.
    initWithThreadsCount: () => undefined,
    getThreadsCount: () => threads,
    init: wasm.cwrap("init", null, []),
    registerTensor: wasm.cwrap("register_tensor", null, ["number", "number", "number"]),
    disposeData: wasm.cwrap("dispose_data", null, ["number"]),
    dispose: wasm.cwrap("dispose", null, []),
  };
  for (const name of ["BatchMatMul", "_FusedMatMul"]) {
    const kernel = tf.getKernel(name, "wasm");
    tf.unregisterKernel(name, "wasm");
    tf.registerKernel(sharedKernel(kernel, (value) => void (memory[0] = value), pool));
  }
  return new BackendWasm(wasm as never);
}

/** Returns a kernel that computes large products on the threads of `pool`. */
const sharedKernel = (
  kernel: tf.KernelConfig,
  use: (pool: number) => void,
  pool: number,
): tf.KernelConfig => ({
  ...kernel,
  kernelFunc(params) {
    const { a, b } = params.inputs as { readonly a: tf.TensorInfo; readonly b: tf.TensorInfo };
    const columns = b.shape[b.shape.length - (params.attrs?.["transposeB"] === true ? 2 : 1)]!;
    if (tf.util.sizeFromShape(a.shape) * columns < leastMultiplications) return kernel.kernelFunc(params);
    use(pool);
    try {
      return kernel.kernelFunc(params);
    } finally {
      use(0);
    }
  },
});

/** Starts the package's module for threads, with as many workers as it needs; `terminate` ends them. */
async function startModule(
  threads: number,
): Promise<{ readonly wasm: WasmModule; readonly terminate: () => void }> {
  const require = createRequire(import.meta.url);
  const file = require.resolve(`${folder}/${scriptName}`);
  const { wasmWorkerContents } = require(file.replace(/\.js$/, ".worker.js")) as {
    readonly wasmWorkerContents: string;
  };
  // The package stores the script with the line breaks that its strings should escape.
  const script = wasmWorkerContents.replaceAll("\n", "\\n");
  const workers: Worker[] = [];
  const terminate = () => workers.forEach((worker) => void worker.terminate());
  let fail: (error: unknown) => void;
  const failed = new Promise<never>((_, reject) => (fail = reject));
  const ThreadWorker = class extends Worker {
    constructor() {
      super(script, { eval: true, execArgv: [] });
      this.once("error", fail);
      workers.push(this);
    }
    /** Does nothing: the module would keep the process alive as long as its threads wait for work. */
    override ref() {}
    /** Leaves out the module's listener for errors, which would end the process. */
    override on(...[event, listener]: Parameters<Worker["on"]>): this {
      return event === "error" ? this : super.on(event, listener);
    }
  };
  const modules: Readonly<Record<string, object>> = {
    worker_threads: { Worker: ThreadWorker },
    // The module uses no more threads than half of the CPU cores.
    os: { cpus: () => Array.from({ length: 2 * threads }) },
  };
  // The module starts eight workers, whatever the number of threads.
  const text = readFileSync(file, "utf8").replace("pthreadPoolSize=8;", `pthreadPoolSize=${threads - 1};`);
  const module: { exports: Factory | null } = { exports: null };
  const scope = {
    module,
    exports: {},
    require: (name: string) => modules[name] ?? require(name),
    __filename: file,
    __dirname: dirname(file),
    global: {},
    Worker: ThreadWorker,
  };
  // oxlint-disable-next-line typescript/no-implied-eval -- a file of an installed package, with other values for its globals
  new Function(...Object.keys(scope), text)(...Object.values(scope));
  const { warn } = console;
  const started = module.exports!({
    locateFile: (name: string) => join(dirname(file), name),
    printErr: (line: string) => warn(line),
  });
  try {
    const wasm = await Promise.race([started, failed]);
    // From here on an error of a thread is uncaught, as any bug.
    for (const worker of workers) worker.off("error", fail!);
    return { wasm, terminate };
  } catch (error) {
    terminate();
    throw error;
  }
}
