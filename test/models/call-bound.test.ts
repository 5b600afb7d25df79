import { expect, it } from 'vitest';
import { promptBound, promptTextOf } from '../../src/models/call-bound.ts';
import { aRequest } from './builders.ts';

const data = 'a'.repeat(300_000);

it('bounds an image by its price, and anything a model or plugin calls one by its bytes', () => {
  const image = { type: 'image', mimeType: 'image/png', base64: data } as const;
  const shown = promptTextOf(aRequest({ messages: [{ role: 'user', content: [image] }] }));
  expect(shown.images).toBe(1);
  expect(promptBound(shown, 'm', undefined)).toBeLessThan(10_000);

  const call = { type: 'tool_use', id: 'c', name: 'write', input: { base64: data } } as const;
  const called = promptTextOf(aRequest({ messages: [{ role: 'assistant', content: [call] }] }));
  expect(called.images).toBe(0);
  expect(promptBound(called, 'm', undefined)).toBeGreaterThan(data.length);
});
