import { createHash, dirname, join } from "@periodic-eval/store/platform";
import { makeFolder, writeFileAtomic, readIfPresent, utf8Text } from "@periodic-eval/store";
import { endpointOf, isOffline } from "./access.ts";
import { cacheFolder } from "./cache.ts";
import { reasonOf } from "./request-error.ts";
import { dataError } from "@periodic-eval/contracts/options";
import { fetchBounded, ReplyTooLargeError } from "../http/fetch-bounded.ts";

/** A UTF-8 file of a public GitHub repository, at one commit and with one content. */
export interface PinnedFile {
  /** The name by which options select it. */
  readonly name: string;
  /** `owner/name`. */
  readonly repository: string;
  /** 40 hexadecimal digits. */
  readonly commit: string;
  /** The file's path in the repository. */
  readonly path: string;
  readonly bytes: number;
  /** SHA-256 of the content, in hexadecimal. */
  readonly sha256: string;
  readonly licence: string;
}

const github = "https://raw.githubusercontent.com";
/** Seconds without a complete response after which a request is given up. */
const timeoutSeconds = 60;

/**
 * Returns the place of a pinned file in the cache. It is there only after its hash was verified. The folder is our own, because
 * folders `<type>--<owner>--<name>` of the cache belong to huggingface_hub.
 */
export const pinnedPath = ({ repository, commit, path }: PinnedFile): string =>
  join(cacheFolder(), "periodic-eval", "github", repository, commit, path);

/** Returns the URL of a pinned file on GitHub. */
export const pinnedUrl = (file: PinnedFile): string => urlAt(github, file);

const urlAt = (base: string, { repository, commit, path }: PinnedFile): string =>
  `${base}/${repository}/${commit}/${path}`;

/**
 * Returns the text of a pinned file from an own folder of the cache shared with huggingface_hub. Downloads it from GitHub unless it is
 * there, and keeps it only if its SHA-256 matches. GITHUB_RAW_ENDPOINT names another server than raw.githubusercontent.com;
 * HF_HUB_OFFLINE forbids the request.
 *
 * @param where The option that names the file, for errors: `alignment options.questions`.
 * @throws PeriodicEvalError `data` for a file that cannot be had or has another content, `config` for a malformed variable,
 *   `store` if the cache cannot be read or written.
 */
export async function fetchPinnedFile(file: PinnedFile, where: string): Promise<string> {
  const path = pinnedPath(file);
  const cached = await readIfPresent(path);
  const { name, sha256 } = file;
  if (cached !== null) {
    const actual = hashOf(new TextEncoder().encode(cached));
    if (actual === sha256) return cached;
    const fix = "Delete this file and run it again: it is downloaded again.";
    throw dataError(where, `${path} with the SHA-256 ${actual}`, `the ${sha256} of ${name}`, fix);
  }
  if (isOffline())
    throw dataError(
      where,
      `HF_HUB_OFFLINE, but ${name} is not in the cache (${path})`,
      "a cached file, or a network",
      `Unset HF_HUB_OFFLINE, or ${byHand(file)}`,
    );
  const expected = `the URL of a server with the paths of ${github}`;
  const url = urlAt(endpointOf("GITHUB_RAW_ENDPOINT", expected) ?? github, file);
  const bytes = await download(url, file, where);
  const actual = hashOf(bytes);
  if (actual !== sha256)
    throw dataError(
      where,
      `${url} with ${bytes.length} bytes and the SHA-256 ${actual}`,
      `the ${file.bytes} bytes and the SHA-256 ${sha256} of ${name}`,
      `Nothing was kept. Check GITHUB_RAW_ENDPOINT and proxies, which may change files, or ${byHand(file)}`,
    );
  const text = utf8Text(bytes, url);
  await makeFolder(dirname(path));
  await writeFileAtomic(path, text);
  return text;
}

const byHand = (file: PinnedFile): string =>
  `download ${pinnedUrl(file)} by hand and name its path instead of ${file.name}.`;

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** Returns the content at a URL, at most as many bytes as the file has. */
async function download(url: string, file: PinnedFile, where: string): Promise<Uint8Array> {
  const failed = (got: string, cause?: unknown) => {
    const fix = `Check the network and GITHUB_RAW_ENDPOINT, try again later, or ${byHand(file)}`;
    return dataError(where, `${got} from ${url}`, `the file ${file.name}`, fix, cause);
  };
  const limits = { timeoutSeconds, maxBytes: file.bytes };
  const { response, bytes } = await fetchBounded(url, {}, limits).catch((cause: unknown) => {
    const isTooLarge = cause instanceof ReplyTooLargeError;
    throw failed(isTooLarge ? cause.message : `no complete response (${reasonOf(cause)})`, cause);
  });
  if (response.status !== 200) throw failed(`status ${response.status}`);
  return bytes;
}
