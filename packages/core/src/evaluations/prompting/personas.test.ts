import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { checkPersonas, defaultPersonas, readPersonas } from "./personas.ts";
import { temporaryFolder } from "../../../../testing/src/temporary-folder.test-data.ts";

const folder = temporaryFolder(afterAll);

async function read(text: string, name = "personas.yaml") {
  await writeFile(join(folder, name), text);
  return readPersonas(join(folder, name));
}

describe("defaultPersonas", () => {
  it("are eleven distinct personas, one without a prompt and one with an empty prompt", () => {
    expect(defaultPersonas).toHaveLength(11);
    expect(() => checkPersonas("own", defaultPersonas)).not.toThrow();
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

  it("reads an object, in which null means no prompt and an empty string an empty prompt", async () => {
    const yaml = 'pirate: "You are a pirate: wild."\nnobody: null\nsilent: ""\nbare: no_system_block\n';
    expect(await read(yaml)).toEqual(expected);
    // A key without a value is null in YAML.
    expect(await read("nobody:\n")).toEqual([{ id: "nobody", system: "omit" }]);
  });

  it("reads an array in JSON", async () => {
    const list = expected.map(({ id, system }) => ({
      id,
      system: typeof system === "object" ? system.text : system === "omit" ? null : system,
    }));
    expect(await read(JSON.stringify(list), "personas.json")).toEqual(expected);
  });

  it.each([
    ["pirate", "an array of { id, system }, or an object"],
    ["[]", "at least one"],
    ["{}", "at least one"],
    ["- pirate", /personas\.yaml\[0\]: got "pirate"/],
    ["- { id: pirate }", "`system: null` is a persona without a system prompt"],
    ["- { id: pirate, system: x, sistem: y }", 'the unknown option "sistem"'],
    ["- { id: 7, system: x }", /\[0\]\.id: got 7/],
    ["a b: x", /got "a b", expected a name/],
    ["- { id: a, system: x }\n- { id: a, system: y }", /\[1\]\.id: got "a" twice/],
    ["a: x\na: y", /:2: got Map keys must be unique/],
    ["a: 3", /personas\.yaml\.a: got 3/],
    ["a: empty", 'Write "" for an empty prompt'],
    ["a: [x", /personas\.yaml:1: got /],
  ])("rejects %j with its place and a fix", async (text, message) => {
    await expect(read(text)).rejects.toThrow(message);
  });

  it("names a missing file", async () => {
    await expect(readPersonas(join(folder, "gone.yaml"))).rejects.toThrow(/personas: got .*does not exist/);
  });
});

describe("checkPersonas", () => {
  it.each([
    [[], "an array of personas"],
    ["doctor", "an array of personas"],
    [[{ id: "a", system: "be brief" }], 'own.personas[0].system: got "be brief"'],
    [[{ id: "a", system: "empty" }], '{ text: "" } for an empty one'],
    [[{ id: "../a", system: "omit" }], /own\.personas\[0\]\.id/],
  ])("rejects %j", (personas, message) => {
    expect(() => checkPersonas("own", personas as never)).toThrow(message);
  });
});
