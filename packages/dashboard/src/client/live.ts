import { create, readDataBlock } from "./dom.ts";

/** Milliseconds between two requests for the version of the page's folder. */
const pollMs = 2000;

const focusable = "a, button, input, select, summary, [tabindex]";

/**
 * Keeps a served page up to date: when the version of its folder changes, requests the page again and replaces its content. What the
 * reader opened stays open, the focus stays, and the answers stay as the reader filtered them.
 *
 * @param restart Starts the other features on the new content.
 */
export function startLive(restart: () => void): void {
  const note = create("p", { class: "lost", role: "alert" });
  let lostAt: Date | null = null;
  const show = (text: string): void => {
    if (note.isConnected) return;
    note.textContent = text;
    document.body.prepend(note);
  };
  const poll = async (): Promise<void> => {
    const { address, version, page, isPartial } = readDataBlock<LiveData>("live")!;
    // A selection would be lost; the page is replaced once it is gone.
    if (document.hidden || !(getSelection()?.isCollapsed ?? true)) return;
    try {
      const reply = await fetch(address, { cache: "no-store" });
      if (reply.status === 404) return show(goneText());
      if (!reply.ok) throw new Error();
      note.remove();
      lostAt = null;
      if (!isPartial && ((await reply.json()) as Pick<LiveData, "version">).version === version) return;
      const next = await fetch(page, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (next.ok) replaceContent(new DOMParser().parseFromString(await next.text(), "text/html"), restart);
    } catch {
      // One request may fail on a network: only a second one in a row is a failure.
      if (lostAt !== null) show(lostText(lostAt));
      lostAt ??= new Date();
    }
  };
  const follow = (): void => void poll().finally(() => setTimeout(follow, pollMs));
  const { isPartial } = readDataBlock<LiveData>("live") ?? {};
  // The server sent a sample of a large run, so that the page opens at once.
  if (isPartial !== undefined) setTimeout(follow, isPartial ? 0 : pollMs);
}

/** The block `live` of a served page. */
interface LiveData {
  /** Where the server reports the version of the folder. */
  readonly address: string;
  /** The version that the page shows. */
  readonly version: string;
  /** Address of the whole page. */
  readonly page: string;
  readonly isPartial: boolean;
}

const goneText = (): string =>
  `This run is gone: its folder was renamed or deleted. This page shows what it knew at ${timeText(new Date())}.`;

const lostText = (lostAt: Date): string =>
  `Not connected: the server has ended or cannot be reached. This page shows what it knew at ${timeText(lostAt)}.`;

const timeText = (at: Date): string => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** Replaces the `<main>` of this page and its blocks of data by those of another document. */
export function replaceContent(next: Document, restart: () => void): void {
  const [before, after] = [document.querySelector("main"), next.querySelector("main")];
  if (before === null || after === null) return;
  for (const block of next.querySelectorAll('script[type="application/json"]')) {
    const old = document.getElementById(block.id);
    if (old === null) document.body.append(document.adoptNode(block));
    else old.textContent = block.textContent;
  }
  const fresh = document.adoptNode(after);
  const isOpen = new Map([...before.querySelectorAll("details")].map((node) => [placeOf(node), node.open]));
  const focused = document.activeElement;
  const focusedAt = focused === null || !before.contains(focused) ? null : placeOf(focused);
  for (const element of before.querySelectorAll("[data-keep][id]"))
    fresh.querySelector(`#${CSS.escape(element.id)}`)?.replaceWith(element);
  before.replaceWith(fresh);
  restart();
  for (const details of fresh.querySelectorAll("details"))
    details.open = isOpen.get(placeOf(details)) ?? details.open;
  const isKept = focused instanceof HTMLElement && focused.isConnected;
  const all = [...fresh.querySelectorAll<HTMLElement | SVGElement>(focusable)];
  const target = isKept ? focused : focusedAt && all.find((element) => placeOf(element) === focusedAt);
  if (target) target.focus({ preventScroll: true });
}

/** Names an element by what stays the same when its content changes: ids and titles above it, and its kind. */
function placeOf(element: Element): string {
  const names: string[] = [];
  for (let el: Element | null = element; el !== null && el.tagName !== "MAIN"; el = el.parentElement) {
    const parent: Element | null = el.parentElement;
    const title = el.querySelector(":scope > summary > .title, :scope > summary, :scope > h2, :scope > h3");
    const name = el.id || title?.textContent?.replaceAll(/\d+/g, "") || "";
    const alike = parent === null ? [] : [...parent.children].filter(({ tagName }) => tagName === el.tagName);
    names.push(`${el.tagName}:${name === "" ? alike.indexOf(el) : name}`);
  }
  return names.join(" < ");
}
