import { verifierGrader, type CallOptions, type Grader, type Json, type Verdict } from "@periodic-eval/core";
import { canonicalJson, hashJson } from "@periodic-eval/core/random";
import { customVerifier, findVerifier } from "@periodic-eval/core/grading";
import { loadVerifierModule, type VerifierModule } from "@periodic-eval/data/config";
import { limitedTime, type TimeLimits } from "@periodic-eval/store";
import { builtInVerifiers, type VerifierSpec } from "./verifier-spec.ts";

/** The fields of a task that its verifier needs. */
export interface VerifiedTask {
  readonly id: string;
  readonly answer: Json;
  readonly metadata: { readonly [key: string]: Json };
  readonly verifier: VerifierSpec;
}

/** The verifiers of a folder. Each module is loaded once. */
export interface OpenVerifiers {
  /**
   * Returns the task's grader. Its verdicts have the score `reward`, and `passed` unless that means a reward of at least 1.
   *
   * @throws PeriodicEvalError `data` whose `where` is a key of the task; the caller adds file and line.
   */
  open(task: VerifiedTask): Promise<Grader>;
  /** Checks that the opened graders of modules can be reached. */
  check(options: CallOptions): Promise<void>;
  /** Returns everything outside of the tasks that changes verdicts, by verifier. */
  fingerprints(): Readonly<Record<string, string>>;
}

/** @param limits For the time of a task's pattern or schema on the completions that one call grades. */
export function openVerifiers(folder: string, limits?: TimeLimits): OpenVerifiers {
  const modules = new Map<string, Promise<VerifierModule>>();
  const fingerprints = new Map<string, string>();
  const builtIn = new Map<string, Grader>();
  const graders = new Set<Grader>();

  async function open(task: VerifiedTask): Promise<Grader> {
    const { verifier } = task;
    if ("name" in verifier) {
      // The cache avoids compiling a thousand schemas at each measurement.
      const key = canonicalJson([verifier, task.answer]);
      const grader = builtIn.get(key) ?? (await openBuiltIn(verifier, task.answer, limits));
      builtIn.set(key, grader);
      fingerprints.set(verifier.name, builtInVerifiers[verifier.name]!.version);
      return grader;
    }
    const { module: path, export: name, args } = verifier;
    if (!modules.has(path)) modules.set(path, loadVerifierModule(folder, path));
    const loaded = await modules.get(path)!;
    const member = findVerifier(loaded, name);
    const fullName = `${path}#${name}`;
    fingerprints.set(fullName, "grade" in member ? hashJson([loaded.hash, member.fingerprint]) : loaded.hash);
    if ("grade" in member) {
      graders.add(member);
      return member;
    }
    const { id, answer, metadata } = task;
    return customVerifier(fullName, loaded.hash, member, { id, answer, metadata, args });
  }

  return {
    open,
    async check(options) {
      for (const grader of graders) await grader.check?.(options);
    },
    fingerprints: () => Object.fromEntries(fingerprints),
  };
}

async function openBuiltIn(
  { name, args }: Extract<VerifierSpec, { readonly name: string }>,
  answer: Json,
  limits?: TimeLimits,
): Promise<Grader> {
  const kind = builtInVerifiers[name]!;
  const check = await kind.open({ answer, args });
  const graderOfCall = () => {
    const limited = limitedTime("the pattern or schema of the task", limits);
    return verifierGrader(name, kind.version, async (request): Promise<Verdict> => {
      const reason = await limited(() => check(request.answer));
      return { status: "graded", scores: { reward: reason === null ? 1 : 0 }, raw: reason };
    });
  };
  // A slow completion of an earlier call must not change these verdicts.
  return { ...graderOfCall(), grade: (requests, options) => graderOfCall().grade(requests, options) };
}
