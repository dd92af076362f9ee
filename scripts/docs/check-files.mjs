// Validates the YAML and JSON Lines blocks of pages.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../steps.mjs";
import { codeBlocks } from "./markdown.mjs";

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
