import { existsSync } from "node:fs";
import { defineConfig } from "vitest/config";

/** Debian's chromium brings a Vulkan driver that needs no GPU, and the library that finds drivers. */
const chromium = "/usr/lib/chromium";
const softwareDriver = `${chromium}/vk_swiftshader_icd.json`;
const softwareGpu =
  existsSync(softwareDriver) && process.env["VK_DRIVER_FILES"] === undefined
    ? { VK_DRIVER_FILES: softwareDriver, LD_LIBRARY_PATH: chromium }
    : {};

/** `--mode full` (npm run test:full) runs the long forms: every kill point, every case. */
export default defineConfig(({ mode }) => ({
  ssr: { resolve: { conditions: ["@periodic-eval/source", "node", "import", "default"] } },
  test: {
    include: ["packages/*/src/**/*.test.ts", "examples/**/*.test.ts"],
    env: { ...softwareGpu, ...(mode === "full" && { PERIODIC_EVAL_FULL: "1" }) },
    // Against what hangs, not what is slow: machines that others use too take many times as long.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    pool: "forks",
    maxWorkers: 2,
  },
}));
