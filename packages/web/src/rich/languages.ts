/** The languages whose code is coloured, by the names that follow the opening marks of a code block. */

/** Every name that `highlight.ts` knows. It is listed here so that an unknown one does not load the grammars. */
const NAMES: ReadonlySet<string> = new Set(
  (
    "arduino atom bash c c# c++ cc cjs console cpp cs csharp css cts cxx diff gemspec go golang gql graphql gyp h h++ " +
    "hh hpp html hxx ini ino ipython irb java javascript js json json5 jsonc jsp jsx kotlin kt kts less lua mak make " +
    "makefile markdown md mjs mk mkd mkdown mm mts obj-c obj-c++ objc objective-c++ objectivec patch perl php " +
    "php-template pl plist pluto pm podspec py pycon python python-repl r rb rs rss ruby rust scss sh shell " +
    "shellsession sql svg swift thor toml ts tsx typescript vb vbnet wasm wsf xhtml xjb xml xsd xsl yaml yml zsh"
  ).split(" "),
);
/** Longer code is not coloured. */
const MAX_CODE = 50_000;
/** Nor is code with longer lines, which are data, and which grammars are slow with. */
const MAX_LINE = 5_000;

/** The name under which code can be coloured; undefined if it cannot. */
export function coloredAs(code: string, language: string | undefined): string | undefined {
  const name = language?.toLowerCase() ?? "";
  if (!NAMES.has(name) || code.length > MAX_CODE) return undefined;
  return code.split("\n").some((line) => line.length > MAX_LINE) ? undefined : name;
}
