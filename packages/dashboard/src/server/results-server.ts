import { randomBytes } from "node:crypto";
import { sep } from "node:path";
import { parseOptions } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { isLoopback } from "@periodic-eval/data";
import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import { HTTPException } from "hono/http-exception";
import { problemText } from "../html/format.ts";
import type { Html } from "../html/html.ts";
import { summarizeOverlay } from "../overlay/summarize-overlay.ts";
import { namesOf } from "./contained-files.ts";
import type { FoundRun, FoundRuns } from "./find-runs.ts";
import { labelSchema, type Label } from "./labels.ts";
import { listPage, pageCount, overlayPage, runEntry, runPage, sampledPage } from "./pages.ts";
import {
  answersParameters,
  pageParameters,
  versionParameters,
  parseInput,
  parseQuery,
  wrongAddress,
  type Query,
} from "./query.ts";
import { readEnds, readIndexLines, readSample, type RunLines } from "./read-ends.ts";
import { runState } from "../run/run-state.ts";
import { runJson } from "./read-run.ts";
import { measuredLine, summaryLine } from "./run-sections.ts";
import { sendData, sendMessage, sendPage, setSafeHeaders, wantsJson } from "./replies.ts";
import { answersPath, isSameSecret, requestGuard } from "./request-guard.ts";
import { servedFolder, type ReplySize, type ServedFolder } from "./served-folder.ts";
import { realFolder, serverOptions, type ResultsServerOptions } from "./server-options.ts";
import { answersView, servedAnswers } from "./stored-answers.ts";

export const evalPath = "/v1/eval";

const maxLabelBytes = 2 ** 16;
const titles: Readonly<Record<number, string>> = {
  400: "Wrong address",
  403: "Wrong token",
  404: "Not found",
};

/**
 * Returns a server for the results below a folder, as pages or as JSON (`Accept: application/json`):
 * `GET /v1/eval?results_dir=&page=&per_page=`. It treats every string in the files as hostile, and writes only the labels that
 * people give to answers, in files beside their run.
 *
 * @throws PeriodicEvalError `config` for a wrong option, such as a `root` that is not a folder.
 */
export function resultsServer(options: ResultsServerOptions): Hono {
  const checked = parseOptions("resultsServer options", serverOptions, options);
  const { root, host = "127.0.0.1", token = null, readResults = null, maxFileBytes } = checked;
  // Anyone who can reach the server can read its pages, and so send labels.
  const labelToken = token !== null || isLoopback(host) ? randomBytes(16).toString("base64url") : null;
  const realRoot = realFolder(root)!;
  const { forRequest, look } = servedFolder(realRoot, readResults, maxFileBytes, labelToken);
  const app = new Hono();
  app.use(setSafeHeaders, requestGuard(host, token));
  app.get("/", (c) => c.redirect(evalPath));
  app.get(evalPath, async (c) => {
    const { results_dir, page, per_page: perPage, steps, view, runs = null } = parsed(c, pageParameters);
    const resultsDir = folderOf(results_dir);
    const [isOneRun, isWhole] = [steps === "all", view === "whole"];
    const query = { resultsDir, page, perPage, runs, isOneRun, isWhole };
    return reply({ c, query, served: forRequest(c.req.raw.signal) });
  });
  const onError = () => {
    throw new HTTPException(413, { message: `A label has at most ${maxLabelBytes} bytes.` });
  };
  const refuseLabel = (error: unknown): never => {
    if (!PeriodicEvalError.is(error, "store")) throw error;
    throw new HTTPException(500, { message: problemText(error).replaceAll(`${realRoot}${sep}`, "") });
  };
  app.on(["GET", "POST"], answersPath, bodyLimit({ maxSize: maxLabelBytes, onError }), async (c) => {
    const { results_dir, ...query } = parsed(c, answersParameters);
    const label = c.req.method === "POST" ? await sentLabel(c, labelToken) : null;
    const served = forRequest(c.req.raw.signal);
    const folder = folderOf(results_dir);
    const run = (await runsBelow(folder, served)).runs.find(({ path }) => path === folder);
    if (run === undefined) throw notFound();
    const answers = async () => {
      const { content } = await served.read(run);
      return content?.kind === "callbacks" ? answersView(content.run, query, label, served) : null;
    };
    const made = served.make(answers, sizeOf(await largeIndex(run, served)));
    const data = await (label === null ? made : made.catch(refuseLabel));
    return data === null ? sendData(c, { error: "This run has no such answers." }, 404) : sendData(c, data);
  });
  app.get(`${evalPath}/version`, async (c) => {
    const folder = folderOf(parsed(c, versionParameters).results_dir);
    const version = await look(folder).catch(() => {
      throw notFound();
    });
    return sendData(c, { version });
  });
  app.notFound((c) => sendMessage(c, 404, "Not found", `The results are at ${evalPath}.`));
  app.onError((error, c) => {
    if (!(error instanceof HTTPException)) {
      const message = "The server could not create this page. Other pages may work.";
      return sendMessage(c, 500, "Server error", message);
    }
    return sendMessage(c, error.status, titles[error.status] ?? "Refused", error.message);
  });
  return app;
}

const parsed = <S extends Parameters<typeof parseQuery>[1]>(c: Context, schema: S) =>
  parseQuery(c.req.url, schema);

/** Returns a folder's path in one form. A path that leads outside stays as it is: its files cannot be read. */
const folderOf = (path: string): string => namesOf(path)?.join("/") ?? path;

/** The same error for folders outside the root as for missing ones, so that it reveals nothing about them. */
const notFound = () =>
  new HTTPException(404, {
    message: "results_dir: expected a folder below the served one. It may have been renamed or deleted.",
  });

async function runsBelow(folder: string, served: ServedFolder): Promise<FoundRuns> {
  const foundRuns = await served.find(folder).catch(() => null);
  served.signal.throwIfAborted();
  if (foundRuns === null) throw notFound();
  return foundRuns;
}

async function sentLabel(c: Context, token: string | null): Promise<Label> {
  const message = "Load the page again: a label needs the token of its page.";
  if (token === null || !isSameSecret(c.req.header("x-label-token") ?? "", token))
    throw new HTTPException(403, { message });
  return parseInput(labelSchema, await c.req.json<unknown>().catch(() => null));
}

interface PageRequest {
  readonly c: Context;
  readonly query: Query;
  readonly served: ServedFolder;
}

async function reply(request: PageRequest): Promise<Response> {
  const { query, served } = request;
  const { resultsDir: folder, runs: compared, isOneRun } = query;
  const foundRuns = await runsBelow(folder, served);
  if (compared !== null) return replyWithOverlay(request, compared, foundRuns.runs);
  const run = foundRuns.runs.find(({ path }) => path === folder);
  // If the served folder itself is a run, the list shows it with the runs below. `steps=all` then requests only this run.
  const isAlone = folder !== "" || foundRuns.runs.length === 1 || isOneRun;
  return run !== undefined && isAlone ? replyWithRun(request, run) : replyWithList(request, foundRuns);
}

/** Returns the served folder and the request for a page of it. */
const placeOf = async ({ query, served }: PageRequest) => ({
  rootName: served.rootName,
  query,
  version: await served.look(query.resultsDir),
});

/** The page of a run with this many measurements or more begins with a sample. */
const largeRun = 1000;

/** Returns the lines of the index of a run with many measurements that is not in memory; null for any other run. */
async function largeIndex(run: FoundRun, served: ServedFolder): Promise<RunLines | null> {
  if (run.kind !== "callbacks" || (await served.isKept(run))) return null;
  const lines = await readIndexLines(run.path, served.files);
  return lines.length < largeRun ? null : lines;
}

const sizeOf = (index: RunLines | null): ReplySize => (index === null ? "small" : "large");

async function replyWithRun(request: PageRequest, run: FoundRun): Promise<Response> {
  const { c, query, served } = request;
  if (query.page > 1) throw wrongAddress("page", query.page, "at most 1");
  const index = await largeIndex(run, served);
  const size = sizeOf(index);
  if (wantsJson(c))
    return sendData(c, await served.make(async () => runJson(await served.read(run), true), size));
  const view = await placeOf(request);
  if (!query.isWhole && index !== null) {
    // Null for a run that has to be read in full.
    const sample = await readSample(run.path, index, served.files).catch(() => null);
    served.signal.throwIfAborted();
    if (sample !== null) return sendPage(c, sampledPage(view, run, sample, index.length));
  }
  const make = async () => {
    const read = await served.read(run);
    const { content } = read;
    const answers = content?.kind === "callbacks" ? await servedAnswers(content.run, served) : null;
    // An aborted read looks like missing rows.
    served.signal.throwIfAborted();
    return runPage(view, { read, answers });
  };
  const name = `run ${JSON.stringify({ ...query, isWhole: true })}`;
  return sendPage(c, await served.page(name, [run], make, size));
}

/** Sends several runs in the same charts. */
async function replyWithOverlay(
  request: PageRequest,
  compared: readonly string[],
  runs: readonly FoundRun[],
): Promise<Response> {
  const { c, query, served } = request;
  const measured = runs.filter(({ kind }) => kind === "callbacks");
  const known = compared.flatMap((path) => measured.find((run) => run.path === path) ?? []);
  if (known.length < compared.length)
    return sendMessage(c, 404, "Not found", "runs: expected paths of measured runs below the served folder.");
  const named = async () =>
    inSequence(known, async (run) => {
      const { content, problem } = await served.read(run);
      if (content?.kind !== "callbacks") throw new Error(problem ?? "not a measured run");
      return { name: run.path || "this folder", run: content.run };
    });
  if (wantsJson(c)) {
    const data = async () => ({ metrics: summarizeOverlay(await named()) });
    return sendData(c, await served.make(data, "large"));
  }
  const view = await placeOf(request);
  const paths = measured.map(({ path }) => path);
  const name = `overlay ${view.version} ${JSON.stringify(query)}`;
  const page = async () => overlayPage(view, paths, await named());
  return sendPage(c, await served.page(name, known, page, "large"));
}

async function replyWithList(request: PageRequest, foundRuns: FoundRuns): Promise<Response> {
  const { c, query, served } = request;
  const { runs, unsearched, unreadable } = foundRuns;
  const { page, perPage, resultsDir } = query;
  const runsOfPage = runs.slice((page - 1) * perPage, page * perPage);
  const isUnknown = runsOfPage.length === 0 && page > 1;
  if (!wantsJson(c)) {
    const view = await placeOf(request);
    if (isUnknown) return sendPage(c, listPage(view, foundRuns, []), 400);
    // Changes with the content of the list, besides its runs.
    const name = `list ${view.version} ${JSON.stringify([query, runs.length, unreadable, unsearched])}`;
    const make = async () => listPage(view, foundRuns, await entriesOf(runsOfPage, served));
    return sendPage(c, await served.page(name, runsOfPage, make, "small"));
  }
  const pages = pageCount(runs.length, query);
  if (isUnknown) throw wrongAddress("page", page, `at most ${pages}`);
  const data = async () => inSequence(runsOfPage, async (run) => runJson(await served.read(run), false));
  return sendData(c, {
    results_dir: resultsDir,
    page,
    per_page: perPage,
    pages,
    total: runs.length,
    is_whole: unsearched === null,
    unreadable,
    runs: await served.make(data, "large"),
  });
}

/** A list reads only the ends of a measured run, so large runs take no longer than small ones. */
async function entriesOf(runs: readonly FoundRun[], folder: ServedFolder): Promise<readonly Html[]> {
  return inSequence(runs, async (run) => {
    const isMeasured = run.kind === "callbacks";
    const lines = isMeasured ? await readIndexLines(run.path, folder.files) : [];
    const ends = isMeasured ? await readEnds(run.path, lines, folder.files).catch(() => null) : null;
    folder.signal.throwIfAborted();
    if (ends !== null) return runEntry({ found: run, state: runState(ends) }, measuredLine(ends));
    const read = await folder.read(run);
    return runEntry(read, summaryLine(read));
  });
}

/** Maps one item after the other, so that a page of several large runs needs the memory of one. */
async function inSequence<T, R>(items: readonly T[], map: (item: T, at: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const [at, item] of items.entries()) results.push(await map(item, at));
  return results;
}
