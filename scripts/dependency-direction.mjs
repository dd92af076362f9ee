// Checks which way imports point: the arrows between packages, what core may know, no cycles between files.
// Type imports count: a type that points the wrong way is a design that points the wrong way.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";

const root = fileURLToPath(new URL("..", import.meta.url));

/** An arrow reads "imports". Every package may import core's subpaths; tests may import anything. */
const arrows = {
  core: [],
  safetensors: ["core"],
  models: ["core", "safetensors"],
  trainers: ["core", "safetensors"],
  remote: ["core"],
  loggers: ["core"],
  dashboard: ["core"],
  tasks: ["core"],
  feedback: ["core", "trainers", "remote"],
  cli: ["core", "dashboard", "trainers", "feedback", "tasks", "models", "remote", "loggers"],
};

/**
 * What a file of core must not import from outside core, by where it stands; dynamic imports count. Those of core's own files
 * do not: they are the way to what the root must not load.
 */
const coreRules = [
  { outside: ["tfjs/"], forbids: /^@tensorflow\//, why: "tfjs belongs under core/src/tfjs" },
  {
    outside: ["snapshots/", "config/"],
    forbids: /^node:/,
    why: "node: belongs under core/src/snapshots and core/src/config",
  },
  {
    outside: [],
    forbids: /^(mathjs|node:https?|undici|axios|hono)$/,
    why: "core knows no HTTP and no mathjs",
  },
];

/**
 * Folders that a package's others must not import: of core `testing` is for users' test files, `tfjs` for TensorFlow.js, `config`
 * for what configurations name, in files; of dashboard `server` listens, and pages know of no server.
 */
const subpaths = { core: ["tfjs", "testing", "config"], dashboard: ["server"] };

const packageOf = (path) => path.split("/")[1];
const packageNames = new Map(
  Object.keys(arrows)
    .map((folder) => [folder, join(root, "packages", folder, "package.json")])
    .filter(([, manifest]) => existsSync(manifest))
    .map(([folder, manifest]) => [JSON.parse(readFileSync(manifest, "utf8")).name, folder]),
);

function sources(folder) {
  return readdirSync(join(root, folder), { recursive: true })
    .map((path) => join(folder, path).split(sep).join("/"))
    .filter((path) => path.endsWith(".ts") && !/\.(test|test-data|child)\.ts$/.test(path));
}

/** Specifiers of a file: of its static imports and re-exports, and of its dynamic imports that are written out. */
function importsOf(file) {
  const text = readFileSync(join(root, file), "utf8");
  const { module } = parseSync(file, text);
  const exported = module.staticExports.flatMap(({ entries }) =>
    entries.map(({ moduleRequest }) => moduleRequest),
  );
  const fixed = [...module.staticImports.map(({ moduleRequest }) => moduleRequest), ...exported]
    .filter((request) => request !== null && request !== undefined)
    .map(({ value }) => value);
  const dynamic = module.dynamicImports
    .map(({ moduleRequest: { start, end } }) => /^(["'`])([^$]*)\1$/.exec(text.slice(start, end))?.[2])
    .filter((specifier) => specifier !== undefined);
  return { fixed, dynamic };
}

function wrongPackage(file, specifier) {
  const name = /^(@periodic-eval\/[^/]+|periodic-eval)/.exec(specifier)?.[0];
  const [from, to] = [packageOf(file), name && packageNames.get(name)];
  if (!name || from === to) return null;
  return to && arrows[from]?.includes(to) ? null : `${from} must not import ${to ?? name}`;
}

function wrongInCore(file, specifier) {
  if (packageOf(file) !== "core") return null;
  const place = file.slice("packages/core/src/".length);
  const broken = coreRules.find(
    (rule) => rule.forbids.test(specifier) && !rule.outside.some((folder) => place.startsWith(folder)),
  );
  // The testing folder runs under a test runner in Node and may use both.
  return broken && !place.startsWith("testing/") ? broken.why : null;
}

function wrongRelative(file, target) {
  if (packageOf(target) !== packageOf(file)) return "leaves its package by a relative path";
  const folder = (path) => path.split("/")[3];
  const entered = subpaths[packageOf(file)]?.find(
    (name) => folder(target) === name && folder(file) !== name && folder(file) !== "testing",
  );
  return entered ? `${packageOf(file)}'s other folders must not import ${entered}/` : null;
}

/** The first cycle reachable, as a list of files whose last imports its first; null where there is none. */
function findCycle(graph) {
  const state = new Map();
  const trail = [];
  const visit = (file) => {
    if (state.get(file) === "done") return null;
    if (state.get(file) === "open") return trail.slice(trail.indexOf(file));
    state.set(file, "open");
    trail.push(file);
    for (const next of graph.get(file) ?? []) {
      const cycle = visit(next);
      if (cycle) return cycle;
    }
    trail.pop();
    state.set(file, "done");
    return null;
  };
  for (const file of graph.keys()) {
    const cycle = visit(file);
    if (cycle) return cycle;
  }
  return null;
}

const files = readdirSync(join(root, "packages"))
  .filter((name) => existsSync(join(root, "packages", name, "src")))
  .flatMap((name) => sources(`packages/${name}/src`));
const graph = new Map();
const problems = [];

for (const file of files) {
  if (!(packageOf(file) in arrows))
    problems.push(`${file}: its package has no arrows in scripts/dependency-direction.mjs`);
  const targets = [];
  const { fixed, dynamic } = importsOf(file);
  for (const specifier of fixed) {
    const isRelative = specifier.startsWith(".");
    const target =
      isRelative &&
      relative(root, resolve(root, dirname(file), specifier))
        .split(sep)
        .join("/");
    if (isRelative) targets.push(target);
    const wrong = isRelative
      ? wrongRelative(file, target)
      : (wrongPackage(file, specifier) ?? wrongInCore(file, specifier));
    if (wrong) problems.push(`${file} imports ${specifier}: ${wrong}`);
  }
  for (const specifier of dynamic) {
    const wrong = wrongInCore(file, specifier);
    if (wrong) problems.push(`${file} imports ${specifier}: ${wrong}`);
  }
  graph.set(file, targets);
}

const cycle = findCycle(graph);
if (cycle) problems.push(`cycle: ${[...cycle, cycle[0]].join(" → ")}`);

for (const problem of problems) console.error(problem);
console.log(`${files.length} files, ${problems.length} problems`);
process.exitCode = problems.length > 0 ? 1 : 0;
