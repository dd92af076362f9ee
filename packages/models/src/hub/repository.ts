import type { PeriodicEvalError } from "@periodic-eval/core";
import { configError } from "@periodic-eval/core/internal";
import { modelError, quoteShort } from "../folder/model-error.ts";
import { requestError } from "./hub-errors.ts";
import { formatHubId, isCommit, type HubId } from "./hub-id.ts";

/** A file in the root folder of a repository. */
export interface HubFile {
  readonly name: string;
  readonly bytes: number;
  /** SHA-256 of a large file's content, git's SHA-1 of a small file's blob. */
  readonly hash: string;
}

export type Repository = Awaited<ReturnType<typeof openRepository>>;

/**
 * Opens a repository of the hub at HF_ENDPOINT, with the token in HF_TOKEN. Requests throw a PeriodicEvalError; a stream
 * may also fail while it is read.
 */
export async function openRepository(id: HubId) {
  const hub = await import("@huggingface/hub");
  const access = readAccess();
  const requested = async <T>(request: () => Promise<T>, file?: string): Promise<T> => {
    try {
      return await request();
    } catch (error) {
      throw requestError(id, error, file);
    }
  };
  return {
    /** Requests the commit of the revision. */
    commit: (): Promise<string> =>
      requested(async () => {
        const { name, revision } = id;
        const { sha } = await hub.modelInfo({ name, revision, additionalFields: ["sha"], ...access });
        if (!isCommit(sha)) throw malformed(id, `the commit ${quoteShort(sha)}`, "40 hexadecimal digits");
        return sha;
      }),
    /** Lists the files in the root folder, without those whose names are not plain file names. */
    files: (commit: string): Promise<ReadonlyMap<string, HubFile>> =>
      requested(async () => {
        const files = new Map<string, HubFile>();
        for await (const entry of hub.listFiles({ repo: id.name, revision: commit, ...access })) {
          if (entry.type !== "file" || !isPlainName(entry.path)) continue;
          const hash = entry.lfs?.oid ?? entry.oid ?? "";
          if (!/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(hash) || !Number.isSafeInteger(entry.size))
            throw malformed(id, `a listing with ${quoteShort(entry)}`, "a size and a hash");
          files.set(entry.path, { name: entry.path, bytes: entry.size, hash });
        }
        return files;
      }),
    /** Streams the bytes of a file from a position on. */
    async *read(commit: string, { name }: HubFile, from: number): AsyncGenerator<Uint8Array, void> {
      const blob = await requested(
        () => hub.downloadFile({ repo: id.name, revision: commit, path: name, ...access }),
        name,
      );
      if (blob === null) throw malformed(id, `no ${name}, which the hub lists`, "every listed file");
      // Node's streams are iterable; the library's type for them is not.
      const stream = (from === 0 ? blob : blob.slice(from)).stream() as unknown;
      yield* stream as AsyncIterable<Uint8Array>;
    },
  };
}

/** Whether a name is a single segment without a leading dot or dash, which cannot lead out of a folder on any system. */
const isPlainName = (name: string): boolean => /^\w[\w.-]*$/.test(name);

function readAccess(): { hubUrl?: string; accessToken?: string } {
  const endpoint = process.env["HF_ENDPOINT"]?.replace(/\/+$/, "");
  const token = process.env["HF_TOKEN"]?.trim();
  if (endpoint && !/^https?:\/\/[^/]/.test(endpoint))
    throw configError({
      where: "HF_ENDPOINT",
      value: endpoint,
      expected: "the URL of a hub",
      fix: fixVariable,
    });
  if (token && !token.startsWith("hf_"))
    throw configError({
      where: "HF_TOKEN",
      got: "a value that is not repeated here",
      expected: "an access token, which begins with hf_",
      fix: fixVariable,
    });
  return { ...(endpoint && { hubUrl: endpoint }), ...(token && { accessToken: token }) };
}

const fixVariable = "Correct the environment variable, or unset it.";

function malformed(id: HubId, got: string, expected: string): PeriodicEvalError {
  const where = `${formatHubId(id)} on the hub`;
  return modelError({
    where,
    got,
    expected,
    fix: "Check HF_ENDPOINT: this response is not from a Hugging Face hub.",
  });
}
