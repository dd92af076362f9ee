import { defineConfig } from "vitest/config";

/** `--mode full` (npm run test:full) runs the long forms: every kill point, every case. */
export default defineConfig(({ mode }) => ({
  ssr: { resolve: { conditions: ["@periodic-eval/source", "node", "import", "default"] } },
  test: {
    include: ["packages/*/src/**/*.test.ts", "examples/**/*.test.ts"],
    env: mode === "full" ? { PERIODIC_EVAL_FULL: "1" } : {},
    testTimeout: 60_000,
    pool: "forks",
    maxWorkers: 2,
  },
}));
