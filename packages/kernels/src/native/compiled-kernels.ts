import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { registerNativeKernels } from "./native-kernels.ts";

/** The kernels for native TensorFlow: C++ files of this package, which `periodic-eval native` compiles for the CPU of the machine. */
export interface NativeKernelFiles {
  /** The folder of the C++ files. `kernels.cc` includes the others. */
  readonly source: string;
  /** The SHA-256 of the C++ files. It changes with the version of the kernels. */
  readonly fingerprint: string;
  /** The name of the compiled file, in `lib/napi-v8` of the backend's package. */
  readonly file: string;
  /** The name of a JSON file beside it: a `KernelStamp`. */
  readonly stampFile: string;
  /** The instruction sets of this CPU, as /proc/cpuinfo names them, with spaces between them. Empty on systems other than Linux. */
  readonly cpuFlags: string;
}

/** The sources and the target of compiled kernels. */
export interface KernelStamp extends Pick<NativeKernelFiles, "fingerprint" | "cpuFlags"> {
  /** The SHA-256 of the compiled file: loading a damaged library can end the process. */
  readonly compiled: string;
  /** The paths of TensorFlow's libraries. */
  readonly libraries: readonly string[];
}

const [kernelFile, stampFile] = ["periodic_eval_kernels.node", "periodic_eval_kernels.json"];

/** Returns the kernels of this version of the package for this CPU. */
export function nativeKernels(): NativeKernelFiles {
  const source = fileURLToPath(new URL("../../src/native/", import.meta.url));
  const cpuInfo = existsSync("/proc/cpuinfo") ? readFileSync("/proc/cpuinfo", "utf8") : "";
  return {
    source,
    fingerprint: fingerprintOf(source),
    file: kernelFile,
    stampFile,
    // x64 names the list "flags", and ARM "Features". All cores have the same.
    cpuFlags: /^(?:flags|Features)\s*: *(.*)$/m.exec(cpuInfo)?.[1] ?? "",
  };
}

/** Returns the SHA-256 of the C++ files in a folder. */
function fingerprintOf(source: string): string {
  const hash = createHash("sha256");
  const names = readdirSync(source).filter((name) => /\.(?:cc|h)$/.test(name));
  for (const name of names.toSorted()) hash.update(readFileSync(join(source, name)));
  return hash.digest("hex");
}

/**
 * Loads the kernels that `periodic-eval native` compiled for a package, if there are some and this CPU has all instruction sets that
 * they were compiled for. Otherwise TensorFlow's own operations compute the same up to rounding, more slowly. A process warning
 * reports kernels that are damaged or belong to another version of this package.
 *
 * @param command The command that compiles the kernels, for the warning.
 * @param folder `nativeBackendFolder()` of `@periodic-eval/models`.
 */
export function loadNativeKernels(packageName: string, command: string, folder: string): void {
  const location = kernelFolder(packageName, folder);
  const path = join(location, kernelFile);
  if (!existsSync(path)) return;
  const warn = (got: string) => {
    const fix = `Run \`${command}\`. Until then generation and training are slower. Results are the same up to rounding.`;
    const expected = "kernels of this version of @periodic-eval/kernels";
    const { message } = configError({ where: path, got, expected, fix });
    process.emitWarning(message, { code: "PERIODIC_EVAL_KERNELS" });
  };
  try {
    const wanted = nativeKernels();
    const stamp = JSON.parse(readFileSync(join(location, stampFile), "utf8")) as Partial<KernelStamp> | null;
    const compiled = createHash("sha256").update(readFileSync(path)).digest("hex");
    if (stamp?.fingerprint !== wanted.fingerprint || stamp.compiled !== compiled)
      return warn("damaged kernels, or kernels compiled from other source files");
    const here = new Set(wanted.cpuFlags.split(" "));
    const flags = stamp.cpuFlags!.split(" ");
    if (!flags.every((flag) => here.has(flag))) return;
    createRequire(import.meta.url)(path);
    registerNativeKernels(lanesOf(flags));
  } catch (error) {
    warn(errorMessage(error));
  }
}

/** Returns `lanes` of vectors.h on a CPU with these instruction sets. */
export const lanesOf = (flags: readonly string[]): number =>
  flags.includes("avx512f") ? 16 : flags.includes("avx") ? 8 : 4;

/** Returns the folder of a built package's compiled kernels. */
export function kernelFolder(packageName: string, folder: string): string {
  return join(folder, basename(packageName), "node_modules", packageName, "lib", "napi-v8");
}
