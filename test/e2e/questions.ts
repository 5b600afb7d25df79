/** The questions people ask in the crash tests, and the model's answers, so that each answer names its question. */
import type { AnthropicServer } from '../platforms/anthropic/server.ts';
import type { Turn } from '../platforms/anthropic/turn.ts';
import { blocksOf, type WireBody } from '../platforms/anthropic/wire.ts';

const pattern = /question-[\w-]*\w/g;

export function answerTo(question: string): string {
  return `The answer to ${question}.`;
}

/** Returns the newest question in the request. */
export function questionOf(body: WireBody): string {
  return questionsIn(body).at(-1) ?? 'nothing';
}

export function answerQuestion(body: WireBody): Turn {
  return { text: answerTo(questionOf(body)) };
}

/** Returns the questions that any single request contained more than once. */
export function shownTwice(model: AnthropicServer): readonly string[] {
  return model.requests.flatMap(({ body }) => {
    const questions = questionsIn(body);
    return questions.filter((question, index) => questions.indexOf(question) !== index);
  });
}

/** Returns the questions in a request, in order; none if it is undefined. */
export function questionsIn(body: WireBody | undefined): readonly string[] {
  const messages = body?.messages ?? [];
  const said = messages.filter((message) => message.role === 'user').flatMap(blocksOf);
  return said.flatMap((block) => block.text?.match(pattern) ?? []);
}
