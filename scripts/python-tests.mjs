// Runs the tests of the Python package, with the program that was built here as their host.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { peersPython, root } from "./steps.mjs";

const project = join(root, "packages", "python");
const reports = join(root, ".cache", "tests");

/** Runs pytest in the package's folder, and returns its exit status. */
function pytest(...args) {
  const host = `${process.execPath} ${join(root, "packages", "cli", "bin", "periodic-eval.js")} live`;
  const env = { ...process.env, PERIODIC_EVAL_HOST: host, HF_HUB_OFFLINE: "1" };
  const { status, error } = spawnSync(peersPython, ["-m", "pytest", ...args], {
    cwd: project,
    env,
    stdio: "inherit",
  });
  if (error)
    console.error(
      `[periodic-eval] PERIODIC_EVAL_PEERS_PYTHON: got ${error.message}, expected a Python with benchmarks/peers/requirements.txt and packages/python/requirements.txt. Install them there.`,
    );
  return status ?? 1;
}

/** Runs pytest, and returns its exit status. Writes its report to .cache/tests/python.json in the form of vitest's. */
export function runPythonTests(args) {
  const [xml, json] = [join(reports, "python.xml"), join(reports, "python.json")];
  mkdirSync(reports, { recursive: true });
  for (const report of [xml, json]) rmSync(report, { force: true });
  const status = pytest(`--junitxml=${xml}`, ...args);
  if (existsSync(xml)) writeFileSync(json, JSON.stringify(reportOf(readFileSync(xml, "utf8"))));
  return status;
}

const cases = /<testcase classname="([^"]*)" name="([^"]*)"[^>]*?(?:\/>|>([^]*?)<\/testcase>)/g;
const characters = { "&lt;": "<", "&gt;": ">", "&quot;": '"', "&amp;": "&", "&#10;": "\n" };
const text = (escaped) => escaped.replaceAll(/&.*?;/g, (entity) => characters[entity] ?? entity);

function reportOf(xml) {
  const assertionResults = [...xml.matchAll(cases)].map(([, file, name, inner = ""]) => {
    const [, kind, message = ""] = /<(failure|error|skipped)[^>]*? message="([^"]*)"/.exec(inner) ?? [];
    const status = kind === undefined ? "passed" : kind === "skipped" ? kind : "failed";
    return { status, fullName: text(`${file} ${name}`), failureMessages: [text(message)] };
  });
  return { testResults: [{ name: project, status: "passed", assertionResults }] };
}
