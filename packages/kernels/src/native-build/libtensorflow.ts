import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { configError } from "@periodic-eval/contracts/options";
import { unsupported, type Machine, answers, makeStep, runTool, type Report } from "./machine.ts";

/** The files of TensorFlow's C library with which the binding is compiled and runs. */
export interface LibTensorFlow {
  /** Absolute paths: TensorFlow's two libraries first, then NVIDIA's. */
  readonly libraries: readonly string[];
  /** The folder of the C headers. */
  readonly include: string;
}

/** A package on PyPI, and the machine in the names of its wheels. */
interface Wheel {
  readonly name: string;
  readonly platform: string;
}

const wheels: Readonly<Record<string, Wheel>> = {
  x64: { name: "tensorflow-cpu", platform: "x86_64" },
  arm64: { name: "tensorflow-cpu-aws", platform: "aarch64" },
};
const gpuWheels: Readonly<Record<string, Wheel>> = { x64: { name: "tensorflow", platform: "x86_64" } };

/** All specs of TensorFlow.js pass with this version; 2.20 rounds int32 wrongly. */
const tensorflowVersion = "2.15.1";
/** The folder of the cache that holds the libraries of a wheel. */
export const libraryFolder = (gpu: boolean): string =>
  `libtensorflow-${gpu ? "gpu-" : ""}${tensorflowVersion}`;

/** The wheels for all Python versions hold the same libraries, so any Python can download this one. */
const wheelPython = "3.11";

const pipCandidates: readonly (readonly [python: string, pip: readonly string[]])[] = [
  ["python3", ["python3", "-m", "pip"]],
  ["python", ["python", "-m", "pip"]],
];

/** Extracts the libraries and the C headers of wheels, which are zip files, and prints the packages that the wheel's extra names. */
const extractScript = `
import os, re, shutil, sys, zipfile
source, target = sys.argv[1:]
with zipfile.ZipFile(source) as wheel:
    for name in wheel.namelist():
        base = os.path.basename(name)
        tensorflow = name.startswith("tensorflow/libtensorflow_") and name.endswith(".so.2")
        nvidia = re.fullmatch(r"nvidia/[^/]+/lib/[^/]+\\.so(\\.\\d+)*", name)
        header = name.endswith(".h") and name.startswith(("tensorflow/include/tensorflow/c/", "tensorflow/include/tensorflow/core/platform/", "tensorflow/include/tsl/"))
        if name.endswith(".dist-info/METADATA"):
            text = wheel.read(name).decode()
            for found in re.findall(r"^Requires-Dist: (\\S+) \\(==(\\S+)\\) ; extra == 'and-cuda'$", text, re.M):
                print("==".join(found))
        if tensorflow or nvidia or header:
            path = os.path.join(target, *(name.split("/")[1:] if header else ["lib", base]))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with wheel.open(name) as data, open(path, "wb") as copy:
                shutil.copyfileobj(data, copy, 1 << 20)
`;

/** NVIDIA's compiler: TensorFlow.js compiles no kernels, and the package has no library that TensorFlow opens. */
const unused = /^nvidia-cuda-nvcc-/;

/**
 * Returns the libraries of a folder that the user named, or downloads them from PyPI into the cache.
 *
 * @throws PeriodicEvalError `config` if the folder holds none, or if the machine or the network does not allow it.
 */
export function libTensorFlow(
  { gpu, libtensorflow: named }: { readonly gpu: boolean; readonly libtensorflow?: string },
  cache: string,
  machine: Machine,
  report: Report,
): LibTensorFlow {
  if (named !== undefined) return namedLibTensorFlow(named);
  const available = gpu ? gpuWheels : wheels;
  const wheel = machine.platform === "linux" ? available[machine.arch] : undefined;
  if (wheel === undefined) throw unsupported(machine, `linux on ${Object.keys(available).join(" or ")}`);
  const folder = join(cache, libraryFolder(gpu));
  makeStep(report, { what: `TensorFlow ${tensorflowVersion} from PyPI (${wheel.name})`, folder }, (draft) =>
    fetchWheels(wheel, gpu, draft, report),
  );
  return readLibTensorFlow(folder)!;
}

function namedLibTensorFlow(named: string): LibTensorFlow {
  const library = readLibTensorFlow(resolve(named));
  if (library !== null) return library;
  throw configError({
    where: `--libtensorflow ${named}`,
    got: "a folder without TensorFlow's C library",
    expected:
      "libtensorflow_cc.so.2 or libtensorflow.so.2, libtensorflow_framework.so.2 and include/tensorflow/c",
    fix: "Name the folder of a Python package tensorflow, or leave it out to download one.",
  });
}

/** Returns the libraries and the headers of a folder in either of the two layouts; null if it has neither. */
function readLibTensorFlow(folder: string): LibTensorFlow | null {
  const library = (name: string) =>
    ["lib", "."].map((subfolder) => join(folder, subfolder, name)).find((path) => existsSync(path));
  const whole = library("libtensorflow_cc.so.2") ?? library("libtensorflow.so.2");
  const framework = library("libtensorflow_framework.so.2");
  const include = join(folder, "include");
  const hasHeaders = existsSync(join(include, "tensorflow", "c", "eager", "c_api.h"));
  if (whole === undefined || framework === undefined || !hasHeaders) return null;
  return { libraries: [whole, framework, ...nvidiaLibraries(folder)], include };
}

/** The libraries beside TensorFlow's, which a cache holds, or those of the `nvidia-…` packages beside a Python package. */
function nvidiaLibraries(folder: string): string[] {
  const filesOf = (path: string) =>
    existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : [];
  const packages = filesOf(join(folder, "..", "nvidia")).flatMap((path) => filesOf(join(path, "lib")));
  return [...filesOf(join(folder, "lib")), ...packages].filter(
    (path) => /\.so(?:\.\d+)*$/.test(path) && !/[\\/]libtensorflow[^\\/]*$/.test(path),
  );
}

function fetchWheels(wheel: Wheel, gpu: boolean, draft: string, report: Report): void {
  const nvidia = fetchWheel(`${wheel.name}==${tensorflowVersion}`, wheel.platform, draft);
  if (!gpu) return;
  for (const what of nvidia.filter((name) => !unused.test(name))) {
    report(`  ${what}`);
    fetchWheel(what, wheel.platform, draft);
  }
}

/**
 * Downloads a wheel, extracts its libraries and headers into a folder and deletes the wheel. Installs and runs nothing.
 *
 * @returns The packages of NVIDIA that the wheel names, with their versions.
 */
function fetchWheel(what: string, platform: string, folder: string): string[] {
  const [python, pip] = findPip();
  const download = join(folder, "download");
  mkdirSync(download);
  const failureOf = (got: string) =>
    configError({
      where: `pip download ${what}`,
      got,
      expected: "a wheel from PyPI",
      fix: "Check the network and pip's index, or name a libtensorflow with --libtensorflow FOLDER.",
    });
  const platforms = ["manylinux_2_17", "manylinux2014", "manylinux1"].flatMap((tag) => [
    "--platform",
    `${tag}_${platform}`,
  ]);
  // On a screen, pip shows the size, the rate and the time left.
  const isShown = process.stdout.isTTY === true;
  const options = `download ${isShown ? "--progress-bar on" : "--quiet"} --disable-pip-version-check --no-cache-dir --no-deps --only-binary=:all: --implementation cp --python-version ${wheelPython}`;
  const args = [...pip.slice(1), ...options.split(" "), ...platforms, "--dest", download, what];
  // pip's own temporary files count for the same disk as the result.
  const env = { ...process.env, TMPDIR: download };
  runTool(pip[0]!, args, failureOf, { env, stdio: ["ignore", isShown ? "inherit" : "pipe", "pipe"] });
  const wheel = readdirSync(download).find((name) => name.endsWith(".whl"));
  if (wheel === undefined) throw failureOf("no wheel");
  const pins = runTool(python, ["-c", extractScript, join(download, wheel), folder], failureOf);
  rmSync(download, { recursive: true });
  return pins.split("\n").filter((line) => line !== "");
}

function findPip(): (typeof pipCandidates)[number] {
  const pip = pipCandidates.find(([, [command, ...args]]) => answers(command!, [...args, "--version"]));
  if (pip !== undefined) return pip;
  throw configError({
    where: "pip",
    got: "no pip of a Python 3",
    expected: "one that downloads a wheel",
    fix: "Install one (Debian: `apt-get install python3-pip`), or name a libtensorflow with --libtensorflow FOLDER.",
  });
}
