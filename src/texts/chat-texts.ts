/**
 * Every text that Parley itself says to people, in one data file per language. `{name}` is filled in. The operator
 * can override any of them in the configuration; a language without a file gets English. Chat says "I"; each text says
 * what happened, then one next step. German is in the du-form.
 */

import { parleyCommand } from '#channel-kit/own-commands.ts';
import { ParleyError } from '#contracts/errors.ts';
import german from './de.json' with { type: 'json' };
import english from './en.json' with { type: 'json' };

/** The key of a text; overrides in the configuration name it. */
export type TextKey = keyof typeof english;
/** All of Parley's chat texts, by key. */
export type ChatTexts = Readonly<Record<TextKey, string>>;
/** Values for the `{name}`s in a text. */
export type TextValues = Readonly<Record<string, unknown>>;

const languages: Readonly<Record<string, ChatTexts>> = { en: english, de: german };

/**
 * Returns the texts for `language`, a BCP 47 tag of which only the first part counts. Throws `config_invalid` when
 * `overrides` names an unknown text.
 */
export function textsFor(language: string, overrides: Readonly<Record<string, string>> = {}): ChatTexts {
  const unknown = Object.keys(overrides).filter((name) => !Object.hasOwn(english, name));
  if (unknown.length > 0)
    throw new ParleyError(
      'config_invalid',
      `texts: there is no text named ${unknown.join(', ')}; use one of: ${Object.keys(english).join(', ')}`,
    );
  const primary = language.toLowerCase().split('-')[0] ?? 'en';
  const table = Object.hasOwn(languages, primary) ? languages[primary] : undefined;
  return { ...english, ...table, ...overrides };
}

/**
 * Fills in `{name}`, and `{parley}` with the command that runs Parley here. A name without a value stays as it is, so
 * that a wrong override is noticed.
 */
export function fillText(text: string, values: TextValues = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => {
    if (Object.hasOwn(values, name)) return String(values[name]);
    return name === 'parley' ? parleyCommand : whole;
  });
}

/** Writes micro-dollars as dollars, small amounts with four decimals: `$0.0123`, `$12.50`. */
export function dollarText(microDollars: number): string {
  const dollars = microDollars / 1e6;
  return `$${dollars.toFixed(Math.abs(dollars) < 1 ? 4 : 2)}`;
}
