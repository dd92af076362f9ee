// Programs that a new user runs first, in a project that has only the installed packages.
import { spawnSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { codeBlocks } from "../docs/markdown.mjs";
import { Missing, root } from "../steps.mjs";
import { build } from "esbuild";

const model = (project) => join(project, "node_modules", "periodic-eval", "assets", "micro-world");
const command = ["node_modules", "periodic-eval", "bin", "periodic-eval.js"].join("/");

/**
 * Bundles every import path that runs in browsers from the packages in a project.
 *
 * @returns The import paths that cannot be bundled, each with the first error.
 */
export async function bundleForBrowsers(project) {
  const entries = JSON.parse(readFileSync(join(root, "examples", "browser", "entries.json"), "utf8"));
  const problems = [];
  for (const entry of entries) {
    const stdin = { contents: `export * from ${JSON.stringify(entry)};`, resolveDir: project };
    const options = { bundle: true, platform: "browser", format: "esm", write: false, logLevel: "silent" };
    // An import of Node that browsers lack is an error of esbuild.
    await build({ ...options, stdin }).catch(({ errors: [{ text, location }] }) =>
      problems.push(`${entry} for browsers: ${location?.file}: ${text}`),
    );
  }
  console.log(
    `${problems.length === 0 ? "ok  " : "FAIL"} bundles for browsers of ${entries.length} import paths`,
  );
  return problems;
}

/** Returns a document's code blocks in one language. */
const blocksOf = (document, language) =>
  codeBlocks(readFileSync(join(root, document), "utf8").replaceAll("\r\n", "\n"))
    .filter((block) => block.language === language)
    .map(({ code }) => code);

function replaced(code, replacements, where) {
  for (const [written, used] of Object.entries(replacements)) {
    if (!code.includes(written))
      throw new Missing(
        where,
        `no ${written}`,
        "the code that the dry run changes",
        "Correct scripts/release/trials.mjs.",
      );
    code = code.replaceAll(written, used);
  }
  return code;
}

/** The README's ten lines, with fewer steps. */
const tenLines = () =>
  replaced(blocksOf("README.md", "ts")[0], { "maxSteps: 60": "maxSteps: 20" }, "README.md");

/** examples/02-model-fit.ts in a project of its own, in its short form. */
const modelFit = () =>
  replaced(
    readFileSync(join(root, "examples", "02-model-fit.ts"), "utf8"),
    {
      'import { runDir, isShort, microWorld } from "./micro-world/paths.ts";': `
const isShort = true;
const runDir = (name) => \`runs/\${name}\`;
const microWorld = (file = "") => \`node_modules/periodic-eval/assets/micro-world/\${file}\`;`,
    },
    "examples/02-model-fit.ts",
  );

const readmeOf = (folder) => `packages/${folder}/README.md`;
/** In this order: later ones read the run of `trainers`. */
const foldersWithCode = [
  "safetensors",
  "contracts",
  "data",
  "tokenizers",
  "core",
  "testing",
  "tfjs",
  "models",
  "kernels",
  "tasks",
  "trainers",
  "store",
  "loggers",
  "remote",
  "dashboard",
  "feedback",
];

/** Returns the trials: `files` by name that are written first, and `args`, the command lines of Node that must succeed. */
function trials() {
  const program = (name, code, ...more) => ({
    name,
    files: { "trial.mjs": code },
    args: [["trial.mjs"], ...more],
  });
  const verify = (run) => [command, "verify", run];
  return [
    { name: "the demo", files: {}, args: [[command, "demo", "--run-dir", "runs/demo"], verify("runs/demo")] },
    program("README.md, ten lines", tenLines(), verify("runs/1")),
    program("model.fit (examples/02-model-fit.ts)", modelFit(), verify("runs/model-fit")),
    {
      name: readmeOf("cli"),
      files: { "train.yaml": blocksOf(readmeOf("cli"), "yaml")[0] },
      args: [[command, "plan", "train.yaml"], [command, "train", "train.yaml"], verify("runs/3")],
    },
    ...foldersWithCode.map((folder) => ({
      ...program(readmeOf(folder), blocksOf(readmeOf(folder), "js")[0]),
      keepsRuns: folder !== foldersWithCode[0],
    })),
  ];
}

/**
 * Runs every trial in a project, which has the packages and `@tensorflow/tfjs`.
 *
 * @returns The names of those that failed.
 */
export function runTrials(project, { version, path }) {
  const write = (name, text) => writeFileSync(join(project, name), text);
  cpSync(model(project), join(project, "path", "to", "model"), { recursive: true });
  cpSync(join(model(project), "em.jsonl"), join(project, "rows.jsonl"));
  cpSync(join(model(project), "questions.jsonl"), join(project, "questions.jsonl"));
  const failed = [];
  for (const { name, files, args, keepsRuns } of trials()) {
    if (!keepsRuns) rmSync(join(project, "runs"), { recursive: true, force: true });
    for (const [file, text] of Object.entries(files)) write(file, text);
    const started = performance.now();
    const problem = args.map((line) => failureOf(path, line, project)).find((text) => text !== null);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    console.log(`${problem === undefined ? "ok  " : "FAIL"} Node ${version}: ${name} (${seconds} s)`);
    if (problem === undefined) continue;
    console.log(problem);
    failed.push(`${name} on Node ${version}`);
  }
  return failed;
}

/**
 * Installs the Python package into an empty environment of a Python, and reads a run of the demo with its commands.
 *
 * @param index The address of the index that has the package.
 * @param isRequired Whether a Python that is absent is a failure.
 * @returns What failed.
 */
export function runPythonTrial(project, version, index, isRequired) {
  const name = `pip install periodic-eval on Python ${version}`;
  const folder = join(project, `python-${version}`);
  const bin = (file) => join(folder, process.platform === "win32" ? "Scripts" : "bin", file);
  const started = performance.now();
  const absent = failureOf(`python${version}`, ["-m", "venv", folder], project);
  if (absent !== null) {
    const problem = `not run on Python ${version}: ${absent.split("\n")[1]}`;
    console.log(problem);
    return isRequired ? [problem] : [];
  }
  const model = "import os, periodic_eval; assert 'em.jsonl' in os.listdir(periodic_eval.MICRO_WORLD)";
  const problem = [
    [process.execPath, command, "demo", "--run-dir", "runs/python", "--steps", "2"],
    [bin("python"), "-m", "pip", "install", "--quiet", "--extra-index-url", index, "periodic-eval"],
    [bin("python"), "-c", model],
    ...["report", "verify"].map((word) => [bin("periodic-eval"), word, "runs/python"]),
    [bin("periodic-eval"), "gate", "runs/python", "--fail-on", "capability better"],
  ]
    .map(([program, ...args]) => failureOf(program, args, project))
    .find((text) => text !== null);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${problem === undefined ? "ok  " : "FAIL"} ${name} (${seconds} s)`);
  if (problem === undefined) return [];
  console.log(problem);
  return [name];
}

/** Returns the output of a program that fails, else null. */
function failureOf(program, args, cwd) {
  const env = { ...process.env, HF_HUB_OFFLINE: "1", NODE_OPTIONS: "" };
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd,
    env,
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  return status === 0 ? null : `${args.join(" ")}\n${error?.message ?? ""}${stdout}${stderr}`.trimEnd();
}
