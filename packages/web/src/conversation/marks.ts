/** Marks a text inside an element, without changing its nodes. */

const NAME = "found";

/** Marks where `query` occurs below an element, whatever the case. Browsers without the API mark nothing. */
export function mark(element: Element, query: string): void {
  const { highlights } = CSS as { highlights?: HighlightRegistry };
  if (!highlights || typeof Highlight !== "function") return;
  const ranges = rangesOf(element, query.toLowerCase());
  if (ranges.length === 0) highlights.delete(NAME);
  else highlights.set(NAME, new Highlight(...ranges));
}

export function unmark(): void {
  (CSS as { highlights?: HighlightRegistry }).highlights?.delete(NAME);
}

/** The places of a text in the text nodes of an element: also those that go from one node to the next. */
function rangesOf(element: Element, query: string): Range[] {
  const nodes: { readonly node: Text; readonly start: number }[] = [];
  let text = "";
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    nodes.push({ node: node as Text, start: text.length });
    text += (node as Text).data;
  }
  const lower = text.toLowerCase();
  // Few characters change their length in lower case; then the places are not known.
  if (lower.length !== text.length || query === "") return [];
  const at = (offset: number) => nodes.findLast(({ start }) => start <= offset)!;
  const ranges: Range[] = [];
  for (let i = lower.indexOf(query); i >= 0 && ranges.length < 200; i = lower.indexOf(query, i + query.length)) {
    const [from, to] = [at(i), at(i + query.length - 1)];
    const range = new Range();
    range.setStart(from.node, i - from.start);
    range.setEnd(to.node, i + query.length - to.start);
    ranges.push(range);
  }
  return ranges;
}
