import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { markdownTable, writeSection } from "./doc-section.ts";

let file = "";
beforeEach(async () => {
  file = join(await mkdtemp(join(tmpdir(), "section-")), "overhead.md");
});
afterEach(async () => rm(join(file, ".."), { recursive: true }));

it("replaces one section, and nothing around it", async () => {
  await writeFile(file, "# Costs\n<!-- a -->\nold\n<!-- /a -->\nbetween\n<!-- b -->\nkept\n<!-- /b -->\n");
  const table = markdownTable([
    ["case", "overhead"],
    ["demo", "9 %"],
  ]);
  for (let times = 0; times < 2; times++) await writeSection(file, "a", table);
  expect(await readFile(file, "utf8")).toBe(
    "# Costs\n<!-- a -->\n\n| case | overhead |\n|---|---|\n| demo | 9 % |\n\n<!-- /a -->\nbetween\n<!-- b -->\nkept\n<!-- /b -->\n",
  );
});

it.each(["no markers", "<!-- /a --> <!-- a -->", "<!-- a -->"])(
  "refuses %j and leaves it as it is",
  async (text) => {
    await writeFile(file, text);
    await expect(writeSection(file, "a", "table")).rejects.toThrow("expected <!-- a --> before <!-- /a -->");
    expect(await readFile(file, "utf8")).toBe(text);
  },
);

it("finds both sections in docs/explanations/overhead.md", async () => {
  const text = await readFile("docs/explanations/overhead.md", "utf8");
  await writeFile(file, text);
  for (const name of ["default-budget", "beyond-the-grace"]) await writeSection(file, name, "table");
  expect((await readFile(file, "utf8")).match(/^table$/gm)).toHaveLength(2);
});
