import { expect, it } from "vitest";
import { join } from "node:path";
import { fileStore } from "@periodic-eval/store";
import { exampleSnapshot } from "@periodic-eval/testing";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { resultsServer } from "./results-server.ts";

it("serves the same page to all clients until a file changes", async () => {
  const root = temporaryFolder();
  const store = fileStore(join(root, "run"));
  await store.put(exampleSnapshot({ phase: "em", step: 50 }), []);
  const server = resultsServer({ root });
  const page = async () => (await server.request("/v1/eval?results_dir=run")).text();
  await new Promise((resolve) => setTimeout(resolve, 80));
  const [first, second] = await Promise.all([page(), page()]);
  expect(second).toBe(first);
  await store.put(exampleSnapshot({ phase: "em", step: 100 }), []);
  expect(await page()).toContain('"step":100');
  await store.close!();
});

it.each([
  ["/v1/eval?resultsdir=run", "parameters"],
  ["/v1/eval?results_dir=run&stepz=all", "parameters"],
  ["/v1/eval/version?page=2", "parameters"],
  ["/v1/eval/version?results_dir=a&results_dir=b", "results_dir"],
  ["/v1/eval?page=7", null],
])("refuses %s", async (address, named) => {
  const root = temporaryFolder();
  await fileStore(join(root, "run")).put(exampleSnapshot({ phase: "em", step: 50 }), []);
  const reply = await resultsServer({ root }).request(address, { headers: { Accept: "application/json" } });
  expect(reply.status).toBe(400);
  const { error } = (await reply.json()) as { error: string };
  if (named !== null) expect(error.startsWith(`${named}: got `)).toBe(true);
});

it("does not follow a folder outside of the served one", async () => {
  const server = resultsServer({ root: temporaryFolder() });
  for (const folder of ["..", "none", "/etc"])
    expect((await server.request(`/v1/eval/version?results_dir=${folder}`)).status).toBe(404);
});
