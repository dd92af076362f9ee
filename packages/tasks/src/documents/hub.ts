import { createHash } from "node:crypto";
import { PeriodicEvalError } from "@periodic-eval/core";
import { configError, errorMessage } from "@periodic-eval/core/internal";
import { readParquet } from "./parquet.ts";
import { dataError, type PlacedRow, didYouMean } from "./rows.ts";

/** A split of a dataset on the Hugging Face hub. */
export interface HubSplit {
  /** `owner/name`. */
  readonly dataset: string;
  /** Null selects the only one, or the one named `default`. */
  readonly config: string | null;
  readonly split: string;
}

export interface HubRows {
  readonly rows: readonly PlacedRow[];
  /** SHA-256 of the split's files, concatenated. */
  readonly sha256: string;
  readonly config: string;
}

/** The branch that holds the hub's Parquet conversion of any dataset: `<config>/<split>/0000.parquet`. */
const revision = "refs/convert/parquet";

const word = /^\w[\w.-]*$/;

/** Parses `owner/dataset/split` or `owner/dataset/config/split`; returns null for any other string. */
export function parseHubSplit(text: string): HubSplit | null {
  const parts = text.split("/");
  if (![3, 4].includes(parts.length) || !parts.every((part) => word.test(part))) return null;
  const config = parts.length === 4 ? parts[2]! : null;
  return { dataset: `${parts[0]}/${parts[1]}`, config, split: parts.at(-1)! };
}

/**
 * Downloads the rows of a split from the hub at HF_ENDPOINT, with HF_TOKEN. Nothing is cached on disk: each call downloads.
 *
 * @throws PeriodicEvalError `config` for a wrong endpoint or token; `data` if the split does not exist, the hub does not
 *   answer, or a file differs from the SHA-256 that the hub lists.
 */
export async function readHubSplit(asked: HubSplit, where: string): Promise<HubRows> {
  const { dataset, split } = asked;
  const hub = await import("@huggingface/hub");
  const access = { repo: { type: "dataset" as const, name: dataset }, revision, ...readAccess() };
  const listed: { readonly path: string; readonly sha256: string | null }[] = [];
  try {
    for await (const { path, lfs } of hub.listFiles({ ...access, recursive: true }))
      if (path.endsWith(".parquet")) listed.push({ path, sha256: lfs?.oid ?? null });
  } catch (error) {
    throw requestError(dataset, where, error);
  }
  const config = chosen("config", asked.config, foldersOf(listed, ""), dataset, where);
  chosen("split", split, foldersOf(listed, `${config}/`), `${dataset}, config ${config}`, where);
  const files = listed
    .filter(({ path }) => path.startsWith(`${config}/${split}/`))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const rows: PlacedRow[] = [];
  const hash = createHash("sha256");
  for (const { path, sha256 } of files) {
    const bytes = await download(
      () => hub.downloadFile({ ...access, path }),
      `${dataset}/${path}`,
      where,
      sha256,
    );
    hash.update(bytes);
    rows.push(...(await readParquet(bytes, `hf:${dataset}/${path}`)));
  }
  return { rows, sha256: hash.digest("hex"), config };
}

/** Returns the names of the folders in a folder. */
const foldersOf = (files: readonly { readonly path: string }[], under: string): readonly string[] => [
  ...new Set(
    files.flatMap(({ path }) => (path.startsWith(under) ? [path.slice(under.length).split("/")[0]!] : [])),
  ),
];

/** Returns the requested name, or without a request `default` or the only name. */
function chosen(
  kind: "config" | "split",
  asked: string | null,
  names: readonly string[],
  of: string,
  where: string,
): string {
  if (asked !== null && names.includes(asked)) return asked;
  if (asked === null && names.includes("default")) return "default";
  if (asked === null && names.length === 1) return names[0]!;
  throw dataError(
    where,
    asked === null ? `no ${kind} of ${of}, which has ${names.length}` : `the ${kind} "${asked}" of ${of}`,
    `one of ${names.join(", ")}`,
    didYouMean(asked, names) ?? "Write hf:owner/dataset/config/split.",
  );
}

async function download(
  ask: () => Promise<Blob | null>,
  file: string,
  where: string,
  expected: string | null,
): Promise<Uint8Array> {
  let bytes: Uint8Array;
  try {
    const blob = await ask();
    if (blob === null) throw new Error("a listed file does not exist");
    bytes = new Uint8Array(await blob.arrayBuffer());
  } catch (error) {
    throw requestError(file, where, error);
  }
  const found = createHash("sha256").update(bytes).digest("hex");
  if (expected === null || found === expected) return bytes;
  const fix = "Run it again. If the hash still differs, the hub or a proxy changes files.";
  throw dataError(where, `${file} with the SHA-256 ${found}`, `the ${expected} that the hub lists`, fix);
}

function requestError(of: string, where: string, error: unknown): PeriodicEvalError {
  if (PeriodicEvalError.is(error)) return error;
  const { statusCode: status } = (error ?? {}) as { readonly statusCode?: unknown };
  const got = typeof status === "number" ? `status ${status} for ${of}` : `${errorMessage(error)} for ${of}`;
  const expected = "an answer from the hub";
  if (status === 401 || status === 403) {
    const fix =
      "Check the name; for a gated or private dataset accept its terms on its page, and set HF_TOKEN.";
    return dataError(where, got, "a dataset that exists and that you may read", fix, error);
  }
  if (status === 404) {
    const fix =
      "Check the name. If the hub has not converted the dataset to Parquet, download it and name the file.";
    return dataError(where, got, "a dataset with this name", fix, error);
  }
  if (status === 429)
    return dataError(where, got, expected, "Wait, or set HF_TOKEN: the hub limits requests.", error);
  return dataError(where, got, expected, "Check the network and HF_ENDPOINT, or name a file.", error);
}

function readAccess(): { readonly hubUrl?: string; readonly accessToken?: string } {
  const fix = "Correct it in the environment, or unset it.";
  const endpoint = process.env["HF_ENDPOINT"]?.replace(/\/+$/, "");
  const token = process.env["HF_TOKEN"]?.trim();
  if (endpoint && !/^https?:\/\/[^/]/.test(endpoint))
    throw configError({ where: "HF_ENDPOINT", value: endpoint, expected: "the address of a hub", fix });
  if (token && !token.startsWith("hf_"))
    throw configError({
      where: "HF_TOKEN",
      got: "another string",
      expected: "an access token, which begins with hf_",
      fix,
    });
  return { ...(endpoint && { hubUrl: endpoint }), ...(token && { accessToken: token }) };
}
