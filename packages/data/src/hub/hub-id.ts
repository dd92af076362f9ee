/** The name of a model on the Hugging Face hub. */
export interface HubId {
  /** `owner/name`. */
  readonly name: string;
  /** A branch, a tag or a commit. */
  readonly revision: string;
}

/** A revision of a repository on the hub. */
export interface HubRepo extends HubId {
  readonly type: "model" | "dataset";
  /** Names the repository in errors: `owner/name@revision`, or an option and its dataset. */
  readonly where: string;
}

// The hub's own rules for names. No segment may begin with a dot, so that no name leads out of a folder.
const word = String.raw`[A-Za-z0-9_](?:[\w.-]*[\w])?`;
const pattern = new RegExp(`^(${word}/${word})(?:@(${word}(?:/${word})*))?$`);

/** Parses `owner/name` or `owner/name@revision`; null for any other string. */
export function parseHubId(text: string): HubId | null {
  const [, name, revision = "main"] = pattern.exec(text) ?? [];
  return name === undefined || name.length > 200 || /--|\.\./.test(name) ? null : { name, revision };
}

export const isCommit = (text: unknown): boolean => typeof text === "string" && /^[0-9a-f]{40}$/.test(text);

/** Returns `owner/name`, followed by `@revision` unless that is `main`. */
export function formatHubId({ name, revision }: HubId): string {
  return revision === "main" ? name : `${name}@${revision}`;
}
