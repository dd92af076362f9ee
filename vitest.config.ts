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
const tests = ["packages", "examples", "benchmarks"]
  .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
  .map((entry) => posix.join(entry.parentPath.replaceAll("\\", "/"), entry.name))
  .filter((file) => !/\/(node_modules|dist)\//.test(file));

/** Returns the text of a test and of the test data that it imports. */
function withTestData(file: string): string {
  const text = readFileSync(file, "utf8");
  const helpers = [...text.matchAll(/from "(\..*\.test-data\.ts)"/g)].map(([, path]) =>
    withTestData(posix.join(posix.dirname(file), path!)),
  );
  return [text, ...helpers].join("\n");
}

/**
 * The tier of a test file is in its name: `name.slow.test.ts`, `name.parity.test.ts`, else unit. Loading modules for each file takes
 * longer than most tests, so the files of a tier share processes where they can.
 */
const projects = (["unit", "slow", "parity"] as const).flatMap((tier) => {
  const files = tests.filter((file) => (/\.(slow|parity)\.test\.ts$/.exec(file)?.[1] ?? "unit") === tier);
  const alone = files.filter((file) => needsProcess.test(withTestData(file)));
  const together = files.filter((file) => !alone.includes(file));
  return [
    { extends: true as const, test: { name: `${tier}-alone`, include: alone } },
    {
      extends: true as const,
      test: { name: tier, isolate: false, include: together, setupFiles: "scripts/after-test-file.ts" },
    },
  ];
});

export default defineConfig({
  ssr: { resolve: { conditions: ["@periodic-eval/source", "node", "import", "default"] } },
  test: {
    // A test that reads the hub starts one on the loopback interface.
    env: {
      ...softwareGpu,
      HF_HUB_OFFLINE: "1",
      // Two files run at a time: threads of both would wait for each other.
      PERIODIC_EVAL_WASM_THREADS: process.env["PERIODIC_EVAL_WASM_THREADS"] ?? "1",
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
    projects,
  },
});
