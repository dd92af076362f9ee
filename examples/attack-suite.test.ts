import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { parse } from "yaml";

const textOf = (path: string) => readFileSync(new URL(`../${path}`, import.meta.url), "utf8");
const main = fileURLToPath(new URL("../scripts/attack/main.mjs", import.meta.url));
const areas = ["damage", "fuzz", "http", "callbacks"];

it("runs in the workflow of the tests for ten minutes, with a new seed", () => {
  const { jobs } = parse(textOf(".github/workflows/tests.yml")) as {
    readonly jobs: { readonly attack: { readonly steps: readonly { readonly run?: string }[] } };
  };
  expect(jobs.attack.steps.map(({ run }) => run)).toContain("npm run attack -- --minutes 10");
});

it("names its areas for a wrong one, with exit code 2", () => {
  const { status, stderr } = spawnSync(process.execPath, [main, "--area", "nothing"], { encoding: "utf8" });
  expect(status).toBe(2);
  expect(stderr).toContain(`got area nothing, expected ${areas.join(", ")}`);
});

it.each([
  ["--minutes", "0"],
  ["--minutes", "x"],
  ["--sed", "1"],
])("refuses %s %s with exit code 2", (...args) => {
  expect(spawnSync(process.execPath, [main, ...args]).status).toBe(2);
});
