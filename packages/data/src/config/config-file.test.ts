import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { readConfigFile } from "./config-file.ts";
import { cpuSeconds } from "../../../testing/src/cpu-seconds.test-data.ts";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

async function read(text: string, overrides: Parameters<typeof readConfigFile>[1] = []) {
  const path = join(folder, "train.yaml");
  await writeFile(path, text);
  const file = await readConfigFile(path, overrides);
  return {
    ...file,
    where: (at: readonly (string | number)[]) => file.where(at).replace(join(folder, "/"), ""),
  };
}

const text = `model: a
shared: &shared { seed: 1 }
phases:
  - phase: coupling
    config: *shared
  - phase: em
    config: *shared
`;

describe("a configuration file", () => {
  it("applies overrides by keys and indexes, with values in YAML, and creates missing objects", async () => {
    const { value } = await read(text, [
      "phases.1.config.maxSteps=10",
      "phases.0.phase=first",
      "lora.targetModules=[q_proj, v_proj]",
      "model=owner/name=x",
      "shared=",
    ]);
    expect(value).toEqual({
      model: "owner/name=x",
      shared: null,
      // An alias is a copy: the first phase has no maxSteps.
      phases: [
        { phase: "first", config: { seed: 1 } },
        { phase: "em", config: { seed: 1, maxSteps: 10 } },
      ],
      lora: { targetModules: ["q_proj", "v_proj"] },
    });
  });

  // About 30 ms; comparing each key with every other takes 14 s.
  it("reads 40,000 keys in time proportional to their number, and refuses a repeated one at its line", async () => {
    const keys = Array.from({ length: 40_000 }, (_, i) => `key${i}: ${i}\n`);
    const seconds = await cpuSeconds(async () => {
      const { value } = await read(keys.join(""));
      expect(Object.keys(value as object).length).toBe(40_000);
    });
    expect(seconds).toBeLessThan(5);
    const repeated = read([...keys.slice(0, 9), "key3: 1\n"].join(""));
    await expect(repeated).rejects.toMatchObject({
      where: join(folder, "train.yaml:10"),
      got: "Map keys must be unique",
    });
    await expect(read("a: { b: 1, c: { d: 1, d: 2 } }")).rejects.toMatchObject({ code: "config" });
  });

  it.each([
    ["arrays", "[".repeat(10_000) + "]".repeat(10_000)],
    ["open arrays", "[".repeat(10_000)],
    ["objects", "{a: ".repeat(10_000) + "1" + "}".repeat(10_000)],
    ["indented maps", Array.from({ length: 260 }, (_, i) => " ".repeat(i) + "a:").join("\n")],
    ["list items", "- ".repeat(10_000) + "1"],
    [
      "aliases of aliases",
      Array.from({ length: 12 }, (_, i) => {
        const inner = i === 0 ? "1" : `*a${i - 1}`;
        return `k${i}: &a${i} ${"[".repeat(490)}${inner}${"]".repeat(490)}`;
      }).join("\n"),
    ],
    ["lists that the stack still holds", "[".repeat(510) + "]".repeat(510)],
  ])("refuses too deeply nested %s", async (_, nested) => {
    await expect(read(nested)).rejects.toMatchObject({ code: "config", fix: "Nest fewer values." });
  });

  it("locates a value by file and line or by its override, and a missing value by the object that lacks it", async () => {
    const { where } = await read(text, ["phases.1.config.maxSteps=10"]);
    expect(where(["phases", 1, "phase"])).toBe("train.yaml:6 phases.1.phase");
    expect(where(["phases", 1, "dataset"])).toBe("train.yaml:6 phases.1.dataset");
    expect(where(["phases", 1, "config", "maxSteps"])).toBe(
      "phases.1.config.maxSteps=10 (phases.1.config.maxSteps)",
    );
    expect(where([])).toBe("train.yaml:1");
  });

  it("locates a value by the flag that set it, also if the file lacks the object that contains it", async () => {
    const { where, value } = await read(text, [
      { text: "engine.vllm=http://a", flag: "--engine" },
      "lora.rank=2",
    ]);
    expect(value).toMatchObject({ engine: { vllm: "http://a" } });
    expect([["engine"], ["engine", "vllm"], ["lora"]].map(where)).toEqual([
      "--engine",
      "--engine",
      "lora.rank=2 (lora)",
    ]);
    expect(where([])).toBe("train.yaml:1");
  });

  it.each([
    ["phases.2.phase=x", '"2", expected an index of phases, which has 2 entries from 0'],
    ["phases.em.phase=x", '"em", expected an index of phases'],
    ["model.path=x", 'model "a", expected an object or an array that contains "path"'],
    ["phases.0", '"phases.0", expected key.key.0.key=value'],
    ["phases..0=1", "expected key.key.0.key=value"],
    ["=1", "expected key.key.0.key=value"],
    ["model=[a", "expected a value in YAML"],
  ])("rejects the override %s", async (override, message) => {
    const error = await read(text, [override]).catch((thrown: unknown) => thrown);
    expect(PeriodicEvalError.is(error, "config")).toBe(true);
    expect(String(error)).toContain(`override ${override}: got `);
    expect(String(error)).toContain(message);
  });

  it("rejects an override of a prototype", async () => {
    for (const override of ["__proto__.x=1", "shared.__proto__=1", "shared.__proto__.x=1"])
      await expect(read(text, [override])).rejects.toThrow(
        `override ${override}: got the key "__proto__", expected another key`,
      );
    // `constructor` is an ordinary key here.
    const { value } = await read(text, ["constructor.x=1"]);
    expect(Object.hasOwn(value as object, "constructor")).toBe(true);
    expect("x" in {} || "x" in Object).toBe(false);
  });

  it("reports the line of invalid YAML", async () => {
    await expect(read("model: a\nphases: [1\n")).rejects.toThrow(
      /train\.yaml:\d: got .*, expected YAML or JSON/,
    );
    await expect(read("model: a\nmodel: b\n")).rejects.toThrow(/train\.yaml:2: got Map keys must be unique/);
  });

  it.each([
    ["phases:\n- phase: em\n dataset: d\n", 3, "Indent the keys of one object equally"],
    ["phases:\n  - phase: em\n      dataset: d\n", 2, "Indent the keys of one object equally"],
    ["block:\n    a: true\n   b: x\n", 3, "Indent the keys of one object equally"],
    ["block:\n\ta: true\n", 2, "Indent with spaces instead of tabs."],
    ['a: "x\n', 1, "Correct the file at that line, and quote strings"],
  ])("names the remedy of a wrong indentation: %j", async (wrong, line, fix) => {
    const error = await read(wrong).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ fix: expect.stringContaining(fix) });
    expect((error as PeriodicEvalError).where).toMatch(new RegExp(`train\\.yaml:[${line}${line + 1}]$`));
  });

  it("reports the place of an alias without an anchor, or of one that contains itself", async () => {
    await expect(read("model: a\nconfig: *shared\n")).rejects.toThrow(
      /^\[periodic-eval\] .*train\.yaml:2: got Unresolved alias .*: shared, expected aliases/,
    );
    await expect(read("config: &all { seed: 1, again: *all }\n")).rejects.toThrow(
      /^\[periodic-eval\] .*train\.yaml:1: got the alias \*all in its own value/,
    );
  });
});
