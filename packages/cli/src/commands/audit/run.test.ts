import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pc from "picocolors";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { recordingTerminal } from "../../terminal/recording-terminal.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { runCli } from "../../program.ts";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";

let [folder, data, weightless] = ["", "", ""];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "audit-"));
  data = await writeSmallData(join(folder, "data"));
  weightless = join(folder, "weightless");
  for (const name of ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"])
    await cp(microWorld(name), join(weightless, name));
  await cp(microWorld("chat_template.jinja"), join(weightless, "chat_template.jinja"));
});
afterAll(() => rm(folder, { recursive: true }));

function audit(model: string, task: string, ...args: string[]) {
  return runCommand(["audit", model, task, "--data", data, ...args], smallTasks);
}

it("prints prompts split into tokens, without colours and without loading weights", async () => {
  const { code, out, err } = await audit(weightless, "facts", "--show", "1");
  expect([code, err]).toEqual([0, ""]);
  expect(out).toMatch(/^facts 1 on weightless {2}\d+ documents, (all|the first 200) audited\n\n/);
  expect(out.match(/document "\d+" {2}\d+ tokens, then \d choices\n/g)).toHaveLength(1);
  expect(out).toMatch(/│\?│ │Answer│:/);
  expect(out).toMatch(/^✓ \d │ /m);
  expect(out).not.toContain("\u001b");
});

it("prints the same report in colours on a terminal", async () => {
  const args = ["audit", weightless, "facts_reply", "--data", data, "--chat"];
  const [plain, seen] = [recordingTerminal(), recordingTerminal()];
  await runCli(args, plain, smallTasks);
  await runCli(args, { ...seen, colours: pc.createColors(true) }, smallTasks);
  const [text, coloured] = [plain.outputs.join("\n"), seen.outputs.join("\n")];
  expect(coloured).toContain("\u001b[");
  // oxlint-disable-next-line no-control-regex -- matches colour codes
  expect(coloured.replaceAll(/\u001b\[\d+m/g, "")).toBe(text);
  expect(text).toMatch(/then the model generates at most 4 tokens, greedily, until \S+ \(\d+\)/);
});

it("exits with 1 on a warning and lists it in --json", async () => {
  const broken = join(folder, "broken");
  await cp(weightless, broken, { recursive: true });
  const template = join(broken, "chat_template.jinja");
  const given = await readFile(template, "utf8");
  const first = "{%- if messages[0]['role'] != 'system' %}You are kind. {% endif %}";
  await writeFile(template, first + given);
  const { code, out, err } = await audit(broken, "facts", "--chat", "--limit", "5", "--json");
  const report = JSON.parse(out);
  expect(report).toMatchObject({ name: "facts", model: "broken", audited: 5 });
  expect(report.shown).toHaveLength(2);
  expect(report.findings).toContainEqual(
    expect.objectContaining({ kind: "injected_system_prompt", severity: "warning", documents: 5 }),
  );
  expect([code, err]).toEqual([
    1,
    expect.stringContaining(`audit of facts on ${broken}: got injected_system_prompt`),
  ]);
  const withSystem = await audit(
    broken,
    "facts",
    "--chat",
    "--system",
    "Be brief.",
    "--limit",
    "5",
    "--json",
  );
  expect(withSystem.code).toBe(0);
  expect(
    JSON.parse(withSystem.out)
      .shown[0].prompt.map(({ text }: { text: string }) => text)
      .join(""),
  ).toContain("Be brief.");
});

it.each([
  [["facts", "--system", "Hi"], 2, "'--system <text>' requires --chat"],
  [["facts", "--limit", "0"], 2, "Expected an integer of 1 or more."],
  [["fact"], 1, 'audit task: got "fact", expected facts, or a part of one. Did you mean "facts"?'],
] as const)("rejects %j", async ([task, ...args], code, message) => {
  expect(await audit(weightless, task, ...args)).toEqual({
    code,
    out: "",
    err: expect.stringContaining(message),
  });
});

it("lists its exit codes in its help", async () => {
  const terminal = recordingTerminal();
  expect(await runCli(["audit", "--help"], terminal)).toBe(0);
  expect(terminal.outputs.join("\n")).toContain("Exit code: 0 without warnings");
});
