import { PeriodicEvalError } from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/contracts/options";
import { Hono, type Context } from "hono";
import type { Html } from "../html/html.ts";
import { answersView, servedAnswers } from "./stored-answers.ts";
import { namesOf } from "./contained-files.ts";
import type { FoundRun, FoundRuns } from "./find-runs.ts";
import { liveUpdates } from "./live-updates.ts";
import {
  listPage,
  pageCount,
  overlayPage,
  runEntry,
  runPage,
  sampledPage,
  shortEntry,
  type Place,
} from "./pages.ts";
import { parseFollow, parseQuery, type AnswersQuery, type Query } from "./query.ts";
import {
  sendData,
  sendEvents,
  sendMessage,
  sendPage,
  setHeaders,
  strictPolicy,
  wantsJson,
} from "./replies.ts";
import { readEnds, readIndexLines, readSample, type RunLines } from "./read-ends.ts";
import { requestGuard } from "./request-guard.ts";
import { shortData, wholeData, type ReadRun } from "./read-run.ts";
import { summarizeOverlay } from "../overlay/summarize-overlay.ts";
import type { RunOfPage } from "./run-sections.ts";
import { servedFolder, type ReplySize, type ServedFolder } from "./served-folder.ts";
import { realFolder, serverOptions, type ResultsServerOptions } from "./server-options.ts";

export const evalPath = "/v1/eval";
const eventsPath = `${evalPath}/events`;

/**
 * Returns a server for the results below a folder, as pages or as JSON (`Accept: application/json`):
 * `GET /v1/eval?results_dir=&page=&per_page=`. It only reads files, and treats every string in them as hostile.
 *
 * @throws PeriodicEvalError `config` for a wrong option, such as a `root` that is not a folder.
 */
export function resultsServer(options: ResultsServerOptions): Hono {
  const checked = parseOptions("resultsServer options", serverOptions, options);
  const { root, host = "127.0.0.1", token = null, readResults = null, maxFileBytes } = checked;
  const { forRequest, look } = servedFolder(realFolder(root)!, readResults, maxFileBytes);
  const live = liveUpdates(look);
  const app = new Hono();
  app.use(requestGuard(host, token));
  app.get("/", (c) => {
    setHeaders(c, strictPolicy);
    return c.redirect(evalPath, 302);
  });
  app.get(eventsPath, async (c) => {
    const asked = parsed(c, parseFollow);
    if (asked instanceof Response) return asked;
    const folder = namesOf(asked.resultsDir)?.join("/") ?? null;
    const version = folder === null ? null : await look(folder).catch(() => null);
    if (folder === null || version === null) return sendNotFound(c);
    const isStale = asked.since !== null && asked.since !== version;
    return sendEvents(c, () => live.follow(folder, version, isStale));
  });
  app.get(evalPath, async (c) => {
    const query = parsed(c, parseQuery);
    if (query instanceof Response) return query;
    return reply(c, query, forRequest(c.req.raw.signal));
  });
  app.notFound((c) => sendMessage(c, 404, "Not found", `The results are at ${evalPath}.`));
  app.onError((_, c) =>
    sendMessage(c, 500, "Server error", "The server could not create this page. Other pages may work."),
  );
  return app;
}

/** Returns the parsed parameters of a request; the reply to a wrong one. */
function parsed<T>(c: Context, parse: (given: Record<string, string[]>) => T): T | Response {
  try {
    // Hono's own parameters leave out those without a name.
    const { searchParams: all } = new URL(c.req.url);
    return parse(Object.fromEntries([...all.keys()].map((name) => [name, all.getAll(name)])));
  } catch (error) {
    if (!PeriodicEvalError.is(error) || error.code !== "config") throw error;
    const { where, got, expected } = error;
    return sendMessage(c, 400, "Wrong address", `${where}: got ${got}, expected ${expected}.`);
  }
}

async function reply(c: Context, query: Query, served: ServedFolder): Promise<Response> {
  const names = namesOf(query.resultsDir);
  if (names === null) return sendNotFound(c);
  const folder = names.join("/");
  const normalized: Query = { ...query, resultsDir: folder };
  let found: FoundRuns;
  try {
    found = await served.find(folder);
  } catch {
    served.signal.throwIfAborted();
    return sendNotFound(c);
  }
  served.signal.throwIfAborted();
  const { runs } = found;
  if (query.runs !== null) return replyWithOverlay(c, { ...normalized, runs: query.runs }, found, served);
  const requestedRun = runs.find(({ path }) => path === folder);
  // If the served folder itself is a run, the list shows it with the runs below. `steps=all` then requests only this run.
  const isOneRun = requestedRun !== undefined && (folder !== "" || runs.length === 1 || query.showsAllRows);
  if (normalized.answers !== null)
    return requestedRun === undefined
      ? sendNotFound(c)
      : replyWithAnswers(c, normalized.answers, requestedRun, served);
  return isOneRun
    ? replyWithRun(c, normalized, requestedRun, served)
    : replyWithList(c, normalized, found, served);
}

/** Sends the answers of a run as JSON, whatever the client accepts: only the script of a page requests them. */
async function replyWithAnswers(c: Context, asked: AnswersQuery, run: FoundRun, served: ServedFolder) {
  const data = await served.make(
    async () => {
      const { content } = await served.read(run);
      return content?.kind === "callbacks" ? answersView(content.run, asked, served) : null;
    },
    sizeOf(await largeIndex(run, served)),
  );
  return data === null ? sendData(c, { error: "This run has no such answers." }, 404) : sendData(c, data);
}

/** The page of a run with this many measurements or more begins with a sample. */
const largeRun = 1000;

/** Returns the lines of the index of a run with many measurements that is not in memory; null for any other run. */
async function largeIndex(run: FoundRun, served: ServedFolder): Promise<RunLines | null> {
  if (run.kind !== "callbacks" || (await served.isKept(run))) return null;
  const lines = await readIndexLines(run.path, served.files);
  return lines.length < largeRun ? null : lines;
}

const sizeOf = (index: RunLines | null): ReplySize => (index === null ? "small" : "large");

async function replyWithRun(c: Context, query: Query, run: FoundRun, served: ServedFolder) {
  if (query.page > 1) return sendUnknownPage(c, query, 1);
  const index = await largeIndex(run, served);
  const size = sizeOf(index);
  if (wantsJson(c))
    return sendData(c, await served.make(async () => wholeData(await served.read(run)), size));
  const place = { rootName: served.rootName, query, version: await served.look(query.resultsDir) };
  const sampled = query.isWhole || index === null ? null : await samplePage(place, run, index, served);
  if (sampled !== null) return sendPage(c, 200, sampled);
  const name = `run ${JSON.stringify({ ...query, isWhole: true })}`;
  const page = served.page(
    name,
    [run],
    async () => runPage(place, await withAnswers(await served.read(run), served)),
    size,
  );
  return sendPage(c, 200, await page);
}

/** Renders a sample of a large run. Returns null for a run that has to be read in full. */
async function samplePage(place: Place, run: FoundRun, index: RunLines, served: ServedFolder) {
  const sample = await readSample(run.path, index, served.files).catch(() => null);
  served.signal.throwIfAborted();
  return sample && sampledPage(place, run, sample, index.length);
}

/** Sends several runs in the same charts. */
async function replyWithOverlay(
  c: Context,
  query: Query & { readonly runs: readonly string[] },
  { runs }: FoundRuns,
  served: ServedFolder,
) {
  const measured = runs.filter(({ kind }) => kind === "callbacks");
  const selected = query.runs.map((path) => measured.find((run) => run.path === path));
  const known = selected.filter((run) => run !== undefined);
  if (known.length < selected.length)
    return sendMessage(c, 404, "Not found", "runs: expected paths of measured runs below the served folder.");
  const named = async () =>
    inSequence(known, async (run) => {
      const { content, problem } = await served.read(run);
      if (content?.kind !== "callbacks") throw new Error(problem ?? "not a measured run");
      return { name: run.path || "this folder", run: content.run };
    });
  if (wantsJson(c))
    return sendData(
      c,
      await served.make(async () => ({ metrics: summarizeOverlay(await named()) }), "large"),
    );
  const place = { rootName: served.rootName, query, version: await served.look(query.resultsDir) };
  const paths = measured.map(({ path }) => path);
  const name = `overlay ${place.version} ${JSON.stringify(query)}`;
  const page = served.page(name, known, async () => overlayPage(place, paths, await named()), "large");
  return sendPage(c, 200, await page);
}

/** Adds the answers and scores that the page of a run shows. */
async function withAnswers(read: ReadRun, { files }: ServedFolder): Promise<RunOfPage> {
  const { content } = read;
  if (content?.kind !== "callbacks") return { read, answers: null };
  const { run } = content;
  return {
    read,
    answers: await servedAnswers(run, files),
  };
}

async function replyWithList(c: Context, query: Query, found: FoundRuns, served: ServedFolder) {
  const { runs, unsearched, unreadable } = found;
  const { page, perPage, resultsDir } = query;
  const runsOfPage = runs.slice((page - 1) * perPage, page * perPage);
  const isUnknown = runsOfPage.length === 0 && page > 1;
  if (!wantsJson(c)) {
    const place = { rootName: served.rootName, query, version: await served.look(resultsDir) };
    if (isUnknown) return sendPage(c, 400, listPage(place, found, []));
    const name = `list ${place.version} ${listName(query, found)}`;
    const entries = async () => listPage(place, found, await entriesOf(runsOfPage, served));
    return sendPage(c, 200, await served.page(name, runsOfPage, entries, "small"));
  }
  const pages = pageCount(runs.length, query);
  if (isUnknown) return sendUnknownPage(c, query, pages);
  return sendData(c, {
    results_dir: resultsDir,
    page,
    per_page: perPage,
    pages,
    total: runs.length,
    is_whole: unsearched === null,
    unreadable,
    runs: await served.make(
      async () => inSequence(runsOfPage, async (run) => shortData(await served.read(run))),
      "large",
    ),
  });
}

/** Snapshots that a list reads in full. Of the runs after them, it reads the ends: then a list takes as long for large runs as for small ones. */
const readInFull = 100;

async function entriesOf(runs: readonly FoundRun[], folder: ServedFolder): Promise<readonly Html[]> {
  let left = readInFull;
  return inSequence(runs, async (run, at) => {
    const lines = run.kind === "callbacks" ? await readIndexLines(run.path, folder.files) : [];
    const isShort = lines.length > left && runs.length > 1;
    const ends = isShort ? await readEnds(run.path, lines, folder.files).catch(() => null) : null;
    folder.signal.throwIfAborted();
    if (ends !== null) return shortEntry(run, ends);
    left -= lines.length;
    return runEntry(await folder.read(run), at, runs.length === 1);
  });
}

/** Returns a string that changes with the content of a list, besides its runs. */
const listName = (query: Query, { runs, unreadable, unsearched }: FoundRuns): string =>
  JSON.stringify([query, runs.length, unreadable, unsearched]);

/** Maps one item after the other, so that a page of several large runs needs the memory of one. */
async function inSequence<T, R>(items: readonly T[], map: (item: T, at: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const [at, item] of items.entries()) results.push(await map(item, at));
  return results;
}

const sendUnknownPage = (c: Context, { page }: Query, last: number) =>
  sendMessage(c, 400, "Wrong address", `page: got ${page}, expected at most ${last}.`);

/** Sends the same reply for folders outside the root as for missing ones, so that it reveals nothing about them. */
const sendNotFound = (c: Context) =>
  sendMessage(
    c,
    404,
    "Not found",
    "results_dir: expected a folder below the served one. It may have been renamed or deleted.",
  );
