import { existsSync, readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { defineConfig } from "vitest/config";

/** Debian's chromium includes a Vulkan driver that needs no GPU, and the Vulkan loader. */
const chromium = "/usr/lib/chromium";
const softwareDriver = `${chromium}/vk_swiftshader_icd.json`;
const softwareGpu =
  existsSync(softwareDriver) && process.env["VK_DRIVER_FILES"] === undefined
    ? { VK_DRIVER_FILES: softwareDriver, LD_LIBRARY_PATH: chromium }
    : {};

/** Contents of test files that need a process each: they mock or reload modules, or change or measure the whole process. */
const needsProcess =
  /\bvi\.(mock|doMock|resetModules)\(|\bMath\.random = |divertMathRandom|global Math\.random|\bprocess\.chdir\(|the peak of memory|\(process as NodeJS\.EventEmitter\)/;
/** Contents of test files that compute with TensorFlow.js. */
const needsEngine = /tfjs|tensorflow|\/(models|trainers|tasks|cli)"/;
const tests = ["packages", "examples", "benchmarks"]
  .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
  .map((entry) => posix.join(entry.parentPath.replaceAll("\\", "/"), entry.name))
  .filter((file) => !/\/(node_modules|dist)\//.test(file));

type Project = "alone" | "computing" | "together";

/** Returns the project of a test file. Loading modules for each file takes longer than most tests, so files share a process where they can. */
function projectOf(file: string): Project {
  const text = withTestData(file);
  if (needsProcess.test(text)) return "alone";
  if (/^packages\/(models|trainers)\//.test(file) || needsEngine.test(text)) return "computing";
  return "together";
}
const of = (project: Project) => tests.filter((file) => projectOf(file) === project);

/** Returns the text of a test and of the test data that it imports. */
function withTestData(file: string): string {
  const text = readFileSync(file, "utf8");
  const helpers = [...text.matchAll(/from "(\..*\.test-data\.ts)"/g)].map(([, path]) =>
    withTestData(posix.join(posix.dirname(file), path!)),
  );
  return [text, ...helpers].join("\n");
}

/**
 * `--mode parity` (npm run parity) also compares with Python programs and SmolLM2. `--mode full` (npm run test:full) does that too, and
 * runs the long forms of the tests: every kill point, every case.
 */
export default defineConfig(({ mode }) => ({
  ssr: { resolve: { conditions: ["@periodic-eval/source", "node", "import", "default"] } },
  test: {
    // A test that reads the hub starts one on the loopback interface.
    env: {
      ...softwareGpu,
      HF_HUB_OFFLINE: "1",
      // Two files run at a time: threads of both would wait for each other.
      PERIODIC_EVAL_WASM_THREADS: process.env["PERIODIC_EVAL_WASM_THREADS"] ?? "1",
      ...(mode === "full" && { PERIODIC_EVAL_FULL: "1" }),
      ...(mode === "parity" && { PERIODIC_EVAL_REFERENCES: "1" }),
    },
    // Detects hangs, not slowness: a shared machine can take many times as long.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    globalSetup: "scripts/temporary-folder.mjs",
    pool: "forks",
    maxWorkers: 2,
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    projects: [
      { extends: true, test: { name: "alone", include: of("alone") } },
      {
        extends: true,
        test: {
          name: "computing",
          isolate: false,
          include: of("computing"),
          setupFiles: "scripts/after-computing-file.ts",
        },
      },
      { extends: true, test: { name: "together", isolate: false, include: of("together") } },
    ],
  },
}));
