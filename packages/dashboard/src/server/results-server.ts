import { realpathSync, statSync } from "node:fs";
import { hostname } from "node:os";
import { basename } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { checkKeys, isCount, isOriginOf, isOwnHost, quoteValue } from "@periodic-eval/core/internal";
import { Hono, type Context } from "hono";
import { accepts } from "hono/accepts";
import type { PolicedPage } from "../html/document.ts";
import { containedFiles, namesOf } from "./contained-files.ts";
import { findRuns, type FoundRun, type FoundRuns } from "./find-runs.ts";
import { listPage, messagePage, pageCount, runEntry, runPage, type Place } from "./pages.ts";
import { parseQuery, type Query } from "./query.ts";
import { readFound, type ReadOptions, type ReadRun } from "./read-run.ts";
import { shortData, wholeData } from "./run-json.ts";

export interface ResultsServerOptions {
  /** The folder that is served, with what is below it: nothing outside is read, by whatever address or link. */
  readonly root: string;
  /** The host that the server listens on: requests that call it otherwise are refused. Default 127.0.0.1. */
  readonly host?: string;
  /** Reads a `metrics.json`, with what stands beside it; left out, results of benchmarks are not shown. */
  readonly readResults?: NonNullable<ReadOptions["readResults"]>;
  /** Largest file that is read, in bytes; default 64 MiB. */
  readonly mostBytes?: number;
}

export const serverOptionNames = {
  root: true,
  host: true,
  readResults: true,
  mostBytes: true,
} as const satisfies Record<keyof ResultsServerOptions, true>;

/** Most answers of a callback, on a page of several runs and on one of its own. */
const [fewAnswers, manyAnswers] = [3, 50];

export const evalPath = "/v1/eval";

/**
 * The results below a folder as pages, and as JSON where that is asked for (`Accept: application/json`):
 * `GET /v1/eval?results_dir=&page=&per_page=`. Reads, and changes nothing. Everything in the files is hostile text.
 *
 * @throws PeriodicEvalError `config` where `root` is no folder, or for another wrong option.
 */
export function resultsServer(options: ResultsServerOptions): Hono {
  checkKeys("resultsServer", options, Object.keys(serverOptionNames));
  const { host = "127.0.0.1", readResults = null, mostBytes } = options;
  if (typeof host !== "string" || host === "")
    throw wrong(
      "host",
      quoteValue(host),
      "a name or a number of this machine",
      "Leave it out for 127.0.0.1.",
    );
  if (mostBytes !== undefined && !isCount(mostBytes, 1))
    throw wrong(
      "mostBytes",
      quoteValue(mostBytes),
      "a whole number of 1 or more",
      "Leave it out for 64 MiB.",
    );
  if (readResults !== null && typeof readResults !== "function")
    throw wrong("readResults", quoteValue(readResults), "a function", "Leave it out to show no benchmarks.");
  const root = rootOf(options.root);
  const files = containedFiles(root, mostBytes === undefined ? {} : { mostBytes });
  const isShown = ({ kind }: FoundRun) => kind !== "results" || readResults !== null;
  const readShown = (run: FoundRun, mostAnswers: number) =>
    readFound(run, { files, readResults, mostAnswers });
  /** One after the other, and of each only what is made of it stays: a page of large runs takes the memory of one. */
  async function eachRead<T>(
    runs: readonly FoundRun[],
    mostAnswers: number,
    make: (read: ReadRun, at: number) => T,
  ): Promise<T[]> {
    const made: T[] = [];
    for (const [at, run] of runs.entries()) made.push(make(await readShown(run, mostAnswers), at));
    return made;
  }
  const inTurn = oneAtATime();
  const app = new Hono();

  app.use(async (c, next) => {
    const called = [c.req.header("host"), new URL(c.req.url).host].filter((name) => name !== undefined);
    if (!called.every((name) => isOwnHost(name, host, hostname())))
      return send(c, 403, "Another host", "This server answers to its own name and number alone.");
    if (c.req.method !== "GET" && c.req.method !== "HEAD") {
      c.header("Allow", "GET, HEAD");
      return send(c, 405, "Only to be read", "This server answers GET and HEAD.");
    }
    if (isOfAnotherSite(c))
      return send(c, 403, "Another site", "This server answers no page of another site.");
    await next();
  });
  app.get("/", (c) => {
    withHeaders(c, nothingAllowed);
    return c.redirect(evalPath, 302);
  });
  app.get(evalPath, async (c) => {
    let query: Query;
    try {
      query = parseQuery(c.req.queries());
    } catch (error) {
      if (!PeriodicEvalError.is(error)) throw error;
      return send(c, 400, "Wrong address", `${error.where}: got ${error.got}, expected ${error.expected}.`);
    }
    return inTurn(() => answer(c, query));
  });
  async function answer(c: Context, query: Query): Promise<Response> {
    const names = namesOf(query.resultsDir);
    if (names === null) return notThere(c);
    const place: Place = { rootName: basename(root), query: { ...query, resultsDir: names.join("/") } };
    const folder = place.query.resultsDir;
    let found: FoundRuns;
    try {
      found = await findRuns(folder, files, isShown);
    } catch {
      return notThere(c);
    }
    const { runs } = found;
    const own = runs.find(({ path }) => path === folder);
    // A run that the served folder itself is stands beside those below; all its steps are asked of it alone.
    if (own !== undefined && (folder !== "" || runs.length === 1 || query.isWhole)) {
      if (!wantsJson(c)) return sendPage(c, 200, runPage(place, await readShown(own, manyAnswers)));
      return sendData(c, wholeData(await readShown(own, Infinity)));
    }
    const { page, perPage } = query;
    const some = runs.slice((page - 1) * perPage, page * perPage);
    if (!wantsJson(c)) {
      const entries = await eachRead(some, fewAnswers, (read, at) => runEntry(read, at, some.length === 1));
      return sendPage(c, 200, listPage(place, found, entries));
    }
    return sendData(c, {
      results_dir: folder,
      page,
      per_page: perPage,
      pages: pageCount(runs.length, query),
      total: runs.length,
      is_whole: found.leftOut === null,
      unreadable: found.unreadable,
      runs: await eachRead(some, 0, shortData),
    });
  }
  app.notFound((c) => send(c, 404, "Not there", `The results are at ${evalPath}.`));
  app.onError((_, c) => send(c, 500, "Failed", "The server could not make this page; others may work."));
  return app;
}

/**
 * Whether a page elsewhere asks, for a picture or a frame of its own: it cannot read the answer, but making one is work. Who
 * follows a link from there comes himself.
 */
function isOfAnotherSite(c: Context): boolean {
  const origin = c.req.header("origin");
  if (origin !== undefined && !isOriginOf(origin, c.req.header("host"))) return true;
  const isFollowed =
    c.req.header("sec-fetch-mode") === "navigate" && c.req.header("sec-fetch-dest") === "document";
  return c.req.header("sec-fetch-site") === "cross-site" && !isFollowed;
}

/** Starts a task when the one before has ended, however it ended. */
function oneAtATime() {
  let last: Promise<unknown> = Promise.resolve();
  return <T>(task: () => Promise<T>): Promise<T> => {
    const mine = last.then(task, task);
    last = mine.catch(() => undefined);
    return mine;
  };
}

/** The same of what lies outside as of what is nowhere. */
const notThere = (c: Context) =>
  send(c, 404, "Not there", "results_dir: expected a folder below the one that is served.");

function rootOf(root: string): string {
  try {
    const real = realpathSync(root);
    if (statSync(real).isDirectory()) return real;
  } catch {
    // Told below.
  }
  throw wrong(
    "root",
    `${quoteValue(root)}, which is no folder`,
    "a folder that holds runs",
    "Check the path.",
  );
}

const wrong = (where: string, got: string, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where, got, expected, fix });

const plainHeaders = [
  ["X-Content-Type-Options", "nosniff"],
  ["Referrer-Policy", "no-referrer"],
  ["Cross-Origin-Resource-Policy", "same-origin"],
  ["Cache-Control", "no-store"],
  ["Vary", "Accept"],
] as const;

const nothingAllowed = "default-src 'none'; base-uri 'none'; form-action 'none'";

function withHeaders(c: Context, policy: string): void {
  for (const [name, value] of plainHeaders) c.header(name, value);
  c.header("Content-Security-Policy", `${policy}; frame-ancestors 'none'`);
}

type Status = 200 | 400 | 403 | 404 | 405 | 500;

function sendPage(c: Context, status: Status, { markup, policy }: PolicedPage) {
  withHeaders(c, policy);
  return c.html(markup, status);
}

function sendData(c: Context, data: object, status: Status = 200) {
  withHeaders(c, nothingAllowed);
  return c.json(data, status);
}

const send = (c: Context, status: Status, title: string, message: string) =>
  wantsJson(c) ? sendData(c, { error: message }, status) : sendPage(c, status, messagePage(title, message));

const wantsJson = (c: Context): boolean =>
  accepts(c, { header: "Accept", supports: ["text/html", "application/json"], default: "text/html" }) ===
  "application/json";
