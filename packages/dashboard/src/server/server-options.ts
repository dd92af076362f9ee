import { realpathSync, statSync } from "node:fs";
import * as z from "zod";
import type { ReadOptions } from "./read-run.ts";

export interface ResultsServerOptions {
  /** The folder to serve. The server reads nothing outside it, whatever the address or the links in it. */
  readonly root: string;
  /** The host on which the server listens. It refuses requests for other hosts. Default: 127.0.0.1. */
  readonly host?: string;
  /** The token that each request must send. By default, requests need no token. */
  readonly token?: string;
  /** Reads a `metrics.json` and its sample files. Default: the pages omit benchmark results. */
  readonly readResults?: NonNullable<ReadOptions["readResults"]>;
  /** Largest file that the server reads, in bytes. Default: 64 MiB. */
  readonly maxFileBytes?: number;
}

const isFunction = (value: unknown): boolean => typeof value === "function";

export const serverOptions = z.strictObject({
  root: z
    .string("a folder that contains runs")
    .refine((root) => realFolder(root) !== null, "a folder that contains runs")
    .meta({ fix: "Check the path." }),
  host: z
    .string("a host name or an IP address of this machine")
    .min(1, "a host name or an IP address of this machine")
    .meta({ fix: "Omit it for 127.0.0.1." })
    .optional(),
  token: z
    .string("a non-empty string")
    .min(1, "a non-empty string")
    .meta({ fix: "Omit it to serve without a token." })
    .optional(),
  readResults: z
    .custom<NonNullable<ReadOptions["readResults"]>>(isFunction, "a function")
    .meta({ fix: "Omit it to hide benchmark results." })
    .optional(),
  maxFileBytes: z
    .int("a positive integer")
    .positive("a positive integer")
    .meta({ fix: "Omit it for 64 MiB." })
    .optional(),
} satisfies Record<keyof ResultsServerOptions, z.ZodType>);

/** Returns the path of a folder with all links resolved; null if there is no such folder. */
export function realFolder(path: string): string | null {
  try {
    const real = realpathSync(path);
    return statSync(real).isDirectory() ? real : null;
  } catch {
    return null;
  }
}
