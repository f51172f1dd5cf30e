/** Lints for mistakes that the compilers accept. Prettier formats. */
import js from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import svelte from "eslint-plugin-svelte";
import globals from "globals";
import ts from "typescript-eslint";

/** The folders of the web app, each with the folders that it may import from. docs/ARCHITECTURE.md describes them. */
const folders = {
  parts: [],
  state: [],
  session: ["parts", "state"],
  rich: ["parts"],
  approvals: ["parts", "state", "session", "rich"],
  board: ["parts", "state", "session"],
  terminal: ["parts", "state", "session"],
  conversation: ["parts", "state", "session", "rich", "approvals"],
  app: ["parts", "state", "session", "rich", "approvals", "board", "terminal", "conversation"],
};

/** Ways to turn text into HTML. What agents and programs write must never become markup. */
const MARKUP = ["innerHTML", "outerHTML", "insertAdjacentHTML", "setHTMLUnsafe", "createContextualFragment", "srcdoc"];

export default defineConfig(
  globalIgnores(["target/", "fuzz/", "crates/", "**/dist/", "packages/client/src/core/wire.ts"]),
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  ts.configs.recommendedTypeChecked,
  svelte.configs.recommended,
  {
    languageOptions: { parserOptions: { projectService: true, extraFileExtensions: [".svelte"] } },
    rules: {
      "@typescript-eslint/consistent-type-imports": ["error", { disallowTypeAnnotations: false }],
      "@typescript-eslint/switch-exhaustiveness-check": ["error", { considerDefaultExhaustiveForUnions: true }],
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      // Terminal sequences contain control characters.
      "no-control-regex": "off",
      // Not every Map or Set is read by a component.
      "svelte/prefer-svelte-reactivity": "off",
      "svelte/no-at-html-tags": "error",
    },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser } },
    // svelte-check reports undefined names.
    rules: { "no-undef": "off" },
  },
  // These files have their own tsconfig, since they use neither the DOM nor Node.
  {
    files: ["packages/client/src/runtime.d.ts"],
    languageOptions: { parserOptions: { projectService: false, project: "packages/client/tsconfig.core.json" } },
  },
  {
    files: ["packages/web/src/worker.ts"],
    languageOptions: { parserOptions: { projectService: false, project: "packages/web/tsconfig.worker.json" } },
  },
  Object.entries(folders).map(([folder, imports]) => {
    const forbidden = Object.keys(folders).filter((name) => name !== folder && !imports.includes(name));
    // `\x2f` is a slash; a plain one would end the pattern in the selector.
    const others = `^(?:\\.\\.\\x2f)+(?:${forbidden.join("|") || "[^]"})\\x2f`;
    const message = `${folder}/ imports only from ${[...imports, folder].map((name) => `${name}/`).join(", ")}.`;
    return {
      files: [`packages/web/src/${folder}/**`],
      rules: {
        "no-restricted-imports": ["error", { patterns: [{ regex: others, message }] }],
        "no-restricted-syntax": ["error", { selector: `ImportExpression[source.value=/${others}/]`, message }],
      },
    };
  }),
  {
    files: ["packages/web/src/**"],
    rules: {
      "no-restricted-properties": [
        "error",
        ...MARKUP.map((property) => ({ property, message: "Text must not become markup: create nodes." })),
        { object: "document", property: "write", message: "Text must not become markup: create nodes." },
      ],
    },
  },
  {
    files: ["packages/*/tests/**"],
    rules: {
      // Tests parse JSON and then assert its shape.
      "@typescript-eslint/no-explicit-any": "off",
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
      // Tests destructure `open` and `start`, and replace async functions with ones that do not await.
      "@typescript-eslint/unbound-method": "off",
      "@typescript-eslint/require-await": "off",
    },
  },
  {
    files: ["**/*.js", "**/*.mjs"],
    extends: [ts.configs.disableTypeChecked],
    languageOptions: { globals: globals.node },
  },
);
