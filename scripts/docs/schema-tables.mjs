// Turns a JSON Schema into Markdown tables: one row per key, with type, default and description.
import { escapeProse } from "./api-pages.mjs";

const code = (text) => `\`${String(text).replaceAll("|", "\\|")}\``;

/** Returns the alternatives of a schema, without nested `anyOf`. */
const alternatives = (schema) =>
  (schema.anyOf ?? schema.oneOf)?.flatMap(alternatives) ?? [schema];

function bounds({ minimum, exclusiveMinimum, maximum, exclusiveMaximum }) {
  const parts = [
    exclusiveMinimum !== undefined && `> ${exclusiveMinimum}`,
    minimum !== undefined && Math.abs(minimum) < Number.MAX_SAFE_INTEGER && `≥ ${minimum}`,
    exclusiveMaximum !== undefined && `< ${exclusiveMaximum}`,
    maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER && `≤ ${maximum}`,
  ].filter(Boolean);
  return parts.length === 0 ? "" : ` ${parts.join(", ")}`;
}

/** Describes the values that a schema accepts in a few words. */
function typeOf(schema) {
  // The only reference is from a JSON value to the values inside it.
  if (schema.$ref !== undefined) return "JSON value";
  const several = alternatives(schema);
  if (several.length > 1) return [...new Set(several.map(typeOf))].join(", or ");
  if (schema.const !== undefined) return code(JSON.stringify(schema.const).replaceAll('"', ""));
  if (schema.enum !== undefined) return schema.enum.map((one) => code(one)).join(", ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(", or ");
  if (schema.type === "array") {
    if (schema.prefixItems !== undefined) return `array of ${schema.prefixItems.length}`;
    const items = schema.items === undefined || schema.items === true ? "" : ` of ${typeOf(schema.items)}`;
    return `array${items}`;
  }
  if (schema.type === "null") return "`null`";
  if (schema.type === "object" || schema.properties !== undefined) return "object";
  return `${schema.type ?? "any value"}${bounds(schema)}`;
}

/** Returns the objects with keys inside a schema: itself, an array's items, a map's values. */
function objectsIn(schema, path) {
  return alternatives(schema).flatMap((one) => {
    if (one.properties !== undefined) return [{ path, schema: one }];
    if (one.items !== undefined && typeof one.items === "object") return objectsIn(one.items, `${path}[]`);
    if (typeof one.additionalProperties === "object") return objectsIn(one.additionalProperties, `${path}.<name>`);
    return [];
  });
}

const defaultOf = (schema) =>
  schema.default === undefined || (typeof schema.default === "object" && schema.default !== null && Object.keys(schema.default).length > 0 && !Array.isArray(schema.default))
    ? ""
    : code(JSON.stringify(schema.default).replaceAll('"', ""));

/** Rows of a schema's keys, and of the keys of objects inside it. */
function rowsOf(schema, prefix, skipped) {
  const keys = Object.entries(schema.properties ?? {});
  const required = new Set(schema.required);
  return keys.flatMap(([key, one]) => {
    const path = prefix === "" ? key : `${prefix}.${key}`;
    const about = escapeProse((one.description ?? "").replaceAll(/\s+/g, " "));
    const isRequired = required.has(key) && one.default === undefined;
    const row = { path, type: typeOf(one), value: isRequired ? "required" : defaultOf(one), about };
    if (skipped.has(path)) return [row];
    const inner = objectsIn(one, path).flatMap((found) => rowsOf(found.schema, found.path, skipped));
    return [row, ...inner.filter(({ path: own }, at) => inner.findIndex((other) => other.path === own) === at)];
  });
}

/**
 * Returns a table of all keys of a schema.
 *
 * @param skipped Paths whose keys stand in another table.
 * @param withDefaults Whether the schema describes input, which has defaults and required keys.
 */
export function schemaTable(schema, { skipped = new Set(), withDefaults = true } = {}) {
  const rows = rowsOf(schema, "", skipped);
  const head = withDefaults ? ["| key | type | default | |", "|---|---|---|---|"] : ["| field | type | |", "|---|---|---|"];
  return [
    ...head,
    ...rows.map(({ path, type, value, about }) =>
      withDefaults ? `| \`${path}\` | ${type} | ${value} | ${about} |` : `| \`${path}\` | ${type} | ${about} |`,
    ),
  ].join("\n");
}

/** Number of keys in a table. */
export const countRows = (table) => table.split("\n").length - 2;
