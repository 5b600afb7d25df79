// Redaction by value: a secret is replaced at the sink, in whatever text and however it got there. Text that
// looks like a credential of a known kind goes too, registered or not.

/** Removes secrets from text that is about to leave the process. */
export interface Redactor {
  /** Registers a value. One shorter than 6 characters is left out: it would blot out ordinary words. */
  add(value: string): void;
  /** The text with every form of every registered value replaced by `[secret]`. */
  redact(text: string): string;
}

const shortestSecret = 6;

/** Creates a redactor that removes the given secrets, also URL-encoded and in JSON, from texts. */
export function createRedactor(values: Iterable<string> = []): Redactor {
  const forms = new Set<string>();
  let pattern: RegExp | undefined;
  const add = (value: string) => {
    if (value.length < shortestSecret) return;
    for (const form of formsOf(value)) forms.add(form);
    pattern = undefined;
  };
  for (const value of values) add(value);
  return {
    add,
    redact: (text) => {
      pattern ??= alternatives(forms);
      return redactKnownKinds(text.replace(pattern, '[secret]'));
    },
  };
}

/** The ways one value is spelt on its way through URLs, headers, JSON (once and twice) and dumps. */
function formsOf(value: string): readonly string[] {
  const escaped = escapeJson(value);
  const url = safeEncodeUri(value);
  const forms = [
    value,
    escaped,
    escapeJson(escaped),
    url,
    url.replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
    url.replace(/%20/g, '+'),
    Buffer.from(value).toString('hex'),
    ...base64Forms(value),
  ];
  return forms.filter((form) => form.length >= shortestSecret);
}

function escapeJson(value: string): string {
  return JSON.stringify(value).slice(1, -1);
}

function safeEncodeUri(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    // A lone surrogate has no URL form.
    return value;
  }
}

/**
 * Base64 maps three bytes to four characters, so inside a longer text (`user:password`, say) a value
 * has three spellings. Of each, only the characters that no neighbour can change are looked for.
 */
function base64Forms(value: string): readonly string[] {
  const bytes = Buffer.from(value);
  const forms: string[] = [];
  for (const offset of [0, 1, 2]) {
    const shifted = Buffer.concat([Buffer.alloc(offset), bytes]);
    const start = Math.ceil((offset * 8) / 6);
    const end = Math.floor((shifted.length * 8) / 6);
    const form = shifted.toString('base64').slice(start, end);
    forms.push(form, form.replaceAll('+', '-').replaceAll('/', '_'), form.replaceAll('/', '\\/'));
  }
  // Shorter ones would match by chance.
  return forms.filter((form) => form.length >= 8);
}

function alternatives(forms: ReadonlySet<string>): RegExp {
  if (forms.size === 0) return /(?!)/g;
  const longestFirst = [...forms].sort((a, b) => b.length - a.length);
  return new RegExp(longestFirst.map(escapePattern).join('|'), 'g');
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}

function redactKnownKinds(text: string): string {
  return text
    .replace(/\b(bot)?\d{5,}(?::|%3A)[\w-]{30,}/gi, (_match, bot?: string) => `${bot ?? ''}[secret]`)
    .replace(/\bsk-[\w-]{16,}/g, '[secret]')
    .replace(/\b(Bearer|Basic) [\w.~+/=-]{8,}/gi, '$1 [secret]')
    .replace(/(:\/\/[^\s:/@"']*:)[^\s/@"']+@/g, '$1[secret]@');
}

/**
 * Makes one JSON log line harmless on a terminal: escape sequences, other control characters and
 * direction overrides go; line breaks and tabs stay in their escaped form, so lines equal events.
 */
export function stripLogLine(line: string): string {
  if (!suspect.test(line)) return line;
  return line.replace(stringLiteral, (literal) =>
    suspect.test(literal) ? JSON.stringify(stripText(JSON.parse(literal))) : literal,
  );
}

/** A string of a JSON text. Worked on one at a time, so that nothing in one can reach into the next. */
const stringLiteral = /"(?:[^"\\]|\\.)*"/g;

const suspect = /\\[bfu]|[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** Plain text without escape sequences (CSI, OSC) and without characters that act instead of show. */
export function stripText(text: string): string {
  return text.replace(escapeSequences, '').replace(harmfulCharacters, '');
}

const escapeSequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  /(?:\u001b\[|\u009b)[0-9;:?<=>]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;

const harmfulCharacters = /[[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]--[\t\n\r]]/gv;
