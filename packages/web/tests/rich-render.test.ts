/** What agents write becomes text on the page: the rendered HTML has no element, attribute or target of theirs. */
import { render } from "svelte/server";
import { describe, expect, test } from "vitest";
import CodeBlock from "../src/rich/CodeBlock.svelte";
import Diff from "../src/rich/Diff.svelte";
import { linkTarget } from "../src/rich/links.ts";
import Markdown from "../src/rich/Markdown.svelte";
import Output from "../src/rich/Output.svelte";
import { HOSTILE } from "./hostile.ts";

/** The HTML without the comments and classes of Svelte. */
function htmlOf(text: string): string {
  return plain(render(Markdown, { props: { text } }).body);
}

function plain(html: string): string {
  return html
    .replace(/<!--.*?-->/gs, "")
    .replace(/ class="[^"]*"/g, "")
    .replace(/<span[^>]*role="status"[^>]*><\/span>/g, "");
}

const ELEMENTS =
  "a bdi blockquote br button code del div em h3 h4 h5 h6 hr li mark ol p path pre span strong sup svg table tbody td th thead tr ul";
const ATTRIBUTES =
  "aria-expanded aria-hidden aria-label class d data-footnote dir fill height href rel role scope start stroke stroke-linecap " +
  "stroke-linejoin stroke-width style tabindex target type viewBox width";

/** Checks every tag of some HTML. Svelte escapes `<` and `"`, so that a tag is found by its signs. */
function expectHarmless(html: string) {
  for (const [, name = "", rest = ""] of html.matchAll(/<\/?([a-z][a-z0-9]*)((?:"[^"]*"|[^">])*)>/gi)) {
    expect(ELEMENTS.split(" "), html).toContain(name);
    for (const [, attribute = "", value = ""] of rest.matchAll(/([^\s="/]+)(?:="([^"]*)")?/g)) {
      expect(ATTRIBUTES.split(" "), html).toContain(attribute);
      if (attribute === "href") expect(value, html).toMatch(/^(?:https?:\/\/[^/]|mailto:)/);
      if (attribute === "style") expect(value, html).toMatch(/^text-align: (?:left|right|center);$/);
    }
  }
  expect(html.replace(/<\/?[a-z][a-z0-9]*(?:"[^"]*"|[^">])*>/gi, "")).not.toContain("<");
}

describe("hostile Markdown", () => {
  test.each(HOSTILE)("$name", ({ markdown }) => {
    expectHarmless(plain(render(Markdown, { props: { text: markdown } }).body));
    expectHarmless(plain(render(Markdown, { props: { text: markdown.slice(0, -1), streaming: true } }).body));
  });
});

test("code, diffs and output are text, too", () => {
  for (const { markdown } of HOSTILE) {
    expectHarmless(plain(render(CodeBlock, { props: { code: markdown, language: markdown } }).body));
    const diff = plain(render(Diff, { props: { path: markdown, diff: `+${markdown}` } }).body);
    expectHarmless(diff.replace(/ style="--digits: \dch;"/, ""));
    expectHarmless(plain(render(Output, { props: { text: markdown, label: markdown } }).body));
  }
});

describe("links", () => {
  const shown = (markdown: string) => htmlOf(markdown).replace(/<[^>]+>/g, "");

  test("show where they lead, unless their text does", () => {
    expect(shown("[docs](https://example.org/a) more")).toBe("docs (example.org) more");
    expect(shown("<https://example.org/a>, www.example.org/b and me@example.org")).toBe(
      "https://example.org/a, www.example.org/b and me@example.org",
    );
    expect(shown("[write](mailto:me@example.org?subject=x)")).toBe("write (me@example.org?subject=x)");
    expect(shown("[main.rs](src/main.rs#L1), [src/a.rs](src/a.rs)")).toBe("main.rs (src/main.rs#L1), src/a.rs");
    expect(shown("[a][b]\n\n[b]: https://example.org/")).toBe("a (example.org)");
  });

  test("do not pretend to lead elsewhere", () => {
    expect(linkTarget("https://bad.example/", "https://good.example/")).toEqual({
      href: "https://bad.example/",
      shown: "bad.example",
    });
    // The name before the host is not sent, and does not count as the host.
    expect(linkTarget("https://good.example@bad.example/", "https://good.example@bad.example/")).toEqual({
      href: "https://bad.example/",
      shown: "bad.example",
    });
    expect(linkTarget("https://аррӏе.com/", "https://аррӏе.com/").shown).toBe("xn--80ak6aa92e.com");
    expect(linkTarget("https://bad.example/", "https://bad.example/\u202E").shown).toBe("bad.example");
    expect(shown("[a\u202Eb](https://example.org/)")).toBe("a⟨U+202E⟩b (example.org)");
  });

  test("open in a new tab that knows nothing of this one", () => {
    expect(htmlOf("https://example.org/")).toBe(
      '<div><p dir="auto"><a href="https://example.org/" rel="noopener noreferrer" target="_blank" dir="auto">https://example.org/</a></p></div>',
    );
  });

  test("long targets are cut", () => {
    const { shown } = linkTarget(`data:${"x".repeat(1000)}`, "a");
    expect(shown.length).toBeLessThan(130);
  });

  test("images are links, and not loaded", () => {
    expect(shown("![A *chart*](https://example.org/x.png)")).toBe("Image: A chart (example.org)");
    expect(shown("[![alt](x.png)](https://example.org/)")).toBe("alt (example.org)");
  });
});

describe("structure", () => {
  test("headings are below those of the page", () => {
    expect(htmlOf("# a\n\n### b\n\n###### c")).toBe(
      '<div><h3 dir="auto">a</h3><h5 dir="auto">b</h5><h6 dir="auto">c</h6></div>',
    );
  });

  test("spaces between inline nodes stay, and none are added", () => {
    expect(htmlOf("a *b* **c**~~d~~`e`\\\nf").replace(/ dir="auto"/g, "")).toBe(
      "<div><p>a <em>b</em> <strong>c</strong><del>d</del><code>e</code><br/>f</p></div>",
    );
  });

  test("tasks say whether they are done", () => {
    expect(htmlOf("- [x] a\n- [ ] b")).toMatch(/aria-label="Done".*a.*aria-label="Not done".*b/s);
  });

  test("footnotes can be reached", () => {
    const html = htmlOf("a[^n]\n\n[^n]: the note");
    expect(html).toMatch(/<sup><button type="button">n<\/button><\/sup>/);
    expect(html).toMatch(/data-footnote="\^N".*the note/);
  });

  test("hidden characters are visible in code, and stay as they are elsewhere", () => {
    expect(htmlOf("`a\u202Eb`")).toContain("<mark>⟨U+202E⟩</mark>");
    expect(htmlOf("می\u200Cخواهم")).toContain("می\u200Cخواهم");
  });
});

test("a diff shows its file, its counts, and another name", () => {
  const diff = "--- a/x.ts\n+++ b/x.ts\n@@ -1,2 +1,2 @@ fn\n a\n-b\n+c\n";
  const text = plain(render(Diff, { props: { path: "src/a.ts", diff } }).body).replace(/<[^>]+>/g, "");
  expect(text).toMatch(/src\/a\.ts.*\+1.*−1.*names another file: x\.ts.*fn/s);
});
