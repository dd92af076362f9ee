/**
 * Replaces the secret by `***`, because a server may echo the request. Does not mask a secret of less than 6 characters: it is a
 * placeholder such as `none`, which replies contain as an ordinary word.
 */
export function maskSecret(text: string, secret: string | null): string {
  return secret === null || secret.length < 6 ? text : text.replaceAll(secret, "***");
}
