import { describe, expect, it } from 'vitest';
import { BackgroundCalls } from '../../../channels/signal/background-calls.ts';
import { silentLog } from '../../support/silent-log.ts';
import { turns } from '../../support/stepped-clock.ts';

describe('background calls', () => {
  it('makes a question once, before any receipts, however many of those are queued', async () => {
    const calls = new BackgroundCalls(silentLog);
    const made: string[] = [];
    const release = Promise.withResolvers<void>();
    calls.add('slow', () => release.promise);
    calls.ask('groups', async () => void made.push('an earlier question'));
    calls.ask('groups', async () => void made.push('question'));
    for (let count = 0; count < 500; count += 1) calls.add('receipt', async () => void made.push(`${count}`));
    release.resolve();
    await turns();
    while (made.length < 201) await turns();
    expect(made).toEqual(['question', ...Array.from({ length: 200 }, (_, index) => `${index + 300}`)]);
  });
});

it('makes a call that is added just as the last one ends', async () => {
  // One of these moments is exactly when the last one ends.
  for (let moments = 0; moments < 10; moments += 1) {
    const calls = new BackgroundCalls(silentLog);
    let isMade = false;
    calls.add('last', async () => undefined);
    for (let moment = 0; moment < moments; moment += 1) await Promise.resolve();
    calls.add('late', async () => {
      isMade = true;
    });
    await turns();
    expect(isMade).toBe(true);
  }
});
