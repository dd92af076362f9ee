import { basename } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/core/internal";
import { Hono, type Context } from "hono";
import { containedFiles, namesOf, type ContainedFiles } from "./contained-files.ts";
import { findRuns, type FoundRun, type FoundRuns } from "./find-runs.ts";
import { headOf, listPage, manyAnswers, pageCount, runEntry, runPage } from "./pages.ts";
import { pageTurns, type Hold, type Turn } from "./page-turns.ts";
import { parseQuery, type Query } from "./query.ts";
import { readFound, type ReadOptions, type ReadRun } from "./read-run.ts";
import {
  sendData,
  sendDataWhenReady,
  sendMessage,
  sendWhenReady,
  sent,
  setHeaders,
  strictPolicy,
  wantsJson,
} from "./replies.ts";
import { requestGuard } from "./request-guard.ts";
import { shortData, wholeData } from "./run-json.ts";
import type { AnswerRange } from "./stored-answers.ts";
import { realFolder, serverOptions, type ResultsServerOptions } from "./server-options.ts";

export const evalPath = "/v1/eval";

/** Answers shown per callback on a page of several runs. */
const fewAnswers = 3;

/**
 * Returns a server for the results below a folder, as pages or as JSON (`Accept: application/json`):
 * `GET /v1/eval?results_dir=&page=&per_page=`. It only reads files, and treats every string in them as hostile.
 *
 * @throws PeriodicEvalError `config` for a wrong option, such as a `root` that is not a folder.
 */
export function resultsServer(options: ResultsServerOptions): Hono {
  const parsed = parseOptions("resultsServer options", serverOptions, options);
  const { root, host = "127.0.0.1", token = null, readResults = null, maxFileBytes } = parsed;
  const serve = servedFolder(realFolder(root)!, readResults, maxFileBytes);
  const createPage = pageTurns();
  const app = new Hono();
  app.use(requestGuard(host, token));
  app.get("/", (c) => {
    setHeaders(c, strictPolicy);
    return c.redirect(evalPath, 302);
  });
  app.get(evalPath, async (c) => {
    let query: Query;
    try {
      query = parseQuery(c.req.queries());
    } catch (error) {
      if (!PeriodicEvalError.is(error)) throw error;
      return sendMessage(
        c,
        400,
        "Wrong address",
        `${error.where}: got ${error.got}, expected ${error.expected}.`,
      );
    }
    const { signal } = c.req.raw;
    return createPage(signal, (turn, hold) => {
      // A reply needs memory until its client has read it.
      const holdUntilSent: Hold = (page) => hold(page.then(async () => sent(c)));
      return reply(c, query, serve(turn, holdUntilSent, signal));
    });
  });
  app.notFound((c) => sendMessage(c, 404, "Not found", `The results are at ${evalPath}.`));
  app.onError((_, c) =>
    sendMessage(c, 500, "Server error", "The server could not create this page. Other pages may work."),
  );
  return app;
}

/** The served folder as one request reads it. */
interface ServedFolder {
  readonly rootName: string;
  readonly files: ContainedFiles;
  readonly signal: AbortSignal;
  readonly hold: Hold;
  readonly isShown: (run: FoundRun) => boolean;
  readonly read: (run: FoundRun, answers: AnswerRange | null) => Promise<ReadRun>;
}

function servedFolder(
  root: string,
  readResults: ReadOptions["readResults"],
  maxFileBytes: number | undefined,
): (turn: Turn, hold: Hold, signal: AbortSignal) => ServedFolder {
  const contained = containedFiles(root, maxFileBytes === undefined ? {} : { maxFileBytes });
  return (turn, hold, signal) => {
    const untilAbort: ContainedFiles = {
      async list(folder) {
        signal.throwIfAborted();
        return contained.list(folder);
      },
      async read(path) {
        signal.throwIfAborted();
        return contained.read(path);
      },
      timeOf: (path) => contained.timeOf(path),
      chunks: (path) => contained.chunks(path),
    };
    const files: ContainedFiles = {
      ...untilAbort,
      read: (path) => turn(() => contained.read(path)),
      async *chunks(path) {
        const parts = contained.chunks(path);
        try {
          for (;;) {
            const part = await turn(() => parts.next());
            if (part.done === true) return;
            yield part.value;
          }
        } finally {
          await parts.return();
        }
      },
    };
    return {
      rootName: basename(root),
      files,
      signal,
      hold,
      isShown: ({ kind }) => kind !== "results" || readResults !== null,
      async read(run, answers) {
        // Reading benchmark results is one part, in which it must not wait for another turn.
        const inTurn = readResults && ((file: string) => turn(() => readResults(file, untilAbort)));
        const read = await readFound(run, { files, readResults: inTurn, answers });
        // `readFound` reports an aborted read as a damaged file.
        signal.throwIfAborted();
        return read;
      },
    };
  };
}

async function reply(c: Context, query: Query, served: ServedFolder): Promise<Response> {
  const names = namesOf(query.resultsDir);
  if (names === null) return sendNotFound(c);
  const folder = names.join("/");
  const normalized: Query = { ...query, resultsDir: folder };
  let found: FoundRuns;
  try {
    found = await findRuns(folder, served.files, served.isShown);
  } catch {
    served.signal.throwIfAborted();
    return sendNotFound(c);
  }
  served.signal.throwIfAborted();
  const { runs } = found;
  const requestedRun = runs.find(({ path }) => path === folder);
  // If the served folder itself is a run, the list shows it with the runs below. `steps=all` then requests only this run.
  const isOneRun = requestedRun !== undefined && (folder !== "" || runs.length === 1 || query.showsAllRows);
  return isOneRun
    ? replyWithRun(c, normalized, requestedRun, served)
    : replyWithList(c, normalized, found, served);
}

async function replyWithRun(c: Context, query: Query, run: FoundRun, { rootName, read, hold }: ServedFolder) {
  const { page: number, perPage, isPaged } = query;
  if (wantsJson(c)) {
    const all = { first: 0, count: Infinity };
    const range = isPaged ? { first: (number - 1) * perPage, count: perPage } : all;
    const data = read(run, range).then(wholeData);
    hold(data);
    return sendDataWhenReady(c, data);
  }
  const place = { rootName, query };
  const page = read(run, { first: (number - 1) * manyAnswers, count: manyAnswers }).then((done) =>
    runPage(place, done),
  );
  hold(page);
  return sendWhenReady(c, headOf(place), page);
}

async function replyWithList(
  c: Context,
  query: Query,
  found: FoundRuns,
  { rootName, read, hold }: ServedFolder,
) {
  const { runs, unsearched, unreadable } = found;
  const { page, perPage, resultsDir } = query;
  const runsOfPage = runs.slice((page - 1) * perPage, page * perPage);
  if (!wantsJson(c)) {
    const place = { rootName, query };
    const list = inSequence(runsOfPage, async (run, at) =>
      runEntry(await read(run, { first: 0, count: fewAnswers }), at, runsOfPage.length === 1),
    ).then((entries) => listPage(place, found, entries));
    hold(list);
    return sendWhenReady(c, headOf(place), list);
  }
  return sendData(c, {
    results_dir: resultsDir,
    page,
    per_page: perPage,
    pages: pageCount(runs.length, query),
    total: runs.length,
    is_whole: unsearched === null,
    unreadable,
    runs: await inSequence(runsOfPage, async (run) => shortData(await read(run, null))),
  });
}

/** Maps one item after the other, so that a page of several large runs needs the memory of one. */
async function inSequence<T, R>(items: readonly T[], map: (item: T, at: number) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const [at, item] of items.entries()) results.push(await map(item, at));
  return results;
}

/** Sends the same reply for folders outside the root as for missing ones, so that it reveals nothing about them. */
const sendNotFound = (c: Context) =>
  sendMessage(c, 404, "Not found", "results_dir: expected a folder below the served one.");
