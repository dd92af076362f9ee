import { PeriodicEvalError } from "@periodic-eval/core";
import { hubError, requestError } from "./hub-errors.ts";
import { isCommit, shownId, type HubId } from "./hub-id.ts";

/** A file at the top of a repository. */
export interface HubFile {
  readonly name: string;
  readonly bytes: number;
  /** SHA-256 of a large file's content, git's name of a small one's. */
  readonly hash: string;
}

/** One commit of a model on the hub. */
export interface Repository {
  /** Asks which commit the revision is. */
  commit(): Promise<string>;
  /** The files at its top; those whose names are no plain file names are left out. */
  files(commit: string): Promise<ReadonlyMap<string, HubFile>>;
  /** Bytes of a file from a position on. */
  read(commit: string, file: HubFile, from: number): AsyncIterable<Uint8Array>;
}

/** Speaks to the hub of HF_ENDPOINT with HF_TOKEN. Every failure is a PeriodicEvalError, or a stream that breaks off. */
export async function openRepository(id: HubId): Promise<Repository> {
  const hub = await import("@huggingface/hub");
  const access = readAccess();
  const asked = async <T>(request: () => Promise<T>, file?: string): Promise<T> => {
    try {
      return await request();
    } catch (error) {
      throw requestError(id, error, file);
    }
  };
  return {
    commit: () =>
      asked(async () => {
        const { name, revision } = id;
        const { sha } = await hub.modelInfo({ name, revision, additionalFields: ["sha"], ...access });
        if (!isCommit(sha)) throw malformed(id, `the commit ${JSON.stringify(sha)}`, "40 hexadecimal digits");
        return sha;
      }),
    files: (commit) =>
      asked(async () => {
        const files = new Map<string, HubFile>();
        for await (const entry of hub.listFiles({ repo: id.name, revision: commit, ...access })) {
          if (entry.type !== "file" || !isPlainName(entry.path)) continue;
          const hash = entry.lfs?.oid ?? entry.oid ?? "";
          if (!/^([0-9a-f]{40}|[0-9a-f]{64})$/.test(hash) || !Number.isSafeInteger(entry.size))
            throw malformed(id, `a listing with ${JSON.stringify(entry)}`, "a size and a hash");
          files.set(entry.path, { name: entry.path, bytes: entry.size, hash });
        }
        return files;
      }),
    async *read(commit, { name }, from) {
      const blob = await asked(
        () => hub.downloadFile({ repo: id.name, revision: commit, path: name, ...access }),
        name,
      );
      if (blob === null) throw malformed(id, `a listing with ${name} and no such file`, "what it lists");
      // Node's streams can be iterated; the type that the library states cannot.
      const stream = (from === 0 ? blob : blob.slice(from)).stream() as unknown;
      yield* stream as AsyncIterable<Uint8Array>;
    },
  };
}

/** One segment that begins with a letter or digit: such a name cannot lead out of a folder on any system. */
const isPlainName = (name: string): boolean => /^\w[\w.-]*$/.test(name);

function readAccess(): { hubUrl?: string; accessToken?: string } {
  const endpoint = process.env["HF_ENDPOINT"]?.replace(/\/+$/, "");
  const token = process.env["HF_TOKEN"]?.trim();
  if (endpoint && !/^https?:\/\/[^/]/.test(endpoint))
    throw wrongSetting("HF_ENDPOINT", JSON.stringify(endpoint), "the address of a hub");
  if (token && !token.startsWith("hf_"))
    throw wrongSetting("HF_TOKEN", "another text", "an access token, which begins with hf_");
  return { ...(endpoint && { hubUrl: endpoint }), ...(token && { accessToken: token }) };
}

function wrongSetting(where: string, got: string, expected: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "config",
    where,
    got,
    expected,
    fix: "Correct it in the environment, or unset it.",
  });
}

function malformed(id: HubId, got: string, expected: string): PeriodicEvalError {
  return hubError(
    `${shownId(id)} on the hub`,
    got,
    expected,
    "Check HF_ENDPOINT: this is no answer of a hub.",
  );
}
