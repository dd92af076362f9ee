import { describe, expect, it } from "vitest";
import * as z from "zod";
import { PeriodicEvalError } from "../errors.ts";
import { filledText } from "./option-schemas.ts";
import { parseRow, rowFaults } from "./parse-row.ts";

const schema = z.strictObject({
  id: filledText().meta({ fix: "Add an id." }),
  label: z.enum(["right", "wrong"], "right or wrong"),
  parts: z.object({ list: z.array(z.string()) }, "an object of `list`").optional(),
});

describe("a row", () => {
  it("is returned with the schema's defaults and transformations", () => {
    const withDefault = z.object({ n: z.string().transform(Number), text: z.string().default("") });
    expect(parseRow("a.jsonl:1", withDefault, { n: "2", more: true }, "")).toEqual({ n: 2, text: "" });
  });

  it.each<readonly [row: unknown, message: string]>([
    [{ label: "right" }, "got no id (keys: label), expected id: a non-empty string. Add an id."],
    [{ id: " ", label: "right" }, 'got id = " ", expected id: a non-empty string. Add an id.'],
    [{ id: 7, label: "right" }, "got id = 7, expected id: a non-empty string. Put it in quotes."],
    [{ id: "a", label: "rigth" }, 'expected label: right or wrong. Did you mean "right"?'],
    [
      { id: "a", label: "right", lable: 1 },
      'got the unknown key "lable", expected some of id, label, parts.',
    ],
    [
      { id: "a", label: "right", parts: { list: [1] } },
      "got parts.list[0] = 1, expected parts.list[0]: a string",
    ],
    [{ id: "a", label: "right", parts: {} }, "got no parts.list (keys: none), expected parts.list: an array"],
    [[1], "got [1], expected an object. Write an object instead of a list."],
    [null, "got null, expected an object"],
  ])("%j is refused with its place: %s", (row, message) => {
    expect(() => parseRow("a.jsonl:3", schema, row, "Correct the row.")).toThrow(PeriodicEvalError);
    expect(() => parseRow("a.jsonl:3", schema, row, "Correct the row.")).toThrow(message);
    expect(() => parseRow("a.jsonl:3", schema, row, "Correct the row.")).toThrow("a.jsonl:3: got");
  });

  it("has all of its faults, unknown keys first", () => {
    const paths = rowFaults(schema, { label: 1, other: 2 }).map(({ path }) => path);
    expect(paths).toEqual([["other"], ["id"], ["label"]]);
  });
});
