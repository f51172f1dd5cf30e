/** Markdown that grows: at every point, it is what a parser makes of the whole text. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { MarkdownText, MAX_LITERAL, MAX_PARSED, withoutOpenMarker } from "../src/rich/markdown.ts";
import { parsePiece } from "../src/rich/parse.ts";
import { HOSTILE } from "./hostile.ts";

// Whole texts are parsed thousands of times.
vi.setConfig({ testTimeout: 60_000 });

/** The nodes of the whole text, parsed at once. */
function wholeNodes(text: string): unknown[] {
  const nodes = parsePiece(text, []).map(({ node }) => node);
  return nodes.filter(({ type }) => type !== "definition");
}

function nodesOf(source: MarkdownText): unknown[] {
  const keys = source.blocks.map(({ key }) => key);
  expect(new Set(keys).size, "keys").toBe(keys.length);
  return source.blocks.map(({ node }) => node);
}

/** Gives a text in pieces of these lengths, and compares after each. */
function compare(text: string, lengthOf: () => number) {
  const source = new MarkdownText();
  for (let end = 0; end < text.length;) {
    end = Math.min(end + lengthOf(), text.length);
    const part = text.slice(0, end);
    source.update(part);
    expect(nodesOf(source), JSON.stringify(part)).toEqual(wholeNodes(part));
  }
}

/** Pseudorandom numbers below 1. */
function random(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const ANSWER = `I looked at **both** files. First:

1. Read \`src/main.rs\`:

   \`\`\`rust
   fn main() {

       println!("a");
   }
   \`\`\`
2. Then [the docs](https://example.org/docs) and [a reference][ref].

   More about it[^1].

Heading
---
- [x] done
- [ ] not done
  - nested

    > quoted
lazy

| a | b |
|---|:-:|
| 1 | \`x\` |

~~~
open fence
~~~
***
<details>
a *b*

</details>

    indented

    code

[ref]: https://example.org/ref
  "A title"
[^1]: A note.

    Its second paragraph.

Last words, www.example.org.
`;

/** What Markdown is made of. */
const TOKENS = [
  ..."a|b c|\n|\n|\n\n|\n\n|- |* |+ |1. |2) |> |  |    |\t|```|```js\n|~~~|# |---|===|**|*|_|`|~~|\\|![|](|<?|?>".split(
    "|",
  ),
  ...[
    "| a | b |\n",
    "|-|-|\n",
    "[a]",
    "[a]: x",
    "[^a]",
    "[^a]: n",
    "[b][a]",
    "[A\n> b]",
    "[a b]: <z> (t)",
    '"t"',
    "'t",
  ],
  ...[
    "<div>",
    "</div>",
    "<!--",
    "-->",
    "<b>",
    "<script>",
    "&amp;",
    "www.a.b ",
    "a@b.c ",
    "[x] ",
    "\r\n",
    "\0",
    "\u00a0",
  ],
];

describe("equals a parse of the whole text", () => {
  test("after every few characters of an answer", () => {
    compare(ANSWER, () => 3);
  });

  test("after every character of random texts", () => {
    for (let seed = 1; seed <= 100; seed++) {
      const next = random(seed);
      const tokens = Array.from({ length: 4 + next() * 14 }, () => TOKENS[Math.floor(next() * TOKENS.length)]);
      compare(tokens.join(""), () => 1);
    }
  });

  test("in the middle and at the end of hostile texts", () => {
    for (const { markdown } of HOSTILE) compare(`${markdown}\n\n${markdown}`, () => markdown.length);
  });

  test("after pieces of this project's documentation, which take several windows", () => {
    const docs = resolve(import.meta.dirname, "../../../docs");
    const next = random(1);
    for (const file of readdirSync(docs).filter((name) => name.endsWith(".md"))) {
      const text = readFileSync(join(docs, file), "utf8").slice(0, 16_000);
      compare(text, () => Math.floor((0.2 + next()) * text.length));
    }
  });
});

describe("what is kept", () => {
  test("blocks that cannot change are the same objects", () => {
    const source = new MarkdownText();
    source.update("# Title\n\nFirst.\n\nSecond\nparagraph");
    const [title, first, second] = source.blocks;
    source.update("# Title\n\nFirst.\n\nSecond\nparagraph, longer");
    expect(source.blocks[0]).toBe(title);
    expect(source.blocks[1]).toBe(first);
    expect(source.blocks[2]).not.toBe(second);
    expect(source.blocks.map(({ open }) => open)).toEqual([false, false, true]);
  });

  test("a definition that comes later changes only what refers to it", () => {
    const source = new MarkdownText();
    source.update("[a]\n\nOther [b].\n");
    source.update("[a]\n\nOther [b].\n\nLast\n");
    const [, other] = source.blocks;
    source.update("[a]\n\nOther [b].\n\nLast\n\n[a]: https://example.org/");
    expect(source.blocks[0]?.node).toMatchObject({ children: [{ type: "linkReference" }] });
    expect(source.blocks[1]).toBe(other);
    expect(source.definitions.get("A")).toMatchObject({ url: "https://example.org/" });
    source.update("[a]\n\nOther [b].\n\nLast\n\n[a]: https://example.org/ is not one");
    expect(source.blocks[0]?.node).toMatchObject({ children: [{ type: "text", value: "[a]" }] });
    expect(source.definitions.size).toBe(0);
  });

  test("the first of several definitions counts", () => {
    const source = new MarkdownText();
    source.update("[a]: first\n\ntext [a]\n\n[a]: second");
    expect(source.definitions.get("A")).toMatchObject({ url: "first" });
  });

  test("another text starts from the beginning", () => {
    const source = new MarkdownText();
    source.update("# One\n\nTwo\n\nThree\n");
    source.update("1. Two\n\nOther\n");
    expect(nodesOf(source)).toEqual(wholeNodes("1. Two\n\nOther\n"));
  });

  test("a code block is read in one piece, however long", () => {
    const code = "[*x*](y)\n\n".repeat(9000);
    const source = new MarkdownText();
    source.update(`Before\n\`\`\`ts\n${code}`);
    expect(source.blocks).toMatchObject([{ open: false }, { open: true, node: { type: "code", lang: "ts" } }]);
    source.update(`Before\n\`\`\`ts\n${code}\`\`\`\nAfter`);
    expect(source.blocks[1]).toMatchObject({ open: false, node: { value: code.slice(0, -1) } });
    expect(source.blocks[2]?.node.type).toBe("paragraph");
  });
});

describe("limits", () => {
  test("what is behind the limits is shown as it is, or counted", () => {
    const source = new MarkdownText();
    const start = `${"words ".repeat(100)}\n\n`.repeat(MAX_PARSED / 602);
    source.update(`${start}${"a".repeat(700)}\n*b*\n`);
    expect(source.blocks.at(-1)?.node).toMatchObject({ type: "html", value: expect.stringMatching(/^a+\n\*b\*\n$/) });
    source.update(start + "x".repeat(MAX_LITERAL + 5));
    expect(source.blocks.at(-1)?.node).toMatchObject({ value: expect.stringMatching(/x\n… \(\d+ more characters/) });
  });

  test("a text is parsed in goes, and its rest shown as it is", () => {
    const source = new MarkdownText();
    const text = "Some *words* here.\n\n".repeat(2000);
    const shown = () =>
      source.blocks.map(({ node }) => ("value" in node ? node.value : "Some words here.\n\n")).join("");
    let goes = 1;
    while (!source.update(text, 0)) {
      goes += 1;
      expect(source.blocks.at(-1)?.node.type).toBe("html");
      expect(shown().length).toBeGreaterThan(text.length * 0.8);
    }
    expect(goes).toBeGreaterThan(3);
    expect(nodesOf(source)).toEqual(wholeNodes(text));
  });

  test("references are resolved in goes, too", () => {
    const source = new MarkdownText();
    const links = "A [link] to somewhere.\n\n".repeat(1500);
    while (!source.update(`${links}[link]: https://example.org/`, 0));
    expect(nodesOf(source)).toEqual(wholeNodes(`${links}[link]: https://example.org/`));
  });

  const endless = (unit: string) => unit.repeat(Math.ceil(100_000 / unit.length));
  const count = (line: (i: number) => string, lines: number) =>
    Array.from({ length: lines }, (_, i) => line(i)).join("\n");
  test.each([
    ["brackets", endless("[")],
    ["brackets that close", "[".repeat(50_000) + "]".repeat(50_000)],
    ["emphasis that never ends", endless("*a ")],
    ["emphasis that never begins", endless("a* ")],
    ["both kinds of emphasis", endless("*a_ ")],
    ["emphasis in emphasis", "*a ".repeat(16_000) + "a* ".repeat(16_000)],
    ["quotes in quotes", endless(">")],
    ["quotes in quotes, with spaces", endless("> ")],
    ["lists in lists on one line", endless("- ")],
    ["lists in lists on each line", endless(`${"- ".repeat(20)}a\n`)],
    ["quotes and lists", endless("> - ")],
    ["lists in lists below each other", count((i) => `${"  ".repeat(i)}- a`, 300)],
    ["backticks", count((i) => "`".repeat(i), 440)],
    ["a quote that goes on and on", `> a\n${endless("a\n")}`],
    ["headings", endless("a\n---\n")],
    ["a large table", `|a|b|\n|-|-|\n${endless("|a|b|\n")}`],
    ["a wide table", `${"|a".repeat(16_000)}\n${"|-".repeat(16_000)}\n${"|b".repeat(16_000)}`],
    ["footnotes", `${count((i) => `[^${i}]: a`, 10_000).slice(0, 90_000)}\n[^1]`],
    ["references before definitions", `${count((i) => `[d${i}]\n`, 3000)}\n${count((i) => `[d${i}]: x`, 3000)}`],
    ["links in links", endless("[a](b")],
    ["HTML that does not end", endless("a<?")],
    ["carriage returns", endless("a\r")],
    ["null characters", endless("\0")],
  ])(
    "%s take bounded time and depth",
    (_, text) => {
      const source = new MarkdownText();
      while (!source.update(text, 0));
      expect(depthOf(source.blocks.map(({ node }) => node))).toBeLessThan(60);
    },
    30_000,
  );

  test("containers that are too deep are shown as their source", () => {
    const source = new MarkdownText();
    source.update(count((i) => `${"  ".repeat(i)}- a${i}`, 60));
    expect(JSON.stringify(source.blocks)).toContain("- a59");
    expect(depthOf(source.blocks.map(({ node }) => node))).toBeLessThan(60);
  });
});

function depthOf(nodes: readonly object[]): number {
  return 1 + Math.max(0, ...nodes.map((node) => ("children" in node ? depthOf(node.children as object[]) : 0)));
}

test("a last line that may become anything waits", () => {
  for (const line of ["-", "- ", "--", "=", "1", "12.", "*", "**", "#", "``", ">"]) {
    expect(withoutOpenMarker(`a\n${line}`), line).toBe("a\n");
  }
  for (const line of ["- a", "a", "1. a", "-----", "2024", ""]) {
    const text = `a\n${line}`;
    expect(withoutOpenMarker(text), line).toBe(line === "2024" ? "a\n" : text);
  }
});
