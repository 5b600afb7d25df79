import { expect, it } from 'vitest';
import { savePromptSizes } from '../../src/store/lanes/commit-summary.ts';
import { commitToolTurn, markToolStarted, storeToolResults } from '../../src/store/lanes/commit-turn.ts';
import { parkForBudget } from '../../src/store/lanes/park-run.ts';
import { describeEachDatabase } from '../store/each-database.ts';
import { anAccount, createIntakeFixture } from './support/intake-fixture.ts';

describeEachDatabase('/context', (open, { sql }) => {
  it('counts tool results among the messages that are still read', async () => {
    const ann = anAccount('alpha');
    const town = createIntakeFixture(open());
    const ask = async () => {
      await town.send(ann, '/context');
      return (await town.said(ann)).at(-1);
    };
    expect(await ask()).toBe('This conversation is still empty.');

    const run = await town.worker.claimRun(town.laneOf(await town.send(ann, 'look')));
    const { laneKey, epoch, runId, sessionId } = run;
    const [fence, callId, messageId] = [{ laneKey, epoch, runId }, 'call-1', crypto.randomUUID()];
    const call = { id: callId, name: 'list', input: '{}', finished: true };
    const parts = [{ type: 'tool_call', data: call }] as const;
    await open().write(commitToolTurn, {
      ...fence,
      message: { id: messageId, sessionId, model: 'test', parts },
      calls: [{ callId, name: 'list', input: '{}' }],
    });
    await open().write(markToolStarted, { ...fence, messageId, callId });
    const data = { tool_call_id: callId, name: 'list', content: 'x'.repeat(3_000), is_error: false };
    const results = [{ callId, isError: false, parts: [{ type: 'tool_result', data }] }] as const;
    await open().write(storeToolResults, { ...fence, messageId, results });
    await town.worker.answer(run, 'seen');

    const [, messages = '', ofTools = ''] = (await ask())?.split('\n') ?? [];
    const [, all] = /^I still read 4 of 4 messages word for word, about (\d+) tokens\.$/.exec(messages) ?? [];
    const [, some] = /^Tool results among them: 1, about (\d+) tokens\.$/.exec(ofTools) ?? [];
    expect(Number(some)).toBeGreaterThan(500);
    expect(Number(all)).toBeGreaterThan(Number(some));
  });

  it('reports the chosen model and the last run in /context and /status', async () => {
    const ann = anAccount('alpha');
    const town = createIntakeFixture(open());
    const ask = async (text: string) => {
      await town.send(ann, text);
      return (await town.said(ann)).at(-1)?.split('\n') ?? [];
    };
    const run = await town.worker.claimRun(town.laneOf(await town.send(ann, 'look')));
    const sizes = { instructionTokens: 1_200, toolTokens: 3_400 };
    await open().write(savePromptSizes, { ...run, ...sizes });
    await town.worker.answer(run, 'seen');
    expect((await ask('/status'))[0]).toBe('Agent main, model sonnet');
    const [size, prompt] = await ask('/context');
    expect(size).toContain('Above 180000, I summarise');
    expect(prompt).toBe('My instructions take about 1200 tokens, the descriptions of my tools about 3400.');
    await town.send(ann, '/model haiku');
    await town.worker.claim(run.laneKey);
    expect((await ask('/status'))[0]).toBe('Agent main, model haiku');
    expect((await ask('/context'))[0]).toContain('Above 80000, I summarise');

    // A note on an earlier message is written into that message's session, which makes it the most recently updated.
    await town.send(ann, '/new');
    await town.worker.claim(run.laneKey);
    const sessionOf = async () => (await ask('/status')).find((line) => line.startsWith('Session:'));
    expect(await sessionOf()).toBe('Session: messages 0, tokens in the last call 0, cost $0.0000');
    await sql(`update sessions set "updatedAt" = "updatedAt" + 1000 where id = '${run.sessionId}'`);
    expect(await sessionOf()).toBe('Session: messages 0, tokens in the last call 0, cost $0.0000');
    expect((await ask('/status'))[0]).toBe('Agent main, model sonnet');
  });

  it('distinguishes a paused run from a working one in /status', async () => {
    const ann = anAccount('alpha');
    const town = createIntakeFixture(open());
    const { laneKey, epoch, runId } = await town.worker.claimRun(town.laneOf(await town.send(ann, 'look')));
    const status = async () => {
      await town.send(ann, '/status');
      return (await town.said(ann)).at(-1)?.split('\n')[2];
    };
    expect(await status()).toMatch(/^Working for \d+ s; 0 waiting\.$/);
    const refusal = { scope: 'session', key: 'session:x', limit: 1, needs: 5, isHeld: false } as const;
    const pause = { reason: 'room', workedMs: 0, waitMs: 600_000, modelCalls: [], notice: undefined };
    await open().write(parkForBudget, { laneKey, epoch, runId, refusal, ...pause });
    expect(await status()).toMatch(/^Paused for \d+ s, until a result arrives; 0 waiting\.$/);
  });
});
