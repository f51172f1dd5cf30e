/** The answers to an agent's questions, while the user chooses them. A plain module. */
import type { Question } from "@bowline/client";

/** The answer to one question in the making. */
export interface Draft {
  /** The labels that are chosen; at most one unless several may be. */
  readonly chosen: readonly string[];
  /** The user's own words. */
  readonly text: string;
  /** Whether the own words are an answer. */
  readonly own: boolean;
}

/** Drafts by the id of their question. */
export type Drafts = Readonly<Record<string, Draft>>;

export const EMPTY_DRAFT: Draft = { chosen: [], text: "", own: false };

/** The draft after an option was chosen, or no longer is. */
export function choose({ multi }: Question, draft: Draft, label: string, on: boolean): Draft {
  if (!multi) return { ...draft, chosen: on ? [label] : [], own: false };
  const others = draft.chosen.filter((other) => other !== label);
  return { ...draft, chosen: on ? [...others, label] : others };
}

/** The draft after the own words were chosen, or no longer are. */
export function chooseOwn({ multi }: Question, draft: Draft, on: boolean): Draft {
  return { ...draft, own: on, chosen: multi || !on ? draft.chosen : [] };
}

/** The draft after the user has typed. Words are chosen by typing them. */
export function typeText(question: Question, draft: Draft, text: string): Draft {
  return chooseOwn(question, { ...draft, text }, text.trim() !== "");
}

/** The answer to a question: labels in the order in which they are offered, then the own words. Empty if there is none. */
export function answerOf(question: Question, draft: Draft = EMPTY_DRAFT): string[] {
  const labels = question.options.map(({ label }) => label).filter((label) => draft.chosen.includes(label));
  const own = question.free && draft.own && draft.text.trim() ? [draft.text.trim()] : [];
  const answer = [...new Set([...labels, ...own])];
  return question.multi ? answer : answer.slice(0, 1);
}

export interface FormAnswers {
  /** By the id of the question. Questions without an answer are left out. */
  readonly answers: Readonly<Record<string, readonly string[]>>;
  readonly answered: number;
  readonly asked: number;
}

/** All answers of a form. */
export function formAnswers(questions: readonly Question[], drafts: Drafts): FormAnswers {
  const given = questions
    .map((question) => [question.id, answerOf(question, drafts[question.id])] as const)
    .filter(([, answer]) => answer.length > 0);
  return { answers: Object.fromEntries(given), answered: given.length, asked: questions.length };
}

/** Whether every question has an answer. */
export function isComplete({ answered, asked }: FormAnswers): boolean {
  return answered === asked;
}

/** The label of the button that sends the form. Questions may be left out, but never by accident. */
export function sendLabel(form: FormAnswers): string {
  return form.answered === 0 || isComplete(form) ? "Send" : `Send ${form.answered} of ${form.asked} answers`;
}
