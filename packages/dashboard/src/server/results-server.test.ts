import { clientScript } from "../html/document.ts";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Hono } from "hono";
import { parseHTML } from "linkedom";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sampleResults } from "../results/sample-results.test-data.ts";
import { sendRaw } from "./raw-request.test-data.ts";
import { resultsServer } from "./results-server.ts";
import type { ResultsServerOptions } from "./server-options.ts";
import { readResults, writeSampleRoot, type SampleRoot } from "./sample-root.test-data.ts";
import { serveResults, type ServeOptions } from "./serve-results.ts";

let sample: SampleRoot;
let app: Hono;
beforeAll(async () => {
  sample = await writeSampleRoot();
  app = resultsServer({ root: sample.root, readResults });
});
afterAll(async () => {
  await sample.release();
  await rm(sample.above, { recursive: true });
});

const text = (element: Element | null | undefined) => element?.textContent?.replace(/\s+/g, " ").trim();
const ask = (query: string, headers: Record<string, string> = {}) =>
  app.request(`/v1/eval${query}`, { headers });
const pageOf = async (query: string) => parseHTML(await (await ask(query)).text()).document;
const dataOf = async (query: string) =>
  (await ask(query, { Accept: "application/json" })).json() as Promise<Data>;

interface Data {
  readonly page: number;
  readonly pages: number;
  readonly total: number;
  readonly runs: readonly Record<string, unknown>[];
}

/** Returns the path and the state of each run on a page. */
const entriesOf = (page: Document) =>
  [...page.querySelectorAll("article.run")].map((entry) => ({
    path: text(entry.querySelector(".title")),
    state: text(entry.querySelector(".state")),
    explanation: text(entry.querySelector(".kind")),
    entry,
  }));

describe("the runs below a folder", () => {
  it("are listed newest first, with an explanation of their states", async () => {
    const entries = entriesOf(await pageOf(""));
    expect(entries.map(({ path }) => path)).toEqual(sample.runs);
    const notes = Object.fromEntries(entries.map((one) => [one.path, `${one.state}: ${one.explanation}`]));
    expect(notes["running"]).toMatch(
      /^● running: .*Process \d+ on .* is writing this run\. Compare with other runs$/,
    );
    const { entry } = entries.find(({ path }) => path === "running")!;
    expect(text(entry.querySelector("time"))).toBe("2026-06-28 12:00:00 UTC");
    expect(notes["dead"]).toMatch(
      /^■ interrupted: .*Interrupted: process \d+ on .* was writing this run and has stopped\./,
    );
    expect(notes["begun"]).toMatch(/^■ interrupted: /);
    expect(notes["seeds/finished"]).toMatch(/^✓ finished: .*Its last phase, em, was measured at its end/);
    expect(notes["seeds/stopped"]).toMatch(/^■ interrupted: .*em: interrupted after step 60 of 600\./);
    expect(notes["feedback"]).toMatch(/^■ interrupted: .*Training of blind ended after 2 of 3 steps/);
    expect(notes["results"]).toMatch(/^✓ finished: /);
  });

  it("have a line of results, and links to their page and to a comparison", async () => {
    const entries = new Map(entriesOf(await pageOf("")).map(({ path, entry }) => [path!, entry]));
    const [dead, feedback, results] = ["dead", "feedback", "results"].map((path) => entries.get(path)!);
    expect(text(dead!.querySelector(".summary-line"))).toBe("em capability 90.0 % → 63.0 % ▼ worse at 1.0 %");
    expect([...dead!.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual([
      "?results_dir=dead",
      "?runs=dead",
    ]);
    expect(text(feedback!.querySelector(".summary-line"))).toBe("polite collapsed blind no evidence");
    expect(text(results!.querySelector(".summary-line"))).toBe("3 models, 3 tasks");
  });

  it("have unique ids and working links", async () => {
    const page = await pageOf("");
    const ids = [...page.querySelectorAll("[id]")].map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    for (const query of ["", "?results_dir=dead"]) {
      const page = await pageOf(query);
      for (const link of page.querySelectorAll("a[href^='#']"))
        expect([
          link.getAttribute("href"),
          page.getElementById(link.getAttribute("href")!.slice(1)) !== null,
        ]).toEqual([link.getAttribute("href"), true]);
    }
  });

  it("are available as JSON at the same address", async () => {
    const { runs, ...about } = await dataOf("");
    expect(about).toEqual({
      results_dir: "",
      page: 1,
      per_page: 20,
      pages: 1,
      total: 7,
      is_whole: true,
      unreadable: [],
    });
    expect(runs.map(({ results_dir: path, state }) => [path, state])).toEqual([
      ["running", "running"],
      ["feedback", "interrupted"],
      ["dead", "interrupted"],
      ["results", "finished"],
      ["seeds/finished", "finished"],
      ["seeds/stopped", "interrupted"],
      ["begun", "interrupted"],
    ]);
    expect(runs[2]).toMatchObject({
      kind: "callbacks",
      problem: null,
      phases: [{ name: "coupling" }, { name: "em" }],
    });
    expect(runs[1]).toMatchObject({
      kind: "feedback",
      summary: { preferences: { polite: { verdict: "collapsed" } } },
    });
  });

  it("are those below the requested folder", async () => {
    expect(entriesOf(await pageOf("?results_dir=seeds")).map(({ path }) => path)).toEqual([
      "seeds/finished",
      "seeds/stopped",
    ]);
    const empty = await pageOf("?results_dir=seeds/finished/periodic_eval/em");
    expect(text(empty.querySelector(".notice"))).toBe(
      "There are no runs in this folder or below it. This page shows a run as soon as it begins.",
    );
  });
});

describe("one run", () => {
  it("is shown in full on the page of its folder", async () => {
    const page = await pageOf("?results_dir=dead");
    expect(text(page.querySelector("h1"))).toBe("dead");
    expect(text(page.querySelector(".notice"))).toMatch(/^■ interrupted Interrupted: /);
    expect(page.querySelectorAll("#snapshots tbody tr")).toHaveLength(12);
    expect(page.querySelectorAll('[data-kind="large"]')).toHaveLength(1);
    expect(page.querySelectorAll(".card")).toHaveLength(2);
    expect(text(page.querySelector(".breadcrumbs"))).toBe("root /");
    const feedback = await pageOf("?results_dir=feedback");
    expect(feedback.querySelectorAll(".panel").length).toBeGreaterThan(15);
    expect(feedback.querySelectorAll("pre").length).toBeGreaterThan(4);
    expect(text((await pageOf("?results_dir=begun")).querySelectorAll(".notice")[0])).toBe(
      "No preference has a baseline measurement yet.",
    );
    const results = await pageOf("?results_dir=results");
    expect(text(results.querySelector("h1"))).toBe("results");
    expect(results.querySelectorAll("td.score").length).toBeGreaterThan(9);
  });

  it("is complete as JSON", async () => {
    const { snapshots } = (await dataOf("?results_dir=dead")) as unknown as {
      readonly snapshots: readonly unknown[];
    };
    expect(snapshots).toHaveLength(12);
    const feedback = (await dataOf("?results_dir=feedback")) as unknown as {
      readonly preferences: readonly { readonly name: string; readonly steps: readonly unknown[] }[];
    };
    expect(feedback.preferences.map(({ name, steps }) => [name, steps.length])).toEqual([
      ["polite", 2],
      ["blind", 2],
    ]);
    expect(await dataOf("?results_dir=results")).toMatchObject({
      reference: "base",
      runs: sampleResults.map(({ name }) => ({ name })),
    });
  });

  it("is omitted if there is no reader for its results", async () => {
    const blind = resultsServer({ root: sample.root });
    const page = parseHTML(await (await blind.request("/v1/eval")).text()).document;
    expect(entriesOf(page).map(({ path }) => path)).not.toContain("results");
  });
});

describe("pages of runs", () => {
  it("show the requested number of runs, each run once", async () => {
    const pages = await Promise.all([1, 2, 3, 4].map((page) => dataOf(`?per_page=2&page=${page}`)));
    expect(pages.flatMap(({ runs }) => runs.map(({ results_dir: path }) => path))).toEqual(sample.runs);
    expect(pages.map(({ pages: count, total }) => [count, total])).toEqual(Array(4).fill([4, 7]));
  });

  it.each([
    ["?per_page=7", 7, null],
    ["?per_page=200", 7, null],
    ["?per_page=6&page=2", 1, "page 2 of 2"],
    ["?per_page=7&page=2", 0, null],
    ["?page=999999999", 0, null],
  ])("%s: %i runs", async (query, count, note) => {
    const page = await pageOf(query);
    expect(entriesOf(page)).toHaveLength(count);
    expect(text(page.querySelector(".pagination span")) ?? null).toBe(note);
    if (count === 0)
      expect(text(page.querySelector(".notice"))).toBe(
        `There is no page ${new URLSearchParams(query).get("page")}: the last page is 1.`,
      );
  });

  it("link to one another", async () => {
    const links = async (query: string) =>
      [...(await pageOf(query)).querySelectorAll(".pagination a")].map((link) => [
        text(link),
        link.getAttribute("href"),
      ]);
    expect(await links("?per_page=3")).toEqual([["older →", "?page=2&per_page=3"]]);
    expect(await links("?per_page=3&page=2&results_dir=.")).toEqual([
      ["← newer", "?per_page=3"],
      ["older →", "?page=3&per_page=3"],
    ]);
    expect(await links("?per_page=3&page=9")).toEqual([["← newer", "?page=3&per_page=3"]]);
  });

  it.each([
    ["page=0", 'page: got "0", expected a positive integer.'],
    ["page=-1", 'page: got "-1", expected a positive integer.'],
    ["page=1.5", 'page: got "1.5", expected a positive integer.'],
    ["page=", 'page: got "", expected a positive integer.'],
    ["page=9999999999", 'page: got "9999999999", expected a positive integer.'],
    ["page=1&page=2", "page: got 2 values, expected one."],
    ["per_page=0", 'per_page: got "0", expected an integer from 1 to 200.'],
    ["per_page=201", 'per_page: got "201", expected an integer from 1 to 200.'],
    ["per_page=0x10", 'per_page: got "0x10", expected an integer from 1 to 200.'],
    ["results_dir=dead&results_dir=..", "results_dir: got 2 values, expected one."],
    ["steps=some", 'steps: got "some", expected "all".'],
    ["=1", 'parameters: got "", expected only results_dir, page, per_page, steps, view, runs.'],
  ])("replies 400 to %s, with the expected value", async (query, message) => {
    const reply = await ask(`?${query}`, { Accept: "application/json" });
    expect([reply.status, await reply.json()]).toEqual([400, { error: message }]);
    expect(text((await pageOf(`?${query}`)).querySelector(".sub"))).toBe(message);
  });
});

describe("a reply", () => {
  it("has strict security headers, also for errors", async () => {
    for (const path of [
      "/v1/eval",
      "/v1/eval?results_dir=dead",
      "/v1/eval?page=0",
      "/v1/eval?results_dir=nowhere",
      "/else",
      "/",
    ]) {
      for (const accept of ["text/html", "application/json"]) {
        const { headers } = await app.request(path, { headers: { Accept: accept } });
        expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
        expect(headers.get("Referrer-Policy")).toBe("no-referrer");
        expect(headers.get("Cross-Origin-Resource-Policy")).toBe("same-origin");
        expect(headers.get("Cache-Control")).toBe("no-store");
        expect(headers.get("Content-Security-Policy")).toMatch(
          /^default-src 'none'; (style-src 'sha256-[\w+/=]{44}'; (script-src 'sha256-[\w+/=]{44}'; connect-src 'self'; )?img-src data:; )?base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
        );
      }
    }
  });

  it("sends the policy of its page, which has no style attributes", async () => {
    for (const query of ["", "?results_dir=dead", "?results_dir=feedback", "?results_dir=results"]) {
      const reply = await ask(query);
      const page = parseHTML(await reply.text()).document;
      const policy = page.querySelector("meta[http-equiv]")!.getAttribute("content")!;
      expect(reply.headers.get("Content-Security-Policy")).toBe(`${policy}; frame-ancestors 'none'`);
      expect(page.querySelectorAll("[style], [src], img, link, iframe, form, base").length).toBe(0);
      const own = [...page.querySelectorAll("script:not([type])")].map(({ textContent }) => textContent);
      expect(own).toEqual([clientScript()]);
      expect(page.querySelectorAll("main script").length).toBe(0);
      expect(page.querySelectorAll("style")).toHaveLength(1);
    }
  });

  it("is HTML unless JSON is preferred", async () => {
    const typeOf = async (accept: string) => (await ask("", { Accept: accept })).headers.get("Content-Type");
    expect(await typeOf("*/*")).toMatch(/^text\/html/);
    expect(await typeOf("text/html,application/xhtml+xml,*/*;q=0.8")).toMatch(/^text\/html/);
    expect(await typeOf("application/json")).toMatch(/^application\/json/);
    expect(await typeOf("application/json;q=0.5, text/html")).toMatch(/^text\/html/);
  });

  it("redirects the root to the runs and is 404 for other paths", async () => {
    const root = await app.request("/");
    expect([root.status, root.headers.get("Location")]).toEqual([302, "/v1/eval"]);
    for (const path of ["/v1", "/v1/eval/", "/v1/evals", "/index.html", "/favicon.ico"])
      expect((await app.request(path)).status).toBe(404);
  });

  it.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])("is 405 for %s", async (method) => {
    for (const path of ["/v1/eval", "/", "/else"]) {
      const reply = await app.request(path, { method });
      expect([reply.status, reply.headers.get("Allow")]).toEqual([405, "GET, HEAD"]);
    }
    if (method !== "POST") {
      const reply = await app.request("/v1/eval/answers", {
        method,
        headers: { Accept: "application/json" },
      });
      expect([reply.status, reply.headers.get("Allow")]).toEqual([405, "GET, HEAD, POST"]);
      expect(await reply.json()).toEqual({
        error: "This address answers only GET, HEAD and POST requests.",
      });
    }
    expect(await (await app.request("/v1/eval", { method: "HEAD" })).text()).toBe("");
  });
});

describe("a server", () => {
  it("listens, refuses requests for other hosts, and closes", async () => {
    const serving = await serveResults({ root: sample.root, port: 0, readResults });
    const { port, pathname } = new URL(serving.address);
    expect(pathname).toBe("/v1/eval");
    const called = async (host: string, target = "/v1/eval?results_dir=dead") =>
      (await sendRaw(Number(port), `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`))
        .status;
    for (const host of [`127.0.0.1:${port}`, "127.0.0.2", "localhost", "LOCALHOST:9000", `[::1]:${port}`])
      expect([host, await called(host)]).toEqual([host, 200]);
    for (const host of [
      "attacker.example",
      `attacker.example:${port}`,
      "127.0.0.1.attacker.example",
      "localhost.attacker.example",
      "10.0.0.1",
      "127.1",
      "0.0.0.0",
    ])
      expect([host, await called(host)]).toEqual([host, 403]);
    for (const host of ["", "a b", "127.0.0.1@attacker.example", "attacker.example#127.0.0.1"])
      expect([400, 403]).toContain(await called(host));
    expect(await called("127.0.0.1", `http://attacker.example/v1/eval`)).toBe(403);
    const taken = serveResults({ root: sample.root, port: Number(port) });
    await expect(taken).rejects.toMatchObject({
      code: "config",
      where: "serveResults options.port",
      path: ["port"],
      got: `${port} (listen EADDRINUSE: address already in use 127.0.0.1:${port})`,
      expected: "a port that is free, of 1024 or above",
    });
    await serving.close();
    await expect(fetch(serving.address)).rejects.toThrow();
  });

  it("throws for a root that is not a folder and a host of another machine", async () => {
    for (const name of ["nowhere", "notes.txt"])
      await expect(serveResults({ root: join(sample.root, name) })).rejects.toMatchObject({
        code: "config",
        where: "serveResults options.root",
        path: ["root"],
        got: JSON.stringify(join(sample.root, name)),
        expected: "a folder that contains runs",
      });
    await expect(serveResults({ root: sample.root, host: "192.0.2.1", port: 0 })).rejects.toMatchObject({
      code: "config",
      path: ["host"],
      got: expect.stringContaining("192.0.2.1 (listen EADDRNOTAVAIL") as string,
    });
  });

  it.each([
    [{ port: 99_999 }, "port", "99999", "an integer from 0 to 65535"],
    [{ port: -1 }, "port", "-1", "an integer from 0 to 65535"],
    [{ port: 1.5 }, "port", "1.5", "an integer from 0 to 65535"],
    [{ port: "8010" }, "port", '"8010"', "an integer from 0 to 65535"],
    [{ host: "" }, "host", '""', "a host name or an IP address of this machine"],
    [{ host: null }, "host", "null", "a host name or an IP address of this machine"],
    [{ maxFileBytes: 0 }, "maxFileBytes", "0", "a positive integer"],
    [
      { maxFileByts: 3 },
      "maxFileByts",
      'the unknown option "maxFileByts"',
      expect.stringContaining("maxFileBytes"),
    ],
    [{ readResults: "tasks" }, "readResults", '"tasks"', "a function"],
  ])("throws for the options %j", async (given, option, got, expected) => {
    const listening = serveResults({ root: sample.root, port: 0, ...given } as ServeOptions);
    const ended = listening.then(async (serving) => {
      await serving.close();
      return "listened";
    });
    await expect(ended).rejects.toMatchObject({
      code: "config",
      where: `serveResults options.${option}`,
      path: [option],
      got,
      expected,
    });
  });

  it("suggests the nearest option for an unknown one", () => {
    expect(() => resultsServer({ root: sample.root, maxFileByts: 3 } as ResultsServerOptions)).toThrow(
      'Did you mean "maxFileBytes"?',
    );
  });
});

it("reports a damaged run and shows the others", async () => {
  const damaged = await writeSampleRoot();
  const at = (...names: string[]) => join(damaged.root, ...names);
  await writeFile(at("dead", "periodic_eval", "em", "capability_step_60.json"), '{"step": 60, "pha');
  await writeFile(
    at("seeds", "finished", "periodic_eval", "em", "capability_step_48.json"),
    " ".repeat(200_000),
  );
  await writeFile(at("results", "metrics.json"), "{");
  await writeFile(at("feedback", "polite", "steps.jsonl"), '{"step": 0}\n');
  await rm(at("running", "periodic_eval", "coupling"), { recursive: true });
  await rm(at("running", "periodic_eval", "index.jsonl"));
  await mkdir(at("strange", "periodic_eval", "em", "capability_step_1.json"), { recursive: true });
  const small = resultsServer({ root: damaged.root, readResults, maxFileBytes: 100_000 });
  const reply = await small.request("/v1/eval?per_page=50");
  const markup = await reply.text();
  expect(reply.status).toBe(200);
  expect(markup).not.toContain(damaged.above);
  const entries = new Map(
    entriesOf(parseHTML(markup).document).map(({ path, entry }) => [path!, text(entry)!]),
  );
  expect([...entries.keys()].toSorted()).toEqual([...damaged.runs, "strange"].toSorted());
  const pageOf = async (path: string) => {
    const page = await small.request(`/v1/eval?results_dir=${path}`);
    expect(page.status).toBe(200);
    return text(parseHTML(await page.text()).document.querySelector("main"));
  };
  expect(entries.get("dead")).toContain("▼ worse at 1.0 % unreadable");
  expect(await pageOf("dead")).toContain(
    "em/capability_step_60.json unreadable [periodic-eval] dead/periodic_eval/em/capability_step_60.json: got text that is not JSON",
  );
  expect(await pageOf("seeds/finished")).toMatch(
    /capability_step_48\.json: got a file of 0\.2 MiB, expected at most 0\.1 MiB/,
  );
  expect(entries.get("results")).toContain("unreadable Expected property name");
  expect(entries.get("feedback")).toContain(
    "unreadable feedback/polite/steps.jsonl:1: timestamp: got undefined, expected a string.",
  );
  expect(entries.get("running")).toContain("em capability 90.0 % → 63.0 %");
  expect(entries.get("strange")).toContain("nothing measured");
  for (const path of entries.keys()) await pageOf(path);
  await damaged.release();
  await rm(damaged.above, { recursive: true });
});
