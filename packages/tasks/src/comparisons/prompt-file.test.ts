import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readAnswers, readPrompts } from "./prompt-file.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

const file = async (rows: readonly object[]) => {
  const path = join(folder, "rows.jsonl");
  await writeFile(path, rows.map((row) => JSON.stringify(row)).join("\n"));
  return path;
};
const user = (content: string) => ({ role: "user", content });

it("reads strings, chats and texts, with ids or numbers", async () => {
  const chat = [
    { role: "system", content: "Be brief." },
    user("a"),
    { role: "assistant", content: "b" },
    user("c"),
  ];
  const path = await file([
    { id: "x", prompt: "Why?" },
    { prompt: chat },
    { id: 7, prompt: { text: "Once" } },
  ]);
  const { prompts, sha256 } = await readPrompts(path, "w");
  expect(prompts).toEqual([
    { id: "x", prompt: { messages: [user("Why?")] } },
    { id: "1", prompt: { messages: chat.slice(1), system: { text: "Be brief." } } },
    { id: "7", prompt: { text: "Once" } },
  ]);
  expect(sha256).toMatch(/^[0-9a-f]{64}$/);
});

it("keeps the first prompts, or a nested subset of them", async () => {
  const path = await file(Array.from({ length: 20 }, (_, at) => ({ prompt: `p${at}` })));
  const ids = async (choice: Parameters<typeof readPrompts>[2]) =>
    (await readPrompts(path, "w", choice)).prompts.map(({ id }) => id);
  expect(await ids({ limit: 3 })).toEqual(["0", "1", "2"]);
  const five = await ids({ limit: 10, subsample: { n: 5, seed: 1 } });
  expect(five.every((id) => Number(id) < 10)).toBe(true);
  expect((await ids({ limit: 10, subsample: { n: 3, seed: 1 } })).every((id) => five.includes(id))).toBe(
    true,
  );
});

it.each([
  [{ question: "Why?" }, "no prompt (keys: question)"],
  [{ prompt: "" }, 'prompt = ""'],
  [{ prompt: [] }, "prompt = []"],
  [{ prompt: [{ role: "robot", content: "a" }] }, 'prompt[0].role = "robot"'],
  [{ prompt: [{ role: "system", content: "a" }] }, 'prompt = [{"role":"system","content":"a"}]'],
  [{ prompt: "a", id: [1] }, "id = [1]"],
  [{ prompt: "a", id: 2 ** 53 }, "id = 9007199254740992"],
  [{ prompt: "a", id: "0" }, expect.stringContaining('the id "0", which')],
])("refuses the row %j with its line", async (row, got) => {
  const path = await file([{ prompt: "first" }, row]);
  await expect(readPrompts(path, "w")).rejects.toMatchObject({ code: "data", where: `${path}:2`, got });
});

it("reads answers by id, and refuses rows without one and repeated ids", async () => {
  expect(await readAnswers(await file([{ id: "a", answer: "" }, { answer: "x" }]), "w")).toEqual({
    a: "",
    "1": "x",
  });
  for (const row of [{ id: "b" }, { id: "b", answer: 3 }, { id: "a", answer: "y" }])
    await expect(readAnswers(await file([{ id: "a", answer: "x" }, row]), "w")).rejects.toMatchObject({
      code: "data",
      where: `${join(folder, "rows.jsonl")}:2`,
    });
});
