import { join } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { nodeFiles, type FileReader } from "@periodic-eval/store";
import { appendRun } from "@periodic-eval/tasks";
import { afterAll, beforeAll, expect, it } from "vitest";
import { oneResult } from "./one-result.test-data.ts";
import { readResults } from "./read-runs.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);
let file = "";
beforeAll(async () => {
  file = join(folder, "metrics.json");
  await appendRun(file, oneResult);
});

const withoutSamples = (error: Error): FileReader => ({
  ...nodeFiles,
  read: (path) => (path === file ? nodeFiles.read(path) : Promise.reject(error)),
});

it("reads runs, and leaves out samples that the file reader rejects", async () => {
  const details = {
    where: "samples",
    got: "a file of 90 MiB",
    expected: "at most 64 MiB",
    fix: "Move it away.",
  };
  const refusal = new PeriodicEvalError({ code: "store", ...details });
  const { runs, samples } = await readResults(file, withoutSamples(refusal));
  expect([runs.map(({ name }) => name), samples]).toEqual([["base"], [new Map()]]);
  await expect(readResults(file)).resolves.toMatchObject({ samples: [new Map()] });
});

it.each([
  Object.assign(new Error("samples: EIO"), { code: "EIO" }),
  new TypeError("samples is not a function"),
  new PeriodicEvalError({ code: "data", where: "samples", got: "a", expected: "b", fix: "c" }),
])("throws any other error: %s", async (error) => {
  await expect(readResults(file, withoutSamples(error))).rejects.toThrow(error.message);
});
