import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseHTML } from "linkedom";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sampleResults } from "../results/sample-results.test-data.ts";
import { resultsServer } from "./results-server.ts";
import { readResults } from "./sample-root.test-data.ts";

let root = "";
beforeEach(async () => void (root = await mkdtemp(join(tmpdir(), "changing-"))));
afterEach(() => rm(root, { recursive: true, force: true }));

const text = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, " ").trim();

it("marks a run that disappears during a request as unreadable, and omits it from the next page", async () => {
  for (const name of ["a", "b"]) {
    await mkdir(join(root, name));
    await writeFile(join(root, name, "metrics.json"), JSON.stringify({ runs: sampleResults.slice(0, 1) }));
  }
  const server = resultsServer({
    root,
    async readResults(file, fs) {
      if (file.startsWith("a/")) await rm(join(root, "a"), { recursive: true });
      return readResults(file, fs);
    },
  });
  const entries = async () => {
    const page = parseHTML(await (await server.request("/v1/eval")).text()).document;
    return [...page.querySelectorAll("article.run")].map((entry) => [
      text(entry.querySelector(".title")),
      text(entry.querySelector(".summary-line")),
    ]);
  };
  expect(Object.fromEntries(await entries())).toEqual({
    a: expect.stringMatching(/^unreadable /) as string,
    b: "1 model, 3 tasks",
  });
  expect(await entries()).toEqual([["b", "1 model, 3 tasks"]]);
});

it("replies 404 while the root does not exist", async () => {
  const server = resultsServer({ root });
  expect((await server.request("/v1/eval")).status).toBe(200);
  await rm(root, { recursive: true });
  const gone = await server.request("/v1/eval");
  expect([gone.status, (await gone.text()).includes(root)]).toEqual([404, false]);
  await mkdir(root);
  expect((await server.request("/v1/eval")).status).toBe(200);
});
