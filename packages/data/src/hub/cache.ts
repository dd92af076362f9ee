import {
  dirname,
  homedir,
  join,
  process,
  randomUUID,
  readFile,
  relative,
  rename,
  stat,
  symlink,
  writeFile,
} from "@periodic-eval/store/platform";
import { writeFileAtomic, nodeFiles } from "@periodic-eval/store";
import { isCommit, type HubRepo } from "./hub-id.ts";
import type { HubFile } from "./repository.ts";

/** Returns the cache folder of huggingface_hub. */
export function cacheFolder(): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME } = process.env;
  const home = HF_HOME ?? join(XDG_CACHE_HOME ?? join(homedir(), ".cache"), "huggingface");
  return HF_HUB_CACHE ?? HUGGINGFACE_HUB_CACHE ?? join(home, "hub");
}

export type HubCache = ReturnType<typeof openHubCache>;

/** Opens one repository's folder in the cache shared with huggingface_hub: `refs/`, `blobs/`, `snapshots/` and `.no_exist/`. */
export function openHubCache({ type, name }: Pick<HubRepo, "type" | "name">) {
  const root = join(cacheFolder(), `${type}s--${name.replace("/", "--")}`);
  const snapshot = (commit: string) => join(root, "snapshots", commit);
  const blob = (hash: string) => join(root, "blobs", hash);
  // huggingface_hub ignores this folder.
  const listing = (commit: string) => join(root, ".listings", `${commit}.json`);
  const absent = (commit: string, file: string) => join(root, ".no_exist", commit, file);
  return {
    /** The repository's folder, with all its revisions. */
    root,
    /** Returns the folder of a commit, laid out like a folder that Hugging Face libraries save. */
    snapshot,
    blob,
    /** Returns the commit that a revision had at the first request for it; null before that. */
    async commitOf(revision: string): Promise<string | null> {
      if (isCommit(revision)) return revision;
      const text = await readFile(join(root, "refs", revision), "utf8").catch(() => "");
      return isCommit(text.trim()) ? text.trim() : null;
    },
    async setCommit(revision: string, commit: string): Promise<void> {
      if (isCommit(revision)) return;
      const path = join(root, "refs", revision);
      await nodeFiles.makeFolder(dirname(path));
      await writeFileAtomic(path, commit);
    },
    /** Whether the file of the commit is in the cache. */
    has: (commit: string, file: string): Promise<boolean> => exists(join(snapshot(commit), file)),
    /** Whether the commit is known not to contain the file. */
    lacks: (commit: string, file: string): Promise<boolean> => exists(absent(commit, file)),
    async setLacking(commit: string, file: string): Promise<void> {
      await nodeFiles.makeFolder(dirname(absent(commit, file)));
      await writeFile(absent(commit, file), "");
    },
    /** Returns the listing of the commit that `setListing` kept; null without one. */
    async listing(commit: string): Promise<readonly HubFile[] | null> {
      const text = await readFile(listing(commit), "utf8").catch(() => "null");
      try {
        const files = JSON.parse(text) as unknown;
        return Array.isArray(files) ? (files as readonly HubFile[]) : null;
      } catch {
        return null;
      }
    },
    async setListing(commit: string, files: readonly HubFile[]): Promise<void> {
      await nodeFiles.makeFolder(dirname(listing(commit)));
      await writeFileAtomic(listing(commit), JSON.stringify(files));
    },
    /** Links a complete blob into the folder of a commit under the file's name. */
    async place(commit: string, file: string, hash: string): Promise<void> {
      const path = join(snapshot(commit), file);
      await nodeFiles.makeFolder(dirname(path));
      // The rename replaces the old link atomically: another process may be reading it.
      const draft = `${path}.${randomUUID()}`;
      try {
        await symlink(relative(dirname(path), blob(hash)), draft);
      } catch {
        // Windows may forbid links: move the file itself.
        return rename(blob(hash), path);
      }
      await rename(draft, path);
    },
  };
}

/** Returns `owner/name` for a snapshot folder of the hub cache; null for any other folder. */
export function hubNameOf(folder: string): string | null {
  const [, name] = /models--([^\\/]+)[\\/]snapshots[\\/][0-9a-f]{40}[\\/]?$/.exec(folder) ?? [];
  return name?.replace("--", "/") ?? null;
}

/** Whether the path exists; a link to a missing file does not. */
const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
