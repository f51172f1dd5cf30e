/** Tests the answers to questions, while they are chosen. */
import type { Question } from "@bowline/client";
import { describe, expect, it } from "vitest";
import {
  answerOf,
  choose,
  chooseOwn,
  EMPTY_DRAFT,
  formAnswers,
  isComplete,
  sendLabel,
  typeText,
} from "../src/approvals/form.ts";

const question = (changes: Partial<Question> = {}): Question => ({
  id: "q",
  text: "Which database?",
  options: [{ label: "SQLite" }, { label: "Postgres" }, { label: "None" }],
  multi: false,
  free: false,
  ...changes,
});

describe("R36: the answer to a question", () => {
  it("is one of its options, and none at first", () => {
    const one = question();
    expect(answerOf(one)).toEqual([]);
    const draft = choose(one, choose(one, EMPTY_DRAFT, "SQLite", true), "None", true);
    expect(answerOf(one, draft)).toEqual(["None"]);
  });

  it("is several of its options in their order, if several are possible", () => {
    const several = question({ multi: true });
    let draft = choose(several, EMPTY_DRAFT, "None", true);
    draft = choose(several, draft, "SQLite", true);
    expect(answerOf(several, draft)).toEqual(["SQLite", "None"]);
    expect(answerOf(several, choose(several, draft, "None", false))).toEqual(["SQLite"]);
  });

  it("is the user's own text instead of an option, or besides several", () => {
    const free = question({ free: true });
    const chosen = choose(free, EMPTY_DRAFT, "SQLite", true);
    const typed = typeText(free, chosen, " MySQL ");
    expect(answerOf(free, typed)).toEqual(["MySQL"]);
    // The text stays when an option is chosen after all.
    const back = choose(free, typed, "SQLite", true);
    expect([answerOf(free, back), back.text]).toEqual([["SQLite"], " MySQL "]);
    expect(answerOf(free, chooseOwn(free, back, true))).toEqual(["MySQL"]);
    expect(answerOf(free, chooseOwn(free, chosen, true))).toEqual([]);
    const several = question({ free: true, multi: true });
    expect(answerOf(several, typeText(several, chosen, "MySQL"))).toEqual(["SQLite", "MySQL"]);
    expect(answerOf(several, typeText(several, chosen, "SQLite"))).toEqual(["SQLite"]);
    expect(answerOf(question(), typeText(question(), EMPTY_DRAFT, "MySQL"))).toEqual([]);
  });

  it("is deleted with its text", () => {
    const open = question({ options: [], free: true });
    const typed = typeText(open, EMPTY_DRAFT, "yes");
    expect(answerOf(open, typed)).toEqual(["yes"]);
    expect(answerOf(open, typeText(open, typed, "  "))).toEqual([]);
  });

  it("leaves questions out only when the button says so", () => {
    const questions = [question(), question({ id: "r", multi: true }), question({ id: "s" })];
    const picked = { chosen: ["None"], text: "", own: false };
    const forms = [{}, { r: picked }, { q: picked, r: picked, s: picked }].map((drafts) =>
      formAnswers(questions, drafts),
    );
    expect(forms.map(sendLabel)).toEqual(["Send", "Send 1 of 3 answers", "Send"]);
    expect(forms.map(isComplete)).toEqual([false, false, true]);
    expect(formAnswers(questions, { r: picked })).toEqual({ answers: { r: ["None"] }, answered: 1, asked: 3 });
  });
});
