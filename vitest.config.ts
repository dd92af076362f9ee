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
 * Test files that compute with TensorFlow.js: recognized by their content, or by folder where all files compute. They
 * share processes, apart from the other tests: loading TensorFlow.js takes longer than most of their tests.
 */
const loadsTensorFlow = /tfjs|tensorflow|\/(models|trainers|tasks|cli)"/;
const computing = /^(examples|packages\/(cli|models|trainers))\//;
/** Test files that need a process each: they mock or reload modules, or change state of the whole process. */
const needsProcess =
  /\bvi\.(mock|doMock|resetModules)\(|\bMath\.random = |\bprocess\.chdir\(|\bregister(Backend|Kernel)\(/;
const tests = ["packages", "examples"]
  .flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
  .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
  .map((entry) => posix.join(entry.parentPath.replaceAll("\\", "/"), entry.name))
  .filter((file) => !/\/(node_modules|dist)\//.test(file));
const alone = tests.filter((file) => needsProcess.test(withTestData(file)));
const withTensorFlow = tests.filter(
  (file) => !alone.includes(file) && (computing.test(file) || loadsTensorFlow.test(withTestData(file))),
);
const others = tests.filter((file) => !alone.includes(file) && !withTensorFlow.includes(file));

const setupFiles = "scripts/after-computing-file.ts";

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
      { extends: true, test: { name: "alone", include: alone, setupFiles } },
      // The others share module caches: loading modules for each file takes longer than the tests.
      { extends: true, test: { name: "computing", isolate: false, include: withTensorFlow, setupFiles } },
      { extends: true, test: { name: "together", isolate: false, include: others } },
    ],
  },
}));
