import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRedactor, stripLogLine } from '../../src/logging/redaction.ts';
import { holds } from '../support/holds.ts';

const canaries = [
  '123456789:AAF0123456789abcdefghijklmnopqrs-_x',
  'sk-ant-api03-canary-canary-canary',
  'p@ss w"ord\\with/odd+chars?&=%',
  'redis://:s3cr3t-r3dis@10.0.0.7:6379/0',
  'postgres://parley:s3cr3t-pg@db/parley',
  'zm9vYmFyYmF6cXV4MTIzNDU',
  'пароль-с-буквами',
];

const encodings: Record<string, (value: string) => string> = {
  raw: (value) => value,
  URL: encodeURIComponent,
  'lower-case URL': (value) =>
    encodeURIComponent(value).replace(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  base64: (value) => Buffer.from(value).toString('base64'),
  base64url: (value) => Buffer.from(value).toString('base64url'),
  JSON: (value) => JSON.stringify({ body: value }),
  'JSON in JSON': (value) => JSON.stringify({ body: JSON.stringify({ inner: value }) }),
  hex: (value) => Buffer.from(value).toString('hex'),
};

/** Expects every spelling to be gone, not only the one that was logged. */
function expectNoTrace(text: string, value: string) {
  for (const [name, encode] of Object.entries(encodings)) {
    const form = encode(value)
      .replace(/^\{"body":"|"\}$/g, '')
      .replace(/=+$/, '');
    expect(text, name).not.toContain(form);
  }
}

describe('redaction by value', () => {
  const redactor = createRedactor(canaries);

  it.each(Object.keys(encodings))('redacts every canary in its %s form', (name) => {
    for (const canary of canaries) {
      const text = redactor.redact(`before ${encodings[name]?.(canary)} after`);
      expectNoTrace(text, canary);
      expect(text).toMatch(/^before .*\[secret\].* after$/);
    }
  });

  it('redacts any value in any form inside any text', () => {
    const secret = fc.string({ minLength: 8, maxLength: 60, unit: 'grapheme' });
    const noise = fc.string({ maxLength: 30 });
    const encoding = fc.constantFrom(...Object.values(encodings));
    holds(
      fc.property(secret, encoding, noise, noise, (value, encode, before, after) => {
        const text = createRedactor([value]).redact(`${before} ${encode(value)} ${after}`);
        const form = encode(value).replace(/^\{"body":"|"\}$/g, '');
        expect(text).not.toContain(` ${form} `);
        fc.pre(!`${before}${after}[secret]`.includes(value));
        expect(text).not.toContain(value);
      }),
      { interruptAfterTimeLimit: 1500, numRuns: 20_000 },
    );
  });

  it('redacts a password inside base64 of a longer text, at each of the three alignments', () => {
    for (const user of ['a', 'ab', 'abc', 'user']) {
      const header = Buffer.from(`${user}:s3cr3t-canary-value`).toString('base64');
      const inner = header.slice(8, 20);
      const text = createRedactor(['s3cr3t-canary-value']).redact(`header=${header}`);
      expect(text).not.toContain(inner);
    }
  });

  it('redacts what looks like a credential even if it is not registered', () => {
    const { redact } = createRedactor();
    const token = '987654321:BBF0123456789abcdefghijklmnopqrs-_x';
    expect(redact(`GET https://api.example/bot${token}/getUpdates failed`)).toBe(
      'GET https://api.example/bot[secret]/getUpdates failed',
    );
    expect(redact(`/bot${encodeURIComponent(token)}/x`)).not.toContain('BBF01');
    expect(redact(`key sk-ant-${'a1'.repeat(12)} used`)).toBe('key [secret] used');
    expect(redact('authorization: Bearer abc.def.ghi-jkl')).toBe('authorization: Bearer [secret]');
    expect(redact('connect redis://:hunter22@10.0.0.7/0')).toBe('connect redis://:[secret]@10.0.0.7/0');
  });

  it('leaves ordinary text alone', () => {
    const text =
      '{"event":"run.finished","runId":"r1","turns":3,"url":"http://127.0.0.1:7411/x","time":"12:30:45"}';
    expect(createRedactor([...canaries, 'abc']).redact(text)).toBe(text);
  });

  it('accepts values that become known later', () => {
    const later = createRedactor();
    expect(later.redact('value-known-later')).toBe('value-known-later');
    later.add('value-known-later');
    expect(later.redact('value-known-later')).toBe('[secret]');
  });
});

describe('log lines', () => {
  const dirty = [
    'red \u001b[31mtext\u001b[0m',
    'link \u001b]8;;http://evil\u0007click\u001b]8;;\u0007',
    'title \u001b]0;owned\u001b\\ done',
    'bell\u0007 back\b form\f del\u007f csi\u009b31m',
    'bidi \u202egnp.exe\u202c \u2066x\u2069',
    'line\nbreak\r\ttab \u2028 sep',
    'literal \\u001b[31m backslash',
  ];

  it('strips control characters, escape sequences and direction overrides', () => {
    const shown = dirty.map((text) => JSON.parse(stripLogLine(JSON.stringify({ text }))).text);
    expect(shown).toEqual([
      'red text',
      'link click',
      'title  done',
      'bell back form del csi',
      'bidi gnp.exe x',
      'line\nbreak\r\ttab  sep',
      'literal \\u001b[31m backslash',
    ]);
  });

  it('keeps a log line one valid line of JSON, whatever text it carries', () => {
    const risky = fc.constantFrom(...'\\"\u001b\u0007[]0m;nu0b\n\u009b\u202e\u0000');
    holds(
      fc.property(fc.string({ unit: risky, maxLength: 40 }), (text) => {
        const line = stripLogLine(JSON.stringify({ text }));
        const parsed: unknown = JSON.parse(line).text;
        expect(line).not.toContain('\n');
        // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must be gone
        expect(parsed).not.toMatch(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e]/);
      }),
      { interruptAfterTimeLimit: 1500, numRuns: 50_000 },
    );
  });
});
