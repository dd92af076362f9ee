import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readEvalBlock } from "./config-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

async function read(yaml: string) {
  const path = join(folder, "run.yaml");
  await writeFile(path, yaml);
  return readEvalBlock(path);
}

const block = "{ questions: q.jsonl, judge_model: rule:x, phases: { em: { baseline: ../runs/0 } } }";

it.each([
  [block, []],
  [`periodic_eval: ${block}`, ["periodic_eval"]],
  [`model: m\neval: { periodic_eval: ${block} }`, ["eval", "periodic_eval"]],
])("finds the block in %j and resolves its paths relative to the file", async (whole, at) => {
  expect(await read(whole)).toMatchObject({
    at,
    block: {
      questions: join(folder, "q.jsonl"),
      judge_model: "rule:x",
      phases: { em: { baseline: join(folder, "../runs/0") } },
    },
  });
});

it("resolves the files of evaluations that an object turns on", async () => {
  const objects =
    "refusal: { questions: p.csv, max_tokens: 9, judge_model: folder:j }, forgetting: { text: t.txt }";
  const other = "refusal: { questions: hf:owner/prompts }, forgetting: true";
  const { block } = await read(`{ ${objects}, phases: { em: { ${other} } } }`);
  expect(block).toEqual({
    refusal: { questions: join(folder, "p.csv"), max_tokens: 9, judge_model: `folder:${join(folder, "j")}` },
    forgetting: { text: join(folder, "t.txt") },
    phases: { em: { refusal: { questions: "hf:owner/prompts" }, forgetting: true } },
  });
});

it("rejects a file with two blocks", async () => {
  await expect(read("eval: { periodic_eval: {} }\nperiodic_eval: { kl: true }")).rejects.toThrow(
    "run.yaml:2 periodic_eval: got a second block next to eval.periodic_eval, expected only one of the two",
  );
});

it("returns a block that is not a map unchanged, for core to reject", async () => {
  expect(await read("periodic_eval: [1]")).toMatchObject({ at: ["periodic_eval"], block: [1] });
});
