import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, stat, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join, relative } from "node:path";
import { writeFileAtomic } from "@periodic-eval/core/snapshots";
import { isCommit, type HubId } from "./hub-id.ts";

/** A model's place in the cache that huggingface_hub shares: `refs/`, `blobs/`, `snapshots/` and `.no_exist/`. */
export interface HubCache {
  /** Of this model, with all its revisions. */
  readonly root: string;
  /** The folder of a commit, which reads like a folder that Hugging Face saved. */
  snapshot(commit: string): string;
  blob(hash: string): string;
  /** The commit that a revision was when it was last asked for; null where it never was. */
  commitOf(revision: string): Promise<string | null>;
  setCommit(revision: string, commit: string): Promise<void>;
  /** Whether the commit's file is here. */
  has(commit: string, name: string): Promise<boolean>;
  /** Whether it is known that the commit has no such file. */
  lacks(commit: string, name: string): Promise<boolean>;
  setLacking(commit: string, name: string): Promise<void>;
  /** Puts a whole blob into a commit's folder under this name. */
  place(commit: string, name: string, hash: string): Promise<void>;
}

/** Where huggingface_hub keeps what it fetched. */
function cacheFolder(): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME } = process.env;
  const home = HF_HOME ?? join(XDG_CACHE_HOME ?? join(homedir(), ".cache"), "huggingface");
  return HF_HUB_CACHE ?? HUGGINGFACE_HUB_CACHE ?? join(home, "hub");
}

export function openHubCache({ name }: HubId): HubCache {
  const root = join(cacheFolder(), `models--${name.replace("/", "--")}`);
  const snapshot = (commit: string) => join(root, "snapshots", commit);
  const blob = (hash: string) => join(root, "blobs", hash);
  const absent = (commit: string, file: string) => join(root, ".no_exist", commit, file);
  return {
    root,
    snapshot,
    blob,
    async commitOf(revision) {
      if (isCommit(revision)) return revision;
      const text = await readFile(join(root, "refs", revision), "utf8").catch(() => "");
      return isCommit(text.trim()) ? text.trim() : null;
    },
    async setCommit(revision, commit) {
      if (isCommit(revision)) return;
      const path = join(root, "refs", revision);
      await mkdir(dirname(path), { recursive: true });
      await writeFileAtomic(path, commit);
    },
    has: (commit, file) => isThere(join(snapshot(commit), file)),
    lacks: (commit, file) => isThere(absent(commit, file)),
    async setLacking(commit, file) {
      await mkdir(dirname(absent(commit, file)), { recursive: true });
      await writeFile(absent(commit, file), "");
    },
    async place(commit, file, hash) {
      const path = join(snapshot(commit), file);
      await mkdir(dirname(path), { recursive: true });
      // Over whatever is there in one step: another process may be reading it.
      const draft = `${path}.${randomUUID()}`;
      try {
        await symlink(relative(dirname(path), blob(hash)), draft);
      } catch {
        // Where links are not allowed (Windows), the file itself.
        return rename(blob(hash), path);
      }
      await rename(draft, path);
    },
  };
}

/** `owner/name` of a snapshot's folder in a hub's cache; null for any other folder. */
export function hubNameOf(folder: string): string | null {
  const [, name] = /models--([^\\/]+)[\\/]snapshots[\\/][0-9a-f]{40}[\\/]?$/.exec(folder) ?? [];
  return name?.replace("--", "/") ?? null;
}

/** A link to a file that is gone counts as none. */
const isThere = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );
