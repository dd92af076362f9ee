// Validates the shell commands and the YAML and JSON Lines blocks of pages.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../steps.mjs";
import { codeBlocks } from "./markdown.mjs";
import { openProgram } from "./generated-sections.mjs";

/** Other programs that the pages name. They are not checked. */
const otherPrograms =
  /^(cd|cp|mkdir|wait|pip|python|torchrun|vllm|setsid|kill|npx (esbuild|serve)\b|npm (install|i|init|pack|ci|config)\b)/;

/** Returns the simple commands of a shell block: `{ words, line }`, without comments and variables. */
function simpleCommands(code, first) {
  const joined = code.replaceAll(/\\\n\s*/g, (gap) => ` ${"\0".repeat(gap.split("\n").length - 1)}`);
  let line = first;
  return joined.split("\n").flatMap((text) => {
    const at = line;
    line += 1 + (text.match(/\0/g)?.length ?? 0);
    const words = text.replaceAll("\0", "").match(/'[^']*'|"[^"]*"|&&|[;&|]|[^\s;&|]+/g) ?? [];
    const comment = words.findIndex((word) => word.startsWith("#"));
    const commands = [[]];
    for (const word of comment === -1 ? words : words.slice(0, comment))
      if (/^(&&|[;&|])$/.test(word)) commands.push([]);
      else commands.at(-1).push(word.replace(/^(['"])(.*)\1$/, "$2"));
    return commands
      .map((command) => command.slice(command.findIndex((word) => !/^[A-Z_]+=/.test(word))))
      .filter((command) => command.length > 0)
      .map((command) => ({ words: command, line: at }));
  });
}

/** Gives every command an action that does nothing, also those inside commands. */
function withoutActions(program, complaints) {
  for (const command of program.commands) {
    if (command.commands.length === 0 || command.createHelp().visibleArguments(command).length > 0)
      command.action(() => {});
    command
      .exitOverride()
      .configureOutput({ writeErr: (text) => complaints.push(text.trim()), writeOut: () => {} });
    withoutActions(command, complaints);
  }
  return program;
}

async function parse(args) {
  const complaints = [];
  const program = await openProgram(root);
  program.configureOutput({ writeErr: (text) => complaints.push(text.trim()), writeOut: () => {} });
  try {
    await withoutActions(program, complaints).parseAsync(args, { from: "user" });
    return null;
  } catch (error) {
    if (error.exitCode === 0) return null;
    return complaints[0] ?? error.message;
  }
}

/**
 * Checks the commands in `sh` blocks, and those in running text that begin with `npx periodic-eval`.
 *
 * @param pages `[path, text]` of each page.
 * @returns `{ problems, count }`
 */
export async function checkCommands(pages) {
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const problems = [];
  let count = 0;
  for (const [path, text] of pages) {
    const blocks = codeBlocks(text);
    const saved = new Set(blocks.map(({ file }) => file));
    const shell = blocks
      .filter(({ language }) => language === "sh")
      .flatMap(({ code, line }) => simpleCommands(code, line));
    const inline = text
      .split("\n")
      .flatMap((line, at) =>
        [...line.matchAll(/`(npx periodic-eval [a-z][^`…]*)`/g)].flatMap(([, code]) =>
          simpleCommands(code, at + 1),
        ),
      );
    for (const { words, line } of [...shell, ...inline]) {
      count++;
      const complain = (what) => problems.push(`docs/${path}:${line}: ${words.join(" ")}: ${what}`);
      const [name, second, ...rest] = words[0] === "npx" ? words.slice(1) : words;
      if (name === "periodic-eval") {
        const wrong = await parse([second, ...rest].filter((word) => word !== undefined));
        if (wrong !== null) complain(wrong);
      } else if (name === "npm" && ["run", "start", "test"].includes(second)) {
        const script = second === "run" ? rest[0] : second;
        if (scripts[script] === undefined) complain(`package.json has no script ${script}`);
      } else if (name === "node") {
        if (!saved.has(second)) complain(`the page does not say to save ${second}`);
      } else if (!otherPrograms.test(words.join(" ")) && name !== "tsx") complain("an unknown program");
    }
  }
  return { problems, count };
}

const { parseAllDocuments } = createRequire(join(root, "packages/data/package.json"))("yaml");
const { Ajv2020 } = createRequire(import.meta.url)("ajv/dist/2020.js");
const readSchema = (file) => JSON.parse(readFileSync(join(root, "packages", file), "utf8"));

/** The other keys that a training file needs, where a block shows only some. */
const wholeTraining = { model: "m", run_dir: "r", phases: [{ phase: "p", dataset: "d.jsonl" }] };

/** Kinds of YAML files, by a key that only they have; the first that fits counts. */
async function fileKinds() {
  const ajv = new Ajv2020({ strict: false, allErrors: true, logger: false });
  const [train, block] = ["cli/dist/train.schema.json", "core/dist/config.schema.json"].map((file) =>
    ajv.compile(readSchema(file)),
  );
  const suites = await import(pathToFileURL(join(root, "packages/tasks/dist/suite/suite-file.js")).href);
  const complaints = (validate, value) =>
    validate(value)
      ? []
      : validate.errors.map(({ instancePath, message, params }) =>
          `${instancePath} ${message} ${params.additionalProperty ?? ""}`.trim(),
        );
  return [
    { name: "workflow", fits: (value) => "jobs" in value, check: () => [] },
    {
      name: "suite",
      fits: (value) => "schema_version" in value,
      check(value) {
        try {
          suites.parseSuite(value, "suite");
          return [];
        } catch (error) {
          return [error.message];
        }
      },
    },
    // examples/custom-benchmark.slow.test.ts and packages/feedback read these two.
    { name: "benchmark", fits: (value) => "verifier" in value, check: () => [] },
    {
      name: "block",
      fits: (value) => Object.keys(value).join() === "periodic_eval",
      check: ({ periodic_eval: value }) => complaints(block, value),
    },
    {
      name: "training",
      fits: () => true,
      check: (value) => complaints(train, { ...wholeTraining, ...value }),
    },
  ];
}

function problemsOf({ language, code }, kinds) {
  if (language === "jsonl")
    return code
      .trim()
      .split("\n")
      .flatMap((line) => {
        try {
          JSON.parse(line);
          return [];
        } catch (error) {
          return [error.message];
        }
      });
  const [document] = parseAllDocuments(code);
  if (document.errors.length > 0) return document.errors.map(({ message }) => message);
  const value = document.toJS();
  return kinds.find(({ fits }) => fits(value)).check(value);
}

/**
 * Checks the YAML blocks of pages by the schema of their kind, and JSON Lines by parsing.
 *
 * @param pages `[path, text]` of each page.
 * @returns `{ problems, count }`
 */
export async function checkFiles(pages) {
  const kinds = await fileKinds();
  const blocks = pages.flatMap(([path, text]) =>
    codeBlocks(text)
      .filter(({ language }) => ["yaml", "jsonl"].includes(language))
      .map((block) => ({ path, ...block })),
  );
  const problems = blocks.flatMap((block) =>
    problemsOf(block, kinds).map((problem) => `docs/${block.path}:${block.line}: ${problem}`),
  );
  return { problems, count: blocks.length };
}
