import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, it, vi } from "vitest";
import { writeJudge } from "../../../../models/src/testing/judge.test-data.ts";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

// The only test of its file, because it needs a process in which no engine has started.
it("runs the judge of a suite on the engine that --backend names, and starts no other", async () => {
  vi.stubEnv("PERIODIC_EVAL_BACKEND", "an engine that does not exist");
  const path = (name: string) => join(folder, name);
  await writeJudge(path("judge"));
  await writeFile(path("prompts.jsonl"), '{"id":"a","prompt":"Say a."}\n');
  await writeFile(path("answers.jsonl"), '{"id":"a","answer":"b"}\n');
  await writeFile(
    path("suite.yaml"),
    `schema_version: 1\nname: s\ntasks:\n  facts: { limit: 1 }\nevaluations:\n  - { win_rate: ${path("prompts.jsonl")}, reference: ${path("answers.jsonl")}, judge: "folder:${path("judge")}", max_new_tokens: 2, max_error_share: 1 }\n`,
  );
  const data = await writeSmallData(path("data"));
  const where = ["--suite", path("suite.yaml"), "--data", data, "--results", path("results")];
  const args = ["eval", "--model", microWorld(), "--backend", "wasm", ...where];
  const { code, err } = await runCommand(args, smallTasks);
  vi.unstubAllEnvs();
  expect([code, err]).toEqual([0, expect.stringContaining("win_rate")]);
});
