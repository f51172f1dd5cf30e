/** Finds mistakes that the compilers accept. Prettier does the layout. */
import js from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import svelte from "eslint-plugin-svelte";
import globals from "globals";
import ts from "typescript-eslint";

/** The folders of the web app, each with those that it may import. docs/ARCHITECTURE.md says what is in them. */
const folders = {
  parts: [],
  state: [],
  session: ["parts", "state"],
  board: ["parts", "state", "session"],
  terminal: ["parts", "state", "session"],
  app: ["parts", "state", "session", "board", "terminal"],
};

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
      // A terminal's bytes are control characters.
      "no-control-regex": "off",
      // A Map or Set that no component reads need not be reactive.
      "svelte/prefer-svelte-reactivity": "off",
    },
  },
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: { parserOptions: { parser: ts.parser } },
    // svelte-check reports undefined names, and knows the browser's.
    rules: { "no-undef": "off" },
  },
  // These two have a tsconfig of their own, since they have neither DOM nor Node.
  {
    files: ["packages/client/src/runtime.d.ts"],
    languageOptions: { parserOptions: { projectService: false, project: "packages/client/tsconfig.core.json" } },
  },
  {
    files: ["packages/web/src/worker.ts"],
    languageOptions: { parserOptions: { projectService: false, project: "packages/web/tsconfig.worker.json" } },
  },
  Object.entries(folders).map(([folder, imports]) => {
    // `\x2f` is a slash, which would end the pattern in the selector.
    const others = `^\\.\\.\\x2f(?!(?:${imports.join("|")})\\x2f)`;
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
    files: ["packages/*/tests/**"],
    rules: {
      // Tests read JSON whose form they are about to assert.
      "@typescript-eslint/no-explicit-any": "off",
      "@typescript-eslint/no-unsafe-argument": "off",
      "@typescript-eslint/no-unsafe-assignment": "off",
      "@typescript-eslint/no-unsafe-call": "off",
      "@typescript-eslint/no-unsafe-member-access": "off",
      "@typescript-eslint/no-unsafe-return": "off",
      // The world's `open` and `start` are destructured, and a stand-in for an async function awaits nothing.
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
