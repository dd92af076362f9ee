import { fetchBounded, maskSecret } from "../http/fetch-bounded.ts";
import { quoteValue } from "@periodic-eval/contracts/options";
import { readAccess } from "./access.ts";
import { cut, hubError, requestError } from "./request-error.ts";
import { isCommit, type HubRepo } from "./hub-id.ts";

export interface HubFile {
  /** Its path in the repository. */
  readonly name: string;
  readonly bytes: number;
  /** SHA-256 of a large file's content, git's SHA-1 of a small file's blob. */
  readonly hash: string;
}

/** A repository on the hub. */
export interface Repository {
  /** Requests the commit of the revision. */
  commit(): Promise<string>;
  /**
   * Lists the files of a model's root folder, or of all folders of a dataset, without those whose names are not plain file
   * names.
   */
  files(commit: string): Promise<ReadonlyMap<string, HubFile>>;
  /** Streams the bytes of a file from a position on. */
  read(commit: string, file: HubFile, from: number): AsyncIterable<Uint8Array>;
}

/**
 * Opens a repository of the hub at HF_ENDPOINT, with the token in HF_TOKEN. Requests throw a PeriodicEvalError; a stream
 * may also fail while it is read.
 */
export async function openRepository(repo: HubRepo): Promise<Repository> {
  const hub = await import("#hub-library");
  const access = readAccess();
  const initFor = requestInit(access);
  const { type, name, revision } = repo;
  const of = { repo: { type, name }, ...access };
  const requested = async <T>(request: () => Promise<T>, file?: string): Promise<T> => {
    try {
      return await request();
    } catch (error) {
      throw requestError(repo, error, file);
    }
  };
  return {
    commit: () =>
      requested(async () => {
        const wanted = {
          name,
          revision,
          additionalFields: ["sha" as const],
          fetch: boundedFetch(repo, initFor),
          ...access,
        };
        const { sha } = await (type === "model" ? hub.modelInfo(wanted) : hub.datasetInfo(wanted));
        if (!isCommit(sha)) throw malformed(repo, `the commit ${quoteShort(sha)}`, "40 hexadecimal digits");
        return sha;
      }),
    files: (commit) =>
      requested(async () => {
        const files = new Map<string, HubFile>();
        const listing = {
          ...of,
          revision: commit,
          fetch: boundedFetch(repo, initFor),
          ...(type === "dataset" && { recursive: true }),
        };
        for await (const entry of hub.listFiles(listing)) {
          if (entry.type !== "file" || !isPlainPath(entry.path)) continue;
          const hash = entry.lfs?.oid ?? entry.oid ?? "";
          if (!isHash(hash) || !Number.isSafeInteger(entry.size))
            throw malformed(repo, `a listing with ${quoteShort(entry)}`, "a size and a hash");
          files.set(entry.path, { name: entry.path, bytes: entry.size, hash });
        }
        return files;
      }),
    async *read(commit, { name: path }, from) {
      const blob = await requested(
        () => hub.downloadFile({ ...of, revision: commit, path, fetch: fetchOfFiles(initFor) }),
        path,
      );
      if (blob === null) throw malformed(repo, `no ${path}, which the hub lists`, "every listed file");
      // Node's streams are iterable; the library's type for them is not.
      const stream = (from === 0 ? blob : blob.slice(from)).stream() as unknown;
      yield* stream as AsyncIterable<Uint8Array>;
    },
  };
}

/** Limits of the JSON replies to one call. A listing of 100,000 files has about 20 MB, in 100 pages. */
const [timeoutSeconds, maxBytes, maxReplies] = [60, 32 * 2 ** 20, 200];

/** Returns a `fetch` for the library's JSON requests, which limits the number and the size of all its replies together. */
function boundedFetch(repo: HubRepo, initFor: InitFor): typeof fetch {
  let left = maxBytes;
  let replies = 0;
  return async (url, init = {}) => {
    if (++replies > maxReplies)
      throw malformed(repo, `more than ${maxReplies} pages`, `a listing of at most ${maxReplies} pages`);
    const reply = await fetchBounded(url, initFor(url, init), { timeoutSeconds, maxBytes: left });
    left -= reply.bytes.length;
    return withoutToken(reply.response, reply.text());
  };
}

/** Returns a `fetch` for the library's downloads, which does not read the body of an error: it may be endless. */
const fetchOfFiles =
  (initFor: InitFor): typeof fetch =>
  async (url, init = {}) => {
    const response = await fetch(url, initFor(url, init));
    // The library waits without end for a reply that has no body (status 204).
    if (response.ok)
      return response.body === null ? new Response("", { headers: response.headers }) : response;
    await response.body?.cancel();
    const masked = withoutToken(response, "");
    masked.headers.delete("content-type");
    return masked;
  };

/** Returns a reply with the access token masked, which a server may repeat and the library's errors keep. */
function withoutToken({ status, statusText, headers }: Response, text: string): Response {
  const { accessToken = null } = readAccess();
  const mask = (value: string) => maskSecret(value, accessToken);
  return new Response(mask(text) || null, {
    status,
    statusText: mask(statusText),
    headers: [...headers].map(([name, value]): [string, string] => [name, mask(value)]),
  });
}

type InitFor = (url: Parameters<typeof fetch>[0], init: RequestInit) => RequestInit;

/** Removes the access token from requests to other servers: the library sends it wherever the hub's links lead. */
function requestInit({ hubUrl, accessToken }: ReturnType<typeof readAccess>): InitFor {
  const hub = new URL(hubUrl ?? "https://huggingface.co").origin;
  return (url, init) => {
    const { origin } = new URL(url instanceof Request ? url.url : url);
    const headers = new Headers(init.headers);
    if (origin !== hub && headers.get("authorization") === `Bearer ${accessToken}`)
      headers.delete("authorization");
    return { ...init, headers };
  };
}

/** A reply may have a list of one hash in the place of a hash, which a pattern would match. */
const isHash = (value: unknown): boolean =>
  typeof value === "string" && /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(value);

/** Whether no segment of a path has a leading dot or dash, so that it cannot lead out of a folder on any system. */
const isPlainPath = (path: unknown): boolean =>
  typeof path === "string" && path.split("/").every((name) => /^\w[\w.-]*$/.test(name));

const quoteShort = (value: unknown): string => cut(quoteValue(value), 120);

const malformed = (repo: HubRepo, got: string, expected: string) =>
  hubError(repo, {
    where: `${repo.where} on the hub`,
    got,
    expected,
    fix: "Check HF_ENDPOINT: this response is not from a Hugging Face hub.",
  });
