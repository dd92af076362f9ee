import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { doneSchema, helloSchema, hostCalls, notices, trainerCalls } from "./protocol.ts";
import { liveJsonSchema } from "./json-schema.ts";

const page = readFileSync(new URL("../../../docs/reference/live-protocol.md", import.meta.url), "utf8");

/** Returns the rows of the page's tables whose first heading is `heading`, below a title. */
function rowsOf(title: string, heading: string): readonly string[] {
  const section = page.split(/^## /m).find((one) => one.startsWith(`${title}\n`))!;
  const rows: string[] = [];
  let isInside = false;
  for (const line of section.split("\n")) {
    if (!line.startsWith("|")) isInside = false;
    else if (line.startsWith(`| ${heading} |`)) isInside = true;
    else if (isInside && !line.startsWith("|---")) rows.push(line);
  }
  return rows;
}

/** Returns the names in code of a row's first cell. */
const namesIn = (row: string): readonly string[] =>
  [...row.split(" | ", 1)[0]!.matchAll(/`(\w+)`/g)].map(([, name]) => name!);

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
}

/** Returns the names of all properties of a schema, those of nested objects too. */
function propertiesOf({ properties = {}, items, anyOf = [] }: Schema): readonly string[] {
  const inner = [...Object.values(properties), ...(items ? [items] : []), ...anyOf];
  return [...Object.keys(properties), ...inner.flatMap(propertiesOf)];
}

const definitions = liveJsonSchema()["$defs"] as Readonly<Record<string, Schema>>;

it.each([
  ["calls of the trainer", rowsOf("Calls of the trainer", "call"), trainerCalls],
  ["calls of the host", rowsOf("Calls of the host", "call"), hostCalls],
  ["notices", rowsOf("Notices", "notice"), notices],
  ["fields of done", rowsOf("Calls of the trainer", "field"), { ...doneSchema.shape, ...helloSchema.shape }],
])("has the %s of the schema", (_, rows, schemas) => {
  expect([...new Set(rows.flatMap(namesIn))].sort()).toEqual(Object.keys(schemas).sort());
});

it.each(Object.keys(definitions))("names every property of %s", (definition) => {
  const [name] = definition.split(".");
  const rows = page.split("\n").filter((line) => line.startsWith("|"));
  const isField = name === "hello" || name === "done";
  const place = isField
    ? rowsOf("Calls of the trainer", "field")
    : rows.filter((row) => namesIn(row)[0] === name);
  const missing = propertiesOf(definitions[definition]!).filter(
    (property) => !new RegExp(`[\`"]${property}[\`"]`).test(place.join("\n")),
  );
  expect(missing).toEqual([]);
});
