/** Returns the anchor that GitHub gives to a heading, so that links work there and on the site. */
export const githubSlug = (heading) =>
  heading
    .trim()
    .replaceAll("\u00a0", " ")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");
