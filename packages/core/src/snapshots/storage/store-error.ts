import { PeriodicEvalError } from "../../errors.ts";
import { errorMessage } from "../../internal/error-message.ts";
import { errnoOf } from "./file-system.ts";

/** Explanations of system error codes. */
export const errnoReasons: Readonly<Record<string, string>> = {
  ENOSPC: "no space left on the device",
  EDQUOT: "disk quota exceeded",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EROFS: "read-only file system",
  ENOTDIR: "a file is in the place of a folder",
  EEXIST: "a file is in the place of a folder",
  EISDIR: "a folder is in the place of a file",
  EMFILE: "too many open files",
};

const fixes: Readonly<Record<string, string>> = {
  ENOSPC: "Free space on that disk and resume the run; everything written before is intact.",
  EDQUOT: "Free space under that quota and resume the run; everything written before is intact.",
  EACCES: "Give this user write access to the folder, or choose another run folder.",
  EPERM: "Give this user write access to the folder, or choose another run folder.",
  EROFS: "Choose a run folder on a writable file system.",
  ENOTDIR: "Move that file away, or choose another run folder.",
  EEXIST: "Move that file away, or choose another run folder.",
};

/**
 * Returns the `store` error for a failed file operation, with the path, the reason and a fix. A PeriodicEvalError is returned
 * unchanged.
 *
 * @param expected What should have been at `path`. Default: a path that can be read and written.
 */
export function storeError(path: string, error: unknown, expected?: string): PeriodicEvalError {
  if (PeriodicEvalError.is(error)) return error;
  const code = errnoOf(error);
  const isFolder = code === "EEXIST" || code === "ENOTDIR";
  return new PeriodicEvalError({
    code: "store",
    where: path,
    got: code === null ? errorMessage(error) : `${code} (${errnoReasons[code] ?? errorMessage(error)})`,
    expected:
      expected ??
      (isFolder
        ? "a folder, or a free name, at each part of the path"
        : "a path that can be read and written"),
    fix: fixes[code ?? ""] ?? "Check the folder and its disk, then resume the run.",
    cause: error,
  });
}
