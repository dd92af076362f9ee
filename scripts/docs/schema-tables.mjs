// Turns a JSON Schema into Markdown tables: one row per key, with type, default and description.
import { githubSlug } from "../../docs/site/github-slug.mjs";
import { escapeProse } from "./api-pages.mjs";

const code = (text) => `\`${String(text).replaceAll("|", "\\|")}\``;

/** Returns the alternatives of a schema, without nested `anyOf`. */
const alternatives = (schema) => (schema.anyOf ?? schema.oneOf)?.flatMap(alternatives) ?? [schema];

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
    if (typeof one.additionalProperties === "object")
      return objectsIn(one.additionalProperties, `${path}.<name>`);
    return [];
  });
}

const defaultOf = (schema) =>
  schema.default === undefined ||
  (typeof schema.default === "object" &&
    schema.default !== null &&
    Object.keys(schema.default).length > 0 &&
    !Array.isArray(schema.default))
    ? ""
    : `default ${code(JSON.stringify(schema.default).replaceAll('"', ""))}`;

/** Tables of a schema: one for its keys, and one for each object inside it. */
function tablesOf(schema, prefix, path, options) {
  const required = new Set(schema.required);
  const inner = [];
  const rows = Object.entries(schema.properties ?? {}).map(([key, one]) => {
    const own = path === "" ? key : `${path}.${key}`;
    const objects = options.skipped.has(own) ? [] : objectsIn(one, own);
    inner.push(...objects.map((found) => tablesOf(found.schema, prefix, found.path, options)));
    const about = escapeProse((one.description ?? "").replaceAll(/\s+/g, " "));
    const value = required.has(key) && one.default === undefined ? "required" : defaultOf(one);
    const notes = [typeOf(one), options.withDefaults ? value : ""].filter((part) => part !== "").join("; ");
    const keys = [...new Set(objects.map((found) => found.path))].map(
      (at) => `[keys](#${githubSlug(prefix + at)})`,
    );
    return `| ${code(key)} | ${notes} | ${[about, ...keys].join(" ")} |`;
  });
  const title = path === "" ? [] : ["", `### \`${prefix}${path}\``, ""];
  const merged = inner
    .flat()
    .filter(({ title: own }, at, all) => all.findIndex((other) => other.title === own) === at);
  return [{ title: title.join("\n"), rows }, ...merged];
}

/**
 * Returns tables of all keys of a schema, those of inner objects under their own headings.
 *
 * @param prefix Stands before the paths in headings.
 * @param skipped Paths whose keys are described elsewhere.
 * @param withDefaults Whether the schema describes input, which has defaults and required keys.
 */
export function schemaTables(schema, { prefix = "", skipped = new Set(), withDefaults = true } = {}) {
  const head = withDefaults
    ? "| key | value; default | meaning |\n|---|---|---|"
    : "| field | value | meaning |\n|---|---|---|";
  return tablesOf(schema, prefix, "", { skipped, withDefaults })
    .map(({ title, rows }) => `${title}\n${head}\n${rows.join("\n")}`)
    .join("\n");
}
