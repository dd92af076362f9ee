import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readEvalBlock } from "./eval-block.ts";

let folder = "";
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "eval-block-"))));
afterAll(() => rm(folder, { recursive: true }));

async function read(text: string) {
  const path = join(folder, "run.yaml");
  await writeFile(path, text);
  return readEvalBlock(path);
}

const text = "{ questions: q.jsonl, judge_model: rule:x, phases: { em: { baseline: ../runs/0 } } }";

it.each([
  [text, []],
  [`periodic_eval: ${text}`, ["periodic_eval"]],
  [`model: m\neval: { periodic_eval: ${text} }`, ["eval", "periodic_eval"]],
])("finds the block in %j, its paths relative to the file", async (whole, at) => {
  expect(await read(whole)).toMatchObject({
    at,
    block: {
      questions: join(folder, "q.jsonl"),
      judge_model: "rule:x",
      phases: { em: { baseline: join(folder, "../runs/0") } },
    },
  });
});

it("refuses a file with two blocks, as neither would be the one that is meant", async () => {
  await expect(read("eval: { periodic_eval: {} }\nperiodic_eval: { kl: true }")).rejects.toThrow(
    "run.yaml:2 periodic_eval: got a block beside that of eval.periodic_eval, expected one of the two",
  );
});

it("leaves what is no map to be refused", async () => {
  expect(await read("periodic_eval: [1]")).toMatchObject({ at: ["periodic_eval"], block: [1] });
});
