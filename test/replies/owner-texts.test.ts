import { expect, it } from 'vitest';
import { alertText } from '../../src/replies/owner-texts.ts';
import { textsFor } from '../../src/texts/chat-texts.ts';

const german = textsFor('de');
const told = { kind: 'channel-down', subject: 'telegram', count: 1 } as const;

it("tells the owner in their own language why a channel is down, with the network's words", () => {
  const values = { code: 'no-answer', reason: 'ECONNREFUSED' };
  expect(alertText(german, { ...told, values })).toMatch(
    /^telegram ist nicht erreichbar: keine Antwort \(ECONNREFUSED\)\. /,
  );
  expect(alertText(textsFor('en'), { ...told, values })).toContain('it doesn’t answer (ECONNREFUSED).');
});

it('shows a reason without a code, or with an unknown one, unchanged', () => {
  for (const code of [{}, { code: 'constructor' }])
    expect(alertText(german, { ...told, values: { ...code, reason: 'asleep' } })).toContain(': asleep.');
});

it("limits a network's words in a text to one short line", () => {
  const values = { code: 'no-answer', reason: `a\n\u202eb${'x'.repeat(1000)}` };
  const text = alertText(german, { ...told, values });
  expect(text).not.toMatch(/[\n\u202e]/);
  expect(text.length).toBeLessThan(500);
});

it('names the run that failed in a group, and how to find out why', () => {
  const failed = { kind: 'run-failed', subject: 'telegram/1/-2', count: 1 } as const;
  const values = { reason: 'model error', run: 'r1' };
  expect(alertText(textsFor('en'), { ...failed, values })).toMatch(
    /^I failed to answer in telegram\/1\/-2 \(model error\)\. The group only sees ⚠\. .* why r1$/,
  );
  expect(alertText(german, { ...failed, values })).toMatch(/ why r1$/);
});

it('shows the owner times in their time zone, even those stored by an earlier version', () => {
  const waits = { kind: 'delivery-waits', subject: 'telegram/1/2', count: 1 } as const;
  const values = { since: '2026-11-22 11:28 UTC', until: '2026-11-22T23:30:00.000Z' };
  expect(alertText(textsFor('en'), { ...waits, values }, 'Europe/Berlin')).toContain(
    'since 2026-11-22 12:28, and now says to wait until 2026-11-23 00:30.',
  );
});
