// The sections of the reference that are made from schemas and commands, and the map of CONTRIBUTING.md.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { packages } from "../house.mjs";
import { root } from "../steps.mjs";
import { githubSlug } from "../../docs/site/github-slug.mjs";
import { escapeProse } from "./generated-pages.mjs";
import { pathToFileURL } from "node:url";

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
  if (schema.enum !== undefined) return schema.enum.map((value) => code(value)).join(", ");
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
  return alternatives(schema).flatMap((node) => {
    if (node.properties !== undefined) return [{ path, schema: node }];
    if (node.items !== undefined && typeof node.items === "object") return objectsIn(node.items, `${path}[]`);
    if (typeof node.additionalProperties === "object")
      return objectsIn(node.additionalProperties, `${path}.<name>`);
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
  const rows = Object.entries(schema.properties ?? {}).map(([key, node]) => {
    const keyPath = path === "" ? key : `${path}.${key}`;
    const objects = options.skipped.has(keyPath) ? [] : objectsIn(node, keyPath);
    inner.push(...objects.map((object) => tablesOf(object.schema, prefix, object.path, options)));
    const about = escapeProse((node.description ?? "").replaceAll(/\s+/g, " "));
    const value = required.has(key) && node.default === undefined ? "required" : defaultOf(node);
    const notes = [typeOf(node), options.withDefaults ? value : ""].filter((part) => part !== "").join("; ");
    const keys = [...new Set(objects.map((object) => object.path))].map(
      (at) => `[keys](#${githubSlug(prefix + at)})`,
    );
    return `| ${code(key)} | ${notes} | ${[about, ...keys].join(" ")} |`;
  });
  const title = path === "" ? [] : ["", `### \`${prefix}${path}\``, ""];
  const merged = inner
    .flat()
    .filter(({ title: name }, at, all) => all.findIndex((other) => other.title === name) === at);
  return [{ title: title.join("\n"), rows }, ...merged];
}

/**
 * Returns tables of all keys of a schema, those of inner objects under their own headings.
 *
 * @param prefix Stands before the paths in headings.
 * @param skipped Paths whose keys are described elsewhere.
 * @param withDefaults Whether the schema describes input, which has defaults and required keys.
 */
function schemaTables(schema, { prefix = "", skipped = new Set(), withDefaults = true } = {}) {
  const head = withDefaults
    ? "| key | value; default | meaning |\n|---|---|---|"
    : "| field | value | meaning |\n|---|---|---|";
  return tablesOf(schema, prefix, "", { skipped, withDefaults })
    .map(({ title, rows }) => `${title}\n${head}\n${rows.join("\n")}`)
    .join("\n");
}

/** Returns the built command line as a commander program. Nothing runs. */
export async function openProgram(root) {
  const dist = (file) => import(pathToFileURL(join(root, "packages/cli/dist", file)).href);
  const { createProgram } = await dist("program.js");
  const { processTerminal } = await dist("terminal/terminal.js");
  return createProgram({ ...processTerminal, out: () => {}, err: () => {} });
}

/** Returns the commands that can be run, with their full names: `data list`. */
function commandsOf(program, prefix = "") {
  return program.commands.flatMap((command) => {
    const name = `${prefix}${command.name()}`;
    const inner = commandsOf(command, `${name} `);
    const runs = inner.length === 0 || command.createHelp().visibleArguments(command).length > 0;
    return name === "help" ? [] : [...(runs ? [{ name, command }] : []), ...inner];
  });
}

/** The help as the command prints it, 110 columns wide. */
function helpOf(command) {
  let text = "";
  command.configureOutput({
    writeOut: (part) => (text += part),
    getOutHelpWidth: () => 110,
    getErrHelpWidth: () => 110,
  });
  command.outputHelp();
  return text.trimEnd();
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

/** Returns a section for each command, with a table of contents. */
function commandSections(program) {
  const commands = commandsOf(program);
  const lines = ["| command | what it does |", "|---|---|"];
  for (const { name, command } of commands)
    lines.push(
      `| [\`${name}\`](#${name.replaceAll(" ", "-")}) | ${sentence(command.description()).replaceAll("|", "\\|")} |`,
    );
  for (const { name, command } of commands)
    lines.push("", `### ${name}`, "", "```text", helpOf(command), "```");
  return lines.join("\n");
}

const reference = join(root, "docs/reference");

const { z } = createRequire(join(root, "packages/tasks/package.json"))("zod");
const readJson = (...path) => JSON.parse(readFileSync(join(root, ...path), "utf8"));

/** Returns a line for each package and each of its rooms, from the ground up. */
function packageMap() {
  const line = (path, is) => `${path.padEnd(27)} ${is}`;
  const lines = Object.entries(packages).flatMap(([name, { is, rooms = {} }]) => [
    line(`packages/${name}/src/`, is),
    ...Object.entries(rooms)
      .filter(([, text]) => text !== "")
      .map(([room, text]) => line(`  ${room}`, text)),
  ]);
  return ["```", ...lines, "```"].join("\n");
}

/** Returns the generated sections of the reference and of CONTRIBUTING.md by name. */
export async function generatedParts() {
  const train = readJson("packages/cli/dist/train.schema.json");
  const block = readJson("packages/core/dist/config.schema.json");
  const blocks = ["phases[].periodic_eval", "periodic_eval", "eval"];
  const { suiteSchema } = await import(
    pathToFileURL(join(root, "packages/tasks/dist/suite/suite-file.js")).href
  );
  const suite = z.toJSONSchema(suiteSchema, { io: "input" });
  const { configSchema } = await import(
    pathToFileURL(join(root, "packages/feedback/dist/config/schema.js")).href
  );
  const feedback = z.toJSONSchema(configSchema, { io: "input" });
  return {
    map: packageMap(),
    commands: commandSections(await openProgram(root)),
    train: schemaTables(train, { skipped: new Set([...blocks, "phases[].config"]) }),
    block: schemaTables(block, { prefix: "periodic_eval.", skipped: new Set(["phases"]) }),
    suite: schemaTables(suite, { prefix: "suite." }),
    feedback: schemaTables(feedback, { prefix: "feedback." }),
    snapshot: schemaTables(readJson("packages/core/dist/snapshot.schema.json"), { withDefaults: false }),
  };
}

/** Returns a page with its generated sections, each between `<!-- generated: NAME -->` and `<!-- end of NAME -->`. */
export const withSections = (text, parts) =>
  text.replaceAll(/<!-- generated: (\w+) -->\n(?:[^]*?<!-- end of \1 -->\n)?/g, (section, name) =>
    parts[name] === undefined
      ? section
      : `<!-- generated: ${name} -->\n\n${parts[name].trim()}\n\n<!-- end of ${name} -->\n`,
  );

/** Returns the pages whose generated sections are not current: path, and text as it should be. */
export function stalePages(parts) {
  const pages = readdirSync(reference).filter((name) => name.endsWith(".md"));
  return [join(root, "CONTRIBUTING.md"), ...pages.map((name) => join(reference, name))]
    .map((path) => [path, readFileSync(path, "utf8")])
    .map(([path, text]) => [path, text, withSections(text, parts)])
    .filter(([, text, current]) => text !== current)
    .map(([path, , current]) => [path, current]);
}
