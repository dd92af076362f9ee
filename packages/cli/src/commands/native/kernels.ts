import { createHash } from "node:crypto";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { performance } from "node:perf_hooks";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { nativeKernels, type KernelStamp } from "@periodic-eval/models";
import type { Terminal } from "../../terminal/terminal.ts";
import type { LibTensorFlow } from "./libtensorflow.ts";
import { runTool } from "./steps.ts";

/**
 * Compiles the kernels for native TensorFlow beside the binding, for the CPU of this machine, unless they are compiled already.
 * A backend without them works and is slower, so a failure is only printed.
 *
 * @param root The folder of the backend's package, whose binding is compiled.
 * @param headers The folder of `node_api.h`.
 */
export function compileKernels(
  root: string,
  { libraries, include }: LibTensorFlow,
  { compiler, headers }: { readonly compiler: string; readonly headers: string },
  terminal: Terminal,
): void {
  const { source, fingerprint, file, stampFile, cpuFlags } = nativeKernels();
  const folder = join(root, "lib", "napi-v8");
  const [compiled, stamp] = [join(folder, file), join(folder, stampFile)];
  const currentStamp = () => {
    const hash = createHash("sha256").update(readFileSync(compiled)).digest("hex");
    return JSON.stringify({ fingerprint, cpuFlags, compiled: hash, libraries } satisfies KernelStamp);
  };
  if (existsSync(compiled) && existsSync(stamp) && readFileSync(stamp, "utf8") === currentStamp()) return;
  rmSync(compiled, { force: true });
  const started = performance.now();
  const draft = `${compiled}.${process.pid}`;
  const options = "-std=c++20 -O3 -fno-math-errno -fPIC -shared -w -DNAPI_VERSION=8".split(" ");
  const native = process.arch === "arm64" ? "-mcpu=native" : "-march=native";
  const linked = libraries.slice(0, 2).map((library) => `-l:${basename(library)}`);
  const folders = [`-I${headers}`, `-I${include}`, `-L${join(root, "deps", "lib")}`];
  try {
    runTool(
      compiler,
      [
        ...options,
        native,
        ...folders,
        join(source, "kernels.cc"),
        "-o",
        draft,
        ...linked,
        "-Wl,-rpath,$ORIGIN/../../deps/lib",
      ],
      (got) =>
        configError({
          where: "the kernels for native TensorFlow",
          got,
          expected: "a compiler of C++20",
          fix: "Install GCC 11 or newer, or name it with CXX=COMMAND, and run the command again.",
        }),
    );
  } catch (error) {
    rmSync(draft, { force: true });
    terminal.err(
      `${errorMessage(error)} Until then generation and training are slower. Results are the same up to rounding.`,
    );
    return;
  }
  renameSync(draft, compiled);
  writeFileSync(stamp, currentStamp());
  terminal.err(`compiled the kernels: ${((performance.now() - started) / 1000).toFixed(1)} s`);
}
