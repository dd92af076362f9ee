import { nltkPattern, isLower, isUpper, stripEnd } from "./pattern.ts";

/**
 * The English words that `sentences.ts` uses. They are general knowledge, not NLTK's English model, whose licence is not stated.
 * benchmarks/results/ifeval.md reports how often both decide alike.
 */
const listed = (words: string): ReadonlySet<string> => new Set(words.trim().split(/\s+/u));

/**
 * Abbreviations whose period ends no sentence, unless the next word looks like a beginning. "etc.", "e.g." and "i.e." are not
 * listed, because NLTK ends a sentence after them.
 */
const abbreviations = listed(`
  a.d a.m adm ala approx apr ariz assn aug ave b.a b.c b.s blvd bros ca calif capt cf cmdr co col colo conn corp cos
  cpl d.c dec dept dr e.u est feb fla fr fri ft ga gen gov hon inc inst intl j.d jan jr jul jun kan ky l.a llc lt ltd
  m.a m.b.a m.d m.s maj mar md messrs mich minn mon mont mr mrs ms mt mx n.c n.j n.y natl neb nev nov oct okla p p.m
  penn ph.d plc pp pres prof pt pvt rd rep rev s.c sen sep sept sgt sr st supt tenn tex thu thur thurs tue tues u.k
  u.n u.s u.s.a univ v va vol vols vs vt wed wis wyo
`);

/** Words that are rarely part of a name. Capitalized, they begin a sentence even after an abbreviation or an ellipsis. */
const openers = listed(`
  a about above according accordingly across actually additionally after again against all almost alone along also
  although always am among an and another any anybody anyone anything apart are around as at based be because been
  before behind being below beneath beside besides between beyond both but by can certainly clearly compared
  concerning consequently considering could currently despite did do does done down due during each earlier either
  even eventually every everybody everyone everything except few finally firstly following for fortunately from
  furthermore generally given had has have having he hello hence here hers herself him himself his hopefully how
  however i if importantly in indeed inside instead interestingly into is it its itself just lastly later let like
  likewise luckily many may maybe me meanwhile might mine more moreover most much must my myself near nearly need
  neither never nevertheless next no nobody none nonetheless nor normally nothing now obviously of off often on once
  one only onto or other otherwise ought our ours ourselves out outside over past per perhaps please possibly
  presently probably quickly quite rarely rather really recently regarding sadly secondly several shall she should
  similarly since slowly so some somebody someone something sometimes soon sorry still such suddenly surprisingly than
  thank thanks that the their theirs them themselves then there therefore these they thirdly this those though through
  throughout thus till to today together tomorrow too toward towards typically under underneath unfortunately unless
  until up upon us usually very via was we were what whatever when whenever where whereas wherever whether which
  whichever while who whom whose why will with within without would yes yesterday yet you your yours yourself
`);

/**
 * Words that are usually in lower case. Capitalized, they begin a sentence after an initial: "Plan A. Make a list." has two
 * sentences, "J. Smith" has one.
 */
const commonWords = listed(`
  able add afternoon air allow amazing amount analysts analyze animal animals answer answers appear apply art ask
  asked autumn available avoid baby bad bake ball beautiful bed begin begins believe best better big bike bird birds
  body book books boy breathe bring brother build business businesses buy calculate call called came car cars case cat
  cats chair change chapter check child children choose chop cities city class clean click combine come comes
  companies company computer computers conclusion consider contact continue cook cool cost costs countries country
  course cover create critics customer customers cut dad data daughter day days death decide define describe
  description determine different difficult discuss doctor doctors dog dogs door download drain drink early earth easy
  eat education eight employee employees end enjoy enter evaluate evening example examples excellent exercise expect
  experts explain explore eye eyes face fact facts fall false families family father fear feel feet film find fire
  first fish five flower flowers follow food foot forest found four free friend friends full game games garden gave
  get gets girl give gives go goal goals goes good got government great group groups grow half hand hands happen happy
  hard hate head health hear heart heat help high history hold home hope horse hour hours house hundred husband idea
  ideas identify imagine improve include includes increase information install introduction investors job joy keep
  kept kitchen know lake large last late law laws lead learn leave left life list little live long look looks lose
  love low made make makes man manage manager market medicine meet men mind minute minutes mix mom money month months
  moon morning mother mountain move movie movies music name names nation new nice night nine note notes number numbers
  ocean offer office officials old open option options organize outline pain paragraph parent parents part parts pass
  patient patients pay peace people perfect person picture place plan play player players poem poems point points pour
  practice press prevent price prices problem problems product products program programs protect prove provide pull
  put question questions raise reach read ready reason reasons reduce relax remember remove report require research
  researchers response rest result results review right river road room run sad same school schools science scientists
  sea second section sections see seem select sell send serve service services set seven share short show shows side
  simple sister sit six sky sleep slice small software solve son song songs speak spend sport sports spring stand star
  stars start starts stay step steps stir stop stories story street student students studies study suggest summarize
  summary summer sun support sure system systems table take takes teacher teachers team teams technology tell ten
  thing things think third thousand three time times title told took town train tree trees tried tries true try turn
  two understand use used uses using visit voice wait walk want war wash watch water way week weeks went wife win
  window winter woman women wonderful word words work worked works world worse write wrong year years young
`);

/** The characters that may directly follow a sentence's final period; they also end words. */
const closing = String.raw`[!?;:@*"'‘’“”«»(){}[\]]`;
const dotsOrDashes = String.raw`(?:--+|\.\.+|\.\s(?:\.\s)+\.)`;
const wordEnd = String.raw`\s|$|${closing}|${dotsOrDashes}`;

/** A word with its period; or dots, dashes or another mark. */
const token = nltkPattern(
  String.raw`${dotsOrDashes}|(?![,;:@#&*"\x60\-(){}[\]])\S+?(?=${wordEnd}|,(?=${wordEnd}))|\S`,
  "g",
);
const possibleEnd = nltkPattern(String.raw`[.?!](?=(${closing}|(\s+)\S+))`, "g");
const closers = nltkPattern(String.raw`^["'‘’“”«»)}\]]+?(?:\s+|$|(?=--))`);
const number = nltkPattern(String.raw`^-?[.,]?\d[\d,.\-]*\.?$`);
const initial = nltkPattern(String.raw`^(?!\d)\w\.$`);

/**
 * Splits a text into sentences with Punkt (Kiss and Strunk 2006), as in NLTK 3.10, with the tables above. A
 * period, question mark or exclamation mark before whitespace or a closing mark ends a sentence, unless its word is an
 * abbreviation, an initial or a number and the next word does not look like a beginning. Line breaks end no sentence.
 * benchmarks/results/ifeval.md describes the tables and how often they agree with NLTK's.
 */
export function sentences(text: string): string[] {
  const cut: { readonly start: number; readonly end: number }[] = [];
  let start = 0;
  for (const { end, next, context } of possibleEnds(text)) {
    if (!endsWithin(context)) continue;
    cut.push({ start, end });
    start = next;
  }
  cut.push({ start, end: stripEnd(text).length });
  return withClosers(text, cut);
}

export const countSentences = (text: string): number => sentences(text).length;

interface PossibleEnd {
  readonly end: number;
  /** Where the following text begins. */
  readonly next: number;
  /** The word before, the mark and the following text, which decide. */
  readonly context: string;
}

/** Yields marks that may end a sentence; of several marks after one word (`what?!`) only the last. */
function* possibleEnds(text: string): Generator<PossibleEnd> {
  let word = { start: 0, end: 0 };
  let pending: PossibleEnd | null = null;
  for (const { 0: mark, 1: follows, 2: space, index } of text.matchAll(possibleEnd)) {
    const lastSpace = /[ \t-\r](?=[^ \t-\r]*$)/u.exec(text.slice(word.end, index))?.index ?? 0;
    const start = lastSpace > 0 ? word.end + lastSpace + 1 : word.start;
    if (pending !== null && word.end <= start) yield pending;
    word = { start, end: index };
    const end = index + mark.length;
    pending = {
      end,
      next: end + (space?.length ?? 0),
      context: text.slice(start, end) + follows!,
    };
  }
  if (pending !== null) yield pending;
}

interface Word {
  readonly text: string;
  /** The word in lower case; all numbers share one kind. */
  readonly kind: string;
  readonly is: "end" | "abbreviation" | "ellipsis" | "other";
}

function wordOf(text: string): Word {
  const lower = text.toLowerCase();
  return { text, kind: number.test(lower) ? "##number##" : lower, is: classOf(text, lower) };
}

function classOf(text: string, lower: string): Word["is"] {
  if (text === "." || text === "?" || text === "!") return "end";
  if (/^\.{2,}$/u.test(text)) return "ellipsis";
  if (!text.endsWith(".") || text.endsWith("..")) return "other";
  const stem = lower.slice(0, -1);
  return abbreviations.has(stem) || abbreviations.has(stem.split("-").at(-1)!) ? "abbreviation" : "end";
}

/** Whether a sentence ends before the last word of the context. */
function endsWithin(context: string): boolean {
  const words = context.split("\n").flatMap((line) => (line.match(token) ?? []).map(wordOf));
  return words.slice(0, -1).some((one, at) => isEnd(one, words[at + 1]!));
}

function isEnd(word: Word, next: Word): boolean {
  if (!word.text.endsWith(".")) return word.is === "end";
  const isInitial = initial.test(word.text);
  const start = beginningOf(next);
  if ((word.is === "abbreviation" || word.is === "ellipsis") && !isInitial) return start === "yes";
  if (!isInitial && word.kind !== "##number##") return word.is === "end";
  if (start === "no" || word.is !== "end") return false;
  return !(isInitial && start === "unknown" && isUpper(first(next)) && !isCommon(bare(next)));
}

const isCommon = (word: string): boolean => openers.has(word) || commonWords.has(word);

/** Whether a word looks like the first of a sentence. */
function beginningOf(next: Word): "yes" | "no" | "unknown" {
  if (/^[;:,.!?]$/u.test(next.text)) return "no";
  if (isUpper(first(next)) && openers.has(bare(next))) return "yes";
  return isLower(first(next)) ? "no" : "unknown";
}

const first = ({ text }: Word): string => String.fromCodePoint(text.codePointAt(0)!);

/** Returns the word's kind without a final period that ends a sentence. */
const bare = ({ kind, is }: Word): string =>
  is === "end" && kind.length > 1 && kind.endsWith(".") ? kind.slice(0, -1) : kind;

/** Moves closing marks after the end of a sentence into that sentence. */
function withClosers(
  text: string,
  cut: readonly { readonly start: number; readonly end: number }[],
): string[] {
  let skipped = 0;
  return cut.flatMap(({ start, end }, at) => {
    const from = start + skipped;
    const next = cut[at + 1];
    const found = next === undefined ? null : closers.exec(text.slice(next.start, next.end));
    skipped = found?.[0].length ?? 0;
    const to = found === null ? end : next!.start + stripEnd(found[0]).length;
    return from < to || found !== null ? [text.slice(from, to)] : [];
  });
}
