const reasons = {
  EBADF: "bad file descriptor",
  EEXIST: "file already exists",
  EINVAL: "invalid argument",
  EIO: "the browser's storage failed",
  EISDIR: "illegal operation on a directory",
  ENOENT: "no such file or directory",
  ENOSPC: "no space left on device",
  ENOSYS: "function not implemented",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty",
} as const;

/** Returns an error as Node's file operations throw it: `ENOENT: no such file or directory, open '/run/a.json'`. */
export const fileError = (
  code: keyof typeof reasons,
  syscall: string,
  path: string,
  cause?: unknown,
): Error =>
  Object.assign(new Error(`${code}: ${reasons[code]}, ${syscall} '${path}'`, { cause }), {
    code,
    syscall,
    path,
  });
