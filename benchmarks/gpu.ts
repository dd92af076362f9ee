// Is everything right on this machine's GPU, and how fast is it, beside PyTorch on the same GPU?
// Runs the tests of parity and receipts, scoring, generation, LoRA training and a profile of its slowest kernels on a backend for GPUs,
// and writes the part `gpu` of docs/performance.md.
//   npm run bench gpu                              # webgpu: any GPU with a driver for Vulkan
//   npm run bench gpu -- --backend tfjs-node-gpu   # an NVIDIA GPU with native TensorFlow
//   npm run bench gpu -- --software                # webgpu on the driver of Debian's chromium, which computes on the CPU
//   npm run bench gpu -- --billions 1              # only PyTorch, which is measured live: a Llama of random weights in bfloat16
//   npm run bench gpu -- --billions 0.001 --device cpu
// Needs
//   - for webgpu: `npm run webgpu`, the GPU's Vulkan driver, and on Linux the package libvulkan1;
//   - for tfjs-node-gpu: `npm run native -- --gpu`, and NVIDIA's driver 525.60.13 or newer;
//   - SmolLM2-135M-Instruct in .cache/smollm2-135m-instruct;
//   - for the comparison, a Python with the packages of benchmarks/peers/requirements.txt whose torch finds the GPU
//     (`torch.cuda.is_available()`); PERIODIC_EVAL_PEERS_PYTHON is its path. Otherwise PyTorch computes on the CPU.
// Where PyTorch finds the GPU, `live.ts` also runs there with a billion weights. `--billions` runs that part alone, which needs no
// driver for Vulkan: scoring, generation, fingerprints, LoRA in TRL and in a plain loop with its twin.
// On a software driver, the embedded model and few steps show that the script works to its end; their speeds are not reported.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { resultsVariable, sendResults, type Comparison, type Results } from "./report/results.ts";
import { runBenchmark } from "./report/run-benchmark.ts";

const { values } = parseArgs({
  options: {
    backend: { type: "string", default: "webgpu" },
    software: { type: "boolean", default: false },
    model: { type: "string", default: ".cache/smollm2-135m-instruct" },
    billions: { type: "string" },
    device: { type: "string" },
  },
});
const { backend } = values;
const root = fileURLToPath(new URL("..", import.meta.url));
const chromium = "/usr/lib/chromium";
/** With a value, even an empty one, the tests do not choose the software driver. */
const environment: Record<string, string> = values.software
  ? { VK_DRIVER_FILES: `${chromium}/vk_swiftshader_icd.json`, LD_LIBRARY_PATH: chromium }
  : { VK_DRIVER_FILES: process.env["VK_DRIVER_FILES"] ?? "" };

/** A GPU as its driver describes it. */
interface Device {
  readonly name: string;
  readonly isSoftware: boolean;
}

/** Runs a program with the driver's variables, and returns its last line of output; null if it fails. */
function lastLineOf(command: string, args: readonly string[]): string | null {
  const env = { ...process.env, ...environment };
  const { status, stdout } = spawnSync(command, [...args], { cwd: root, env, encoding: "utf8" });
  return status === 0 ? stdout.trim().split("\n").at(-1)! : null;
}

/** Asks the driver in a separate process, because an incompatible driver can end the process. */
function findDevice(): Device | null {
  const asks =
    backend === "webgpu"
      ? `const { create } = await import("webgpu");
         const adapter = await create([]).requestAdapter();
         const { description, vendor, isFallbackAdapter } = adapter.info;
         const name = description || vendor;
         console.log(JSON.stringify({ name, isSoftware: isFallbackAdapter || /llvmpipe|swiftshader/i.test(name) }));`
      : `const { useBackend } = await import("@periodic-eval/models");
         await useBackend({ backend: "${backend}" });
         const tf = await import("@tensorflow/tfjs-core");
         const isSoftware = !tf.backend().isUsingGpuDevice;
         console.log(JSON.stringify({ name: isSoftware ? "the CPU" : "the GPU of native TensorFlow", isSoftware }));`;
  const line = lastLineOf(process.execPath, ["--input-type=module", "-e", asks]);
  return line === null ? null : (JSON.parse(line) as Device);
}

/** Where PyTorch computes: `cuda` where it finds a GPU. */
function findPeerDevice(): "cuda" | "cpu" {
  const python = process.env["PERIODIC_EVAL_PEERS_PYTHON"] ?? "python3";
  const printed = lastLineOf(python, ["-c", "import torch; print(torch.cuda.is_available())"]);
  return printed === "True" ? "cuda" : "cpu";
}

function checkNeeds(device: Device | null): asserts device is Device {
  const install = backend === "webgpu" ? "npm run webgpu" : "npm run native -- --gpu";
  const driver =
    backend === "webgpu"
      ? "the GPU's Vulkan driver (on Linux also the package libvulkan1)"
      : "NVIDIA's driver, 525.60.13 or newer";
  const isReady = device !== null && (values.software || !device.isSoftware);
  const got = device === null ? "no GPU" : `${device.name}, which is not a GPU`;
  const problems = [
    ...(isReady
      ? []
      : [
          `${backend}: got ${got}, expected a GPU that the backend can use. Run \`${install}\` and install ${driver}; --software tries the script without a GPU.`,
        ]),
    ...(existsSync(values.model) || device?.isSoftware
      ? []
      : [
          `${values.model}: got no such folder, expected SmolLM2-135M-Instruct. Download it, or name it with --model.`,
        ]),
  ];
  if (problems.length === 0) return;
  for (const problem of problems) console.error(`[periodic-eval] ${problem}`);
  process.exit(1);
}

/** Runs the tests that compare this backend with transformers and with wasm. Returns a sentence about them. */
function testOn({ name }: Device): string {
  const files = [
    "packages/models/src/families/families.parity.test.ts",
    "packages/cli/src/end-to-end/webgpu.test.ts",
  ];
  const vitest = `${root}/node_modules/vitest/vitest.mjs`;
  const { status } = spawnSync(process.execPath, [vitest, "run", ...files, "-t", "webgpu"], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: "inherit",
  });
  if (status !== 0) process.exitCode = 1;
  return `The tests of parity with transformers, equal scores and texts, losses and receipts ${status === 0 ? "pass" : "**fail**"} on ${name}.`;
}

async function measureOn(device: Device): Promise<Results> {
  const world = "packages/cli/assets/micro-world";
  const { isSoftware } = device;
  const peerDevice = findPeerDevice();
  const repeats = isSoftware ? "1" : "5";
  const model = ["--model", isSoftware ? world : values.model, "--device", peerDevice];
  const scoring = [
    "--backends",
    isSoftware ? backend : `${backend},peer`,
    "--scorings",
    "packed",
    "--shots",
    "0",
    "--repeats",
    repeats,
  ];
  const training = ["--backend", backend, "--device", peerDevice, "--profile", "--rounds", repeats];
  const runs: readonly (readonly [file: string, args: readonly string[]])[] = [
    [
      "scoring.ts",
      [
        ...scoring,
        ...model,
        ...(isSoftware ? ["--count", "2", "--questions", `${world}/questions.jsonl`] : []),
      ],
    ],
    [
      "generation.ts",
      [
        "--backend",
        backend,
        ...model,
        "--repeats",
        repeats,
        ...(isSoftware ? ["--batches", "1", "--tokens", "2"] : []),
      ],
    ],
    [
      "training.ts",
      [
        ...training,
        ...(isSoftware ? ["--models", "embedded", "--turn", "1", "--no-peer"] : ["--models", "smollm2"]),
      ],
    ],
  ];
  const all = peerDevice === "cuda" ? [...runs, ["live.ts", liveArgs("1", "cuda")] as const] : runs;
  const comparisons: Comparison[] = [];
  const notes: string[] = [];
  let machine = "";
  for (const [file, args] of all) {
    const { results, exitCode } = await runBenchmark(file, args, environment);
    if (exitCode !== 0) process.exitCode = 1;
    if (results === null) continue;
    machine ||= results.machine;
    comparisons.push(...results.comparisons.map((row) => ({ ...row, peer: `${row.peer} on ${peerDevice}` })));
    notes.push(...(results.notes ?? []));
  }
  return { machine: `${device.name}, ${machine}`, comparisons, notes };
}

/** Arguments of live.ts for a Llama of so many billion random weights. A tiny one only shows that the script works to its end. */
function liveArgs(billions: string, device: string): readonly string[] {
  const size =
    Number(billions) < 0.1
      ? "--threads 1 --count 20 --repeats 1 --tokens 8 --batches 1,4 --steps 10 --batch 2 --length 32"
      : "--count 200 --repeats 3 --tokens 64 --batches 1,16,64 --steps 100 --batch 4 --length 512";
  return ["--billions", billions, "--device", device, ...size.split(" ")];
}

if (values.billions !== undefined) {
  const args = liveArgs(values.billions, values.device ?? findPeerDevice());
  const { exitCode } = await runBenchmark("live.ts", args);
  process.exitCode = exitCode ?? 1;
} else if (process.env[resultsVariable] === undefined) {
  const { exitCode } = await runBenchmark("report.ts", ["--part", "gpu", "--", ...process.argv.slice(2)]);
  process.exitCode = exitCode ?? 1;
} else {
  const device = findDevice();
  checkNeeds(device);
  const software = device.isSoftware
    ? [
        "**This was a software driver, not a GPU.** The embedded model and few steps show that the script works to its end. Their speeds mean nothing.",
      ]
    : [];
  const tests = backend === "webgpu" ? [testOn(device)] : [];
  const measured = await measureOn(device);
  const comparisons = device.isSoftware ? [] : measured.comparisons;
  sendResults({ ...measured, comparisons, notes: [...software, ...tests, ...(measured.notes ?? [])] });
}
