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

/**
 * Test files that need a separate process: they compute with TensorFlow.js, whose engines keep state, mock or reload modules, or
 * change state of the whole process. Recognized by their content, or by folder where all files compute.
 */
const needsProcess =
  /tfjs|tensorflow|\/(models|trainers|tasks|cli)"|\bvi\.(mock|doMock|resetModules)\(|\bMath\.random = |divertMathRandom|global Math\.random|\bprocess\.chdir\(/;
const computing = /^(examples|packages\/(cli|models|trainers))\//;
const tests = ["packages", "examples"]
  .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
  .map((entry) => posix.join(entry.parentPath.replaceAll("\\", "/"), entry.name))
  .filter((file) => !/\/(node_modules|dist)\//.test(file));
const alone = tests.filter((file) => computing.test(file) || needsProcess.test(withTestData(file)));

/** Returns the text of a test and of the test data that it imports. */
function withTestData(file: string): string {
  const text = readFileSync(file, "utf8");
  const helpers = [...text.matchAll(/from "(\..*\.test-data\.ts)"/g)].map(([, path]) =>
    withTestData(posix.join(posix.dirname(file), path!)),
  );
  return [text, ...helpers].join("\n");
}

/** `--mode full` (npm run test:full) runs the long forms of the tests: every kill point, every case. */
export default defineConfig(({ mode }) => ({
  ssr: { resolve: { conditions: ["@periodic-eval/source", "node", "import", "default"] } },
  test: {
    env: { ...softwareGpu, ...(mode === "full" && { PERIODIC_EVAL_FULL: "1" }) },
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
      { extends: true, test: { name: "alone", include: alone } },
      // The others share one module cache: loading modules for each file takes longer than the tests.
      { extends: true, test: { name: "together", isolate: false, include: tests, exclude: alone } },
    ],
  },
}));
