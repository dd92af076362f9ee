import { bulkTokenizer } from "@periodic-eval/core";
import { fakeTokenizer } from "@periodic-eval/testing";
import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pc from "picocolors";
import { afterAll, beforeAll, expect, it } from "vitest";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";
import { writeSmallData, smallTasks } from "../../config/small-tasks.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCli } from "../../program.ts";
import { runCommand } from "../../run-command.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { displayTokens } from "./plan-block.ts";

const folder = temporaryFolder(afterAll);
const weightless = join(folder, "weightless");
const config = join(folder, "block.yaml");
beforeAll(async () => {
  for (const name of [
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
  ])
    await cp(microWorld(name), join(weightless, name), { recursive: true });
  const data = await writeSmallData(join(folder, "data"));
  const tasks = [
    { task: "facts", data: join(data, "facts"), limit: 3 },
    { task: "facts_reply", data: join(data, "facts"), limit: 3, chat: {} },
  ];
  const margin = { good: { affirm: ["Yes."], negate: ["No."] } };
  await writeFile(join(folder, "probes.json"), JSON.stringify(margin));
  const block = { capability: false, margin: "probes.json", kl: false, evaluations: tasks };
  await writeFile(config, JSON.stringify({ periodic_eval: block }));
});
const args = ["plan", config, "--phase", "em=10", "--phase", "more=10", "--prompts", weightless];

it("prints each evaluation's first prompt split into tokens, once, without loading weights", async () => {
  const { code, out, err } = await runCommand(args, smallTasks);
  expect([code, err]).toEqual([0, ""]);
  expect(out.match(/^first prompt of facts {2}\d+ tokens$/gm)).toHaveLength(1);
  expect(out).toMatch(/│\?│ │Answer│:/);
  // The chat template's tokens are special.
  expect(out).toMatch(/^first prompt of facts_reply {2}\d+ tokens\n<\|\w+\|>│/m);
});

it("prints the same prompts in colours on a terminal", async () => {
  const [plain, seen] = [recordingTerminal(), recordingTerminal()];
  await runCli(args, plain, smallTasks);
  await runCli(args, { ...seen, colours: pc.createColors(true) }, smallTasks);
  const [text, coloured] = [plain.outputs.join("\n"), seen.outputs.join("\n")];
  // oxlint-disable-next-line no-control-regex -- matches colour codes
  expect(coloured.replaceAll(/\u001b\[\d+m/g, "")).toBe(text);
  // oxlint-disable-next-line no-control-regex -- matches a colour code
  expect(coloured).toMatch(/\u001b\[35m<\|\w+\|>/);
});

it("lists the prompts' tokens in --json, and null for an evaluation without prompts", async () => {
  const { out } = await runCommand([...args, "--json"], smallTasks);
  const callbacks: { id: string; measurement: null; prompt: { text: string }[] | null }[] =
    JSON.parse(out).callbacks;
  const promptOf = (name: string) => callbacks.find(({ id }) => id === name)!.prompt;
  expect(
    promptOf("facts")!
      .map(({ text }) => text)
      .join(""),
  ).toMatch(/\? Answer:$/);
  expect(callbacks.every(({ measurement }) => measurement === null)).toBe(true);
});

it("refuses --prompts with --model, and a file that names no model", async () => {
  expect(await runCommand([...args, "--model", weightless])).toMatchObject({
    code: 2,
    err: expect.stringContaining("cannot be used with option '--model"),
  });
  expect(await runCommand(args.slice(0, -1))).toMatchObject({
    code: 2,
    err: expect.stringContaining("required option '--prompts"),
  });
});

it("decodes each token in the context of the previous one, and shows part of a character as its id", async () => {
  // Like SentencePiece, this tokenizer strips the leading space of the first decoded token.
  const words = ["<s>", " the", " colour"];
  const decode = (ids: readonly number[], { specialTokens = true } = {}) =>
    ids
      .filter((id) => specialTokens || id > 0)
      .map((id) => words[id]!)
      .join("")
      .replace(/^ /, "");
  const texts = async (ids: readonly number[]) =>
    (await displayTokens(bulkTokenizer({ ...fakeTokenizer(), decode }), ids)).map(({ text, isSpecial }) =>
      isSpecial ? `!${text}` : text,
    );
  expect(await texts([0, 1, 2])).toEqual(["!<s>", " the", " colour"]);
  expect(await texts([1, 2])).toEqual(["the", " colour"]);
  // é is encoded as C3 A9, the bytes 195 and 169.
  const bytes = await displayTokens(bulkTokenizer(fakeTokenizer()), [97, 195, 169]);
  expect(bytes.map(({ text }) => text)).toEqual(["a", "[195]", "[169]"]);
});
