import { configError, quoteValue } from "@periodic-eval/contracts/options";

/** Entries of `defaults` that add no keys: the file itself, and the schema of CLaaS. */
const ownDefaults: readonly unknown[] = ["_self_", "_eval_schema"];

/** Modes of CLaaS that need an account with a cloud provider. */
const cloudModes: readonly unknown[] = ["modal", "tinker"];

/**
 * Removes the keys that only Hydra and the harness of CLaaS read: `defaults` that name the file itself, and a cloud mode beside a
 * service. Replaces `${now:FORMAT}` in `output_dir` by the time in UTC.
 *
 * @throws PeriodicEvalError `config` for other `defaults`, other interpolations, and a cloud mode without a service.
 */
export function withoutHydra(values: Readonly<Record<string, unknown>>, now: Date): Record<string, unknown> {
  const { defaults, mode, output_dir: output, ...rest } = values;
  if (
    defaults !== undefined &&
    !(Array.isArray(defaults) && defaults.every((one) => ownDefaults.includes(one)))
  )
    throw configError({
      where: "",
      path: ["defaults"],
      value: defaults,
      expected: `only ${ownDefaults.join(" and ")}`,
      fix: "Copy the keys of the other files into this one: Hydra does not run here.",
    });
  const isCloud = cloudModes.includes(mode);
  if (isCloud && (rest["service_url"] ?? null) === null)
    throw configError({
      where: "",
      path: ["mode"],
      got: `${quoteValue(mode)}, which needs an account with a cloud provider`,
      expected: '"local"',
      fix: "Remove mode to train in this process, or start a service on a machine with a GPU and set service_url.",
    });
  return {
    ...rest,
    ...(mode !== undefined && !isCloud && { mode }),
    ...(output !== undefined && { output_dir: typeof output === "string" ? withTime(output, now) : output }),
  };
}

/** Replaces `${now:%Y%m%d}` by the time. */
function withTime(text: string, now: Date): string {
  const iso = now.toISOString();
  const parts: Readonly<Record<string, string>> = {
    Y: iso.slice(0, 4),
    m: iso.slice(5, 7),
    d: iso.slice(8, 10),
    H: iso.slice(11, 13),
    M: iso.slice(14, 16),
    S: iso.slice(17, 19),
  };
  const dated = text.replaceAll(/\$\{now:([^}]*)\}/g, (_, format: string) =>
    format.replaceAll(/%([YmdHMS])/g, (__, part: string) => parts[part]!),
  );
  if (!/\$\{|%[A-Za-z]/.test(dated)) return dated;
  throw configError({
    where: "",
    path: ["output_dir"],
    value: text,
    expected: "a path; ${now:%Y%m%d-%H%M%S} is the only interpolation, with %Y %m %d %H %M %S",
    fix: "Write the path without it.",
  });
}
