import { stripText } from '../../logging/redaction.ts';

export type Option<Value extends string> = {
  readonly value: Value;
  readonly label: string;
  readonly hint?: string;
};

/** The result of an attempt. */
export type TrialResult = { readonly isWell: boolean; readonly text: string };

/** Asks the person at the terminal. Each question throws `PromptCancelled` if they leave instead (Ctrl-C). */
export interface Prompter {
  choose<Value extends string>(question: string, options: readonly Option<Value>[]): Promise<Value>;
  /** `problemOf`: returns why an answer can't be accepted. */
  text(
    question: string,
    options?: { readonly example?: string; problemOf?(value: string): string | undefined },
  ): Promise<string>;
  /** Works like `text`, but shows none of the typed characters. */
  secret(question: string, problemOf: (value: string) => string | undefined): Promise<string>;
  /** Shows what is being tried, and then the result. */
  attempt<Result extends TrialResult>(what: string, work: () => Promise<Result>): Promise<Result>;
  say(text: string): void;
}

/** The person ended the questions. */
export class PromptCancelled extends Error {}

/** Stands for the end of the input. */
const inputEnded = Symbol('input ended');

/** Loads the prompt library, which nothing else needs. */
export async function openPrompter(title: string): Promise<Prompter & { end(text: string): void }> {
  const clack = await import('@clack/prompts');
  // The library would wait for ever on an input that has ended, such as /dev/null or a closed pipe.
  const ended = new Promise<symbol>((resolve) => process.stdin.once('end', () => resolve(inputEnded)));
  const answered = async <Value>(asked: Promise<Value>): Promise<Exclude<Value, symbol>> => {
    const value = await Promise.race([asked, ended]);
    if (value === inputEnded) throw new PromptCancelled();
    if (clack.isCancel(value)) throw new PromptCancelled();
    // The library returns no other symbol.
    return value as Exclude<Value, symbol>;
  };
  clack.intro(title);
  return {
    choose: async (message, options) => {
      const choices = options.map(({ value, label, hint }) => ({
        value: `${value}`,
        label,
        ...(hint !== undefined && { hint }),
      }));
      const chosen = await answered(clack.select<string>({ message, options: choices }));
      const option = options.find(({ value }) => value === chosen);
      if (option === undefined) throw new PromptCancelled();
      return option.value;
    },
    text: async (message, { example, problemOf } = {}) => {
      const typed = clack.text({
        message,
        ...(example !== undefined && { placeholder: example }),
        validate: (value) => problemOf?.((value ?? '').trim()),
      });
      return ((await answered(typed)) ?? '').trim();
    },
    secret: async (message, problemOf) => {
      const typed = clack.password({ message, validate: (value) => problemOf((value ?? '').trim()) });
      return ((await answered(typed)) ?? '').trim();
    },
    attempt: async (what, work) => {
      clack.log.step(`${what} …`);
      const tried = await work();
      const text = tried.text.split('\n').map(stripText).join('\n');
      if (tried.isWell) clack.log.success(text);
      else clack.log.error(text);
      return tried;
    },
    say: (text) => clack.log.message(text),
    end: (text) => {
      clack.outro(text);
      // A pipe that stays open would keep the process alive. A file, such as /dev/null, can't be left.
      if ('unref' in process.stdin) process.stdin.unref();
    },
  };
}
