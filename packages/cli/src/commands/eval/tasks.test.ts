import { measure } from "@periodic-eval/core";
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, withLora } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { readMetrics } from "@periodic-eval/tasks";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { runCommand } from "../../run-command.test-data.ts";
import { microWorld } from "../../demo/micro-world.ts";
import { smallTasks, writeSmallData } from "../../config/small-tasks.test-data.ts";

let [folder, data] = ["", ""];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "eval-tasks-"));
  data = await writeSmallData(join(folder, "data"));
});
afterAll(() => rm(folder, { recursive: true }));

function run(...args: string[]) {
  return runCommand(["eval", "--model", microWorld(), ...args], smallTasks);
}
const named = (...args: string[]) => run("--tasks", "facts,facts_reply", "--data", data, ...args);
const wasm = ["--backend", "wasm"];

describe("eval --tasks", () => {
  it("prints one line per metric with the library's numbers and leaves no files", async () => {
    const temporary = await mkdtemp(join(folder, "tmp-"));
    vi.stubEnv("TMPDIR", temporary);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { code, out, err } = await named("--limit", "12", ...wasm);
    expect([code, err]).toEqual([0, expect.stringContaining("facts_reply  12 of 12")]);
    const { facts } = await smallTasks();
    const model = await loadCausalLM(microWorld());
    const evaluable = inMemory(model, await loadTokenizer(microWorld()));
    const { snapshot } = await measure(facts.open({ data: join(data, "facts"), limit: 12 }), evaluable);
    model.dispose();
    const { value, stderr, ci95 } = snapshot.metrics["acc"]!;
    const cells = out.split("\n").map((line) => line.split(/ {2,}/));
    expect(cells[0]).toEqual(["task", "metric", "filter", "value", "± stderr", "n", "95 % interval"]);
    expect(cells.find(([task]) => task === "facts_reply")).toEqual(
      expect.arrayContaining(["accuracy ↑", "12"]),
    );
    const [low, high] = ci95!.map((end) => end.toFixed(4));
    expect(cells[1]).toEqual([
      "facts",
      "acc ↑",
      "none",
      value!.toFixed(4),
      stderr!.toFixed(4),
      "12",
      `[${low}, ${high}]`,
    ]);
    expect(out).toContain("and 2 groups: --json");
    expect(existsSync("results")).toBe(false);
    expect(await readdir(temporary)).toEqual([]);
  });

  it("renders prompts as chats, which changes the numbers and is recorded", async () => {
    const results = join(folder, "chat");
    const asked = ["--limit", "12", "--results", results, "--json", ...wasm];
    const { out, code } = await named("--chat", "--system", "Be brief.", ...asked);
    expect(code).toBe(0);
    const chat = JSON.parse(out);
    expect(chat.suite.chat).toEqual({ system: "Be brief." });
    expect(chat.config_path).toBeNull();
    expect(chat.n["facts_colours/acc,none"] + chat.n["facts_others/acc,none"]).toBe(12);
    expect((await readMetrics(join(results, "metrics.json"))).runs[0]).toMatchObject({
      metrics: chat.metrics,
      ci95: chat.ci95,
    });
    const plain = JSON.parse((await named("--limit", "12", "--json", ...wasm)).out);
    expect(plain).toMatchObject({ suite: { chat: null }, folder: null });
    expect(plain.metrics).not.toEqual(chat.metrics);
    // The same settings are already measured. Other settings are another suite, which may not share the folder.
    const again = await named("--chat", "--system", "Be brief.", ...asked);
    expect(JSON.parse(again.out)).toEqual({ ...chat, measured: [] });
    const other = await named("--limit", "11", "--results", results, ...wasm);
    expect([other.code, other.out]).toEqual([1, ""]);
    expect(other.err).toContain("so that every method is measured with the same settings");
  });

  it("measures an adapter on its model, and warns of an adapter whose base has another name", async () => {
    const base = await loadCausalLM(microWorld());
    const lora = withLora(base, { rank: 2 });
    const adapter = join(folder, "adapter");
    await lora.save(adapter);
    lora.dispose();
    base.dispose();
    const asked = ["--adapter", adapter, "--limit", "4", "--json", ...wasm];
    const { code, out } = await named(...asked);
    expect(code).toBe(0);
    // The name joins model and adapter.
    expect(JSON.parse(out)).toMatchObject({ name: "micro-world_adapter", adapter });
    const config = join(adapter, "adapter_config.json");
    const other = { ...JSON.parse(await readFile(config, "utf8")), base_model_name_or_path: "org/other" };
    await writeFile(config, JSON.stringify(other));
    const warning = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const renamed = await named(...asked);
    expect([renamed.code, JSON.parse(renamed.out).name]).toEqual([0, "micro-world_adapter"]);
    expect(warning.mock.calls.flat().join("\n")).toContain("org/other");
  });
});

describe("eval --suite", () => {
  it("measures the tasks of the file, keeps results, and separates smoke results", async () => {
    const suite = join(folder, "suite.yaml");
    await writeFile(suite, "schema_version: 1\nname: small\ntasks:\n  facts: { limit: 30 }\n");
    const results = join(folder, "results");
    const asked = ["--suite", suite, "--data", data, "--results", results, "--name", "base", ...wasm];
    const { code, out } = await run(...asked);
    expect(code).toBe(0);
    expect(out).toMatch(/^facts +acc ↑ .* 30 /m);
    expect(out.split("\n").at(-1)).toBe(join(results, "jobs", "base"));
    const smoke = await run(...asked, "--smoke");
    expect(smoke.out).toMatch(/^facts +acc ↑ .* 10 /m);
    expect((await readMetrics(join(results, "metrics.json"))).runs).toHaveLength(1);
    expect((await readMetrics(join(results, "smoke", "metrics.json"))).runs).toHaveLength(1);
    expect((await run(...asked)).err).toContain("already measured");
  });

  it("uses the default suite without a file", async () => {
    const { code, err } = await run("--suite", "--data", data, "--results", join(folder, "default"));
    expect(code).toBe(1);
    expect(err).toContain('default.yaml:8 tasks.mmlu: got "mmlu", expected facts, or a part of one.');
  });
});

it("asks ARC-Challenge if nothing else is named", async () => {
  vi.stubEnv("HF_HUB_CACHE", join(folder, "none"));
  const { code, err } = await run();
  vi.unstubAllEnvs();
  expect(code).toBe(1);
  expect(err).toContain("HF_HUB_OFFLINE, but hf:allenai/ai2_arc is not in the cache");
});

describe("wrong usage fails before a model is loaded", () => {
  it.each([
    [["--questions", "q", "--tasks", "facts"], "got --questions and --tasks"],
    [["--tasks", "facts"], "required option '--data <folder>' not specified"],
    [["--tasks", "facts,,", "--data", "d"], "Expected names separated by commas."],
    [["--tasks", "facts", "--data", "d", "--shots", "-1"], "Expected an integer of 0 or more."],
    [["--tasks", "facts", "--data", "d", "--system", "Hi"], "'--system <text>' requires --chat"],
    [
      ["--tasks", "facts", "--data", "d", "--method", "cloze"],
      "'--method <names>' is for --questions and --suite, not for --tasks",
    ],
    [
      ["--suite", "--limit", "3"],
      "'--limit <number>' is for --questions and --tasks, not for --suite: the suite sets it for all methods",
    ],
    [["--questions", "q", "--name", "a"], "is for --tasks and --suite, not for --questions"],
    [["--tasks", "facts", "--data", "d", "--smoke"], "'--smoke' is for --suite, not for --tasks"],
  ])("%j", async (args, message) => {
    const { code, out, err } = await run(...args);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain(message);
  });

  it.each([
    [
      ["--tasks", "fact", "--data", "DATA"],
      '--tasks: got "fact", expected facts, or a part of one. Did you mean "facts"?',
    ],
    [["--tasks", "facts", "--data", "DATA/none"], 'none/facts/test.jsonl", which does not exist'],
    [["--tasks", "facts", "--data", "DATA/facts"], 'facts/facts/test.jsonl", which does not exist'],
    [["--tasks", "facts", "--data", "DATA", "--name", "a/b"], '--name: got "a/b"'],
    [["--suite", "DATA/none.yaml"], "none.yaml"],
  ])("%j", async (args, message) => {
    const { code, out, err } = await run(...args.map((arg) => arg.replace("DATA", data)));
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(message);
    expect(err.split("\n")).toHaveLength(1);
  });
});
