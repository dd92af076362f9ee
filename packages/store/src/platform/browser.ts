// The exports of `node.ts` for browsers: files in memory or in the browser's storage, and the few other parts of Node that the
// packages use. The conditions of package.json choose.
export { createHash } from "./browser/sha256.ts";
export {
  access,
  accessSync,
  createReadStream,
  existsSync,
  link,
  mkdir,
  mkdirSync,
  mkdtemp,
  mkdtempSync,
  open,
  readdir,
  readdirSync,
  readFile,
  readFileSync,
  readlinkSync,
  realpath,
  rename,
  rm,
  rmdir,
  rmSync,
  stat,
  stat as lstat,
  statSync,
  symlink,
  truncate,
  unlink,
  writeFile,
  writeFileSync,
} from "./browser/files.ts";
export { constants } from "./browser/file-tree.ts";
export { basename, dirname, join, relative, resolve, sep } from "./browser/paths.ts";
export {
  byteLength,
  gunzip,
  homedir,
  hostname,
  isDeepStrictEqual,
  isUtf8,
  pausedSeconds,
  process,
  randomUUID,
  sleep,
  tmpdir,
  withinTime,
} from "./browser/process.ts";
export type { FileHandle } from "./browser/file-handle.ts";
