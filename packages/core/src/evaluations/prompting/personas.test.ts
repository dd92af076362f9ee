import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkPersonas, defaultPersonas, readPersonas } from "./personas.ts";

let folder: string;
beforeAll(async () => void (folder = await mkdtemp(join(tmpdir(), "periodic-eval-personas-"))));
afterAll(() => rm(folder, { recursive: true }));

async function read(text: string, name = "personas.yaml") {
  await writeFile(join(folder, name), text);
  return readPersonas(join(folder, name));
}

describe("defaultPersonas", () => {
  it("are eleven that can be told apart, one without a prompt and one with an empty one", () => {
    expect(defaultPersonas).toHaveLength(11);
    expect(checkPersonas("own", defaultPersonas)).toBe(defaultPersonas);
    expect(new Set(defaultPersonas.map(({ system }) => JSON.stringify(system))).size).toBe(11);
    expect(defaultPersonas).toContainEqual({ id: "none", system: "omit" });
    expect(defaultPersonas).toContainEqual({ id: "empty", system: { text: "" } });
  });
});

describe("readPersonas", () => {
  const expected = [
    { id: "pirate", system: { text: "You are a pirate: wild." } },
    { id: "nobody", system: "omit" },
    { id: "silent", system: { text: "" } },
    { id: "bare", system: "no_system_block" },
  ];

  it("reads a map, where null is no prompt and quotes around nothing an empty one", async () => {
    const yaml = 'pirate: "You are a pirate: wild."\nnobody: null\nsilent: ""\nbare: no_system_block\n';
    expect(await read(yaml)).toEqual(expected);
    // A key without a value is null in YAML.
    expect(await read("nobody:\n")).toEqual([{ id: "nobody", system: "omit" }]);
  });

  it("reads a list, in JSON as well", async () => {
    const list = expected.map(({ id, system }) => ({
      id,
      system: typeof system === "object" ? system.text : system === "omit" ? null : system,
    }));
    expect(await read(JSON.stringify(list), "personas.json")).toEqual(expected);
  });

  it.each([
    ["pirate", "a list of { id, system }, or a map"],
    ["[]", "at least one"],
    ["{}", "at least one"],
    ["- pirate", /personas\.yaml\[0\]: got "pirate"/],
    ["- { id: pirate }", "`system: null` is a persona without a system prompt"],
    ["- { id: pirate, system: x, sistem: y }", 'the unknown option "sistem"'],
    ["- { id: 7, system: x }", /\[0\]\.id: got 7/],
    ["a b: x", /got "a b", expected a name/],
    ["- { id: a, system: x }\n- { id: a, system: y }", /\[1\]\.id: got "a" twice/],
    ["a: x\na: y", "Map keys must be unique at line 2"],
    ["a: 3", /personas\.yaml\.a: got 3/],
    ["a: empty", 'Write "" for an empty prompt'],
    ["a: [x", /line 1/],
  ])("refuses %j, saying where and what to do", async (text, message) => {
    await expect(read(text)).rejects.toThrow(message);
  });

  it("names a file that is not there", async () => {
    await expect(readPersonas(join(folder, "gone.yaml"))).rejects.toThrow(/personas: got .*does not exist/);
  });
});

describe("checkPersonas", () => {
  it.each([
    [[], "a list of personas"],
    ["doctor", "a list of personas"],
    [[{ id: "a", system: "be brief" }], 'Write { text: "be brief" }'],
    [[{ id: "a", system: "empty" }], '{ text: "" } for an empty prompt'],
    [[{ id: "../a", system: "omit" }], /own\[0\]\.id/],
  ])("refuses %j", (personas, message) => {
    expect(() => checkPersonas("own", personas as never)).toThrow(message);
  });
});
