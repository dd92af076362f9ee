import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { temporaryFolder } from "../../../testing/src/temporary-folder.test-data.ts";
import { resultsServer } from "./results-server.ts";

/** Returns a server of one run whose files take until `finish` to read. */
async function slowServer() {
  const root = temporaryFolder();
  await mkdir(join(root, "run"));
  await writeFile(join(root, "run", "metrics.json"), "{}");
  let finish = () => {};
  const finished = new Promise<void>((resolve) => (finish = resolve));
  const readResults = async () => {
    await finished;
    return { runs: [], samples: [] };
  };
  return { server: resultsServer({ root, readResults }), finish };
}

it.each(["", "?results_dir=run"])("sends the beginning of a page that takes long (%s)", async (query) => {
  const { server, finish } = await slowServer();
  const reply = await server.request(`/v1/eval${query}`);
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  const { value: head } = await reader.read();
  expect(head).toMatch(/^<!doctype html>[^]*<title>[^]*<main>$/);
  finish();
  let markup = head!;
  for (let part = await reader.read(); !part.done; part = await reader.read()) markup += part.value;
  // Another server has the run's page at once.
  const quick = await slowServer();
  quick.finish();
  const whole = await quick.server.request(`/v1/eval${query}`);
  const times = (text: string) =>
    text.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, "").replaceAll(/periodic-eval-\w+|since=\w+/g, "");
  expect(times(markup)).toBe(times(await whole.text()));
  for (const name of ["content-type", "content-security-policy", "cache-control"])
    expect(reply.headers.get(name)?.toLowerCase()).toBe(whole.headers.get(name)?.toLowerCase());
});

it("sends a line end before JSON that takes long", async () => {
  const { server, finish } = await slowServer();
  const headers = { Accept: "application/json" };
  const reply = await server.request("/v1/eval?results_dir=run", { headers });
  finish();
  const text = await reply.text();
  expect(text).toMatch(/^\n\{/);
  expect(JSON.parse(text)).toMatchObject({ results_dir: "run", problem: null });
  expect(reply.headers.get("content-type")).toBe("application/json");
});
