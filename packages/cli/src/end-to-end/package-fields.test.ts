import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, expect, it } from "vitest";

const script = new URL("../../../../scripts/package-fields.mjs", import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), "fields-"));
afterAll(() => rmSync(folder, { recursive: true }));

function write(file: string, content: unknown): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true });
  writeFileSync(join(folder, file), typeof content === "string" ? content : JSON.stringify(content));
}

/** Returns the files that `npm run fields` changes in the project, with their new text. */
function findDifferences(): Readonly<Record<string, string>> {
  const code = `import { findDifferences } from ${JSON.stringify(script)};
    console.log(JSON.stringify(Object.fromEntries(findDifferences(${JSON.stringify(folder)}))));`;
  const { stdout } = spawnSync(process.execPath, ["--input-type=module", "--eval", code], {
    encoding: "utf8",
  });
  return JSON.parse(stdout) as Readonly<Record<string, string>>;
}

const root = {
  license: "MIT",
  author: "The authors",
  engines: { node: ">=20" },
  repository: { type: "git", url: "git+https://github.com/new-owner/new-name.git" },
};
const manifest = {
  name: "@periodic-eval/small",
  description: "A package that shows the check.",
  keywords: ["a", "b", "c", "d", "e"],
  files: ["dist", "CHANGELOG.md"],
};

it("writes the root's repository address into packages and files", () => {
  write("package.json", root);
  write("packages/small/package.json", manifest);
  for (const file of ["CITATION.cff", "CODE_OF_CONDUCT.md", "packages/python/pyproject.toml"])
    write(file, "see https://github.com/old/name/issues");
  write(".github/ISSUE_TEMPLATE/config.yml", "url: https://github.com/new-owner/new-name/security");
  const changes = findDifferences();
  expect(Object.keys(changes).sort()).toEqual([
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "packages/python/pyproject.toml",
    "packages/small/package.json",
  ]);
  expect(changes["CITATION.cff"]).toBe("see https://github.com/new-owner/new-name/issues");
  expect(JSON.parse(changes["packages/small/package.json"]!)).toEqual({
    ...manifest,
    license: "MIT",
    author: "The authors",
    engines: { node: ">=20" },
    homepage: "https://github.com/new-owner/new-name/tree/main/packages/small#readme",
    bugs: { url: "https://github.com/new-owner/new-name/issues" },
    repository: { ...root.repository, directory: "packages/small" },
    publishConfig: { access: "public", provenance: true },
  });
});
