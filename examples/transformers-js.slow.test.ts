// Runs the sixteenth example, which needs @huggingface/transformers.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { hasTransformers, needsTransformers } from "../packages/models/src/testing/onnx.test-data.ts";
import { root } from "./doc-blocks.test-data.ts";

it.skipIf(!hasTransformers)(`measures the same accuracy with both engines (${needsTransformers})`, () => {
  const runs = mkdtempSync(join(tmpdir(), "transformers-js-"));
  try {
    const example = fileURLToPath(new URL("16-transformers-js.ts", import.meta.url));
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", "-C", "@periodic-eval/source", example],
      {
        env: {
          ...process.env,
          PERIODIC_EVAL_BACKEND: "wasm",
          PERIODIC_EVAL_SHORT: "1",
          PERIODIC_EVAL_RUNS: runs,
        },
        cwd: root,
        encoding: "utf8",
      },
    );
    expect({ status, stderr }).toMatchObject({ status: 0 });
    const [theirs, own] = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(": "));
    expect([theirs![0], own![0]]).toEqual(["transformers.js-cpu", "tfjs-wasm"]);
    expect(theirs![1]).toBe(own![1]);
  } finally {
    rmSync(runs, { recursive: true });
  }
});
