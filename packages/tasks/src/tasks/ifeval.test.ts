import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measure, type Json, type Prompt } from "@periodic-eval/core";
import { evaluationConformance, fakeModel } from "@periodic-eval/testing";
import { afterAll, describe, expect, it } from "vitest";
import { ifeval } from "./ifeval.ts";
import { folderWith, linesOf } from "./small-rows.test-data.ts";
import { tasks } from "./registry.ts";

const record = (key: number, prompt: string, instructions: Readonly<Record<string, Json>>) => ({
  key,
  prompt,
  instruction_id_list: Object.keys(instructions),
  kwargs: Object.values(instructions),
});
const records = [
  record(1000, "Say hello without a comma, at most three words.", {
    "punctuation:no_comma": {},
    "length_constraints:number_words": { num_words: 4, relation: "less than" },
  }),
  record(1001, "A title, please.", { "detectable_format:title": {} }),
  record(1005, "Two bullets.", { "detectable_format:number_bullet_lists": { num_bullets: 2 } }),
];
const replies: Readonly<Record<string, string>> = {
  [records[0]!.prompt]: "Sure, here it is:\nHello you there.",
  [records[1]!.prompt]: "Sure:\n<<One>>",
  [records[2]!.prompt]: "* a\n* b",
};

const data = await mkdtemp(join(tmpdir(), "ifeval-"));
await writeFile(join(data, "input_data.jsonl"), linesOf(records));
afterAll(() => rm(data, { recursive: true }));
const scripted = () => fakeModel({ reply: (prompt) => replies[prompt] ?? null });
const ids = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id).toSorted();

describe("ifeval", () => {
  for (const check of evaluationConformance(() => ({ evaluation: ifeval.open({ data }), model: scripted() })))
    it(check.name, check.run);

  it("is registered under its name", () => {
    expect(tasks["ifeval"]).toBe(ifeval);
    expect(ifeval.defaultShots).toBe(0);
  });

  it("sends the prompt unchanged, greedily, with at most 1,280 new tokens and no stop string", async () => {
    const sent: unknown[] = [];
    const reply = (prompt: string, { maxNewTokens, temperature, stop }: Record<string, unknown>) => {
      sent.push([prompt, maxNewTokens, temperature, stop ?? []]);
      return "";
    };
    await measure(ifeval.open({ data, limit: 1 }), fakeModel({ reply: reply as never }));
    expect(sent).toEqual([[records[0]!.prompt, 1280, 0, []]]);
  });

  it("reports the shares of followed prompts and instructions, strict and loose", async () => {
    const { snapshot, rows } = await measure(ifeval.open({ data }), scripted());
    const scores = Object.fromEntries((rows as never as ScoredRow[]).map(({ item, score }) => [item, score]));
    // The first line has a comma and too many words; the loose score removes it.
    expect(scores).toEqual({
      "0": { strict: [false, false], loose: [true, true] },
      "1": { strict: [true], loose: [true] },
      "2": { strict: [true], loose: [true] },
    });
    expect(snapshot.metrics).toMatchObject({
      prompt_level_strict_acc: { value: 2 / 3, n: 3 },
      inst_level_strict_acc: { value: 2 / 4 },
      prompt_level_loose_acc: { value: 1, n: 3 },
      inst_level_loose_acc: { value: 1 },
    });
    expect(snapshot.primary_metric).toBe("prompt_level_strict_acc");
  });

  it("measures the first documents of the file, or a subset of these", async () => {
    const first = await ifeval.open({ data, limit: 2 }).items(scripted() as never);
    expect(ids(first)).toEqual(["0", "1"]);
    const some = await ifeval
      .open({ data, limit: 2, subsample: { n: 1, seed: 42 } })
      .items(scripted() as never);
    expect(some.length).toBe(1);
    expect(["0", "1"]).toContain(some[0]!.id);
  });

  it("sends a chat that starts with a system message", async () => {
    const evaluation = ifeval.open({ data, limit: 1, chat: { system: "Be brief." } });
    const [item] = (await evaluation.items(scripted() as never)) as readonly { readonly prompt: Prompt }[];
    expect(item!.prompt).toEqual({
      messages: [{ role: "user", content: records[0]!.prompt }],
      system: { text: "Be brief." },
    });
  });

  it("truncates a prompt on the left if the context is too short, and counts it", async () => {
    const { snapshot } = await measure(ifeval.open({ data }), fakeModel({ contextLength: 1280 + 20 }));
    // With one token per letter, only "A title, please." and "Two bullets." fit.
    expect(snapshot).toMatchObject({ truncated: 1, overflows: 0, num_samples: 3 });
  });

  it("reads the hub's file, which contains nulls", async () => {
    const nulls = { num_bullets: null, relation: null };
    const rows = records.map((row) => ({
      ...row,
      kwargs: row.kwargs.map((given) => ({ ...nulls, ...(given as object) })),
    }));
    const folder = await folderWith({ "ifeval_input_data.jsonl": linesOf(rows) });
    expect((await ifeval.open({ data: folder }).items(scripted() as never)).length).toBe(3);
  });

  it("names the line of invalid data", async () => {
    const folder = await folderWith({
      "input_data.jsonl": linesOf([records[1]!, { ...records[2]!, kwargs: [{}] }]),
    });
    await expect(ifeval.open({ data: folder }).items(scripted() as never)).rejects.toThrow(
      /input_data\.jsonl:2 \(key 1005\), kwargs\[0\] of detectable_format:number_bullet_lists: got no num_bullets/u,
    );
  });

  it("rejects few-shot examples", () => {
    expect(() => ifeval.open({ data, shots: 2 })).toThrow(/ifeval options\.shots: got 2, expected 0/u);
  });
});

interface ScoredRow {
  readonly item: string;
  readonly score: Json;
}

const shared = "../shared/data/ifeval";

describe.skipIf(!existsSync(shared))(`${shared}${existsSync(shared) ? "" : " (absent)"}`, () => {
  it("sends all 541 documents with 834 instructions", async () => {
    const sent = new Set<string>();
    const model = fakeModel({
      reply: (prompt) => {
        sent.add(prompt);
        return "My answer is no.";
      },
    });
    const { snapshot, rows } = await measure(ifeval.open({ data: shared }), model);
    const prompts = readFileSync(`${shared}/input_data.jsonl`, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { readonly prompt: string }).prompt);
    expect([rows.length, prompts.length]).toEqual([541, 541]);
    expect(sent).toEqual(new Set(prompts));
    expect(snapshot).toMatchObject({ num_samples: 541, scored: 541, truncated: 0 });
    expect(snapshot.metrics["prompt_level_strict_acc"]!.n).toBe(541);
    const scores = (
      rows as never as readonly { readonly score: { readonly strict: readonly boolean[] } }[]
    ).map(({ score }) => score.strict);
    expect(scores.flat().length).toBe(834);
    expect(snapshot.metrics["inst_level_strict_acc"]!.value).toBeCloseTo(
      scores.flat().filter(Boolean).length / 834,
      12,
    );
  });
});
