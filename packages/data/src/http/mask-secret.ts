/**
 * Replaces the secret by `***`, because a server may echo the request. Also masks the secret in JSON strings and in addresses. Does
 * not mask a secret of less than 6 characters: it is a placeholder such as `none`, which replies contain as an ordinary word.
 */
export function maskSecret(text: string, secret: string | null): string {
  if (secret === null || secret.length < 6) return text;
  const inJson = (value: string) => JSON.stringify(value).slice(1, -1);
  const forms = [secret, inJson(secret), inJson(inJson(secret)), encodeURIComponent(secret)];
  return forms.reduce((masked, form) => masked.replaceAll(form, "***"), text);
}
