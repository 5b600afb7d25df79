import { inspect } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findSecretProblem, revealSettings, Secret } from '../../src/config/secret.ts';
import { holds } from '../support/holds.ts';

describe('secrets', () => {
  it("never prints a secret's value, whatever prints it", () => {
    holds(
      fc.property(fc.string({ minLength: 9 }), (value) => {
        fc.pre(!'[secret]{"a":"[secret]"}{ a: [secret] }'.includes(value));
        const secret = new Secret(value);
        const prints = [
          String(secret),
          `${secret}`,
          `${secret}`.concat(''),
          JSON.stringify({ a: secret }),
          inspect(secret),
          inspect({ a: secret }, { showHidden: true, depth: 9 }),
          Object.values(secret).join(),
          JSON.stringify(Object.getOwnPropertyNames(secret)),
        ];
        for (const print of prints) expect(print).not.toContain(value);
        expect(secret.reveal()).toBe(value);
      }),
      { interruptAfterTimeLimit: 1000, numRuns: 2000 },
    );
  });

  it('reveals secrets in settings only on request', () => {
    const settings = { enabled: true, token: new Secret('abc') };
    expect(JSON.stringify(settings)).toBe('{"enabled":true,"token":"[secret]"}');
    expect(revealSettings(settings)).toEqual({ enabled: true, token: 'abc' });
  });
});

describe('credentials', () => {
  const kinds = ['telegram-token', 'discord-token', 'api-key', 'access-token', 'password'] as const;
  const placeholders = [
    '',
    '   ',
    'undefined',
    'null',
    'None',
    'NaN',
    '[object Object]',
    'changeme',
    'CHANGE_ME',
    'change-me',
    'your-token-here',
    'YOUR_API_KEY_HERE',
    'your_bot_token',
    'xxx',
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx',
    '****',
    '<token>',
    '<your token here>',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the literal text is what must be refused
    '${TELEGRAM_BOT_TOKEN}',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the literal text is what must be refused
    '123456:${TOKEN}',
    ' padded-credential ',
  ];

  it.each(placeholders)('refuses the placeholder %j as a credential of any kind', (value) => {
    for (const kind of kinds) expect(findSecretProblem(value, kind), kind).toBeTypeOf('string');
  });

  it.each([
    ['telegram-token', '123456789:AAF0123456789abcdefghijklmnopqrs-_x'],
    ['discord-token', 'MTA0NzM0MTIzNDU2Nzg5MDEy.G4abcd.0123456789abcdefghijklmnopqrs-_xyz'],
    ['api-key', 'sk-ant-api03-abcdefgh'],
    ['server-key', 'ollama'],
    ['access-token', 'Zm9vYmFyYmF6cXV4MTIzNDU'],
    ['password', 'p'],
  ] as const)('accepts a well-formed credential of kind %s', (kind, value) => {
    expect(findSecretProblem(value, kind)).toBeUndefined();
  });

  it.each([
    ['access-token', 'correct horse battery staple'],
    ['access-token', 'Größe-Zm9vYmFyYmF6cXV4MTIzNDU'],
    ['telegram-token', '123456789:short'],
    ['discord-token', 'MTA0NzM0MTIzNDU2Nzg5MDEy.G4abcd'],
    ['telegram-token', 'AAF0123456789abcdefghijklmnopqrs-_x'],
    ['telegram-token', '12:AAF0123456789abcdefghijklmnopqrs-_x\nx'],
    ['api-key', 'k1ck3t'],
    ['api-key', 'sk-proj-0000001\nsk-proj-0000002'],
    ['api-key', 'sk-proj-0000001 sk-proj-0000002'],
    ['api-key', 'sk-proj-\u200b0000001'],
    ['server-key', 'two words'],
    ['api-key', '"sk-ant-api03-abcdefgh"'],
    ['server-key', "'ollama'"],
    ['access-token', 'abcdefghijklmnopqrstu'],
    ['access-token', 'abababababababababababababababab'],
  ] as const)('refuses a weak credential of kind %s: %j', (kind, value) => {
    const problem = findSecretProblem(value, kind);
    expect(problem).toBeTypeOf('string');
    expect(problem).not.toContain(value);
  });
});
