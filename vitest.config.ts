import { existsSync } from "node:fs";
import { defineConfig } from "vitest/config";

/** Debian's chromium brings a Vulkan driver that needs no GPU, and the library that finds drivers. */
const chromium = "/usr/lib/chromium";
const softwareDriver = `${chromium}/vk_swiftshader_icd.json`;
const softwareGpu =
  existsSync(softwareDriver) && process.env["VK_DRIVER_FILES"] === undefined
    ? { VK_DRIVER_FILES: softwareDriver, LD_LIBRARY_PATH: chromium }
    : {};

const sharing = ["core", "dashboard", "models", "safetensors", "trainers"].map((name) => `packages/${name}`);
/** These replace modules, hold numbers that are global, or start processes. */
const apart = ["cli", "loggers", "remote"].map((name) => `packages/${name}`).concat("examples");

const project = (name: string, folders: readonly string[], options: { readonly isolate: boolean }) => ({
  extends: true as const,
  test: { name, include: folders.map((folder) => `${folder}/**/*.test.ts`), ...options },
});

/** `--mode full` (npm run test:full) runs the long forms: every kill point, every case. */
export default defineConfig(({ mode }) => ({
  ssr: { resolve: { conditions: ["@periodic-eval/source", "node", "import", "default"] } },
  test: {
    projects: [
      // Their files share what is loaded: TensorFlow.js alone takes a second to load, a hundred times over.
      project("shared", sharing, { isolate: false }),
      project("apart", apart, { isolate: true }),
    ],
    env: { ...softwareGpu, ...(mode === "full" && { PERIODIC_EVAL_FULL: "1" }) },
    // Against what hangs, not what is slow: machines that others use too take many times as long.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    pool: "forks",
    maxWorkers: 2,
  },
}));
