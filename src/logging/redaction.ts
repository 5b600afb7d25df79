// Redaction by value: a secret is replaced at the sink, whatever text it is in and however it got there. Text that
// looks like a known kind of credential is removed too, registered or not.

/** Removes secrets from text that is about to leave the process. */
export interface Redactor {
  /** Registers a value. Values shorter than 6 characters are ignored, since they would blot out ordinary words. */
  add(value: string): void;
  /** Returns the text with every form of every registered value replaced by `[secret]`. */
  redact(text: string): string;
}

const shortestSecret = 6;

/** Creates a redactor that removes the given secrets from texts, including URL-encoded and JSON-escaped ones. */
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

/** Returns the spellings of a value in URLs, headers, JSON (escaped once and twice) and dumps. */
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
 * Base64 maps three bytes to four characters, so inside a longer text such as `user:password` a value has three
 * spellings. Only those characters of each are searched for that neighboring bytes can't change.
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
 * Makes one JSON log line harmless on a terminal: escape sequences, other control characters and direction overrides
 * are removed. Line breaks and tabs stay in their escaped form, so each line is one event.
 */
export function stripLogLine(line: string): string {
  if (!suspect.test(line)) return line;
  return line.replace(stringLiteral, (literal) =>
    suspect.test(literal) ? JSON.stringify(stripText(JSON.parse(literal))) : literal,
  );
}

/** Matches a string in JSON text. Strings are processed one by one, so that none can affect the next. */
const stringLiteral = /"(?:[^"\\]|\\.)*"/g;

const suspect = /\\[bfu]|[\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** Returns the text without escape sequences (CSI, OSC) and without characters that act instead of being displayed. */
export function stripText(text: string): string {
  return text.replace(escapeSequences, '').replace(harmfulCharacters, '');
}

const escapeSequences =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is removed
  /(?:\u001b\[|\u009b)[0-9;:?<=>]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;

const harmfulCharacters = /[[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]--[\t\n\r]]/gv;
